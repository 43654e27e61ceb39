"""Holds one workspace's agents and services inside a worker, loaded when first needed."""

from __future__ import annotations

import base64
import contextvars
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from agents.compat import install_shims
from agents.compat.storage import remember_for
from agents.contract.agent_contract import Description
from agents.contract.file_discovery import Stamp, stamp_of
from agents.contract.loaded_file import LoadedFile, LoadFailure
from agents.contract.loading import load_agent_file
from agents.errors import AgentError
from agents.runtimes.python.pools.answers import MOST_BYTES
from agents.runtimes.python.worker import use_notes
from agents.runtimes.python.worker.channel import call
from agents.runtimes.python.worker.forked_work import in_a_fork
from agents.runtimes.python.worker.invoke import perform
from agents.runtimes.python.worker.process_state import ProcessState
from agents.runtimes.python.worker.quarantined_imports import (
    NONE,
    Holds,
    QuarantineImportHook,
    SiblingModules,
)
from agents.runtimes.python.worker.result_text import MOST_FOLLOWED
from agents.runtimes.python.worker.service_files import Services
from agents.storage.memory import memory_reader

log = logging.getLogger(__name__)

_SINGLE_PIECES = 200
_PIECE_SECONDS = 0.05
_VERSIONS_KEPT = 2  # the one at work, and one whose successor the daemon has not taken up yet


class NoSuchAgentError(AgentError):
    """A file has no agent of that name, or does not load any more."""

    code = "no_such_agent"
    status = 404


