"""Two eggs side by side: what one holds and the other does not, and what differs, file by file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from twins.byte_sizes import format_bytes
from twins.eggs.parsed_egg import ParsedEgg, Part, Role
from twins.eggs.readers.detected_egg import parse_object
from twins.eggs.readers.inspect import ReportLine
from twins.errors import BadEggError

TEXT_BYTES = 64 << 10
"""Larger files are compared, their difference is not spelled out."""
_TEXT_LINES = 1500


@dataclass(slots=True, frozen=True)
class FileDifference:
    """One file.

    ``before`` and ``after`` are sizes, None where it is not there. ``text``: the lines of a unified diff,
    empty for what is no text, or too large.
    """

    target: str
    role: Role
    what: str
    before: int | None
    after: int | None
    text: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class Difference:
    """``facts``: (what, before, after) of what the eggs say of themselves. ``same``: files that are equal."""

    facts: tuple[tuple[str, str, str], ...]
    files: tuple[FileDifference, ...]
    same: int = 0

    def __bool__(self) -> bool:
        """True when there is any."""
        return bool(self.facts or self.files)

    def as_json(self) -> dict[str, Any]:
        """For ``--json``: one object under ``diff``."""
        return {
            "diff": {
                "facts": [{"what": what, "before": old, "after": new} for what, old, new in self.facts],
                "files": [
                    {
                        "target": one.target,
                        "role": one.role.value,
                        "what": one.what,
                        "before": one.before,
                        "after": one.after,
                        "text": list(one.text),
                    }
                    for one in self.files
                ],
                "same": self.same,
            }
        }

    def lines(self) -> list[ReportLine]:
        """For people."""
        if not self:
            return [ReportLine("good", f"The same: {self.same} files.")]
        found = [
            ReportLine("", f"{what}: {old or 'none'} → {new or 'none'}") for what, old, new in self.facts
        ]
        for one in self.files:
            sizes = " → ".join(format_bytes(size) for size in (one.before, one.after) if size is not None)
            found.append(ReportLine("", f"{one.what:<8} {one.target}  {one.role.value}, {sizes}"))
            found += [ReportLine("", f"    {line}") for line in one.text]
        return [*found, ReportLine("", f"{self.same} files are the same.")]


@dataclass(slots=True)
class _Side:
    opened: ParsedEgg
    parts: dict[str, Part] = field(init=False)

    def __post_init__(self) -> None:
        self.parts = {part.target: part for part in self.opened.parts}


def compare_eggs(before: ParsedEgg, after: ParsedEgg) -> Difference:
    """Compares by where a file would lie, so that eggs of different families can be compared too.

    Reads every file that is in both. Raises ``BadEggError`` for a damaged one.
    """
    old, new = _Side(before), _Side(after)
    files = []
    same = 0
    for target in sorted(old.parts.keys() | new.parts.keys(), key=lambda target: _order(old, new, target)):
        left, right = old.parts.get(target), new.parts.get(target)
        if left is None or right is None:
            files.append(_one_sided(target, left, right))
        elif _differ(left, right):
            text = _text_difference(left, right)
            files.append(FileDifference(target, right.role, "changed", left.size, right.size, text))
        else:
            same += 1
    return Difference(_facts(before, after), tuple(files), same)


def _order(old: _Side, new: _Side, target: str) -> tuple[int, str]:
    part = new.parts.get(target) or old.parts[target]
    return list(Role).index(part.role), target


def _one_sided(target: str, left: Part | None, right: Part | None) -> FileDifference:
    if left is not None:
        return FileDifference(target, left.role, "removed", left.size, None)
    assert right is not None
    return FileDifference(target, right.role, "added", None, right.size)


def _facts(before: ParsedEgg, after: ParsedEgg) -> tuple[tuple[str, str, str], ...]:
    def told(opened: ParsedEgg) -> dict[str, str]:
        return {
            "rappid": opened.rappid.text if opened.rappid else "",
            "name": opened.name,
            "kind": opened.family.kind,
            "schema": opened.family.tag,
            "packed": opened.packed_at,
            "made by": opened.made_by,
            "signed by": opened.seal.signer,
        }

    old, new = told(before), told(after)
    return tuple((what, old[what], new[what]) for what in old if old[what] != new[what])


def _differ(left: Part, right: Part) -> bool:
    return left.size != right.size or left.sha256() != right.sha256()


def _text_difference(left: Part, right: Part) -> tuple[str, ...]:
    if max(left.size, right.size) > TEXT_BYTES:
        return ()
    texts = _texts(left.read(), right.read(), left.target)
    if texts is None:
        return ()
    old, new = (text.splitlines() for text in texts)
    if max(len(old), len(new)) > _TEXT_LINES:
        return ()
    import difflib

    return tuple(line.rstrip("\n") for line in difflib.unified_diff(old, new, "before", "after", lineterm=""))


def _texts(left: bytes, right: bytes, target: str) -> tuple[str, str] | None:
    """Both as text, JSON laid out by lines; None when one is no text."""
    if target.endswith(".json"):
        try:
            pair = tuple(
                json.dumps(parse_object(octets, target), indent=2, sort_keys=True, ensure_ascii=False)
                for octets in (left, right)
            )
        except BadEggError:
            pair = ()
        if pair and pair[0] != pair[1]:
            return pair[0], pair[1]
    try:
        old, new = left.decode(), right.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in old or "\0" in new else (old, new)
