"""The privileged channel: signed requests that change structure, at the control socket alone, each an operation of the table."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from envelopes.codecs import privileged_xml
from envelopes.codecs.privileged_xml import PrivilegedRequest
from envelopes.errors import MalformedError, ReportableError
from envelopes.identity.keys import IdentityKey
from rappd.daemon.activity_feed import ActivityFeed
from rappd.dispatch.rights import Caller
from rappd.errors import ConflictError, NotFoundError, RefusedError
from rappd.features.operation import OWNER, Download, OperationTable, Stream, operation
from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

SECONDS = 300.0
"""A message is good so long before and after its time, once."""
_MOST_KEPT = 10_000
_CONTENT = "application/xml; charset=utf-8"


class Mapped(NamedTuple):
    """The operation that a request is, its arguments by the request's fields, and the kind of entry that it is of."""

    operation: str
    fields: dict[str, str]
    kind: str = ""


_LISTENER = {"name": "name", "file": "file"}
_AGENT = {"name": "name", "prompt": "prompt", "tool": "tools"}
_GATEWAY = {"name": "name", "fingerprint": "fingerprint", "remote-url": "remote_url"}
_TIMER = {"name": "name", "when": "when", "ask": "ask", "remind": "remind", "zone": "zone"}
_NAME = {"name": "name"}

REQUESTS: dict[str, Mapped] = {
    "register-listener": Mapped("organism.add", _LISTENER, "listener"),
    "unregister-listener": Mapped("organism.remove", _NAME, "listener"),
    "register-agent": Mapped("organism.add", _AGENT, "agent"),
    "unregister-agent": Mapped("organism.remove", _NAME, "agent"),
    "register-remote-gateway": Mapped("organism.add", _GATEWAY, "gateway"),
    "unregister-remote-gateway": Mapped("organism.remove", _NAME, "gateway"),
    "register-timer": Mapped("organism.add", _TIMER, "timer"),
    "unregister-timer": Mapped("organism.remove", _NAME, "timer"),
    "reload": Mapped("organism.reload", {}),
    "list-listeners": Mapped("organism.listeners", {}),
    "get-listener-schema": Mapped("organism.listener", _NAME),
    "get-organism-graph": Mapped("organism.graph", {"format": "format"}),
    "get-status": Mapped("operator.status", {}),
    "get-config": Mapped("settings.list", {}),
    "set-config": Mapped("settings.set", {"name": "name", "value": "value"}),
    "get-thread-history": Mapped("threads.show", {"thread": "thread"}),
    "inject-message": Mapped("agents.run", {"to": "agent", "json": "args"}),
}
"""The requests of ``privileged-msg.xsd`` and those of the YAML's other sections. ``docs/wire.md`` lists them."""
_NEEDED = ("name", "value", "agent", "thread")
"""Arguments without which no operation does anything."""
_FORMATS = {"json": "json", "mermaid": "mermaid", "graphviz": "dot"}
SUBSCRIPTIONS = ("subscribe-thread", "unsubscribe")
SHUTDOWN = "shutdown"
_EVENTS = {"event": "thread-event", "agents": "listener-event"}


