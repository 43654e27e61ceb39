"""Emergence JSON as it crosses between machines (Rulebook §1): strict in what is sent and what is taken.

``emergence`` reads the daemon's own records, whose ids older versions chose; here nothing is let pass
that two readers could understand differently.
"""

from __future__ import annotations

import math
import re
from typing import Any

import orjson

from envelopes.codecs.bounded_json import MOST_CONTAINERS, holds_too_many, list_parts
from envelopes.codecs.emergence import MAX_BYTES, MAX_DEPTH, as_object
from envelopes.codecs.strict_json import deeper_than, repeated_key, says_a_key_twice
from envelopes.envelope import ACK, ERROR, SHOWN, Envelope, check_extensions, new_id
from envelopes.envelope import shown as _shown
from envelopes.errors import EnvelopeError, MalformedError

BROADCAST = "broadcast"
MAX_BATCH = 100
MAX_BATCH_BYTES = MAX_BATCH * (MAX_BYTES + 1) + 1
"""A full batch of full records; a listener reads less than that from whom it knows little."""
MAX_ID = 200
MAX_VERB = 32
NOBODY = "unknown"
"""The recipient of a refusal when the record does not tell who sent it."""

_KEYS = frozenset({"id", "from", "to", "verb", "data"})
_IN_ORDER = ("id", "from", "to", "verb", "data")
_UUID4 = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
).fullmatch
_VERB = re.compile(rf"[A-Z]{{1,{MAX_VERB}}}").fullmatch
_CONTENT_TYPE = re.compile(
    r'application/json[ \t]*(?:;[ \t]*charset=(?:utf-8|"utf-8")[ \t]*)?', re.IGNORECASE | re.ASCII
).fullmatch


def decode(raw: bytes, *, max_bytes: int = MAX_BYTES) -> Envelope:
    """The record in ``raw``; its id and extensions stay as they are. Raises ``MalformedError``, nothing else.

    ``problem.key`` is the offending key; ``problem.id`` and ``problem.sender`` are what could be read.
    """
    return _envelope(_parse(raw, max_bytes, MAX_DEPTH))


def decode_batch(
    raw: bytes, most: int = MAX_BATCH, *, max_bytes: int = MAX_BATCH_BYTES
) -> list[Envelope | MalformedError]:
    """The records of a JSON array, in order; a bad one is its own refusal and spoils no other.

    Raises ``MalformedError`` where the array cannot be trusted as a whole: size, depth, a key twice, more than
    ``most`` records, no array. Each record has the limits that it has alone. An array of more bytes than one record
    may have takes up to a second: call it in a thread.
    """
    if MAX_BYTES < len(raw) <= max_bytes:
        return _apart(raw, most)
    found = _parse(raw, max_bytes, MAX_DEPTH + 1)
    if not isinstance(found, list):
        raise MalformedError("The batch is not a JSON array.", do="Send a JSON array of records.")
    if len(found) > most:
        raise MalformedError(
            f"The batch has {len(found)} records; {most} are allowed.", do="Send fewer at once."
        )
    return [_one(each, big=len(raw) > MAX_BYTES) for each in found]


def encode(envelope: Envelope, *, max_bytes: int = MAX_BYTES) -> bytes:
    """The record as bytes that ``decode`` takes elsewhere. Raises ``MalformedError`` where it would not."""
    _check(envelope.id, envelope.sender, envelope.recipient, envelope.verb, envelope.data)
    if envelope.extensions:
        check_extensions(envelope.extensions)
    try:
        octets = orjson.dumps(as_object(envelope))
    except orjson.JSONEncodeError as error:
        raise MalformedError(
            f"'data' cannot be written: {error}.", do="Send JSON alone.", key="data"
        ) from error
    if len(octets) > max_bytes:
        raise _too_large(len(octets), max_bytes)
    if deeper_than(octets, MAX_DEPTH):
        raise _too_deep(MAX_DEPTH)
    if b"null" in octets and not (_is_finite(envelope.data) and _is_finite(envelope.extensions)):
        raise MalformedError("'data' holds a NaN or an infinity.", do="Send JSON alone.", key="data")
    return octets


def refusal_of(
    problem: EnvelopeError, *, sender: str, id: str | None = None, recipient: str | None = None
) -> Envelope:
    """The ERROR that answers what could not be taken: data ``{code, msg, reason, do, key}``.

    ``sender`` is who refuses. Id and recipient, where not given, are what the problem could read; a
    fresh id and ``unknown`` where it could read none.
    """
    ident = getattr(problem, "id", "") if id is None else id
    to = getattr(problem, "sender", "") if recipient is None else recipient
    data = {"code": problem.status, "msg": str(problem), "reason": problem.code}
    if problem.do:
        data["do"] = problem.do
    key = getattr(problem, "key", "")
    if key:
        data["key"] = key[:SHOWN]
    return Envelope(
        ident if is_uuid4(ident) else new_id(), sender, to if is_agent_id(to) else NOBODY, ERROR, data
    )


def check(envelope: Envelope) -> None:
    """Raises ``MalformedError`` for a record of another codec that ``decode`` would not take."""
    try:
        _check(envelope.id, envelope.sender, envelope.recipient, envelope.verb, envelope.data)
    except MalformedError as problem:
        raise _addressed(problem, as_object(envelope)) from None