class PieceSender:
    """Tells the daemon what a perform yields, as it comes: at first each piece, later 20 times a second."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._sent = 0
        self._left = MOST_FOLLOWED
        self._last = 0.0

    def __call__(self, text: str) -> None:
        """Takes one piece. What is beyond ``MOST_FOLLOWED`` characters comes with the result alone."""
        if self._left <= 0:
            return
        self._waiting.append(text[: self._left])
        self._left -= len(text)
        if self._sent < _SINGLE_PIECES or time.monotonic() - self._last > _PIECE_SECONDS:
            waiting, self._waiting = "".join(self._waiting), []
            self._sent += 1
            call("piece", {"text": waiting})
            self._last = time.monotonic()


class WorkerHost:
    """Answers the daemon's requests inside a worker; one at a time, on the thread that made it.

    ``settings``: ``agents_dir``, ``data_dir``, ``deps_dir``, ``workspace``, as text, and perhaps
    ``deps_last``: packages do not come before the standard library, and ``neighbours`` false: modules of the
    agents folder, and of ``utils`` in the workspace, are not to be found. Making a room
    changes this process for good (import path, names that agent files import), so it has only one.

    A *file* in a request is ``{rel, path, stamp, source_path?, sha256?}``: the version of ``path`` with that
    stamp, from ``source_path`` (a kept copy) once the file itself is another version; or ``content?``, its bytes in base64.
    With ``sha256`` no other bytes are run: a stamp can be forged by anyone who may write the file.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._agents_dir = Path(settings["agents_dir"])
        data_dir = Path(settings["data_dir"])
        workspace = settings.get("workspace")
        sys.dont_write_bytecode = True  # a workspace is packed and carried away; nothing goes into it unasked
        deps = settings.get("deps_dir")
        if deps and str(deps) not in sys.path:
            sys.path.insert(len(sys.path) if settings.get("deps_last") else 0, str(deps))
        install_shims(
            workspace=Path(workspace) if workspace else None,
            agents_dir=self._agents_dir,
            data_dir=data_dir,
            neighbours=settings.get("neighbours", True),
        )
        self._versions: dict[str, dict[tuple[Stamp, str | None], LoadedFile]] = {}
        beside = [Path(workspace) / "utils"] if workspace else []
        self._neighbours = SiblingModules(self._agents_dir, *beside)
        self._import_hook = QuarantineImportHook(Path(workspace) if workspace else self._agents_dir)
        self._services = Services()
        self._memories = memory_reader(data_dir)
        self._state = ProcessState(str(workspace or Path.cwd()))
        self._operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "describe": self._describe,
            "describe_apart": self._describe_apart,
            "perform": self._perform,
            "service": self._service,
            "system_context": self._system_context,
            "test": self._test,
        }

    def handle(self, op: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; ``held`` in its body says which code must not run (``Holds``).

        ``describe {files}`` → ``{files: [{rel, agents, quarantined, failure, waits, seconds}]}`` in order,
        where ``waits`` tells that held code was wanted;
        ``describe_apart {files}`` → ``{files: [one of these as JSON text, "" where there is none]}``: each file is
        run in a process of its own, and none in this one;
        ``perform {file, name, class_name?, arguments, user_guid, upstream_slush, state?, follow?}`` →
        ``{result, data_slush, uses}``, of a listener ``{result, payloads, state?, uses}``; with
        ``follow`` what it yields is told by callbacks ``piece {text}``;
        ``system_context {agents: [{file, name}], user_guid}`` → ``{name: text or None}``;
        ``service {file, method, path, body}`` (its ``file`` is ``{path, sha256}``) → ``{status, headers, body (base64), uses}``;
        ``test {file}`` → ``{passed, tests: [{test, passed, message, required}]}``.

        Raises what an agent's ``perform`` raises, and AgentError for what cannot be found.
        """
        operation = self._operations.get(op)
        if operation is None:
            raise AgentError(f"a worker does not know {op!r}")
        self._go_by(body.get("held") or NONE)
        if self._neighbours.forget_if_changed():
            self._forget_agents()
        answer = operation(body)
        self._neighbours.note_if_grown()
        return answer

    def _go_by(self, quarantined: Holds) -> None:
        """Goes by a new list of held code. Refused code may be allowed now, and loaded code held: then all is reloaded."""
        refused = self._import_hook.refusals > 0
        if not self._import_hook.know(quarantined):
            return
        loaded = [*self._neighbours.files(), *self._versions, *self._services.files()]
        if refused or self._import_hook.holds_any(loaded):
            self._neighbours.forget()
            self._forget_agents()
            self._services.forget()

    def _forget_agents(self) -> None:
        for versions in self._versions.values():
            for loaded in versions.values():
                loaded.forget()
        self._versions.clear()

    def _describe(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"files": [self._describe_one(file) for file in body["files"]]}

    def _describe_apart(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"files": [self._described_in_a_fork(file) for file in body["files"]]}

    def _described_in_a_fork(self, file: dict[str, Any]) -> str:
        found = in_a_fork(lambda: orjson.dumps(self._describe_one(file)), MOST_BYTES)
        return found.decode("utf-8", "replace")

    def _describe_one(self, file: dict[str, Any]) -> dict[str, Any]:
        started = time.monotonic()
        refusals = self._import_hook.refusals
        loaded = self._load(file)
        return {
            "rel": file["rel"],
            "agents": [description.as_json() for description in loaded.descriptions],
            "quarantined": [failure.as_json() for failure in loaded.quarantined],
            "failure": loaded.failure.as_json() if loaded.failure else None,
            "waits": self._import_hook.refusals > refusals,
            "seconds": time.monotonic() - started,
        }

    def _perform(self, body: dict[str, Any]) -> dict[str, Any]:
        instance, description = self._agent(body)
        use_notes.taken()  # of the time before
        if description.listener is not None:  # it sees its payload, and nothing of caller, context or thread
            return self._answer(instance, body.get("arguments") or {}, body.get("state"))
        remember_for(None)  # as for a new instance: an earlier caller's memory is not this one's
        try:
            done = contextvars.copy_context().run(
                perform,
                instance,
                body.get("arguments") or {},
                user_guid=body.get("user_guid") or "",
                upstream_slush=body.get("upstream_slush"),
                memory_reader=self._memories,
                on_piece=PieceSender() if body.get("follow") else None,
            )
        finally:
            self._state.put_back()
        remember_for(None)
        return {"result": done.result, "data_slush": _sendable(done.data_slush), "uses": use_notes.taken()}

    def _answer(self, instance: Any, arguments: dict[str, Any], state: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = contextvars.copy_context().run(instance.answer, arguments, state)
        finally:
            self._state.put_back()
        return {**answer, "uses": use_notes.taken()}

    def _system_context(self, body: dict[str, Any]) -> dict[str, Any]:
        remember_for(body.get("user_guid"))
        try:
            return {wanted["name"]: self._context_of(wanted) for wanted in body["agents"]}
        finally:
            remember_for(None)

    def _context_of(self, wanted: Mapping[str, Any]) -> str | None:
        try:
            instance = self._agent(wanted)[0]
            try:
                text = instance.system_context()
            finally:
                self._state.put_back()
        except Exception:
            log.exception("system_context of %s", wanted["name"])
            return None
        return text if isinstance(text, str) and text else None

    def _service(self, body: dict[str, Any]) -> dict[str, Any]:
        file = body["file"]
        use_notes.taken()  # of the time before
        reply = self._services.handle(
            Path(file["path"]), file["sha256"], body["method"], body.get("path") or "", body.get("body")
        )
        self._state.note()
        return {**reply.as_json(), "uses": use_notes.taken()}

    def _test(self, body: dict[str, Any]) -> dict[str, Any]:
        from agents.contract import contract_tests  # only `rappd agents test` needs it

        file = body["file"]
        return contract_tests.run(Path(file["path"]), self._agents_dir, file["rel"])

    def _agent(self, wanted: Mapping[str, Any]) -> tuple[Any, Description]:
        file, name = wanted["file"], wanted["name"]
        loaded = self._load(file)
        sys.argv = [file["path"]]
        found = loaded.find(name, wanted.get("class_name") or "")
        if found is None:
            reason = f": {loaded.failure.reason}" if loaded.failure else ""
            raise NoSuchAgentError(f"{file['rel']} has no agent {name} now{reason}")
        return found

    def _load(self, file: Mapping[str, Any]) -> LoadedFile:
        path, stamp, digest = file["path"], tuple(file["stamp"]), file.get("sha256")
        versions = self._versions.setdefault(path, {})
        loaded = versions.get((stamp, digest))
        if loaded is not None:
            return loaded
        given = file.get("content")
        source = _version(path, stamp, file.get("source_path")) if given is None else base64.b64decode(given)
        sys.argv = [path]  # some files parse the command line when they are imported
        if digest and (source is None or hashlib.sha256(source).hexdigest() != digest):
            failure = LoadFailure(file["rel"], None, "it is not the version that was checked")
            return LoadedFile(file["rel"], failure=failure)
        loaded = load_agent_file(Path(path), shown_as=file["rel"], source=source, folder=self._agents_dir)
        self._state.note()
        self._neighbours.note()
        if loaded.failure is None:
            versions[stamp, digest] = loaded
            while len(versions) > _VERSIONS_KEPT:
                versions.pop(next(iter(versions))).forget()
        return loaded


def _version(path: str, stamp: Stamp, kept: str | None) -> bytes | None:
    """The bytes of that version; the file's own, whichever it is, when no copy of it was kept."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - bytes and stamp from one open file
            if stamp_of(os.fstat(file.fileno())) == stamp or not kept:
                return file.read()
    except OSError:
        if not kept:
            return None
    try:
        return Path(kept).read_bytes()
    except OSError:
        return None


def _sendable(slush: dict[str, Any] | None) -> Any:
    if not slush:
        return slush
    try:
        orjson.dumps(slush)
    except TypeError:
        return json.loads(json.dumps(slush, default=str, skipkeys=True))
    return slush
