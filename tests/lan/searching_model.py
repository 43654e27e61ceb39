"""A model on some machine that calls the tool Search where it is offered, and then says what came of it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from aiohttp import web
from fixtures.loopback_server import FakeModel, calls, says


class SearchingModel(FakeModel):
    """Answers on the given port."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        last = body["messages"][-1]
        offered = [one["function"]["name"] for one in body.get("tools", ())]
        if last["role"] == "tool":
            self.script = [says(f"It returned: {last['content']}")]
        elif "Search" in offered:
            self.script = [calls(("Search", {"query": "nails"}))]
        else:
            self.script = [says("There is no such tool.")]
        return await super()._complete(request)


if __name__ == "__main__":
    SearchingModel(int(sys.argv[1])).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    threading.Event().wait()
