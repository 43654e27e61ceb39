"""An opened egg as people and programs read it: ``rappd egg inspect`` and ``verify``."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from twins.byte_sizes import format_bytes
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.detected_egg import Parts, Row
from twins.eggs.readers.formats import spoken
from twins.errors import BadFileError
from twins.fs.untrusted_names import shown
from twins.workspace.workspace_env import MAX_BYTES as MAX_ENV_BYTES
from twins.workspace.workspace_env import decode as decode_env
from twins.workspace.workspace_env import parse as parse_env

AT_ONCE = 2 << 20
"""The most bytes that are unpacked and checked when an egg is only inspected; it costs no noticeable time."""

_QUOTE, _INNER_QUOTE = '"', "'"
_TEXT, _ROWS = 300, 50  # of a manifest, as far as it is shown
_WORDS = {
    Role.SOUL: ("soul", "souls"),
    Role.AGENT: ("agent file", "agent files"),
    Role.SERVICE: ("service file", "service files"),
    Role.SLOT: ("sense", "senses"),
    Role.WORKFLOW: ("workflow", "workflows"),
    Role.RULES: ("rules file", "rules files"),
    Role.MEMORY: ("memory file", "memory files"),
    Role.CONVERSATIONS: ("record of conversations", "records of conversations"),
    Role.ENV: (".env", ".env files"),
    Role.PAGE: ("page file", "page files"),
    Role.ROSTER: ("roster", "rosters"),
    Role.OTHER: ("other file", "other files"),
}


class ReportLine(NamedTuple):
    """A line for people. ``verdict``: whether it is good to read, worth a look, or plain."""

    verdict: Literal["good", "note", ""]
    text: str


def look_at(path: Path) -> ParsedEgg:
    """Opens an egg to see what it is, quickly whatever its size. Raises as ``open_egg``."""
    collects = gc.isenabled()
    gc.disable()  # of a large egg tens of thousands of small things come, and none goes
    try:
        return open_egg(path, check_up_to=AT_ONCE)
    finally:
        if collects:
            gc.enable()


def inspect(opened: ParsedEgg) -> dict[str, Any]:
    """All facts about the egg, for ``--json``: one object under ``egg``.

    ``whole`` is true, or null when it carries no hashes for all its files or they were not ``checked``.
    """
    family, seal = opened.family, opened.seal
    words = {id(role): role.value for role in Role}  # asking each one's role takes longer
    return {
        "egg": {
            "file": opened.file,
            "size": opened.size,
            "sha256": opened.digest,
            "schema": family.tag,
            "kind": family.kind,
            "container": family.container,
            "name": opened.name,
            "rappid": opened.rappid.text if opened.rappid else None,
            "hatches_to": opened.destination.value,
            "folder": opened.folder,
            "packed_at": opened.packed_at,
            "made_by": opened.made_by,
            "checked": seal.checked,
            "whole": seal.whole,
            "listed": seal.listed,
            "signer": seal.signer,
            "sealed_at": seal.sealed_at,
            "roles": {role.value: count for role, count in _counted(opened.parts).items()},
            "parts": [
                {"name": name, "role": words[id(role)], "target": target, "size": size}
                for name, role, target, size in _rows(opened.parts)
            ],
            "notes": list(opened.notes),
            "answer": opened.answer,
            "manifest": _short(opened.manifest),
        }
    }


def lines(opened: ParsedEgg, *, signed: ReportLine | None = None) -> list[ReportLine]:
    """The same for people, the most important first. ``signed``: what is known here of the key that signed it."""
    family = opened.family
    head = [opened.name, spoken(family.kind), format_bytes(opened.size)]
    if opened.packed_at:
        head.append(f"packed {_day(opened.packed_at)}")
    found = [ReportLine("", ", ".join(head)), *verdict(opened, signed=signed)]
    found.append(ReportLine("", f"{family.tag}, {family.container}; {_hatches(opened)}"))
    if opened.rappid:
        found.append(ReportLine("", opened.rappid.text))
    if opened.made_by:
        found.append(ReportLine("", f'made by "{opened.made_by.replace(_QUOTE, _INNER_QUOTE)}"'))
    if opened.parts:
        found.append(ReportLine("", _holds(opened)))
        found += _variables(opened)
    found += [ReportLine("note", note) for note in opened.notes]
    found += [ReportLine("", line) for line in opened.answer.splitlines()]
    return found


def complete_text(files: int) -> str:
    """The sentence about an egg whose files all match their hashes."""
    if files == 1:
        return "Complete: its file matches its hash"
    return f"Complete: all {files:,} files match their hashes"


def verdict(opened: ParsedEgg, *, signed: ReportLine | None = None) -> list[ReportLine]:
    """True when it is whole, and who signed it: what ``rappd egg verify`` answers."""
    seal = opened.seal
    files = f"{len(opened.parts)} file{'' if len(opened.parts) == 1 else 's'}"
    if not seal.checked:
        whole = ReportLine("note", f"not checked yet: rappd egg verify {opened.file}")
    elif seal.whole:
        whole = ReportLine("good", complete_text(seal.listed))
    elif seal.listed:
        whole = ReportLine("note", f"readable: {files}, {seal.listed} of them with a hash")
    else:
        whole = ReportLine("note", f"readable: {files}; it carries no hashes")
    if signed is None:
        signed = ReportLine("note", f"signed by key {seal.signer[:16]}" if seal.signer else "not signed")
    return [whole, signed]


def _hatches(opened: ParsedEgg) -> str:
    if (opened.family.tag, opened.family.kind) == ("rapp-egg/2.0", "neighborhood"):
        return "hatches to the machines it came from"
    if opened.destination is Destination.ANSWER:
        return "does not hatch by itself"
    return f"{'unpacks' if opened.destination is Destination.INERT else 'hatches'} to {opened.folder}"


def _variables(opened: ParsedEgg) -> list[ReportLine]:
    """The names that an egg's ``.env`` sets, never their values."""
    if Role.ENV not in _counted(opened.parts):
        return []
    env = next(part for part in opened.parts if part.role is Role.ENV)
    if env.size > MAX_ENV_BYTES:
        return [ReportLine("note", f"its .env has more than {MAX_ENV_BYTES >> 10} KB and is not read")]
    try:
        found = parse_env(decode_env(env.read()))
    except BadFileError as problem:
        return [ReportLine("note", str(problem))]
    names = [shown(name) for name in found.accepted] + [
        f"{shown(one)} (never taken)" for one in found.left_out
    ]
    more = f" and {len(names) - _ROWS} more" if len(names) > _ROWS else ""
    return [ReportLine("", f".env sets {', '.join(names[:_ROWS])}{more}")] if names else []


