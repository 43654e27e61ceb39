"""The one record (Emergence Rulebook v0.1 §1): ``id, from, to, verb, data`` and ``_x_*`` extensions; and its ids.

The thread's id: the same caller with the same session comes back to the same conversation.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from envelopes.errors import MalformedError

HELLO, HELP, DONE, ERROR = "HELLO", "HELP", "DONE", "ERROR"
STREAM, CANCEL, ACK = "STREAM", "CANCEL", "ACK"
NOTE = "NOTE"
"""An event of a session that nobody answers (docs/rfcs/note.md). Never sent to another machine."""
TODO = "todo"
"""The ``kind`` of a NOTE with the state of an entry in a plan (``agents.brainstem.todo_plan``)."""
ROUND = "round"
"""The ``kind`` of a NOTE that tells of a round of a model within a turn. No screen of a session shows it."""

THREAD = "_x_thread"
PEER_THREAD = "_x_peer_thread"
PARENT = "_x_parent"
"""The id of the HELP on whose behalf this one was sent. The dispatcher sets it; no other machine sends or gets it."""
THREAD_PATH = "_x_thread_path"
"""The path of a thread that another one began: names from its root on. Set and kept as ``PARENT`` is."""
PARTICIPANT = "_x_participant"
"""The name that a workflow gives to the participant that is asked; a reply carries it, too."""
CAP = "_x_cap"
SLUSH = "_x_slush"
SIG = "_x_sig"
USAGE_TOKENS = "_x_usage_tokens"
COST_USD = "_x_cost_usd"
DEADLINE = "_x_deadline"
TTL = "_x_ttl"
PATH = "_x_path"
TRACEPARENT = "_x_traceparent"
PICTURES = "_x_pictures"
"""Pictures that a person sent with a sentence (``envelopes.codecs.pictures``). Never sent to another machine."""

_USAGE = ((USAGE_TOKENS, "tokens"), (COST_USD, "cost_usd"))
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


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

    @property
    def parent(self) -> str | None:
        """The id of the HELP on whose behalf this one was sent."""
        found = self.extensions.get(PARENT)
        return found if isinstance(found, str) else None

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

    def extended(self, **extensions: Any) -> Envelope:
        """The same record with these extensions, in place of those of their names."""
        more = {**self.extensions, **extensions}
        return Envelope(self.id, self.sender, self.recipient, self.verb, self.data, more)

    def refusal(self, code: int, message: str, reason: str) -> Envelope:
        """An ``ERROR`` on the caller's thread: ``{code: HTTP status, msg, reason: slug}``."""
        return self.reply(ERROR, {"code": code, "msg": message, "reason": reason})


def new_id() -> str:
    """A fresh UUIDv4."""
    try:
        return _drawn.pop()
    except IndexError:
        digits = os.urandom(16 * _MANY).hex()  # the system is asked once for many
        _drawn.extend([as_uuid(digits[at : at + 32], "4") for at in range(0, len(digits), 32)])
        return new_id()


_drawn: list[str] = []
_MANY = 64
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)  # no two processes draw the same


def is_uuid(text: object) -> bool:
    """True when ``text`` is a UUID in its usual 8-4-4-4-12 form, any version, any case."""
    return isinstance(text, str) and _UUID.fullmatch(text) is not None