class PrivilegedOperations:
    """Takes what the owner's key signed. A message that was taken is refused for as long as it would be good."""

    def __init__(
        self,
        identity: IdentityKey,
        table: Callable[[], OperationTable],
        host: Tenant,
        feed: ActivityFeed,
        stop: Callable[[], None],
        *,
        began: float,
    ) -> None:
        """``table`` gives the operations; ``stop`` ends the daemon, which ``began`` at that time."""
        self._identity, self._table, self._host, self._feed, self._stop = identity, table, host, feed, stop
        self._used: OrderedDict[str, float] = OrderedDict()
        self._threads: set[str] = set()
        self._began = began  # what was taken before is not known any more

    @operation("organism.privileged", "POST", "/organism/privileged", right=OWNER)
    async def privileged(self, message: bytes, caller: Caller) -> Download:
        """Performs a signed `<privileged-msg>`; the answer is a `<privileged-response>`. At the control socket alone."""
        self._check(caller)
        request: PrivilegedRequest | None = None
        try:
            request = await asyncio.to_thread(privileged_xml.decode, message)
            self._take(request.verified(self._identity.public))
            answer = await self._performed(request, caller)
        except ReportableError as problem:
            ident = request.id if request is not None else ""
            answer = privileged_xml.refusal(ident, problem.code, str(problem), problem.do)
        return Download(Path("response.xml"), answer, _CONTENT)

    @operation("organism.events", "GET", "/organism/privileged/events", right=OWNER)
    async def events(self, caller: Caller) -> Stream:
        """Pushes `<privileged-push>` messages as server-sent events: of subscribed threads, listeners, the system.

        At the control socket alone.
        """
        self._check(caller)
        return Stream(self._pushed(self._feed.follow()))

    async def _pushed(self, news: AsyncIterator[bytes]) -> AsyncGenerator[tuple[None, bytes], None]:
        async for line in news:
            event = orjson.loads(line)
            kind = _EVENTS.get(event["type"], "system-event")
            thread = str(event.get("thread") or "")
            if kind == "thread-event" and not any(thread.startswith(one) for one in self._threads):
                continue
            yield None, privileged_xml.push(kind, event)

    def _check(self, caller: Caller) -> None:
        if caller.listener != "control":
            log.warning("security: a privileged message came to the listener loopback, and was dropped")
            raise RefusedError("The privileged channel is the control socket.", do="rappd organism sign FILE")

    def _take(self, request: PrivilegedRequest) -> None:
        """Raises ``RefusedError`` for a message out of its time, ``ConflictError`` for one that was taken."""
        now = time.time()
        while self._used and next(iter(self._used.values())) < now:
            self._used.popitem(last=False)
        if abs(now - request.at) > SECONDS or request.at < self._began:
            raise RefusedError("The message is too old, or of later.", do="Sign it anew: rappd organism sign")
        if request.id in self._used or len(self._used) >= _MOST_KEPT:
            raise ConflictError("That message was taken already.", do="Sign it anew: rappd organism sign")
        self._used[request.id] = now + 2 * SECONDS

    async def _performed(self, request: PrivilegedRequest, caller: Caller) -> bytes:
        if request.name == SHUTDOWN:
            self._stop()
            return privileged_xml.response(request.id)
        if request.name in SUBSCRIPTIONS:
            thread = str(request.fields.get("thread") or "")
            if len(thread) < 4:
                raise MalformedError(
                    "<thread> is the id of a thread, or its beginning.", do="rappd threads list"
                )
            (self._threads.add if request.name == "subscribe-thread" else self._threads.discard)(thread)
            return privileged_xml.response(request.id)
        if (mapped := REQUESTS.get(request.name)) is None:
            raise NotFoundError(f"<{request.name[:60]}> is no request.", do="docs/wire.md lists them.")
        one, perform = self._table()[mapped.operation]
        given = _arguments(request, mapped) | ({"kind": mapped.kind} if mapped.kind else {})
        arguments = one.read(given, as_text=False)
        if Caller in one.of_request.values():
            arguments |= {name: caller for name, kind in one.of_request.items() if kind is Caller}
        whose = (self._host,) if one.of_tenant else ()
        result = await perform(*whose, **arguments)
        return privileged_xml.response(request.id, operation=one.name, result=result)


def _arguments(request: PrivilegedRequest, mapped: Mapped) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in request.fields.items():
        if name not in mapped.fields:
            known = ", ".join(mapped.fields) or "none"
            raise MalformedError(f"<{request.name}> has no “{name[:60]}”.", do=f"It takes: {known}.")
        argument = mapped.fields[name]
        if argument == "tools":
            found[argument] = value if isinstance(value, list) else [value]
        elif isinstance(value, list):
            raise MalformedError(f"<{name[:60]}> comes more than once.", do="Send it once.")
        elif argument == "args":
            found[argument] = _json(value)
        elif argument == "format":
            if value not in _FORMATS:
                raise MalformedError(
                    f"<format> is no “{value[:60]}”.", do=f"It is one of: {', '.join(_FORMATS)}."
                )
            found[argument] = _FORMATS[value]
        else:
            found[argument] = value
    for name, argument in mapped.fields.items():
        if argument in _NEEDED and argument not in found:
            raise MalformedError(
                f"<{request.name}> lacks <{name}>.", do=f"It takes: {', '.join(mapped.fields)}."
            )
    return found


def _json(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedError("<json> holds no JSON.", do="Send an object of arguments.") from error
