"""The latest events and file changes, for the page's Activity list and its notices."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from agents.contract.agent import Change
from envelopes.codecs.emergence import as_object
from envelopes.envelope import Envelope
from rappd.dispatch.dispatcher import Dispatcher
from rappd.organism.organism_file import Fault
from rappd.organism.organism_in_force import FILE
from rappd.store.notice_table import Notice
from rappd.tenants.agent_summary import change_text, example_for, failure_text
from rappd.transcript.thread_rows import envelope_row

if TYPE_CHECKING:
    from rappd.tenants.tenant import Tenant

log = logging.getLogger("agents")

_KEEP_WAITING = 500
_LOOK_SECONDS = 1.0


class ActivityFeed:
    """Hands news to listeners; one that reads too slowly loses the oldest, nobody else waits."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        """``dispatcher``: its records are news, while somebody listens."""
        self._dispatcher = dispatcher
        self._listeners: set[asyncio.Queue[bytes | None]] = set()
        self.recent_changes: deque[dict[str, Any]] = deque(maxlen=50)
        self._watched: dict[str, Callable[[], Awaitable[object]]] = {}
        self._seen: dict[str, object] = {}
        self._looked = 0.0

    def watch(self, kind: str, look: Callable[[], Awaitable[object]]) -> None:
        """News of ``kind`` come whenever ``look`` gives another value: asked of what changes by itself, as time passes."""
        self._watched[kind] = look

    def _saw(self, envelope: Envelope) -> None:
        self.tell({"type": "event", **envelope_row(as_object(envelope))})

    def agents_changed(self, tenant: Tenant, changes: list[Change], *, quiet: bool) -> None:
        """Agent files came, changed, failed or went. ``quiet``: the log alone tells of it, without examples."""
        for change in changes:
            news = _news(tenant, change, with_example=not quiet)
            level = logging.INFO if news["ok"] else logging.WARNING
            log.log(level, "%s", news["message"], extra={"kind": change.kind, "file": change.file})
            if not quiet:
                self.recent_changes.append(news)
                self.tell(news)

    def organism_changed(self, faults: Sequence[Fault]) -> None:
        """Another ``organism.yaml`` is in force, or was refused for its faults."""
        message = "organism.yaml changed; it is in force."
        if faults:
            message = f"organism.yaml, {faults[0]} The version before stays in force."
        news = {"type": "agents", "kind": "organism", "ok": not faults, "file": FILE, "agents": []}
        self.recent_changes.append({**news, "message": message})
        self.tell(self.recent_changes[-1])

    def noticed(self, notice: Notice) -> None:
        """News for the owner came. Those of failures go to the page's inline messages too."""
        news = {"type": "failed" if notice.kind == "failed" else "notice", "ok": notice.kind != "failed"}
        self.tell({**news, "kind": notice.kind, "key": notice.key, "message": notice.what, "do": notice.do})

    def notice_gone(self, key: str) -> None:
        """News for the owner are settled, or were read somewhere: every screen takes them off."""
        self.tell({"type": "notice_gone", "key": key})

    def sessions_changed(self) -> None:
        """A session with phones began or ended, or somebody joined or left one."""
        self.tell({"type": "sessions"})

    async def follow(self) -> AsyncIterator[bytes]:
        """News from now on, as JSON."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_KEEP_WAITING)
        self._listeners.add(queue)
        self._dispatcher.watchers.add(self._saw)
        try:
            while True:
                await self._look()
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        line = await queue.get()
                except TimeoutError:
                    continue
                if line is None:
                    return
                yield line
        finally:
            self._listeners.discard(queue)
            if not self._listeners:
                self._dispatcher.watchers.discard(self._saw)

    def close(self) -> None:
        """Lets every listener go: an open page does not hold up the end."""
        self._put(None)

    async def _look(self) -> None:
        """Looks at what is watched, only while somebody listens, at most once a second for all of them."""
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS * 0.9:
            return
        self._looked = now
        for kind, look in self._watched.items():
            found = await look()
            before = self._seen.get(kind, found)
            self._seen[kind] = found
            if before != found:
                self.tell({"type": kind})

    def tell(self, news: dict[str, Any]) -> None:
        """Hands news to all that follow."""
        self._put(orjson.dumps(news, default=str))

    def _put(self, line: bytes | None) -> None:
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(line)


def _news(tenant: Tenant, change: Change, *, with_example: bool) -> dict[str, Any]:
    news = {"type": "agents", "kind": change.kind, "file": change.file, "agents": change.agents}
    if change.kind == "failed":
        return {**news, "ok": False, "message": failure_text(change)}
    if change.kind == "waits":
        return {**news, "ok": True, "message": failure_text(change)}
    if change.kind == "gone":
        return {**news, "ok": True, "message": f"{' and '.join(change.agents) or change.file} went."}
    agent = next((found for name in change.agents if (found := tenant.registry.named(name))), None)
    example = example_for(agent) if agent and with_example else ""
    return {
        **news,
        "ok": True,
        "try": example,
        "message": change_text(tenant.registry, change.agents, example),
    }
