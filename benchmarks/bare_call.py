"""The barest recorded call over HTTP, ``python -m benchmarks.bare_call PORT``: read by aiohttp, answered by a worker process, both sides committed.

It looks at no header, no right and no schema, and knows no threads. What it takes, no recorded call can do without.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from itertools import count
from pathlib import Path

import orjson
from aiohttp import web

from benchmarks.bare_steps import BareRecord, BareWorker
from rappd.daemon.event_loop import new_event_loop


async def _serve(port: int, folder: Path) -> None:
    worker, record, numbers = BareWorker(), BareRecord(folder / "bare.db"), count()
    worker.attach()

    async def call(request: web.Request) -> web.Response:
        raw = await request.read()
        asked, number = orjson.loads(raw), str(next(numbers))
        arguments = asked["params"]["arguments"]
        text = "answered " + await worker.ask(arguments["query"])
        result = {"content": [{"type": "text", "text": text}], "isError": False}
        answer = orjson.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        await record.put((number, "HELP", raw), (number, "DONE", answer))
        return web.Response(body=answer, content_type="application/json")

    app = web.Application()
    app.router.add_post("/mcp", call)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name, asyncio.Runner(loop_factory=new_event_loop) as run:
        run.run(_serve(int(sys.argv[1]), Path(name)))
