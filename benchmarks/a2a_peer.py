"""SendMessage between two processes by a2a-sdk, over plain HTTP, nothing written down: the peer that HELP is measured against."""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time

from benchmarks.daemon import free_port


def missing() -> str:
    """Returns the packages that must be installed first."""
    try:
        import a2a  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        return "a2a-sdk (pip install -c constraints.txt -e '.[bench]')"
    return ""


def measure() -> tuple[float, float]:
    """(milliseconds at one call at a time, calls a second at 8; at 32 its client gives connections up)."""
    port = free_port()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(port,), daemon=True)
    server.start()
    try:
        return asyncio.run(_load(port))
    finally:
        server.terminate()
        server.join()


def _serve(port: int) -> None:
    import uvicorn
    from a2a.helpers import new_text_message
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from starlette.applications import Starlette

    class Echo(AgentExecutor):
        async def execute(self, context, event_queue):  # type: ignore[no-untyped-def]
            await event_queue.enqueue_event(new_text_message(context.get_user_input()))

        async def cancel(self, context, event_queue):  # type: ignore[no-untyped-def]
            raise NotImplementedError

    card = _card(port)
    handler = DefaultRequestHandler(Echo(), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    uvicorn.run(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error", access_log=False)


def _card(port: int):  # type: ignore[no-untyped-def]
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill

    return AgentCard(
        name="echo",
        description="Gives back what it gets.",
        version="1",
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        supported_interfaces=[AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version="1.0")],
        skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
    )  # fmt: skip


async def _load(port: int) -> tuple[float, float]:
    import httpx
    from a2a.client.client import ClientConfig
    from a2a.client.client_factory import ClientFactory
    from a2a.helpers import new_text_message
    from a2a.types import Role, SendMessageRequest

    async with httpx.AsyncClient(
        limits=httpx.Limits(max_connections=64, max_keepalive_connections=64), timeout=30
    ) as http:
        client = ClientFactory(ClientConfig(streaming=False, httpx_client=http)).create(_card(port))

        async def one(text: str) -> None:
            async for _ in client.send_message(
                SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
            ):
                pass

        for _ in range(200):
            try:
                await one("ready?")
                break
            except Exception:
                await asyncio.sleep(0.1)
        took = []
        for number in range(150):
            started = time.perf_counter()
            await one(str(number))
            took.append((time.perf_counter() - started) * 1000)

        async def several(count: int) -> None:
            for number in range(count):
                await one(str(number))

        started = time.perf_counter()
        await asyncio.gather(*(several(40) for _ in range(8)))
        return statistics.median(took), 8 * 40 / (time.perf_counter() - started)