def as_uuid(digits: str, version: str) -> str:
    """32 hex digits as a UUID of that version; the uuid module takes four times as long."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


PREFIX = "_x_"
LONGEST_WAIT = 3600
"""Seconds: the largest ``_x_deadline``."""
LONGEST_PATH = 16
SHOWN = 60
"""Characters of a foreign key that a message repeats."""

_TRACE = r"(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_TRACEPARENT = re.compile(rf"00-{_TRACE}|(?!00|ff)[0-9a-f]{{2}}-{_TRACE}(?:-[!-~]{{1,200}})?")
_MACHINE = re.compile(r"[0-9a-f]{16}")
_HEX64 = re.compile(r"[0-9a-f]{64}")
_HEX128 = re.compile(r"[0-9a-f]{128}")


def check_extensions(extensions: Mapping[str, Any]) -> None:
    """Raises ``MalformedError`` for a key that does not start with ``_x_``, or a known one of another shape."""
    for key, value in extensions.items():
        if not key.startswith(PREFIX):
            raise MalformedError(
                f"The envelope has an unknown key '{shown(key)}'.", do="Extensions start with _x_.", key=key
            )
        known = _KNOWN.get(key)
        if known is not None and not known[0](value):
            raise MalformedError(
                f"'{key}' is not {known[1]}.", do="Send it like that, or leave it out.", key=key
            )


def is_signature(value: object) -> bool:
    """True when ``value`` has the shape of a ``_x_sig``, in its one spelling (lower-case hex)."""
    return (
        isinstance(value, dict)
        and value.keys() == {"alg", "kid", "key", "t", "s"}
        and value["alg"] == "Ed25519"
        and _is_hex(_HEX64, value["kid"])
        and _is_hex(_HEX64, value["key"])
        and _is_hex(_HEX128, value["s"])
        and type(value["t"]) is int
        and 0 <= value["t"] < 1 << 53
    )


def shown(key: str) -> str:
    """A key that somebody else chose, as a message may repeat it."""
    cut = key if len(key) <= SHOWN else f"{key[:SHOWN]}…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def _is_hex(form: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


def _is_wait(value: object) -> bool:
    return type(value) in (int, float) and 0 < value <= LONGEST_WAIT  # type: ignore[operator]


def _is_path(value: object) -> bool:
    return isinstance(value, list) and len(value) <= LONGEST_PATH and all(_is_hex(_MACHINE, v) for v in value)


def _is_traceparent(value: object) -> bool:
    return isinstance(value, str) and _TRACEPARENT.fullmatch(value) is not None


def _is_capability(value: object) -> bool:
    chain: Iterable[object] = value if isinstance(value, list) else (value,)
    return value != [] and all(isinstance(one, str) and one for one in chain)


_AMOUNT = (_is_amount, "a number from 0 on")
_KNOWN: dict[str, tuple[Callable[[object], bool], str]] = {
    THREAD: (is_uuid, "a UUID"),
    DEADLINE: (_is_wait, f"a number of seconds, above 0 and at most {LONGEST_WAIT}"),
    TTL: (_is_amount, "a number of seconds from 0 on"),
    PATH: (_is_path, f"a list of at most {LONGEST_PATH} machines in 16 hex digits each"),
    TRACEPARENT: (_is_traceparent, "a W3C traceparent"),
    SIG: (is_signature, "a signature {alg, kid, key, t, s}"),
    CAP: (_is_capability, "a token or a list of tokens"),
    USAGE_TOKENS: _AMOUNT,
    COST_USD: _AMOUNT,
}


def agent_id(name: str, fingerprint: str) -> str:
    """``<name>_<first 16 hex of the node's fingerprint>``: what the wire calls an agent of a node."""
    return f"{name}_{fingerprint[:16]}"


def brainstem_id(fingerprint: str) -> str:
    """The id on the wire of a machine's brainstem."""
    return agent_id("brainstem", fingerprint)


_MOMENT = re.compile(
    r"""([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"\Z
    |[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-([0-9a-f]{12})"\Z""",
    re.VERBOSE,
)
_TIMED = ("7", "8")
_THREAD_SPACE = bytes.fromhex("6ba4e3a82f0d5c1e9b7a1d3c5f7e9a0b")


def thread_id_below(root: str, names: Sequence[str]) -> str:
    """The thread with this path below a root: the same each time, and that of no session."""
    return thread_id(_BELOW, root, msgspec.json.encode(list(names)).decode())


_BELOW = "\0"
"""In the place of a workspace, whose name never has it."""


def thread_id(workspace: str, caller: str, session: str) -> str:
    """The thread that a caller's session in a workspace always has; ``session`` is its JSON text.

    A UUIDv5 as RFC 9562 has it. Sessions that earlier versions minted are UUIDv7: for text that ends in one, or in
    the UUIDv8 of another thread, it is a UUIDv8 whose last 48 bits are that one's time.
    """
    name = f"{workspace}\n{caller}\n{session}".encode()
    digits = hashlib.sha1(_THREAD_SPACE + name, usedforsecurity=False).hexdigest()
    moment = _MOMENT.match(session, len(session) - 37) if session[-23:-22] in _TIMED else None
    if moment is None:
        return as_uuid(digits, "5")
    return as_uuid(digits[:20] + (moment[3] or moment[1] + moment[2]), "8")
