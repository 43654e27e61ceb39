"""Reading a rapplication's bundle, a folder or a zip, into the files it wants to place (RAPP v1 §18.8).

Pure planning: nothing here writes. The bundle is ``manifest.json`` (``rapp-application/1.0``),
``singleton/*_agent.py``, perhaps ``service/<id>_service.py`` and ``ui/``; other folders stay behind.
"""

from __future__ import annotations

import hashlib
import re
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import orjson

from agents.contract.syntax import syntax_tree
from agents.errors import AgentError
from agents.rapps.shipped_bundle import SHIPPED, shipped_bundle
from agents.storage.safe_fs import SafeTree

SCHEMA = "rapp-application/1.0"
MOST_BYTES = 5 << 20
MOST_CODE_BYTES = 200 << 10
MOST_PAGE_BYTES = 500 << 10
MOST_FILES = 500

_ID = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CODE_FOLDERS = frozenset({"singleton", "service", "agents", "services", "."})


class BadRapplicationError(AgentError):
    """A bundle that cannot be installed; nothing of it was used."""

    code = "bad_rapplication"
    status = 400
    exit_code = 5


@dataclass(slots=True, frozen=True)
class PlacedFile:
    """One file of the plan. ``path`` is relative to the workspace, with ``/`` between folders."""

    path: str
    content: bytes = field(repr=False)


class Rapplication(msgspec.Struct, frozen=True):
    """A checked bundle: ``files`` go to ``agents/``, ``services/`` and ``rapps/<id>/``; ``left_out`` names what the bundle holds besides."""

    id: str
    name: str
    version: str
    description: str
    category: str
    manifest: dict[str, Any]
    files: tuple[PlacedFile, ...]
    left_out: tuple[str, ...] = ()

    @property
    def has_ui(self) -> bool:
        """True when it brings a page."""
        return any(file.path == f"rapps/{self.id}/ui/index.html" for file in self.files)


def read_rapplication(path: Path) -> Rapplication:
    """The rapplication in a folder or a zip (whose content may stand in one folder of its own); a shipped one is put together.

    Raises ``BadRapplicationError``. Blocks on the disk.
    """
    if path.parent == SHIPPED and (path / "manifest.json").is_file():
        content = shipped_bundle(path.name)
    else:
        content = _without_outer_folder(dict(_from_zip(path) if path.is_file() else _from_folder(path)))
    manifest = _manifest(content)
    ident = manifest["id"]
    placed: dict[str, bytes] = {}
    left_out = []
    for name, data in sorted(content.items()):
        target = _target(name, ident)
        if target is None:
            left_out.append(name)
        elif target in placed:
            raise BadRapplicationError(
                f"Two files of the bundle would become {target}.", do="Keep one of them."
            )
        else:
            _check_file(name, data)
            placed[target] = data
    _check_whole(manifest, content, placed)
    return Rapplication(
        ident,
        str(manifest.get("name") or ident),
        str(manifest.get("version") or ""),
        str(manifest.get("description") or ""),
        str(manifest.get("category") or ""),
        manifest,
        tuple(PlacedFile(name, data) for name, data in placed.items()),
        tuple(left_out),
    )


def _target(name: str, ident: str) -> str | None:
    """The place of a bundle's file in the workspace; None for files that are not placed."""
    path = PurePosixPath(name)
    folder = path.parts[0] if len(path.parts) > 1 else "."
    if name == "manifest.json":
        return f"rapps/{ident}/manifest.json"
    if folder == "ui":
        return f"rapps/{ident}/{name}"
    if folder in _CODE_FOLDERS and len(path.parts) <= 2:
        if path.name.endswith("_agent.py") and path.name != "basic_agent.py":
            return f"agents/{path.name}"
        if path.name.endswith("_service.py"):
            return f"services/{path.name}"
    return None


def _manifest(content: dict[str, bytes]) -> dict[str, Any]:
    raw = content.get("manifest.json")
    if raw is None:
        raise BadRapplicationError("The bundle has no manifest.json.", do="Add one; docs name its keys.")
    try:
        manifest = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise BadRapplicationError(f"manifest.json is not JSON: {error}.", do="Correct it.") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise BadRapplicationError(f'manifest.json is not of schema "{SCHEMA}".', do="Set its schema.")
    ident = manifest.get("id")
    if not isinstance(ident, str) or _ID.fullmatch(ident) is None:
        raise BadRapplicationError(
            f"The id {ident!r} is not a rapplication's id.",
            do="Use small letters, digits and _, a letter first.",
        )
    return manifest


