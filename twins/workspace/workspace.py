"""Workspaces on disk: the folders of one, the places of a home's twins, and the lock of a folder.

The host brainstem and every twin are a workspace (RAPP v1 §10, §18.8, §18.13.1).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agents.storage.atomic_write import lock
from agents.storage.safe_fs import SafeTree
from agents.storage.safe_open import open_root
from twins.errors import BadRappidError, NoSuchTwinError, TwinConflictError

DEFAULT_SOUL = """\
# Soul

You are the brainstem of this machine: calm, brief, exact.
You work for the person who owns it. You say what you did and what you did not do.
When one of your agents can do the work, you use it instead of guessing.
"""

PLACEHOLDERS: Mapping[str, bytes] = {".env": b"", ".repos.json": b"{}"}
"""Files that are made, saying nothing, before agents run, so that no agent makes them."""


GOOD_COPIES = ".brainstem_data/kept/good"
"""The folder of the last version that worked of each agent file, as a path below a workspace."""
DEPS = ".deps"
"""The folder of the packages that agents declared, likewise; installed anew wherever it is missing."""
OF_RUNNING = (GOOD_COPIES, DEPS)
"""Folders that the daemon fills when agents run, from their own files and the package index alone."""


def is_placeholder(path: str, sha256: str) -> bool:
    """True for a file of a workspace that is as it was made to keep agents from making it."""
    return path in PLACEHOLDERS and hashlib.sha256(PLACEHOLDERS[path]).hexdigest() == sha256


@dataclass(slots=True, frozen=True)
class Workspace:
    """The folder of one tenant. ``soul`` and ``agents`` may be moved by settings; the rest is fixed."""

    root: Path
    soul: Path
    agents: Path

    @classmethod
    def at(cls, root: Path, *, soul: str = "", agents: str = "") -> Workspace:
        """The workspace under ``root``; relative ``soul`` and ``agents`` resolve against it.

        Where they lie outside it, the operator put them there: links on the way are followed now, once.
        """
        return cls(root, _placed(root, soul or "soul.md"), _placed(root, agents or "agents"))

    @property
    def files(self) -> SafeTree:
        """Reads and writes of the daemon's in this workspace. Agents can write here: use nothing else."""
        outside = [
            folder for folder in (self.soul.parent, self.agents) if not folder.is_relative_to(self.root)
        ]
        return SafeTree(self.root, *outside)

    @property
    def services(self) -> Path:
        """``*_service.py`` files."""
        return self.root / "services"

    @property
    def organs(self) -> Path:
        """``*_organ.py`` files, in a folder laid out as published brainstems have it; services like the others."""
        return self.root / "organs"

    @property
    def senses(self) -> Path:
        """``*_sense.py`` files: further slots of answers."""
        return self.root / "senses"

    @property
    def workflows(self) -> Path:
        """``*.json`` files of workflows, and the texts that they name."""
        return self.root / "workflows"

    @property
    def data(self) -> Path:
        """The data of agents and services, and rappd's own records of their files."""
        return self.root / ".brainstem_data"

    @property
    def deps(self) -> Path:
        """Python packages that this workspace's agents need."""
        return self.root / DEPS

    @property
    def rapps(self) -> Path:
        """Manifests and pages of installed rapplications."""
        return self.root / "rapps"

    @property
    def sources(self) -> Path:
        """Agent files fetched from connected sources."""
        return self.root / ".remote_agents"

    @property
    def kept(self) -> Path:
        """Last good versions, earlier generations and removed files of agents."""
        return self.data / "kept"

    @property
    def good_copies(self) -> Path:
        """The folder of the last good versions of agents."""
        return self.root / GOOD_COPIES

    @property
    def staging(self) -> Path:
        """A folder that workers cannot write, for files before they are moved to where workers can."""
        return self.kept

    @property
    def env_file(self) -> Path:
        """The agents' own variables (§5.6)."""
        return self.root / ".env"

    def create(self) -> None:
        """Makes whatever is missing; what is there stays as it is."""
        files = self.files
        for folder in (self.root, self.agents, self.services, self.data):
            if not files.exists(folder):  # a link stays as it is; reading it is refused
                files.make_folder(folder)
        if not files.exists(self.soul):
            files.write_durably(self.soul, DEFAULT_SOUL.encode())


class TwinLayout(msgspec.Struct, frozen=True):
    """Paths under one home. Creating the object touches nothing. Dot-names are never twins."""

    home: Path

    @property
    def twins(self) -> Path:
        """Active twins, one folder each."""
        return self.home / "twins"

    @property
    def archive(self) -> Path:
        """Twins set aside, whole."""
        return self.twins / ".archive"

    @property
    def purged(self) -> Path:
        """Tombstones of twins that are gone."""
        return self.twins / ".purged"

    @property
    def staging(self) -> Path:
        """The folder where twins are built before they move to their place."""
        return self.twins / ".staging"

    @property
    def eggs(self) -> Path:
        """Eggs laid here."""
        return self.home / "eggs"

    def checkpoints(self, key: str) -> Path:
        """The folder of a twin's checkpoints."""
        return self.eggs / "checkpoints" / _component(key)

    def active(self, key: str) -> Path:
        """The folder of an active twin. Raises ``BadRappidError`` for what names no folder."""
        return self.twins / _component(key)

    def archived(self, key: str) -> Path:
        """The folder of an archived twin."""
        return self.archive / _component(key)

    def tombstone(self, key: str) -> Path:
        """The tombstone of a purged twin."""
        return self.purged / f"{_component(key)}.json"


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Holds a folder against other writers of its files, across threads and processes.

    Raises ``NoSuchTwinError`` when it is not there, or moved away while waiting; ``TwinConflictError`` when
    another keeps it for too long.
    """
    try:
        handle = open_root(folder)
    except FileNotFoundError as error:
        raise _gone(folder) from error
    try:
        with ExitStack() as stack:
            try:
                stack.enter_context(lock(handle))
            except TimeoutError as error:
                raise TwinConflictError(
                    "Something else is writing there; nothing was changed.", do="Try again."
                ) from error
            # A twin archived meanwhile must not leave a new folder with one file in its old place.
            if not folder.exists() or not os.path.samestat(folder.stat(), os.fstat(handle)):
                raise _gone(folder)
            yield
    finally:
        os.close(handle)


def _placed(root: Path, name: str) -> Path:
    base = os.path.normpath(root)
    path = os.path.normpath(os.path.join(base, name))  # noqa: PTH118 - both are text here
    inside = path.startswith(base + os.sep)
    return root / os.path.relpath(path, base) if inside else Path(os.path.realpath(path))


def _gone(folder: Path) -> NoSuchTwinError:
    return NoSuchTwinError(f"Nothing is at {folder.name[:60]} any more.", do="rappd twins list")


def _component(key: str) -> str:
    if not key or len(key) > 200 or key.startswith(".") or not key.isprintable() or set(key) & {"/", "\\"}:
        raise BadRappidError(f"{key[:60]!r} is not the name of a twin's folder.", do="rappd twins list")
    return key
