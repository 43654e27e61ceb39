"""Replies that the event log did not take: kept in memory, and written down once it takes entries again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from envelopes.envelope import Envelope
from rappd.errors import NotFoundError, StoreError
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store

log = logging.getLogger(__name__)

PAUSES = (0.5, 1.0, 2.0, 5.0)
"""Seconds between two tries; the last one again and again. Each try on a locked database holds up the writer."""
_LOOKED_AT = 1_000
"""Latest events of a thread among which those of a turn are looked for."""


class UnrecordedReplyError(StoreError):
    """The work is done; its answer is kept, and cannot be written down yet."""

    code = "unrecorded"
    exit_code = 8

    def __init__(self, cause: StoreError) -> None:
        super().__init__(
            f"It was done, and the answer cannot be written down yet. {cause}",
            do=f"Do not ask again. {cause.remedy or 'Wait'}: the answer then comes by itself.",
        )


@dataclass(slots=True, eq=False)
class UnrecordedReply:
    """A reply, with all that was to stand in the record before it. ``commit`` writes the reply itself."""

    reply: Envelope
    records: list[Record | ThreadInfo]
    commit: Callable[[], asyncio.Future[int]]
    recorded: asyncio.Event = field(default_factory=asyncio.Event)


class UnrecordedReplies:
    """Kept by who asked and the id of the HELP.

    There are no more than turns that were under way when writing failed: one that begins while the log takes
    nothing is refused before anything of it is done.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[str, str], UnrecordedReply] = {}
        self._writing = asyncio.Lock()
        self._trying: asyncio.Task[None] | None = None

    def keep(
        self, reply: Envelope, records: list[Record | ThreadInfo], commit: Callable[[], asyncio.Future[int]]
    ) -> UnrecordedReply:
        """Keeps a reply until it is recorded, which sets its ``recorded``."""
        kept = self._kept[reply.recipient, reply.id] = UnrecordedReply(reply, records, commit)
        if self._trying is None:
            self._trying = asyncio.get_running_loop().create_task(self._try(), name="unrecorded replies")
        return kept

    async def take(self, sender: str, id: str) -> Envelope | None:
        """The kept reply to a HELP, recorded now; None where none is kept. Raises ``UnrecordedReplyError``."""
        if (kept := self._kept.get((sender, id))) is None:
            return None
        try:
            await self._record(kept)
        except StoreError as problem:
            raise UnrecordedReplyError(problem) from problem
        return kept.reply

    async def close(self) -> None:
        """Tries a last time; what cannot be recorded is lost, and its HELP is found unanswered at the next start."""
        if self._trying is not None:
            self._trying.cancel()
            await asyncio.gather(self._trying, return_exceptions=True)
        for kept in list(self._kept.values()):
            try:
                await self._record(kept)
            except StoreError as problem:
                log.error("the answer to %s is lost: %s", kept.reply.id, problem)

    async def _try(self) -> None:
        failed = 0
        while self._kept:
            await asyncio.sleep(PAUSES[min(failed, len(PAUSES) - 1)])
            for kept in list(self._kept.values()):
                try:
                    await self._record(kept)
                except StoreError as problem:
                    log.info("%d answers wait to be written down: %s", len(self._kept), problem)
                    failed += 1
                    break
        self._trying = None

    async def _record(self, kept: UnrecordedReply) -> None:
        """Writes it down with what is missing before it, once."""
        async with self._writing:
            if kept.recorded.is_set():
                return
            known = await self._known(kept.reply.thread)
            for one in kept.records:
                if isinstance(one, ThreadInfo):
                    self._store.thread(msgspec.structs.replace(one, fresh=False))
                elif (one.id, one.verb) not in known:
                    self._store.queue(one)
            await kept.commit()
            self._kept.pop((kept.reply.recipient, kept.reply.id), None)
            kept.recorded.set()

    async def _known(self, thread: str) -> set[tuple[str, str]]:
        try:
            events = await self._store.thread_events(thread, last=_LOOKED_AT)
        except NotFoundError:  # the thread itself was lost
            return set()
        return {(one.id, one.verb) for one in events}
