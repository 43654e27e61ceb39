"""Sources: repositories or folders of agent files that a workspace is connected to (RAPP v1 §5.7, §8)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agents.storage.safe_open import UnsafeFileError
from twins.errors import BadFileError, NoSuchFileError
from twins.fs.untrusted_names import other_spelling, why_no_component
from twins.workspace.agent_files import proper_name, sha256
from twins.workspace.workspace import Workspace

_MAX_STATE = 4 << 20


class OfferedAgent(msgspec.Struct, frozen=True):
    """One agent that a source offers. ``location`` is where its file is fetched from."""

    id: str
    name: str
    description: str
    location: str


class Source(msgspec.Struct, frozen=True):
    """A connected source: its name (``owner/repo``, or a folder's path), and what is enabled of it."""

    name: str
    folder: Path
    offered: tuple[OfferedAgent, ...]
    fetched: dict[str, str]  # agent id -> sha256 of the file that is enabled

    @property
    def enabled(self) -> frozenset[str]:
        """File names that count as agents of the workspace."""
        return frozenset(proper_name(f"{agent_id}.py") for agent_id in self.fetched)


class Sources:
    """The sources of one workspace; state lies in ``.repos.json``, files in ``.remote_agents/``."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._state_path = workspace.root / ".repos.json"
        self._state: dict[str, Any] | None = None

    def all(self) -> list[Source]:
        """Every connected source, in the order of connecting."""
        return [self._source(name, entry) for name, entry in self._load().items()]

    def get(self, name: str) -> Source:
        """One source. Raises ``NoSuchFileError``."""
        entry = self._load().get(name)
        if entry is None:
            raise NoSuchFileError(f'No source "{name[:120]}" is connected.', do="GET /repos lists them.")
        return self._source(name, entry)

    def connect(self, name: str, offered: list[OfferedAgent]) -> Source:
        """Remembers a source; what was enabled of it stays enabled."""
        state = self._load()
        if name not in state:
            _check_folder(name, state)
        entry = state.setdefault(name, _complete({}))
        entry["offered"] = [
            {"id": one.id, "name": one.name, "description": one.description, "location": one.location}
            for one in offered
        ]
        self._save()
        return self._source(name, entry)

    def disconnect(self, name: str) -> None:
        """Forgets a source and takes its agents out of service."""
        source = self.get(name)
        self._workspace.files.remove_tree(source.folder)
        del self._load()[name]
        self._save()

    def enable(self, name: str, agent_id: str, content: bytes) -> str:
        """Puts an agent's fetched file into service; returns its sha256, which is kept on record."""
        source = self.get(name)
        if all(one.id != agent_id for one in source.offered):
            raise NoSuchFileError(f'{name} offers no "{agent_id[:80]}".', do="GET /repos lists them.")
        digest = sha256(content)
        file = proper_name(f"{agent_id}.py")
        others = (proper_name(f"{one}.py") for one in source.fetched)
        if other := other_spelling(file, others):
            raise BadFileError(
                f"{other} is enabled, and some disks take {file} for the same file.",
                do="Disable that one first.",
            )
        self._workspace.files.write_durably(source.folder / file, content)
        entry = self._load()[name]
        entry["sha256"][agent_id] = digest
        entry["enabled_agents"] = sorted(entry["sha256"])
        self._save()
        return digest

    def disable(self, name: str, agent_id: str) -> bool:
        """Takes an agent out of service; False when it was not in."""
        source = self.get(name)
        if agent_id not in source.fetched:
            return False
        self._workspace.files.remove(source.folder / proper_name(f"{agent_id}.py"), missing_ok=True)
        entry = self._load()[name]
        del entry["sha256"][agent_id]
        entry["enabled_agents"] = sorted(entry["sha256"])
        self._save()
        return True

    def _source(self, name: str, entry: dict[str, Any]) -> Source:
        return Source(
            name,
            self._workspace.sources / _folder_name(name),
            tuple(OfferedAgent(**one) for one in entry["offered"]),
            dict(entry["sha256"]),
        )

    def _load(self) -> dict[str, Any]:
        if self._state is None:
            try:
                content = self._workspace.files.read(self._state_path, _MAX_STATE)
                found = orjson.loads(content or b"{}")  # a power cut leaves a new placeholder empty
            except FileNotFoundError:
                found = {}
            except (UnsafeFileError, orjson.JSONDecodeError) as error:
                raise BadFileError(
                    f"{self._state_path} cannot be read.", do="Mend the file, or move it away."
                ) from error
            entries = found.items() if isinstance(found, dict) else ()
            self._state = {name: _complete(entry) for name, entry in entries if isinstance(entry, dict)}
        return self._state

    def _save(self) -> None:
        content = orjson.dumps(self._load(), option=orjson.OPT_INDENT_2)
        self._workspace.files.write_durably(self._state_path, content, staging=self._workspace.staging)


def _complete(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry with all its parts.

    Published servers keep only ``enabled_agents``, without what was offered and fetched, so nothing of it is
    in service until it is enabled anew.
    """
    fetched = entry.get("sha256")
    entry["sha256"] = fetched if isinstance(fetched, dict) else {}
    entry["enabled_agents"] = sorted(entry["sha256"])
    entry.setdefault("offered", [])
    return entry


def _check_folder(name: str, connected: Iterable[str]) -> None:
    """Raises ``BadFileError`` for a source whose folder some system cannot hold beside those of the others."""
    folder = _folder_name(name)
    if why := why_no_component(folder):
        raise BadFileError(f"{name[:120]} cannot be connected: {why}.", do="Fork it under another name.")
    if other_spelling(folder, map(_folder_name, connected)):
        raise BadFileError(
            f"A source that differs from {name[:120]} in its spelling alone is connected.",
            do="Disconnect that one first.",
        )


def _folder_name(name: str) -> str:
    """The folder of a source's files: no two sources share one, and no name is too long for one."""
    if not name.startswith("/"):
        return name.replace("/", "__")
    last = re.sub(r"[^A-Za-z0-9_-]", "_", name.rsplit("/", 1)[-1])[:60]
    return f"{last}-{sha256(name.encode())[:12]}"
