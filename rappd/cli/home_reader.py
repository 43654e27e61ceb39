"""Reading a home in this process while no daemon runs: operations are performed directly, and nothing listens."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import orjson

from agents.runtimes.python.sandbox.privileges import protect_daemon
from envelopes.errors import ReportableError
from rappd.control_client import ResponseError
from rappd.daemon.app import Daemon
from rappd.daemon.event_loop import new_event_loop
from rappd.daemon.home import Home
from rappd.daemon.open_home import open_home
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import RappdError, disk_problem
from rappd.settings.load import Settings
from rappd.tenants.tenant import Tenant

_OPERATOR = Caller("control", operator=True)
log = logging.getLogger(__name__)


class HomeReader:
    """A home that is opened for as long as a command takes. Errors go to the terminal."""

    def __init__(self, home: Home) -> None:
        logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stderr)
        protect_daemon()
        self._runner = asyncio.Runner(loop_factory=new_event_loop)
        self._opened = AsyncExitStack()
        self._daemon = self._runner.run(self._open(home))

    def perform(
        self, name: str, given: dict[str, Any], on_event: Callable[[dict[str, Any]], object] | None = None
    ) -> dict[str, Any]:
        """The answer of an operation; ``on_event`` gets the events that come before it. Raises ``ResponseError``."""
        try:
            answer: dict[str, Any] = self._runner.run(self._perform(name, given, on_event))
        except ReportableError as found:
            problem: ReportableError = found
        except Exception as error:
            log.exception("%s failed", name)
            problem = disk_problem(error) or RappdError(
                "Something went wrong inside; the log has it.", do="rappd logs"
            )
        else:
            return answer
        raise ResponseError(problem.as_json(), problem.status)

    def close(self) -> None:
        """Closes the home."""
        self._runner.run(self._opened.aclose())
        self._runner.close()

    async def _open(self, home: Home) -> Daemon:
        return await self._opened.enter_async_context(open_home(home, Settings.load(home), mode="read"))

    async def _perform(
        self, name: str, given: dict[str, Any], on_event: Callable[[dict[str, Any]], object] | None
    ) -> Any:
        operation, perform = self._daemon.table[name]
        sent = {key: value for key, value in given.items() if value is not None}
        whose = (await self._tenant(str(sent.pop("twin", ""))),) if operation.of_tenant else ()
        sent |= {key: str(sent[key]) or " " for key in operation.in_path}  # as it would stand in a path
        arguments = operation.read(sent, as_text=not operation.has_body)
        arguments |= {key: _OPERATOR for key, kind in operation.of_request.items() if kind is Caller}
        found = await perform(*whose, **arguments)
        if isinstance(found, Turn):
            async for _, raw in found.events():
                event = orjson.loads(raw)
                del event["type"]
                if on_event is not None:
                    on_event(event)
            found = (await found.reply()).data
        return orjson.loads(orjson.dumps(found, default=str))

    async def _tenant(self, twin: str) -> Tenant:
        tenant = await self._daemon.tenants.twin(twin) if twin else self._daemon.host
        await tenant.described()
        return tenant
