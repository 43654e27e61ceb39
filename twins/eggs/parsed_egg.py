"""An open egg of any family: parts with a role and a place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

import msgspec

from twins.eggs.integrity import are_digests
from twins.workspace.rappid import Rappid

ANCESTORS: Final = "ancestors"
"""The field of a manifest for the versions that a merged egg's files were made of: ``{path: [sha256, …]}``."""

Ancestors = Mapping[str, frozenset[str]]


class Role(StrEnum):
    """The purpose of a part. Code has the roles AGENT, SERVICE and SLOT, and only these."""

    IDENTITY = "identity"
    SOUL = "soul"
    AGENT = "agent"
    SERVICE = "service"
    SLOT = "slot"
    WORKFLOW = "workflow"
    RULES = "rules"
    """Files that are going to decide what runs; nothing reads them yet."""
    MEMORY = "memory"
    CONVERSATIONS = "conversations"
    ENV = "env"
    PAGE = "page"
    ROSTER = "roster"
    OTHER = "other"

    @property
    def is_code(self) -> bool:
        """True when a part of this role would run here."""
        return self in (Role.AGENT, Role.SERVICE, Role.SLOT)


ARCHIVED = "archived"
"""The ``lifecycle`` in the manifest of a twin that hatches into the archive."""


class Destination(StrEnum):
    """The destination of an egg."""

    TWIN = "twin"
    """``twins/<key>/``."""
    HOST = "host"
    """The host brainstem's workspace: single agents, rapplications, merges."""
    BRAINSTEM = "brainstem"
    """An empty home's ``brainstem/``."""
    INERT = "inert"
    """``<scale>s/<key>/``, as data that nothing runs."""
    ANSWER = "answer"
    """Nowhere: ``ParsedEgg.answer`` says where to open it or what to do."""


class Part(NamedTuple):
    """One file of an egg.

    ``name`` is its name in the egg, ``target`` its path under the destination (``/`` between folders,
    checked). ``chunks`` streams its bytes and may be called again.
    """

    name: str
    role: Role
    target: str
    size: int
    chunks: Callable[[], Iterator[bytes]]

    def read(self) -> bytes:
        """The whole content; the archive's caps hold."""
        return b"".join(self.chunks())

    def sha256(self) -> str:
        """SHA-256 of the content, in hex; read and checked like ``chunks``."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()


class Family(msgspec.Struct, frozen=True):
    """One row of the family table. ``tag`` is the discriminator as published."""

    tag: str
    kind: str
    container: str
    hatches_to: str


class Seal(msgspec.Struct, frozen=True):
    """An egg's statement about its own integrity, and whether that held.

    ``whole``: every member matched a hash that the egg carries (None: it carries none).
    ``signer``: fingerprint (64 hex) of the key whose signature held, "" without one. A signature says
    what the files ought to be; only ``checked`` tells that every one of them was read and compared.
    """

    whole: bool | None
    signer: str = ""
    sealed_at: str = ""
    listed: int = 0
    """The number of files it carries a hash of."""
    checked: bool = True
    """False: opened for a look; its files were not read, and ``whole`` is None."""


@dataclass(slots=True)
class ParsedEgg:
    """An egg that was read and checked, and wants to be planned. Writes nothing anywhere."""

    family: Family
    manifest: dict[str, Any]
    name: str
    rappid: Rappid | None
    destination: Destination
    key: str
    """The directory name under the destination; "" where the destination has one place only."""
    parts: Sequence[Part]
    seal: Seal
    digest: str
    """SHA-256 of the file's bytes."""
    size: int
    packed_at: str = ""
    made_by: str = ""
    notes: list[str] = field(default_factory=list)
    """Deviations that were tolerated, each one sentence."""
    answer: str = ""
    """For ``Destination.ANSWER``: what to tell the person. Elsewhere what he ought to know besides."""
    folder: str = ""
    """The destination below the home: ``twins/<key>``, ``brainstem``, ``factories/<key>``; "" for nowhere.
    The parts of an ``ANSWER`` that is a neighborhood have targets below the home itself."""
    file: str = ""
    """The file's name, for what is said about it."""
    closing: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def is_estate(self) -> bool:
        """True for an egg that holds other eggs to hatch, and is not the installer's alone."""
        return self.family.kind == "estate" and self.destination is Destination.INERT

    def close(self) -> None:
        """Closes the file. Its parts cannot be read any more."""
        if self.closing is not None:
            self.closing()
            self.closing = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ancestors(manifest: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The earlier versions of each file, by its place; empty for an egg that no merge made."""
    found = manifest.get(ANCESTORS)
    if not isinstance(found, dict):
        return {}
    return {
        path: frozenset(digests)
        for path, digests in found.items()
        if isinstance(digests, list) and are_digests(digests)
    }
