"""Retries of a capture: a machine that does not answer, and twins that answered somebody while they were read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from neighborhoods.snapshot.member_transport import MemberProbe, MemberTransport, TwinActivity

PASSES = 3
"""Times that a twin is read that changes meanwhile."""
TRIES = 3
"""Times that a machine without an answer is asked."""
_REST = 1.0
"""Seconds until a machine that does not answer is asked again; after each time, twice as long."""
_PATIENCE = 15.0
"""Seconds that twins may go on answering before they are read again."""

PeerTell = Callable[[str, int, int, int], None]
"""(state, bytes read, bytes in all, number of the try of ``TRIES``, or 0)"""


async def probed(transport: MemberTransport, tell: PeerTell) -> MemberProbe:
    """The answer; a machine that gives none, and may be waking, is asked again."""
    probe = await transport.probe()
    for attempt in range(2, TRIES + 1):
        if probe.reachable or not probe.is_away:
            break
        tell("no answer", 0, 0, attempt)
        await asyncio.sleep(_REST * (attempt - 1))
        probe = await transport.probe()
    return probe


async def quiet(transport: MemberTransport, hashes: Sequence[str]) -> dict[str, TwinActivity]:
    """Waits until none of these twins answers, within bounds; the activity then."""
    until = time.monotonic() + _PATIENCE
    while True:
        found = await transport.activity()
        if time.monotonic() > until or not any(found[one].answering for one in hashes if one in found):
            return found
        await asyncio.sleep(_REST)


def ran(twin: str, before: Mapping[str, TwinActivity], after: Mapping[str, TwinActivity]) -> bool:
    """True when a twin answered somebody at any time between the two; one that nobody tells of did not."""
    first, last = before.get(twin), after.get(twin)
    return first is not None and (first.answering or last != first)
