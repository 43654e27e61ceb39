"""Running services: ``services/*_service.py``, the HTTP side of a rapplication (RAPP v1 §18.8)."""

from __future__ import annotations

import ast
import base64
import errno
import hashlib
import logging
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import orjson

from agents.contract.declared_needs import declared_in
from agents.contract.file_discovery import SERVICE_SUFFIXES, Stamp, find_service_files
from agents.contract.syntax import syntax_tree
from agents.errors import AgentError
from agents.storage.safe_fs import SafeTree

log = logging.getLogger(__name__)

_JSON = "application/json"
_SUFFIXES = ("_service", "_organ")
LARGEST = 512 << 10
"""Bytes of a service file: reading its name takes some 600 bytes of memory for each."""


class ServiceFailedError(AgentError):
    """A service file does not load and no earlier version of it is there."""

    code = "service_failed"


@dataclass(slots=True, frozen=True)
class ServiceReply:
    """The answer of a service: status, headers, body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    def as_json(self) -> dict[str, Any]:
        """For the way from worker to daemon: ``{status, headers, body (base64)}``."""
        body = base64.b64encode(self.body).decode("ascii")
        return {"status": self.status, "headers": self.headers, "body": body}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ServiceReply:
        """The reply that ``as_json`` wrote."""
        return cls(found["status"], dict(found["headers"]), base64.b64decode(found["body"]))


class ServiceFault(NamedTuple):
    """A service file that cannot be used as it is: its path, why, and the line where that is known."""

    path: Path
    reason: str
    line: int | None = None


def read_service(path: Path, files: SafeTree | None = None) -> bytes:
    """The text of a service file. Raises ``OSError`` for links, pipes and the like, and for huge files.

    ``files`` is the tree that it lies in; without one, its folder.
    """
    return files.read(path, LARGEST) if files else SafeTree(path.parent).read(path.name, LARGEST)


def inspect_service(
    path: Path, *, unless: str = "", files: SafeTree | None = None
) -> tuple[str, ServiceFault | None]:
    """The name in ``/api/<name>``: the file's ``name = "…"``, else its stem without ``_service``; and its fault.

    Read from the text, nothing is run. A file that cannot be read is called ``unless``, or goes by its stem.
    """
    fault = None
    try:
        content = read_service(path, files)
        declared = declared_in(path.name, content)
        if declared.fault:
            fault = ServiceFault(path, declared.fault, declared.line)
        return _name_in(syntax_tree(content)) or _stem(path), fault
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        fault = ServiceFault(path, reason)
    except SyntaxError as error:
        fault = ServiceFault(path, error.msg or "invalid syntax", error.lineno)
    except (ValueError, RecursionError, MemoryError, SystemError) as error:
        fault = ServiceFault(path, str(error) or "it is nested too deeply")
    return unless or _stem(path), fault


def _name_in(tree: ast.Module) -> str:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "name" for target in targets):
            value = getattr(node, "value", None)
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
                return value.value
    return ""


class Services:
    """The loaded services of one workspace, inside its worker."""

    def __init__(self) -> None:
        self._loaded: dict[str, tuple[str, ModuleType]] = {}

    def handle(self, path: Path, sha256: str, method: str, rest: str, body: Any) -> ServiceReply:
        """Runs ``handle(method, rest, body)`` of the file, loaded anew when it has changed.

        ``sha256``: the content that may run; another one is not loaded.
        ``rest`` is the path below the service's name without slashes around it; ``body`` the parsed
        JSON, ``{}`` for anything falsy. A changed file that does not load leaves the earlier version
        at work. What the service raises is a 500 with its text. Raises ``ServiceFailedError`` when there
        is no version to run.
        """
        from agents.runtimes.python.worker.invoke import settled  # workers alone run files

        handle = self._module(path, sha256).handle
        try:
            return reply_of(settled(handle(method.upper(), rest.strip("/"), body or {})))
        except Exception as error:
            log.exception("service %s", path.name)
            return _json_reply({"error": str(error) or type(error).__name__}, 500)

    def files(self) -> list[str]:
        """The files that are loaded."""
        return list(self._loaded)

    def forget(self) -> None:
        """Has all of them loaded anew when next asked."""
        for _, module in self._loaded.values():
            sys.modules.pop(module.__name__, None)
        self._loaded.clear()

    def _module(self, path: Path, sha256: str) -> ModuleType:
        key = str(path)
        from agents.contract.loading import execute

        known = self._loaded.get(key)
        try:
            path.stat()  # one that went away is not served from memory
            if known is not None and known[0] == sha256:
                return known[1]
            content = path.read_bytes()
            if hashlib.sha256(content).hexdigest() != sha256:
                raise ServiceFailedError(f"{path.name} changed while it was read.", do="Ask again.")
            module, failure = execute(path, path.name, content, path.parent)
            problem = failure.reason if failure else ""
        except OSError as error:
            self._loaded.pop(key, None)
            raise ServiceFailedError(f"{path.name} cannot be read: {error.strerror or error}") from error
        if module is not None and not callable(getattr(module, "handle", None)):
            problem = "it has no handle(method, path, body)"
        if problem or module is None:
            line = f" line {failure.line}" if failure and failure.line else ""
            if known is None:
                raise ServiceFailedError(
                    f"{path.name}{line}: {problem}", do="Fix and save; it reloads by itself."
                )
            log.warning("%s%s: %s. The earlier version works on.", path.name, line, problem)
            self._loaded[key] = (sha256, known[1])
            return known[1]
        if known is not None:
            sys.modules.pop(known[1].__name__, None)
        self._loaded[key] = (sha256, module)
        return module


def reply_of(result: Any) -> ServiceReply:
    """A service's result as status, headers and bytes.

    Known forms: ``(dict, status)``, ``(dict, status, headers)``, ``(bytes, status, headers)``; also
    text, lists, and a body alone. Raises ``TypeError`` or ``ValueError`` for others.
    """
    parts = result if isinstance(result, tuple) else (result,)
    if not 1 <= len(parts) <= 3:
        raise TypeError(f"a service answers (body, status, headers), not {len(parts)} parts")
    body = parts[0]
    status = parts[1] if len(parts) > 1 else 200
    headers = parts[2] if len(parts) > 2 else None
    if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 599:
        raise ValueError(f"{status!r} is no HTTP status")
    given = _headers(headers)
    if isinstance(body, (bytes, bytearray, memoryview)):
        return _typed(status, given, "application/octet-stream", bytes(body))
    if isinstance(body, str):
        return _typed(status, given, "text/plain; charset=utf-8", body.encode("utf-8", "replace"))
    return _json_reply(body, status, given)


def _json_reply(body: Any, status: int, headers: dict[str, str] | None = None) -> ServiceReply:
    content = orjson.dumps(body, default=str, option=orjson.OPT_NON_STR_KEYS)
    return _typed(status, headers or {}, _JSON, content)


def _typed(status: int, headers: dict[str, str], kind: str, body: bytes) -> ServiceReply:
    if not any(name.lower() == "content-type" for name in headers):
        headers = {**headers, "Content-Type": kind}
    return ServiceReply(status, headers, body)


def _headers(headers: Any) -> dict[str, str]:
    pairs: Iterable[Any] = headers.items() if isinstance(headers, Mapping) else (headers or ())
    found = {str(name): str(value) for name, value in pairs}
    for text in (*found, *found.values()):
        if any(letter in text for letter in "\r\n\0"):
            raise ValueError("a header holds a line break")
    return found


def _stem(path: Path) -> str:
    for suffix in _SUFFIXES:
        if path.stem.endswith(suffix):
            return path.stem.removesuffix(suffix)
    return path.stem


class ServiceIndex:
    """Names of the services in some folders. A file is read again when its stamp changed."""

    def __init__(self, files: SafeTree, *folders: Path) -> None:
        """Of two folders, the later counts for more. ``files`` is the tree that they are in."""
        self._files = files
        self._folders = folders
        self._known: dict[Path, tuple[Stamp, str, ServiceFault | None]] = {}

    def find(self, name: str) -> Path | None:
        """The file of the service called ``name``; of two that claim it, the later by path. Blocks on the disk.

        A file that cannot be parsed keeps its earlier name, or goes by its file name: others stay reachable.
        """
        found = None
        for path, called, _ in self._look():
            if called == name:
                found = path
        return found

    def files(self) -> list[Path]:
        """The files of all services, by path. Blocks on the disk."""
        return [path for path, _, _ in self._look()]

    def faults(self) -> list[ServiceFault]:
        """Files that cannot be used as they are, by path. Blocks on the disk."""
        parsed = [fault for _, _, fault in self._look() if fault is not None]
        irregular = [fault for folder in self._folders for fault in _irregular(self._files, folder)]
        return sorted({fault.path: fault for fault in (*parsed, *irregular)}.values())

    def _look(self) -> Iterator[tuple[Path, str, ServiceFault | None]]:
        for file in [file for folder in self._folders for file in find_service_files(folder, self._files)]:
            known = self._known.get(file.path)
            if known is None or known[0] != file.stamp:
                earlier = known[1] if known else ""
                found = inspect_service(file.path, unless=earlier, files=self._files)
                known = self._known[file.path] = (file.stamp, *found)
            yield file.path, known[1], known[2]


def _irregular(files: SafeTree, folder: Path) -> Iterator[ServiceFault]:
    """Entries with a service's file name that are no files: they are not served."""
    for name, mode in files.modes(folder):
        if name.endswith(SERVICE_SUFFIXES) and not name.startswith(".") and not stat.S_ISREG(mode):
            kind = (
                "a link" if stat.S_ISLNK(mode) else "a folder" if stat.S_ISDIR(mode) else "a pipe or device"
            )
            yield ServiceFault(folder / name, f"it is {kind}, not a file")
