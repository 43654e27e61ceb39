"""The differences between two snapshots, file by file; other machines' twins by their archives."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from twins.eggs.parsed_egg import ParsedEgg
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.diff import Difference, compare_eggs

_OWN = re.compile(r"neighborhoods/[^/]+/")
_OF_THE_MOMENT = re.compile(r"members\.json|stamps\.json|peers/[^/]+/peer\.json")
"""Members that tell when and from where a snapshot was taken: no two are the same."""


def compare_snapshots(before: Path, after: Path) -> Difference:
    """Compares every file that was copied. Raises what ``open_egg`` raises."""
    with open_egg(before) as old, open_egg(after) as new:
        return compare_eggs(_copied(old), _copied(new))


def _copied(opened: ParsedEgg) -> ParsedEgg:
    """The egg with names that are the same in every snapshot."""
    parts = [part._replace(target=_OWN.sub("", part.target, count=1)) for part in opened.parts]
    return replace(opened, parts=[part for part in parts if not _OF_THE_MOMENT.fullmatch(part.target)])
