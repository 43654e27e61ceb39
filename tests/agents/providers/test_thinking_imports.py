"""Heavy libraries stay out until a model is asked, and then load beside the event loop."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_choosing_a_model_loads_no_http_client():
    out = run(
        """
        import sys
        import agents.providers.selection
        print(sorted({"aiohttp", "httpx", "pydantic"} & set(sys.modules)))
        """
    )
    assert out == "[]"


def test_fake_model_loads_nothing_heavy():
    out = run(
        """
        import asyncio, sys
        from agents.providers.selection import ProviderSelector, ProviderSettings
        from agents.providers.provider import FakeModel
        from agents.providers.provider import ModelRequest

        async def main():
            idle = ProviderSelector(ProviderSettings(provider_url="127.0.0.1:9/v1"), FakeModel())
            idle.describe()
            fake = ProviderSelector(ProviderSettings(fake=True), FakeModel())
            fake.start()
            await fake.complete(ModelRequest([{"role": "user", "content": "hi"}], [], None))

        asyncio.run(main())
        print(sorted({"aiohttp", "httpx", "pydantic"} & set(sys.modules)))
        """
    )
    assert out == "[]"


def test_first_answer_imports_nothing_heavy_on_the_loop():
    out = run(
        """
        import asyncio, sys, threading
        import orjson, uuid, base64
        from agents.providers.selection import ProviderSelector, ProviderSettings
        from agents.providers.provider import FakeModel
        from agents.providers.provider import ModelRequest

        on_loop = set()
        HEAVY = ("aiohttp", "yarl", "multidict", "ssl", "certifi")

        def hook(event, args):
            if event == "import" and threading.current_thread() is threading.main_thread():
                if args[0].startswith(HEAVY) and args[0] not in sys.modules:
                    on_loop.add(args[0])

        ANSWER = orjson.dumps({"choices": [{"message": {"content": "hello"}}]})
        STREAM = b'data: {"choices": [{"delta": {"content": "streamed"}}]}\\n\\ndata: [DONE]\\n\\n'

        async def serve(reader, writer):
            while head := await reader.readuntil(b"\\r\\n\\r\\n"):
                kind, content = b"application/json", b'{"data": [{"id": "m"}]}'
                if head.startswith(b"POST"):
                    length = int(head.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
                    stream = orjson.loads(await reader.readexactly(length)).get("stream")
                    kind = b"text/event-stream" if stream else b"application/json"
                    content = STREAM if stream else ANSWER
                writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: " + kind +
                             b"\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(content) + content)
                await writer.drain()

        async def main():
            server = await asyncio.start_server(serve, "127.0.0.1", 0)
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            settings = ProviderSettings(local_servers=(url,), use_local=True, probe_timeout=20, github_gh=False)
            thinking = ProviderSelector(settings, FakeModel())

            async def prompt():
                return ""

            said = []
            user = [{"role": "user", "content": "hi"}]
            sys.addaudithook(hook)
            thinking.start()
            whole = await thinking.complete(ModelRequest(user, [], prompt))
            streamed = await thinking.complete(ModelRequest(user, [], prompt, on_text=said.append))
            print(whole.text, streamed.text, "".join(said), sorted(on_loop),
                  "aiohttp" in sys.modules)
            await thinking.close()

        asyncio.run(main())
        """
    )
    assert out == "hello streamed streamed [] True"
