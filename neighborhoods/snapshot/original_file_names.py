"""The names that lay in each folder of this machine before anything was left out: ``listing.json`` of a snapshot.

``{"schema": "rappd-listing/1.0", "folders": {prefix: [path, …]}}``, paths as they come back; a folder that is
left out as a whole ends in ``/``. The restore drill compares them with what came back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from agents.storage.safe_walk import LinkFreeFolder
from neighborhoods.snapshot.filtering import Omission
from twins.eggs.parsed_egg import ParsedEgg
from twins.errors import BadEggError
from twins.fs.untrusted_names import shown

MEMBER: Final = "listing.json"
SCHEMA: Final = "rappd-listing/1.0"


class _File(msgspec.Struct):
    schema: str
    folders: dict[str, list[str]]


def encode(folders: Mapping[str, Iterable[str]]) -> bytes:
    """The member's bytes."""
    return msgspec.json.encode(_File(SCHEMA, {prefix: sorted(folders[prefix]) for prefix in sorted(folders)}))


def decode(content: bytes) -> dict[str, list[str]]:
    """The names by folder. Raises ``BadEggError``."""
    try:
        return msgspec.json.decode(content, type=_File).folders
    except msgspec.DecodeError as error:
        raise BadEggError(f"Its {MEMBER} is damaged; nothing was written.", do="Get it again.") from error


def listing_of(opened: ParsedEgg) -> dict[str, list[str]]:
    """The names that an egg says were there; none where it is of another make."""
    for part in opened.parts:
        if part.name == MEMBER:
            return decode(part.read())
    return {}


def as_text(path: str) -> str:
    """A path as JSON can hold it: bytes that are no text are escaped."""
    return path.encode("utf-8", "backslashreplace").decode()


def unexplained(listed: Iterable[str], left_out: Collection[Omission], root: Path) -> Iterator[str]:
    """Names of ``listed`` that neither lie below ``root`` nor are named as left out, themselves or by a folder."""
    with LinkFreeFolder(root) as tree:
        there = {as_text(path) for path, _ in tree.walk("")}
    named = {one.path for one in left_out}
    for path in listed:
        plain = path.rstrip("/")
        above = plain.split("/")
        folders = ("/".join(above[:n]) for n in range(1, len(above) + 1))
        if plain not in there and shown(plain) not in named and not any(one in named for one in folders):
            yield plain
