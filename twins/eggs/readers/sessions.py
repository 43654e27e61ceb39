"""Session eggs: a page, a transcript, participants. Nothing of one hatches: it is opened to be replayed (§18.10.2)."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

from envelopes.codecs.canonical import canonical
from twins.eggs.parsed_egg import Family, ParsedEgg, Part, Role, Seal
from twins.eggs.readers.detected_egg import DetectedEgg, inside, part_of, text
from twins.eggs.readers.egg_destination import answering, lenient
from twins.eggs.readers.formats import OLD_SESSION, SESSION
from twins.eggs.session_content import (
    MOST_EVENTS,
    MOST_FILE_BYTES,
    MOST_PAGE_BYTES,
    MOST_TRANSCRIPT_BYTES,
    SessionContent,
    events_of,
    line,
    participants_of,
)
from twins.errors import BadEggError, BadFileError
from twins.fs.untrusted_names import shown

TRANSCRIPT_PIN = "transcript_sha256"
"""The key of the SHA-256 over the transcript in its canonical form (RFC 8785)."""


def session(found: DetectedEgg) -> ParsedEgg:
    """``brainstem-egg/2.3-session``. The hashes of page and transcript are compared, where it has them."""
    return _session(found, SESSION)


def old_session(found: DetectedEgg) -> ParsedEgg:
    """``rappterbox-cart/0.1``, the same under its older name."""
    return _session(found, OLD_SESSION)


def read_session(path: Path) -> SessionContent:
    """The session in an egg, checked. Raises ``BadEggError`` and its kin, ``NoSuchFileError``, ``BadFileError``."""
    from twins.eggs.readers.detect import open_egg

    with open_egg(path, check_up_to=MOST_FILE_BYTES) as opened:
        if opened.family.kind != "session":
            raise BadFileError(
                f"{opened.file} holds no session: it is of the kind {opened.family.kind}.",
                do=f"rappd egg inspect {shlex.quote(opened.file)}",
            )
        return content_of(opened)


def content_of(opened: ParsedEgg) -> SessionContent:
    """The session of an egg that ``open_egg`` opened as one."""
    cart = opened.manifest
    payload = inside(cart, "payload")
    old = "payload" in cart and "runtime" not in cart
    runtime = payload.get("runtime") if old else inside(cart, "runtime").get("payload")
    page = runtime if isinstance(runtime, str) and _is_page(runtime, cart, old) else ""
    transcript = (payload if old else cart).get("transcript") or []
    participants = participants_of(cart.get("participants") or [])
    at = cart.get("branch_at_event")
    return SessionContent(
        rappid=opened.rappid.text if opened.rappid else "",
        title=line(cart.get("title")) or opened.name,
        description=line(cart.get("description"), 400),
        participants=participants,
        events=events_of(transcript, participants),
        transcript=transcript,
        page=page,
        page_pinned=not old and bool(page) and "sha256" in inside(cart, "runtime"),
        transcript_pinned=not old and TRANSCRIPT_PIN in cart,
        parent_rappid=line(cart.get("parent_rappid"), 512),
        branch_at_event=at if type(at) is int and 0 <= at < 1 << 53 else None,
        made_at=opened.packed_at,
        made_by=opened.made_by,
    )


def _is_page(runtime: str, cart: dict[str, Any], old: bool) -> bool:
    """True for HTML. In ``rapp/1-egg`` the runtime is any text."""
    return runtime.lstrip()[:1] == "<" if old else text((inside(cart, "runtime"), "type")) in ("", "html")


def _session(found: DetectedEgg, family: Family) -> ParsedEgg:
    cart = found.manifest
    runtime, payload, listed = _runtime(found)
    transcript = _list(found, "transcript")
    people = _list(found, "participants")
    listed += _transcript_pin(found, checked_transcript(found, payload, transcript))
    named = [text((one, "name"), (one, "rappid")) for one in people]
    if sum(isinstance(one, dict) and one.get("role") == "operator" for one in people) != 1:
        found.notes.append("It does not name exactly one operator.")
    rappid = lenient(found, cart.get("rappid"))
    name = text((cart, "name"), (cart, "title"))
    title = text((cart, "title"), (cart, "name")) or found.file
    answer = tell(
        found,
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


def checked_transcript(found: DetectedEgg, page: str, transcript: list[Any]) -> bytes:
    """The transcript in its canonical form. Raises ``BadEggError`` for a session that is larger than one may be."""
    _check_size(found, "it", found.size, MOST_FILE_BYTES)
    _check_size(found, "its page", len(page.encode()), MOST_PAGE_BYTES)
    if len(transcript) > MOST_EVENTS:
        raise _too_large(found, f"its transcript has more than {MOST_EVENTS} events")
    try:
        octets = canonical(transcript)
    except ValueError as error:
        raise found.damaged("transcript") from error
    _check_size(found, "its transcript", len(octets), MOST_TRANSCRIPT_BYTES)
    return octets


def tell(
    found: DetectedEgg,
    title: str,
    name: str,
    rappid: str,
    kind: str,
    payload: str,
    events: int,
    people: list[str],
) -> str:
    """The text that a person reads about a session, and the command that opens it."""
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
    lines.append(f"Nothing of it hatches. To replay it: rappd sessions open {shlex.quote(found.file)}")
    return "\n".join(lines)


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
    declared = runtime.get("sha256")
    if not isinstance(payload, str) or not payload:
        found.notes.append("It carries no runtime of its own.")
        return runtime, "", 0
    if declared is None:
        found.notes.append("It carries no hash of its runtime.")
        return runtime, payload, 0
    if not isinstance(declared, str) or hashlib.sha256(payload.encode()).hexdigest() != declared.lower():
        raise found.damaged("runtime")
    return runtime, payload, 1


def _transcript_pin(found: DetectedEgg, octets: bytes) -> int:
    """The number of hashes of the transcript that held: published carts have none."""
    declared = found.manifest.get(TRANSCRIPT_PIN)
    if declared is None:
        found.notes.append("It carries no hash of its transcript.")
        return 0
    if declared != hashlib.sha256(octets).hexdigest():
        raise found.damaged("transcript")
    return 1


def _check_size(found: DetectedEgg, what: str, size: int, most: int) -> None:
    if size > most:
        raise _too_large(found, f"{what} has more than {most >> 20} MB")


def _too_large(found: DetectedEgg, why: str) -> BadEggError:
    return BadEggError(
        f"{found.file} is too large for a session: {why}; nothing was opened.", do="Don't use it."
    )


def _list(found: DetectedEgg, key: str) -> list[Any]:
    value = found.manifest.get(key, [])
    if value is None:
        return []
    if not isinstance(value, list):
        raise found.damaged(shown(key))
    return value
