"""The one record (Emergence Rulebook v0.1 §1): ``id, from, to, verb, data`` and ``_x_*`` extensions."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any

import msgspec

HELLO, HELP, DONE, ERROR = "HELLO", "HELP", "DONE", "ERROR"
STREAM, CANCEL, ACK = "STREAM", "CANCEL", "ACK"
NOTE = "NOTE"
"""An event of a session that nobody answers (docs/rfcs/note.md). Never sent to another machine."""

THREAD = "_x_thread"
PEER_THREAD = "_x_peer_thread"
PARTICIPANT = "_x_participant"
"""The name that a workflow gives to whoever is asked; a reply carries it, too."""
CAP = "_x_cap"
SLUSH = "_x_slush"
SIG = "_x_sig"
USAGE_TOKENS = "_x_usage_tokens"
COST_USD = "_x_cost_usd"
DEADLINE = "_x_deadline"
TTL = "_x_ttl"
PATH = "_x_path"
TRACEPARENT = "_x_traceparent"

_USAGE = ((USAGE_TOKENS, "tokens"), (COST_USD, "cost_usd"))
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_MOMENT = re.compile(
    r"""([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"\Z
    |[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-([0-9a-f]{12})"\Z""",
    re.VERBOSE,
)
_TIMED = ("7", "8")
_THREAD_SPACE = bytes.fromhex("6ba4e3a82f0d5c1e9b7a1d3c5f7e9a0b")


class Envelope(msgspec.Struct, frozen=True):
    """The only thing that moves inside the daemon.

    ``sender`` and ``recipient`` are ``from`` and ``to`` on the wire (``from`` is a Python keyword);
    ``extensions`` holds every ``_x_*`` key, known or not, and is carried along untouched.
    """

    id: str
    sender: str
    recipient: str
    verb: str
    data: dict[str, Any]
    extensions: dict[str, Any] = {}

    @property
    def thread(self) -> str:
        """The conversation's UUID, or "" before the dispatcher has given one."""
        return str(self.extensions.get(THREAD, ""))

    def reply(self, verb: str, data: dict[str, Any], **extensions: Any) -> Envelope:
        """The answer on the same id and thread, sent by whom this was addressed to.

        A DONE whose data tells ``tokens`` and ``cost_usd`` says them in its extensions, too.
        """
        carried = {
            key: self.extensions[key] for key in (THREAD, PEER_THREAD, PARTICIPANT) if key in self.extensions
        }
        if verb == DONE and "tokens" in data:
            carried |= {key: data[name] for key, name in _USAGE if name in data}
        return Envelope(self.id, self.recipient, self.sender, verb, data, {**carried, **extensions})

    def refusal(self, code: int, message: str, reason: str) -> Envelope:
        """An ``ERROR`` on the caller's thread: ``{code: HTTP status, msg, reason: slug}``."""
        return self.reply(ERROR, {"code": code, "msg": message, "reason": reason})


def new_id() -> str:
    """A fresh UUIDv4."""
    try:
        digits = _random.pop()
    except IndexError:
        drawn = os.urandom(16 * _DRAWN).hex()  # the system is asked once for many
        _random.extend(drawn[at : at + 32] for at in range(0, len(drawn), 32))
        return new_id()
    return _as_uuid(digits, "4")


_random: list[str] = []
_DRAWN = 64
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.clear)  # no two processes draw the same


def is_uuid(text: object) -> bool:
    """True when ``text`` is a UUID in its usual 8-4-4-4-12 form, any version, any case."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def thread_id(workspace: str, caller: str, session: str) -> str:
    """The thread that a caller's session in a workspace always has; ``session`` is its JSON text.

    A UUIDv5 as RFC 9562 has it. Sessions that earlier versions minted are UUIDv7: for text that ends in one, or in
    the UUIDv8 of another thread, it is a UUIDv8 whose last 48 bits are that one's time.
    """
    name = f"{workspace}\n{caller}\n{session}".encode()
    digits = hashlib.sha1(_THREAD_SPACE + name, usedforsecurity=False).hexdigest()
    moment = _MOMENT.match(session, len(session) - 37) if session[-23:-22] in _TIMED else None
    if moment is None:
        return _as_uuid(digits, "5")
    return _as_uuid(digits[:20] + (moment[3] or moment[1] + moment[2]), "8")


def _as_uuid(digits: str, version: str) -> str:
    """32 hex digits as a UUID of that version; the uuid module takes four times as long."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"
