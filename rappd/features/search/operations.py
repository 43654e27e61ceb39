"""Search over everything that a caller may see: conversations, agents, twins, memories, machines and settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import NotRequired, TypedDict

from agents.storage.memory import partition, read_memories
from agents.storage.memory_store import MemoryStore
from agents.storage.safe_fs import in_file_pool
from envelopes.default_user import DEFAULT_USER_GUID
from rappd.daemon.app import Daemon
from rappd.dispatch.rights import Caller
from rappd.features.conversations.conversations import Conversations
from rappd.features.operation import ANYBODY, operation
from rappd.notices.notices import one_line
from rappd.settings.registry import SETTINGS
from rappd.settings.wording import WORDING
from rappd.tenants.agent_summary import listing
from twins.workspace.listing import scan
from twins.workspace.workspace import Workspace

MOST_OF_A_KIND = 6
MOST_CHARACTERS = 200
_MOST_WORDS = 8
_MOST_TWINS = 300
_MOST_MEMORIES = 5000
_MOST_PEOPLE = 100


FoundRow = TypedDict(
    "FoundRow",
    {
        "kind": str,
        "title": str,
        "detail": str,
        "key": str,
        "program": NotRequired[str],
        "with": NotRequired[str],
        "at": NotRequired[int],
        "turn": NotRequired[str],
        "yours": NotRequired[bool],
    },
)
"""A thing that has the words, see ``search``; from ``program`` on of conversations alone."""


class SearchOperations:
    """Search over one daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @operation("search.find", "GET", "/search", right=ANYBODY, answers="found")
    async def find(self, caller: Caller, words: str = "") -> list[FoundRow]:
        """Everything that holds all words of `?words=`: conversations, agents, twins, memories, machines, settings; else agents alone."""
        return await search(self._daemon, words, operator=caller.operator)


async def search(daemon: Daemon, text: str, *, operator: bool) -> list[FoundRow]:
    """Returns ``{kind, title, detail, key}`` for what holds all words of ``text``; of each kind the best six.

    Others than the operator find agents alone. ``key`` names the thing to the routes of its kind; a memory's is its
    twin's, "" for the brainstem, and behind a ``/`` the user's whose own it is. A conversation also has ``with`` and
    ``at``, and where a sentence was found its ``turn`` and whether it is ``yours``.
    """
    words = text[:MOST_CHARACTERS].casefold().split()[:_MOST_WORDS]
    if not words:
        return []
    conversations: list[FoundRow] = []
    kinds = [_agents(daemon)]
    if operator:
        names = {str(one["user"]).casefold(): str(one["name"]) for one in daemon.tether.listing()}
        conversations, on_disk = await asyncio.gather(
            _conversations(daemon, " ".join(words)), in_file_pool(lambda: _on_disk(daemon, words, names))
        )
        kinds += [*on_disk, _machines(daemon), _settings()]
    return [*conversations, *(row for rows in kinds for row in _best(rows, words))]


async def _conversations(daemon: Daemon, text: str) -> list[FoundRow]:
    """Conversations of callers that name no user, as the page does, that have ``text`` in what was said or in their title."""
    conversations = Conversations(daemon.store, DEFAULT_USER_GUID)
    rows: list[FoundRow] = []
    for one in (await conversations.search(text, limit=MOST_OF_A_KIND))["found"]:
        conversation, excerpts = one["conversation"], one["excerpts"]
        row = _row("conversation", conversation["title"], "", conversation["id"])
        if conversation["program"]:
            row["program"] = conversation["program"]
        row |= {"with": conversation["with"], "at": conversation["updated"]}
        if excerpts:
            shown = excerpts[0]
            row["detail"] = one_line(shown["text"])
            row |= {"turn": shown["turn"], "at": shown["at"], "yours": shown["yours"]}
        rows.append(row)
    return rows


def _best(rows: Iterable[FoundRow], words: list[str]) -> list[FoundRow]:
    """The rows with all words; first those whose title begins so, then those whose title has them all."""
    found = [(rank, row) for row in rows if (rank := _rank(row, words)) is not None]
    return [row for _, row in sorted(found, key=lambda one: one[0])[:MOST_OF_A_KIND]]


def _rank(row: FoundRow, words: list[str]) -> int | None:
    title, rest = row["title"].casefold(), f"{row['detail']} {row['key']}".casefold()
    if not all(word in title or word in rest for word in words):
        return None
    if title.startswith(" ".join(words)):
        return 0
    if all(word in title for word in words):
        return 1 if title.startswith(words[0]) else 2
    return 3


def _agents(daemon: Daemon) -> list[FoundRow]:
    cards = listing(daemon.host.registry)
    return [_row("agent", one["name"], one["description"], one["name"]) for one in cards if one["name"]]


def _on_disk(
    daemon: Daemon, words: list[str], names: Mapping[str, str]
) -> tuple[list[FoundRow], list[FoundRow]]:
    """Twins, and the memories of each and of the brainstem, shared ones first; of these only what fits, for they are many.

    ``names``: phones by the user that they talk for.
    """
    twins = scan(daemon.tenants.layout).twins[:_MOST_TWINS]
    rows = [_row("twin", one.name, one.kind, one.key) for one in twins]
    memories: list[FoundRow] = []
    workspaces = [("", "", daemon.host.workspace), *((one.key, one.name, one.workspace) for one in twins)]
    for key, name, workspace in workspaces:
        for guid, text in _memories(workspace):
            if all(word in text.casefold() for word in words):
                person = f" for {names.get(guid.casefold()) or guid[:8]}" if guid else ""
                whose = f"{name or daemon.name} remembers{person}"
                memories.append(_row("memory", text, whose, f"{key}/{guid}" if guid else key))
                if len(memories) >= 4 * MOST_OF_A_KIND:
                    return rows, memories
    return rows, memories


def _memories(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """(GUID, text) of memories; "" is the GUID of the shared ones."""
    people = MemoryStore(workspace.files, (workspace.data.name,)).guids()[:_MOST_PEOPLE]
    for guid in ("", *people):
        where = partition(guid)
        below = where._replace(folder=f"{workspace.data.name}/{where.folder}")
        found = read_memories(workspace.files, below)
        for _, one in zip(range(_MOST_MEMORIES), found.values(), strict=False):
            text = one.get("message") if isinstance(one, dict) else None
            if isinstance(text, str):
                yield guid, text


def _machines(daemon: Daemon) -> list[FoundRow]:
    peers = daemon.machines.peer_store.all()
    return [_row("machine", one.name, one.whose, one.fingerprint) for one in peers]


def _settings() -> list[FoundRow]:
    return [
        _row("setting", WORDING[one.name].title, f"{WORDING[one.name].about} {one.name}", one.name)
        for one in SETTINGS
    ]


def _row(kind: str, title: str, detail: str, key: str) -> FoundRow:
    return {"kind": kind, "title": one_line(title), "detail": one_line(detail), "key": key}