def _check_file(name: str, data: bytes) -> None:
    is_code = name.endswith(".py")
    limit = MOST_CODE_BYTES if is_code else MOST_PAGE_BYTES
    if len(data) > limit:
        raise BadRapplicationError(
            f"{name} has {len(data)} bytes; {limit} are allowed.", do="Make it smaller."
        )
    if not is_code:
        return
    try:
        syntax_tree(data)
    except SyntaxError as error:
        raise BadRapplicationError(f"{name} line {error.lineno or 1}: {error.msg}.", do="Fix it.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadRapplicationError(f"{name} is not Python: {error}.", do="Fix it.") from error


def _check_whole(manifest: dict[str, Any], content: dict[str, bytes], placed: dict[str, bytes]) -> None:
    if not any(path.startswith("agents/") for path in placed):
        raise BadRapplicationError(
            "A rapplication without an agent is refused.", do="Add singleton/<id>_agent.py that does it all."
        )
    services = [path for path in placed if path.startswith("services/")]
    if len(services) > 1:
        raise BadRapplicationError(
            "The bundle has more than one service.", do="Keep one; agents may be several."
        )
    for key in ("agent", "service", "ui"):
        named = manifest.get(key)
        if named and (not isinstance(named, str) or named not in content):
            raise BadRapplicationError(
                f"The manifest's {key} {named!r} is not in the bundle.", do="Correct the manifest."
            )
    wanted = str(manifest.get("singleton_sha256") or "").removeprefix("sha256:").lower()
    singleton = content.get(manifest.get("agent") or f"singleton/{manifest['id']}_agent.py")
    if wanted and (singleton is None or wanted not in _hashes(singleton)):
        raise BadRapplicationError(
            "The agent is not the one that the manifest's singleton_sha256 names.", do="Get the bundle again."
        )


def _hashes(content: bytes) -> set[str]:
    """As it is, and with the line ends that registries hash (CRLF as LF)."""
    return {hashlib.sha256(data).hexdigest() for data in (content, content.replace(b"\r\n", b"\n"))}


def _from_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    if not root.is_dir():
        raise BadRapplicationError(
            f"{root.name} is neither a folder nor a zip.", do="Name the bundle's folder or zip."
        )
    tree = SafeTree(root)
    for name in tree.links((), _is_looked_into):
        if not _is_litter(name):
            raise BadRapplicationError(
                f"{name} is a link; links are refused.", do="Put the file itself there."
            )
    total = count = 0
    for name, status in tree.files((), lambda _: True, _is_looked_into):
        if _is_litter(name):
            continue
        _check_name(name)
        count, total = count + 1, total + status.st_size
        _check_totals(count, total)
        yield name, tree.read(name, MOST_BYTES)


def _is_looked_into(folder: str) -> bool:
    return not _is_litter(folder)


def _from_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    import zipfile  # few homes install a rapplication, and every start would pay for it

    try:
        with zipfile.ZipFile(path) as archive:
            total = 0
            seen: set[str] = set()
            for count, entry in enumerate(archive.infolist(), 1):
                _check_totals(count, total)
                if entry.is_dir() or _is_litter(entry.filename):
                    continue
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind not in (0, stat.S_IFREG):
                    raise BadRapplicationError(
                        f"{entry.filename} is a link; links are refused.", do="Pack the file itself."
                    )
                _check_name(entry.filename)
                if entry.filename.lower() in seen:
                    raise BadRapplicationError(f"{entry.filename} is in the zip twice.", do="Pack it anew.")
                seen.add(entry.filename.lower())
                with archive.open(entry) as file:
                    data = file.read(
                        MOST_BYTES - total + 1
                    )  # what the entry claims to hold counts for nothing
                total += len(data)
                _check_totals(count, total)
                yield entry.filename, data
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise BadRapplicationError(
            f"{path.name} is not a readable zip: {error}.", do="Get it again."
        ) from error


def _check_name(name: str) -> None:
    if not all(_PART.fullmatch(part) for part in name.split("/")):
        raise BadRapplicationError(
            f"The bundle writes outside its folder, or has an odd name: {name!r}.", do="Don't use it."
        )


def _is_litter(name: str) -> bool:
    """Hidden files and what tools leave behind; ``..`` is not among them and gets refused."""
    return any(
        part in ("__pycache__", "__MACOSX") or (part.startswith(".") and part.strip("."))
        for part in name.split("/")
    )


def _check_totals(count: int, total: int) -> None:
    if count > MOST_FILES or total > MOST_BYTES:
        raise BadRapplicationError(
            f"The bundle holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MB.", do="Make it smaller."
        )


def _without_outer_folder(found: dict[str, bytes]) -> dict[str, bytes]:
    folders = {name.partition("/")[0] for name in found}
    if "manifest.json" in found or len(folders) != 1:
        return found
    outer = f"{folders.pop()}/"
    return {name.removeprefix(outer): data for name, data in found.items()}
