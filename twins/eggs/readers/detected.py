"""An egg's file, and what it declares of itself, before it is read by its family."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from envelopes.codecs.strict_json import strict_object
from twins.eggs.parsed_egg import Part, Role
from twins.errors import BadEggError
from twins.fs.untrusted_names import safe_component, shown
from twins.work_progress import Progress
from twins.zip.reader import Archive

MANIFEST_BYTES = 16 << 20
"""Most bytes of a manifest or any other JSON member that is read."""
_LINE = 120
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")


@dataclass(slots=True)
class DetectedEgg:
    """One egg. ``octets`` is its manifest as it stands there: a member of ``archive``, or the whole file.

    ``file`` is what a person calls it. ``check``: read every file now and compare what can be compared.
    """

    file: str
    size: int
    digest: str
    manifest: dict[str, Any]
    octets: bytes = field(repr=False)
    check: bool = True
    zip: Archive | None = None
    manifest_name: str = "manifest.json"
    notes: list[str] = field(default_factory=list)
    progress: Progress | None = field(default=None, repr=False)

    @property
    def archive(self) -> Archive:
        """The archive that it is. Only where a family is a ZIP."""
        assert self.zip is not None
        return self.zip

    @property
    def names(self) -> list[str]:
        """Its files, in the order of its list."""
        return self.archive.names

    def __contains__(self, name: str) -> bool:
        return name in self.archive

    def read(self, name: str) -> bytes:
        """A small member, whole."""
        return self.archive.read(name, limit=MANIFEST_BYTES)

    def read_object(self, name: str) -> dict[str, Any]:
        """A member that is a JSON object. Raises ``BadEggError``."""
        return parse_object(self.read(name), f"{self.file}, {shown(name)},")

    def need(self, name: str) -> None:
        """Raises ``BadEggError`` unless there is a file of that name."""
        if name not in self.archive:
            raise self.damaged(f"{shown(name)} is missing")

    def damaged(self, what: str) -> BadEggError:
        """The error for an egg that is not whole; ``what`` names the file or says in a clause."""
        return BadEggError(f"{self.file} is damaged ({what}); nothing was written.", do="Get it again.")

    def seed(self) -> bytes:
        """32 bytes that are the same for the same manifest and for nothing else."""
        return hashlib.sha256(self.octets).digest()


def part_of(name: str, role: Role, target: str, octets: bytes) -> Part:
    """A part whose content was made or taken out of JSON."""

    def chunks() -> Iterator[bytes]:
        if octets:
            yield octets

    return Part(name, role, target, len(octets), chunks)


def text(*places: tuple[Any, str], most: int = _LINE) -> str:
    """The first of these (object, key) that holds text, as one line fit to be shown; "" for none."""
    for holder, key in places:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, str):
            line = " ".join(_UNSHOWN.sub(" ", value).split())[:most]
            if line:
                return line
    return ""


def component(*places: tuple[Any, str]) -> str:
    """The first of these (object, key) that holds text, exactly as it stands there, fit to name one file or folder; "" for none.

    Raises ``HostileEggError`` for text that is not.
    """
    for holder, key in places:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, str) and value:
            return safe_component(value)
    return ""


def inside(holder: Any, key: str) -> dict[str, Any]:
    """The object under ``key``; an empty one where there is none."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def parse_object(octets: bytes, name: str, *, wide: bool = False) -> dict[str, Any]:
    """The one object that ``octets`` hold; ``name`` is what a person calls them. Raises ``BadEggError``."""
    try:
        return strict_object(octets, wide=wide)
    except ValueError as error:
        raise damaged(name, str(error)) from error


def damaged(name: str, why: str) -> BadEggError:
    """The error for JSON that cannot be taken; ``why`` is a clause."""
    return BadEggError(f"{name} is damaged ({why}); nothing was written.", do="Get it again.")
