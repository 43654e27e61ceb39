"""Buddies: fed, petted, sent out, asked. Each is a twin of kind buddy, with its life in a file of its own."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypedDict

from rappd.errors import ConflictError, UsageProblemError
from rappd.features.operation import ANYBODY, OWNER, Text, operation
from twins.cartridges import buddy_actions, buddy_state
from twins.cartridges.buddy_actions import Action
from twins.cartridges.buddy_schema import NAMELESS
from twins.cartridges.buddy_status_cache import BuddyStatus, buddy_status
from twins.cartridges.buddy_store import KIND, BuddyStore, is_buddy
from twins.cartridges.json_documents import Document
from twins.errors import TwinConflictError, TwinError
from twins.lifecycle.lookup import find_active
from twins.workspace import souls
from twins.workspace.identity_file import BadNameError
from twins.workspace.listing import scan
from twins.workspace.twin import Twin, rename
from twins.workspace.workspace import TwinLayout, Workspace

log = logging.getLogger(__name__)

MAX_TEXT = 4_000
"""Characters that a buddy is told at once."""

_LIVELY_SECONDS = 3_600
_QUIET_SECONDS = 24 * 3_600


class BuddyLife(BuddyStatus):
    """The status of a buddy, and what it has lived through; moments are texts of ISO 8601 or None."""

    social: float
    frames_survived: int
    posts_made: int
    comments_made: int
    hatched_at: str | None
    last_fed: str | None
    last_petted: str | None
    memories: int


class _Told(TypedDict):
    key: str
    rappid: str
    name: str
    kind: str
    buddy: BuddyLife


class BuddyAnswer(_Told):
    """A buddy after an action. ``done`` is False for what it could not do; ``found`` is what was recalled."""

    action: str
    done: bool
    message: str
    found: list[Any]


class BuddyOperations:
    """The buddies of a home. Every verb answers a JSON object and raises ``ReportableError``.

    ``last_talks``: when each workspace last talked (seconds since 1970). ``renamed(key, name)`` is told of a
    buddy that got its name when it hatched.
    """

    def __init__(
        self,
        places: TwinLayout,
        *,
        last_talks: Callable[[], Mapping[str, float]],
        renamed: Callable[[str, str], None],
    ) -> None:
        self._places = places
        self._last_talks = last_talks
        self._renamed = renamed

    @operation("buddies.status", "GET", "/twins/{twin}/buddy", right=ANYBODY)
    async def status(self, twin: str) -> BuddyAnswer:
        """The present state of a buddy: stage, mood, energy, experience. Changes nothing.

        ``{key, rappid, name, kind, buddy: {stage, mood, feels, energy, xp, …}, message}``.
        """
        return await asyncio.to_thread(self._status, twin)

    @operation("buddies.act", "POST", "/twins/{twin}/buddy", right=OWNER, agents="buddy.{action}")
    async def act(self, twin: str, action: Text, text: str = "", kind: str = "") -> BuddyAnswer:
        """Does an `action`: feed, pet, explore, post, comment, heartbeat, remember, recall, status; `text` and `kind` for those that take them.

        ``message`` tells it; ``done`` is false for what an egg or a tired buddy cannot do; ``found`` holds what
        was recalled. What is posted or commented stays here, among what it has in mind.
        """
        if action not in set(Action):
            raise UsageProblemError(f'A buddy cannot "{action[:40]}".', do=f"There are: {', '.join(Action)}.")
        if len(text) > MAX_TEXT:
            raise UsageProblemError(f"That is more than {MAX_TEXT:,} characters.", do="Say it shorter.")
        if action == Action.STATUS:
            return await self.status(twin)
        return await asyncio.to_thread(self._act, twin, Action(action), text, kind)

    async def hear(self, key: str, text: str) -> None:
        """Keeps in mind what a person said to the twin ``key``; for all who are no buddies, nothing."""
        try:
            await asyncio.to_thread(self._hear, key, text)
        except TwinError as problem:  # the turn goes on; the buddy's status says it
            log.warning("%s did not hear: %s", key, problem)

    # In threads from here on.

    def _status(self, selector: str) -> BuddyAnswer:
        twin = _buddy(find_active(self._places, selector))
        nest, now = BuddyStore(twin.workspace), datetime.now(UTC)
        found = buddy_state.egg(now, name=twin.name) if nest.is_empty() else nest.read()
        lived = buddy_actions.act(found, Action.STATUS, now)
        return {
            **_buddy_row(twin, lived.document),
            "action": "status",
            "done": True,
            "message": lived.answer,
            "found": [],
        }

    def _act(self, selector: str, action: Action, text: str, kind: str) -> BuddyAnswer:
        twin = find_active(self._places, selector)
        nest = nest_of(twin)
        nameless = action is Action.FEED and nest.read()["organism"].get("name", NAMELESS) == NAMELESS
        met, pulse = self._around(twin) if action is Action.EXPLORE else (False, 0)
        lived = nest.act(action, text=text, kind=kind or "memory", found=met, pulse=pulse)
        if text and lived.done and action in (Action.POST, Action.COMMENT):
            nest.hear(text[:MAX_TEXT], action.value)
        if nameless:  # it hatched, and has a name now
            with suppress(BadNameError):
                twin = rename(twin, lived.document["organism"]["name"])
                souls.take_name(twin.workspace, NAMELESS, twin.name)
            self._renamed(twin.key, twin.name)
        return {
            **_buddy_row(twin, lived.document),
            "action": action.value,
            "done": lived.done,
            "message": lived.answer,
            "found": lived.found,
        }

    def _around(self, twin: Twin) -> tuple[bool, int]:
        """Returns what exploring meets: another buddy here or not, and how much goes on in the home."""
        others = any(one.key != twin.key for one in scan(self._places).twins)
        since = time.time() - max(self._last_talks().values(), default=0.0)
        return others, 1 if since < _LIVELY_SECONDS else -1 if since > _QUIET_SECONDS else 0

    def _hear(self, key: str, text: str) -> None:
        workspace = Workspace.at(self._places.active(key))
        nest = BuddyStore(workspace)
        if not nest.is_empty() and is_buddy(workspace):
            nest.hear(text[:MAX_TEXT], "chat")


def nest_of(twin: Twin) -> BuddyStore:
    """Returns the store of a buddy, with an egg in it at least. Raises ``ConflictError`` for another kind of twin."""
    nest = BuddyStore(_buddy(twin).workspace)
    if nest.is_empty():
        with suppress(TwinConflictError):  # somebody laid it meanwhile
            nest.lay(name=twin.name)
    return nest


def _buddy(twin: Twin) -> Twin:
    if twin.kind != KIND:
        raise ConflictError(f"{twin.name} is no buddy.", do="rappd twins new NAME --kind buddy")
    return twin


def _buddy_row(twin: Twin, buddy: Document) -> _Told:
    organism = buddy["organism"]
    return {
        "key": twin.key,
        "rappid": twin.rappid.text,
        "name": twin.name,
        "kind": twin.kind,
        "buddy": {
            **buddy_status(buddy),
            "social": organism["social"],
            "frames_survived": organism["frames_survived"],
            "posts_made": organism["posts_made"],
            "comments_made": organism["comments_made"],
            "hatched_at": organism["hatched_at"],
            "last_fed": organism["last_fed"],
            "last_petted": organism["last_petted"],
            "memories": len(organism["long_memory"]),
        },
    }
