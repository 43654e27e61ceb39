"""A workspace on disk: the host brainstem and every twin are one of these (RAPP v1 §10, §18.8)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

DEFAULT_SOUL = """\
# Soul

You are the brainstem of this machine: calm, brief, exact.
You work for the person who owns it. You say what you did and what you did not do.
When one of your agents can do the work, you use it instead of guessing.
"""


@dataclass(slots=True, frozen=True)
class Workspace:
    """Where one tenant lives. ``soul`` and ``agents`` may be moved by settings; the rest is fixed."""

    root: Path
    soul: Path
    agents: Path

    @classmethod
    def at(cls, root: Path, *, soul: str = "", agents: str = "") -> Workspace:
        """The workspace under ``root``; relative ``soul`` and ``agents`` resolve against it."""
        return cls(root, root / (soul or "soul.md"), root / (agents or "agents"))

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
    def data(self) -> Path:
        """What agents and services remember, and what the house keeps about their files."""
        return self.root / ".brainstem_data"

    @property
    def deps(self) -> Path:
        """Python packages that this workspace's agents need."""
        return self.root / ".deps"

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
    def staging(self) -> Path:
        """A folder that workers cannot write, for files before they are moved to where workers can."""
        return self.kept

    @property
    def env_file(self) -> Path:
        """The agents' own variables (§5.6)."""
        return self.root / ".env"

    def create(self) -> None:
        """Makes whatever is missing; what is there stays as it is."""
        for folder in (self.root, self.agents, self.services, self.data):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.soul.exists():
            write_atomically(self.soul, DEFAULT_SOUL.encode())

    def environment(self) -> dict[str, str]:
        """The variables of the workspace's ``.env``; a missing file is an empty one."""
        if not self.env_file.exists() or not self.env_file.stat().st_size:
            return {}
        from dotenv import dotenv_values  # most workspaces have no .env, and every start would pay for it

        return {key: value for key, value in dotenv_values(self.env_file).items() if value is not None}


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600, staging: Path | None = None) -> None:
    """Writes ``content`` so that a reader, or a crash, sees the old file or the new one, never half.

    ``staging`` is a folder of the same file system to write it in before; else that is the file's own.
    """
    for folder in (path.parent, staging or path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = (staging or path.parent) / f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
