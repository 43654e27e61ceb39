"""A thread, or the whole record, as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from rappd.store.records import Event


def export_jsonl(events: Iterable[Event]) -> Iterator[bytes]:
    """One envelope per line, each with its newline, with three more extensions at its end.

    ``_x_n`` is the event's place in its thread, ``_x_at`` the moment in µs since the epoch, ``_x_hash``
    the link of its chain in hex. What stands before them is the recorded envelope byte for byte (line
    breaks between its tokens become spaces), so the chain can be followed from the file alone.
    A body that is no JSON object is put, in hex, under ``_x_body`` of an envelope made from its row.
    """
    for event in events:
        body = event.body.strip().translate(_ONE_LINE)
        if not (body.startswith(b"{") and body.endswith(b"}") and _is_json(body)):
            body = orjson.dumps(
                {
                    "id": event.id,
                    "from": event.sender,
                    "to": event.recipient,
                    "verb": event.verb,
                    "data": {},
                    "_x_thread": event.thread,
                    "_x_body": event.body.hex(),
                }
            )
        comma = b"" if body[1:-1].strip() == b"" else b","
        place = b'"_x_n":%d,"_x_at":%d,"_x_hash":"%s"}\n' % (event.n, event.at, event.hash.hex().encode())
        yield body[:-1] + comma + place


# A line break inside a JSON string is always written as \n, so a real one stands between tokens.
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True
