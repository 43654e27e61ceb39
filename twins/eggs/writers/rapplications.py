"""One installed rapplication, or one agent, as the contents of an egg (RAPP v1 §18.8).

Where the two published shapes have no place for a file of it, the file is named among what stays behind.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import orjson

from agents.contract.file_discovery import AGENT_SUFFIXES, SUFFIX
from twins.eggs.writers import exclusions
from twins.eggs.writers.contents import EggContents
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.source_tree import SourceTree
from twins.eggs.writers.workspaces import MEMORY, SOUL, agents_of
from twins.errors import BadFileError, HostileEggError, NoSuchFileError
from twins.fs.untrusted_names import safe_path
from twins.workspace.identity_file import FILE as IDENTITY
from twins.workspace.identity_file import MAX_BYTES, Identity, indented
from twins.workspace.rappid import Rappid, label
from twins.workspace.workspace import Workspace

_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLACED = re.compile(r"(agents|services)/[A-Za-z0-9_][A-Za-z0-9_.-]{0,118}")
_PUBLISHER = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Rapplication:
    """An installed one, and how its parts come into a load."""

    def __init__(self, workspace: Workspace, rapp_id: str, open_trees: ExitStack) -> None:
        """Raises ``NoSuchFileError`` when none of that id is installed, ``BadFileError`` for a damaged manifest."""
        self.id = rapp_id
        self._tree = open_trees.enter_context(SourceTree(workspace.root))
        self._agents, self._agents_folder = agents_of(workspace, self._tree, open_trees)
        known = _ID.fullmatch(rapp_id) is not None
        content = self._tree.read(f"rapps/{rapp_id}/manifest.json", MAX_BYTES) if known else None
        if content is None:
            raise NoSuchFileError(f'No rapplication "{rapp_id[:80]}" is installed.', do="rappd rapps list")
        self.manifest = _object(content, f"rapps/{rapp_id}/manifest.json")
        self.name = str(self.manifest.get("name") or rapp_id)
        self.publisher = _publisher(self.manifest.get("publisher"))
        placed = self._placed()
        self._agent_files = [path for path in placed if path.startswith("agents/")]
        self._service_files = [path for path in placed if path.startswith("services/")]
        self._memory = f"{MEMORY}/{rapp_id}"

    def organ_shape(self, *, exclude_memory: bool) -> EggContents:
        """``rappid.json soul.md agents/ organs/ rapp_ui/<id>/** data/<id>/**``."""
        load = self._begun()
        for path in self._agent_files:
            self._put_agent(load, path, path)
        for path in self._service_files:
            load.put_file(f"organs{path.removeprefix('services')}", self._tree, path)
        self._put_folder(load, f"rapps/{self.id}/ui", f"rapp_ui/{self.id}")
        self._put_memory(load, f"data/{self.id}", exclude_memory, passed_over=(IDENTITY, SOUL))
        if not exclude_memory:
            load.put_file(SOUL, self._tree, f"{self._memory}/{SOUL}")
        main = self._main()
        load.facts |= {
            "agent_filename": main,
            "organ_filename": self._service_files[0].rpartition("/")[2] if self._service_files else None,
            "has_skin": load.holds(f"rapp_ui/{self.id}/index.html"),
        }
        self._check(load, f"agents/{main}")
        return load

    def rapp1_shape(self, *, exclude_memory: bool) -> EggContents:
        """``rappid.json agent.py ui.html state/**`` and nothing else."""
        load = self._begun()
        main = self._main()
        for path in self._agent_files:
            if path == f"agents/{main}":
                self._put_agent(load, "agent.py", path)
            else:
                load.leave(path, ExclusionReason.NO_PLACE)
        for path in self._service_files:
            load.leave(path, ExclusionReason.NO_PLACE)
        page = f"rapps/{self.id}/ui"
        load.put_file("ui.html", self._tree, f"{page}/index.html")
        self._leave_folder(load, page, passed_over=f"{page}/index.html")
        self._put_memory(load, "state", exclude_memory, passed_over=(IDENTITY,))
        self._check(load, "agent.py")
        return load

    def _begun(self) -> EggContents:
        facts = {
            "rapp_id": self.id,
            "version": str(self.manifest.get("version") or ""),
            "publisher": self.publisher,
        }
        load = EggContents(self.name, facts=facts)
        stored = self._tree.read(f"{self._memory}/{IDENTITY}", MAX_BYTES)
        if stored is None:
            rappid = published_rappid(self.publisher, self.id)
            stored = indented(
                {"schema": "rapp/1", "rappid": rappid.text, "kind": "rapplication", "name": self.name}
            )
        load.identity = Identity.decode(stored, where=f"{self._memory}/{IDENTITY}")
        load.put(IDENTITY, stored)
        return load

    def _main(self) -> str:
        """The file name of the agent that is the rapplication."""
        names = [path.rpartition("/")[2] for path in self._agent_files]
        declared = str(self.manifest.get("agent") or "").rpartition("/")[2]
        wanted = (declared, f"{self.id}{SUFFIX}")
        return next((name for name in wanted if name in names), names[0] if names else wanted[1])

    def _placed(self) -> list[str]:
        """The files that its installation placed, by its receipt; without one, by its id."""
        content = self._tree.read(f"rapps/{self.id}/placed.json", MAX_BYTES)
        try:
            found = orjson.loads(content) if content is not None else None
        except orjson.JSONDecodeError:
            found = None
        if not isinstance(found, list):
            found = [f"agents/{self.id}{SUFFIX}", f"services/{self.id}_service.py"]
        paths = {path for path in found if isinstance(path, str) and _PLACED.fullmatch(path)}
        return sorted(path for path in paths if self._may_travel(path))

    def _may_travel(self, path: str) -> bool:
        if exclusions.in_code(path.rpartition("/")[2]):
            return False
        if path.startswith("agents/"):
            return self._agents.size(self._in_agents(path)) is not None
        return self._tree.size(path) is not None

    def _in_agents(self, path: str) -> str:
        return f"{self._agents_folder}/{path.removeprefix('agents/')}".lstrip("/")

    def _put_agent(self, load: EggContents, name: str, path: str) -> None:
        load.put_file(name, self._agents, self._in_agents(path), shown_as=path)

    def _put_folder(
        self,
        load: EggContents,
        folder: str,
        name: str,
        verdict: Callable[[str], ExclusionReason | None] | None = None,
    ) -> None:
        load.put_folder(
            self._tree, folder, verdict or _by_last_name, lambda path: f"{name}{path.removeprefix(folder)}"
        )

    def _put_memory(
        self, load: EggContents, name: str, exclude: bool, *, passed_over: tuple[str, ...]
    ) -> None:
        over = {f"{self._memory}/{one}" for one in passed_over}

        def verdict(path: str) -> ExclusionReason | None:
            if path in over:
                return ExclusionReason.ELSEWHERE
            return ExclusionReason.MEMORY if exclude else _by_last_name(path)

        self._put_folder(load, self._memory, name, verdict)
        # Some keep a file of their name beside the folder; a reader would put it where they don't look.
        for ending in (".json", ".jsonl", ".db", ".sqlite"):
            if self._tree.size(self._memory + ending) is not None:
                load.leave(
                    self._memory + ending, ExclusionReason.MEMORY if exclude else ExclusionReason.NO_PLACE
                )

    def _leave_folder(self, load: EggContents, folder: str, *, passed_over: str) -> None:
        def verdict(path: str) -> ExclusionReason | None:
            return ExclusionReason.ELSEWHERE if path == passed_over else _by_last_name(path)

        for path, _, why in self._tree.walk(folder, verdict):
            load.leave(path, why or ExclusionReason.NO_PLACE)

    def _check(self, load: EggContents, agent: str) -> None:
        if not load.holds(agent):
            raise BadFileError(f"{self.name} has no agent any more.", do=f"rappd rapps install {self.id}")


def published_rappid(publisher: str, rapp_id: str) -> Rappid:
    """The rappid that every packer gives a rapplication: made from its names alone, so always the same."""
    digest = hashlib.sha256(f"{publisher}/{rapp_id}".encode()).hexdigest()[:32]
    return Rappid.parse(f"rappid:v2:rapplication:{publisher}/{rapp_id}:{digest}")


def _publisher(declared: object) -> str:
    if isinstance(declared, str) and _PUBLISHER.fullmatch(declared):
        return declared
    return label(declared, otherwise="local") if isinstance(declared, str) else "local"


def _by_last_name(path: str) -> ExclusionReason | None:
    return exclusions.by_name(path.rpartition("/")[2])


def _object(content: bytes, where: str) -> dict[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadFileError(f"{where} is not JSON: {error}.", do="Install it again.") from error
    if not isinstance(found, dict):
        raise BadFileError(f"{where} is not a JSON object.", do="Install it again.")
    return found


def one_agent(workspace: Workspace, filename: str, open_trees: ExitStack) -> EggContents:
    """A single agent file, at the root of its egg. ``filename`` is its path below the agents folder.

    Raises ``NoSuchFileError``, for files that never travel too.
    """
    tree, folder = agents_of(workspace, open_trees.enter_context(SourceTree(workspace.root)), open_trees)
    name = filename.rpartition("/")[2]
    load = EggContents(name.removesuffix(".py"), facts={"agent_filename": name})
    path = f"{folder}/{filename}".lstrip("/")
    if not _may_travel(filename) or not load.put_file(name, tree, path, shown_as=f"agents/{filename}"):
        raise NoSuchFileError(f'No agent file "{filename[:80]}".', do="rappd agents list")
    return load


def _may_travel(filename: str) -> bool:
    try:
        safe_path(filename)
    except HostileEggError:
        return False
    return filename.endswith(AGENT_SUFFIXES) and not any(map(exclusions.in_code, filename.split("/")))
