"""Makes the list of a member's twins out of what the walk there tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envelopes.codecs.bounded_json import bounded_json
from neighborhoods.errors import BadMemberError, BadMemberStreamError
from neighborhoods.snapshot.member_transport import MemberListing, MemberTwin, require_twin_hash
from neighborhoods.snapshot.transports.marked_lines import MarkedLines
from neighborhoods.snapshot.transports.twin_files import TwinFiles
from twins.errors import HostileEggError
from twins.fs.untrusted_names import safe_component

_MOST_TWINS = 10_000
MOST_RAPPID_BYTES = 1 << 16
"""Of a ``rappid.json`` that is read."""
_MOST_AGENTS = 10_000
_MOST_KEPT = 64 << 20
"""Octets of all names that one list brings."""
_RAPPID_FIELDS = ("rappid", "display_name", "name", "kind")
_LONGEST_FIELD = 512  # a rappid has at most that, and a name less


class ListingParser:
    """Takes the walk's output as it comes. It takes time: call it in a thread.

    Raises ``BadMemberStreamError`` for what is no list, or has no end.
    """

    def __init__(self, mark: str, banner: Callable[[bytes], None]) -> None:
        """``banner`` gets the lines that come before the walk's own."""
        self._banner = banner
        self.lines = MarkedLines(mark, self._marked, self._other)
        self._began = self._ended = False
        self._host = self._kind = ""
        self._twins: list[MemberTwin] = []
        self._agents: list[str] = []
        self._reading = ""
        self._twin = ("", "")
        self._rappid = bytearray()
        self._files = TwinFiles()
        self._kept = 0

    def listing(self) -> MemberListing:
        """The whole list. Raises ``BadMemberStreamError`` when the walk did not come to its end."""
        if not self._ended:
            raise BadMemberStreamError("The list of twins was cut off.", do="Try again.")
        return MemberListing(tuple(self._twins), tuple(sorted(self._agents)), self._host)

    @property
    def began(self) -> bool:
        """True once the walk itself has said something."""
        return self._began

    def _marked(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "begin":
            self._began = True
        elif word == "host":
            self._host = rest.strip()[:255]
        elif word == "kind":
            self._kind = rest
        elif word == "twin":
            lifecycle, _, name = rest.partition(" ")
            self._twin, self._reading = (name, lifecycle), "rappid"
            self._rappid.clear()
            self._files = TwinFiles()
        elif word == "files":
            self._files, self._reading = TwinFiles(by_content=self._kind == "content"), "files"
        elif word == "done":
            self._add()
            self._reading = ""
        elif word == "agents":
            self._reading = "agents"
        elif word == "end":
            self._reading, self._ended = "", True

    def _other(self, line: bytes) -> None:
        if not self._began:
            self._banner(line)
        elif self._reading == "rappid":
            if len(self._rappid) <= MOST_RAPPID_BYTES:  # one octet more, and it is none that can be read
                self._rappid += line[:MOST_RAPPID_BYTES]
                self._rappid += b"\n"
        elif self._reading == "files":
            self._files.take(line)
        elif self._reading == "agents" and len(self._agents) < _MOST_AGENTS and is_agent_file(line):
            self._agents.append(line.decode())
            self._count(len(line))

    def _count(self, octets: int) -> None:
        self._kept += octets
        if self._kept > _MOST_KEPT:
            raise BadMemberStreamError("The list of names has no end.", do="Look what answers there.")

    def _add(self) -> None:
        name, lifecycle = self._twin
        if self._reading != "files":
            return
        if len(self._twins) >= _MOST_TWINS:
            raise BadMemberStreamError("The list of twins has no end.", do="Look what answers there.")
        try:
            require_twin_hash(name)
        except BadMemberError:
            return
        files = self._files
        rappid = rappid_fields(bytes(self._rappid))
        self._count(sum(map(len, (name, *rappid.values(), *files.agents))))
        self._twins.append(
            MemberTwin(
                hash=name,
                rappid_json=rappid,
                lifecycle="archived" if lifecycle == "archived" else "active",
                workspace_bytes=files.bytes,
                workspace_files=files.files,
                has_soul=files.has_soul,
                agents=files.agents,
                fingerprint=files.fingerprint,
                failure=files.problem,
            )
        )


def rappid_fields(content: bytes) -> dict[str, Any]:
    """The texts in a ``rappid.json`` that a list shows; {} where it cannot be read."""
    try:
        found = bounded_json(content, most_bytes=MOST_RAPPID_BYTES)
    except ValueError:
        return {}
    return text_fields(found if isinstance(found, dict) else {})


def text_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a ``rappid.json`` that a list shows, as far as they are text."""
    return {key: fields[key][:_LONGEST_FIELD] for key in _RAPPID_FIELDS if isinstance(fields.get(key), str)}


def is_agent_file(name: bytes) -> bool:
    """True for the name of an agent's file that can be shown."""
    if name.startswith((b".", b"__")) or not name.endswith((b".py", b".lispy")):
        return False
    try:
        safe_component(name.decode())
    except (UnicodeDecodeError, HostileEggError):
        return False
    return True