def http_status(reply: Envelope) -> int:
    """The status that a reply travels with: 202 for ACK, an ERROR's own code (400 to 599), else 200."""
    if reply.verb == ACK:
        return 202
    if reply.verb != ERROR:
        return 200
    code = reply.data.get("code")
    return min(max(code, 400), 599) if type(code) is int else 500


def is_content_type(header: str | None) -> bool:
    """True for a Content-Type header of JSON in UTF-8 (Rulebook §1); without a charset JSON is that."""
    return header is not None and _CONTENT_TYPE(header.strip(" \t")) is not None


def is_uuid4(value: object) -> bool:
    """True when ``value`` is a UUID of version 4 as text, in any case."""
    return isinstance(value, str) and _UUID4(value) is not None


def is_agent_id(value: object) -> bool:
    """True when ``value`` can name an agent: 1 to 200 visible characters, no blanks."""
    return isinstance(value, str) and 0 < len(value) <= MAX_ID and value.isprintable() and " " not in value


def _parse(raw: bytes, max_bytes: int, depth: int) -> object:
    if len(raw) > max_bytes:
        raise _too_large(len(raw), max_bytes)
    if holds_too_many(raw):
        raise MalformedError(
            f"The envelope holds more than {MOST_CONTAINERS} lists and objects.", do="Send less at once."
        )
    if deeper_than(raw, depth):
        raise _too_deep(depth)
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedError(
            f"The envelope is not JSON: {error}.", do="Send one JSON object in UTF-8."
        ) from error
    if isinstance(found, (dict, list)) and says_a_key_twice(raw, found):
        key = repeated_key(raw) if len(raw) <= MAX_BYTES else ""
        named = f"The key '{_shown(key)}'" if key else "A key"
        raise MalformedError(f"{named} comes twice in one object.", do="Send each key once.", key=key)
    return found


def _apart(raw: bytes, most: int) -> list[Envelope | MalformedError]:
    """``decode_batch`` record by record: to parse all at once would hold the whole process."""
    found: list[Envelope | MalformedError] = []
    try:
        # A text that makes one record too large must not spoil the others.
        for part in list_parts(raw, longest_text=2 * MAX_BYTES):
            if len(found) == most:
                raise MalformedError(f"The batch has more than {most} records.", do="Send fewer at once.")
            try:
                found.append(decode(part))
            except MalformedError as problem:
                found.append(problem)
    except ValueError as error:
        raise MalformedError(
            f"The batch is no JSON array: {error}.", do="Send a JSON array of records."
        ) from error
    return found


def _one(found: object, *, big: bool) -> Envelope | MalformedError:
    try:
        if big and len(orjson.dumps(found)) > MAX_BYTES:
            raise _too_large(len(orjson.dumps(found)), MAX_BYTES)
        return _envelope(found)
    except MalformedError as problem:
        return problem


def _envelope(found: object) -> Envelope:
    if not isinstance(found, dict):
        raise MalformedError("The envelope is not a JSON object.", do="Send one JSON object.")
    try:
        ident, sender, recipient, verb, data = map(found.__getitem__, _IN_ORDER)
        _check(ident, sender, recipient, verb, data)
        extensions = {key: value for key, value in found.items() if key not in _KEYS}
        if extensions:
            check_extensions(extensions)
    except KeyError as error:
        key = str(error.args[0])
        lacks = MalformedError(
            f"The envelope lacks '{key}'.", do="Send id, from, to, verb and data.", key=key
        )
        raise _addressed(lacks, found) from None
    except MalformedError as problem:
        raise _addressed(problem, found) from None
    return Envelope(ident, sender, recipient, verb, data, extensions)


def _check(ident: object, sender: object, recipient: object, verb: object, data: object) -> None:
    if not is_uuid4(ident):
        raise MalformedError("'id' is not a UUIDv4.", do="Send a UUIDv4.", key="id")
    if not is_agent_id(sender) or sender == BROADCAST:
        raise MalformedError(
            "'from' is not an agent id.", do=f"Send 1 to {MAX_ID} visible characters.", key="from"
        )
    if not is_agent_id(recipient):
        raise MalformedError(
            "'to' is not an agent id.", do=f"Send 1 to {MAX_ID} visible characters.", key="to"
        )
    if not isinstance(verb, str) or _VERB(verb) is None:
        raise MalformedError(
            "'verb' is not an ALL-CAPS word.", do="Send HELLO, HELP, DONE or ERROR.", key="verb"
        )
    if not isinstance(data, dict):
        raise MalformedError(
            "'data' is not an object.", do="Send {} when there is nothing to say.", key="data"
        )


def _addressed(problem: MalformedError, found: dict[str, Any]) -> MalformedError:
    """The problem, knowing which record it is about and who sent that."""
    ident, sender = found.get("id"), found.get("from")
    problem.id = str(ident) if is_uuid4(ident) else ""
    problem.sender = str(sender) if is_agent_id(sender) and sender != BROADCAST else ""
    return problem


def _is_finite(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, (list, tuple)) or all(map(_is_finite, value))


def _too_large(size: int, limit: int) -> MalformedError:
    return MalformedError(f"The envelope has {size} bytes; {limit} are allowed.", do="Send less at once.")


def _too_deep(limit: int) -> MalformedError:
    return MalformedError(f"The envelope is nested more than {limit} deep.", do="Flatten 'data'.", key="data")
