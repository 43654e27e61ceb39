"""Session cartridges: a runtime, a transcript, participants. They open in a browser, not here (§18.10.2)."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from twins.eggs.parsed_egg import Family, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.destinations import answering
from twins.eggs.readers.detected import DetectedEgg, inside, part_of, text
from twins.eggs.readers.formats import OLD_SESSION, SESSION
from twins.eggs.readers.identity import lenient
from twins.zip.names import shown

MOUNTS = (
    "https://kody-w.github.io/rappterbox/console.html",
    "https://kody-w.github.io/RAPP/pages/vbrainstem.html",
)
"""Pages that a session cartridge is dropped into."""


def session(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-session``. The runtime's SHA-256, over its UTF-8 text, is compared."""
    return _session(found, SESSION)


def old_session(found: DetectedEgg) -> ParsedEgg:
    """``rappterbox-cart/0.1``, the same under its older name."""
    return _session(found, OLD_SESSION)


def _session(found: DetectedEgg, family: Family) -> ParsedEgg:
    cart = found.manifest
    runtime, payload, listed = _runtime(found)
    transcript = _list(found, "transcript")
    people = _list(found, "participants")
    named = [text((one, "name"), (one, "rappid")) for one in people]
    if sum(isinstance(one, dict) and one.get("role") == "operator" for one in people) != 1:
        found.notes.append("It does not name exactly one operator.")
    rappid = lenient(found, cart.get("rappid"))
    name = text((cart, "name"), (cart, "title"))
    title = text((cart, "title"), (cart, "name")) or found.file
    answer = tell(
        title,
        name,
        rappid.text if rappid else "",
        text((runtime, "type")) or "html",
        payload,
        len(transcript),
        [one for one in named if one],
    )
    parts = contents(payload, transcript, html=text((runtime, "type")) in ("", "html"))
    seal = Seal(None, listed=listed)
    return answering(found, family, seal, answer, rappid=rappid, name=name or title, parts=parts)


def tell(title: str, name: str, rappid: str, kind: str, payload: str, events: int, people: list[str]) -> str:
    """The text that a person reads about a session, and where to open it."""
    octets = payload.encode()
    lines = [f"A session: '{title}'" + (f" ({name})" if name and name != title else "")]
    if rappid:
        lines.append(f"rappid {rappid}")
    if octets:
        digest = hashlib.sha256(octets).hexdigest()
        lines.append(f"runtime {kind}, sha256 {digest[:16]}, {len(octets)} bytes")
    lines.append(f"transcript of {events} events")
    if people:
        lines.append(f"with {', '.join(people[:8])}" + (f" and {len(people) - 8} more" if people[8:] else ""))
    lines.append("It runs in a browser. Open one of these and drop the file in:")
    return "\n".join([*lines, *MOUNTS])


def contents(payload: str, transcript: list[Any], *, html: bool) -> tuple[Part, ...]:
    """The parts of a session that can be extracted as files."""
    runtime = "runtime.html" if html else "runtime.txt"
    parts = []
    if payload:
        parts.append(part_of(runtime, Role.PAGE, runtime, payload.encode()))
    lines = "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in transcript)
    parts.append(part_of("transcript.jsonl", Role.OTHER, "transcript.jsonl", lines.encode()))
    return tuple(parts)


def _runtime(found: DetectedEgg) -> tuple[dict[str, Any], str, int]:
    """(the runtime, its text, how many hashes held). Published tutorials have a runtime without text."""
    runtime = inside(found.manifest, "runtime")
    payload = runtime.get("payload")
    said = runtime.get("sha256")
    if not isinstance(payload, str) or not payload:
        found.notes.append("It carries no runtime of its own.")
        return runtime, "", 0
    if said is None:
        found.notes.append("It carries no hash of its runtime.")
        return runtime, payload, 0
    if not isinstance(said, str) or hashlib.sha256(payload.encode()).hexdigest() != said.lower():
        raise found.damaged("runtime")
    return runtime, payload, 1


def _list(found: DetectedEgg, key: str) -> list[Any]:
    value = found.manifest.get(key, [])
    if value is None:
        return []
    if not isinstance(value, list):
        raise found.damaged(shown(key))
    return value