def _holds(opened: ParsedEgg) -> str:
    counts = _counted(opened.parts)
    words = [f"{counts[role]} {_WORDS[role][counts[role] > 1]}" for role in _WORDS if role in counts]
    return ", ".join(words) or "nothing but its rappid"


def _rows(parts: Sequence[Part]) -> Iterable[Row]:
    return parts.rows() if isinstance(parts, Parts) else [part[:4] for part in parts]


def _counted(parts: Sequence[Part]) -> Mapping[Role, int]:
    return parts.counted() if isinstance(parts, Parts) else Counter(part.role for part in parts)


def _day(moment: str) -> str:
    """A moment's day, ``20 Nov 2026``; as it is written when it is none."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return shown(moment)
    return f"{at.day} {at:%b} {at.year}"


def _short(value: Any) -> Any:
    """A manifest without what would fill the screen; lengths stay visible."""
    if isinstance(value, dict):
        rows = {key: _short(inner) for key, inner in list(value.items())[:_ROWS]}
        if len(value) > _ROWS:
            rows["…"] = f"{len(value) - _ROWS} more"
        return rows
    if isinstance(value, list):
        return [_short(inner) for inner in value[:_ROWS]] + (
            [f"… {len(value) - _ROWS} more"] if len(value) > _ROWS else []
        )
    if isinstance(value, str) and len(value) > _TEXT:
        return f"{value[:_TEXT]}… {len(value) - _TEXT} more characters"
    return value
