"""Emergence JSON (Rulebook v0.1 §1): bytes to a record and back, without loss; and the hash chain over those bytes."""

from __future__ import annotations

from hashlib import sha256
from struct import Struct
from typing import Any

import orjson

from envelopes.codecs.strict_json import deeper_than, too_deep
from envelopes.envelope import Envelope, is_uuid, shown
from envelopes.errors import MalformedError

CONTENT_TYPE = "application/json; charset=utf-8"
MAX_BYTES = 1 << 20
MAX_DEPTH = 64

_KEYS = ("id", "from", "to", "verb", "data")


def encode(envelope: Envelope) -> bytes:
    """The envelope as one JSON object: five keys, then its extensions.

    Raises ``MalformedError`` for data that is no JSON, or nested deeper than ``decode`` takes.
    """
    found = as_object(envelope)
    try:
        octets = orjson.dumps(found)
    except orjson.JSONEncodeError as error:
        raise MalformedError(
            f"'data' cannot be written: {error}.", do="Send JSON alone.", key="data"
        ) from error
    if octets.count(b"{") + octets.count(b"[") > MAX_DEPTH and too_deep(found, MAX_DEPTH - 1):
        raise _too_deep()
    return octets


def as_object(envelope: Envelope) -> dict[str, Any]:
    """The same object before it becomes text."""
    return {
        "id": envelope.id,
        "from": envelope.sender,
        "to": envelope.recipient,
        "verb": envelope.verb,
        "data": envelope.data,
        **envelope.extensions,
    }


def decode(raw: bytes, *, max_bytes: int = MAX_BYTES) -> Envelope:
    """A record from bytes. Raises ``MalformedError``, naming the offending key."""
    if len(raw) > max_bytes:
        raise MalformedError(
            f"The envelope has {len(raw)} bytes; {max_bytes} are allowed.", do="Send less at once."
        )
    if deeper_than(raw, MAX_DEPTH):
        raise _too_deep()
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedError(
            f"The envelope is not JSON: {error}.", do="Send one JSON object in UTF-8."
        ) from error
    return _checked(found)


def from_object(found: object) -> Envelope:
    """A record from a parsed object, checked key by key."""
    if too_deep(found, MAX_DEPTH - 1):
        raise _too_deep()
    return _checked(found)


def _checked(found: object) -> Envelope:
    if not isinstance(found, dict):
        raise MalformedError("The envelope is not a JSON object.", do="Send one JSON object.")
    for key in _KEYS:
        if key not in found:
            raise MalformedError(
                f"The envelope lacks '{key}'.", do="Send id, from, to, verb and data.", key=key
            )
    extensions = {key: value for key, value in found.items() if key not in _KEYS}
    for key in extensions:
        if not key.startswith("_x_"):
            raise MalformedError(
                f"The envelope has an unknown key '{shown(key)}'.", do="Extensions start with _x_.", key=key
            )
    if not is_uuid(found["id"]):
        raise MalformedError("'id' is not a UUID.", do="Send a UUIDv4.", key="id")
    for key in ("from", "to"):
        if not isinstance(found[key], str) or not found[key]:
            raise MalformedError(f"'{key}' is not an agent id.", do="Send a non-empty string.", key=key)
    verb = found["verb"]
    if not isinstance(verb, str) or not verb.isascii() or not verb.isalpha() or not verb.isupper():
        raise MalformedError(
            "'verb' is not an ALL-CAPS word.", do="Send HELLO, HELP, DONE or ERROR.", key="verb"
        )
    if not isinstance(found["data"], dict):
        raise MalformedError(
            "'data' is not an object.", do="Send {} when there is nothing to say.", key="data"
        )
    return Envelope(found["id"], found["from"], found["to"], verb, found["data"], extensions)


def _too_deep() -> MalformedError:
    return MalformedError(
        f"The envelope is nested more than {MAX_DEPTH} deep.", do="Flatten 'data'.", key="data"
    )


GENESIS = bytes(32)
"""The hash that the first event of a thread links to."""

_MOMENT = Struct(">Q").pack


def link(previous: bytes, at: int, body: bytes) -> bytes:
    """SHA-256 over the previous event's hash, the moment and the stored bytes, as they are.

    ``previous`` is 32 bytes (``GENESIS`` for the first event), ``at`` whole microseconds since
    the epoch, written as 8 bytes, big end first. Raises ``ValueError`` for anything else: the
    parts have fixed widths, so no two different events are hashed as the same bytes.
    """
    if len(previous) != 32:
        raise ValueError(f"the previous hash has {len(previous)} bytes, not 32")
    if not 0 <= at < 1 << 64:
        raise ValueError(f"{at} is no moment in microseconds since the epoch")
    return sha256(previous + _MOMENT(at) + body).digest()
