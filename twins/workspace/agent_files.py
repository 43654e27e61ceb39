"""Agent files in a workspace: put in, taken out, molted, restored. Nothing is half-written."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from pathlib import Path

import msgspec
import orjson

from agents.contract.file_discovery import CARTRIDGE, LISPY
from agents.contract.syntax import syntax_tree
from agents.storage.safe_open import UnsafeFileError
from agents.storage.safe_walk import has_other_names
from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode, encoding_fault
from twins.errors import BadFileError, NoSuchFileError
from twins.fs.untrusted_names import other_spelling, shown, why_not_portable
from twins.workspace.workspace import Workspace

MAX_BYTES = 5 << 20
STAGED_DIGITS = 12
"""Hexadecimal digits, and then an underscore, that begin the name of a staged file."""
_MAX_RECORD = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,118}")


class Generation(msgspec.Struct, frozen=True):
    """One earlier version of an agent file; ``number`` counts from 1, the oldest."""

    number: int
    at: float
    sha256: str
    reason: str
    path: Path


class AgentFiles:
    """The files under ``agents/`` of one workspace, and what is kept about them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files = workspace.files

    def path(self, filename: str) -> Path:
        """The path of ``filename`` (relative, `/` between folders).

        Raises ``NoSuchFileError``, ``BadFileError``, ``UnsafeFileError``.
        """
        path = self._inside(filename)
        if not self._files.is_file(path):
            if self._files.exists(path):
                raise UnsafeFileError(f"{filename} is a link, or no regular file.")
            raise NoSuchFileError(f'No agent file "{filename}".', do="rappd agents list")
        return path

    def read(self, filename: str) -> bytes:
        """The file's content."""
        return self._files.read(self.path(filename))

    def check_export(self, filename: str) -> None:
        """Raises ``BadFileError`` for a file with another name on this disk: what lies here may be a key of the owner's."""
        if has_other_names(self._files.lstat(self.path(filename))):
            raise BadFileError(
                f"{filename} is a hard link; it is not exported.",
                do="Look at it, and put a copy in its place.",
            )

    def stage(self, filename: str, content: bytes, *, faulty: bool = False) -> tuple[str, Path]:
        """Checks an incoming file and lays it beside the agents, out of their sight.

        Returns (final name, staged path). Raises ``BadFileError`` before anything is written; ``faulty`` text
        passes, and what is no text does not.
        """
        name = proper_name(filename)
        self._check_name(name)
        return name, self._staged(name, content, faulty)

    def stage_edit(self, filename: str, content: bytes, *, faulty: bool = False) -> Path:
        """The same for a file that keeps its name and folder; returns the staged path."""
        if not self._files.exists(self._inside(filename)):
            if proper_name(filename) != filename.rsplit("/", 1)[-1]:
                raise BadFileError(f"{filename} is no agent's name.", do="Use a name like weather_agent.py.")
            self._check_name(filename)
        return self._staged(filename, content, faulty)

    def _staged(self, filename: str, content: bytes, faulty: bool) -> Path:
        if len(content) > MAX_BYTES:
            raise BadFileError(
                f"{filename} has {len(content)} bytes; {MAX_BYTES} are allowed.", do="Send a smaller file."
            )
        if faulty:
            check_text(filename, content)
        else:
            check_syntax(filename, content)
        name = filename.rsplit("/", 1)[-1]
        staged = self._workspace.kept / "staged" / f"{secrets.token_hex(STAGED_DIGITS // 2)}_{name}"
        self._files.write_durably(staged, content)
        return staged

    def place(self, name: str, staged: Path, *, reason: str = "") -> None:
        """Moves a staged file to its place; what it replaces becomes a generation."""
        target = self._inside(name)
        if self._files.exists(target):
            self.keep_generation(name, reason)
        self._files.rename(staged, target)

    def discard(self, staged: Path) -> None:
        """Throws a staged file away."""
        self._files.remove(staged, missing_ok=True)

    def remove(self, filename: str) -> str:
        """Takes a file out of service and keeps it; returns the token that brings it back."""
        path = self.path(filename)
        if path.name == "basic_agent.py":
            raise BadFileError("basic_agent.py is what agents are made of; it stays.", do="")
        token = f"{int(time.time())}-{secrets.token_hex(6)}"
        folder = self._workspace.kept / "removed" / token
        self._files.write_durably(folder / "name", filename.encode())
        self._files.rename(path, folder / "file")
        return token

    def undo(self, token: str) -> str:
        """Brings a removed file back; returns its name. A file now in its place is not overwritten."""
        folder = self._workspace.kept / "removed" / token
        if not re.fullmatch(r"\d+-[0-9a-f]{12}", token) or not self._files.is_file(folder / "file"):
            raise NoSuchFileError("That cannot be brought back any more.", do="Import the file again.")
        name = self._files.read(folder / "name", _MAX_RECORD).decode("utf-8", "replace")
        target = self._inside(name)
        if self._files.exists(target):
            raise BadFileError(
                f"{name} exists again; the removed one stays kept.", do="Remove the new one first."
            )
        self._check_name(name)
        self._files.rename(folder / "file", target)
        return name

    def keep_generation(self, filename: str, reason: str) -> None:
        """Copies the present version of a file into its generations."""
        content = self.read(filename)
        folder = self._generations(filename)
        number = max((kept.number for kept in self.generations(filename)), default=0) + 1
        record = {"at": time.time(), "sha256": sha256(content), "reason": reason}
        self._files.write_durably(folder / f"{number:06d}.py", content)
        self._files.write_durably(folder / f"{number:06d}.json", orjson.dumps(record))

    def generations(self, filename: str) -> list[Generation]:
        """Earlier versions, oldest first. Raises ``BadFileError`` for what is no agent file's name."""
        found = []
        folder = self._generations(filename)
        for name in self._files.names(folder):
            if not re.fullmatch(r"\d{1,9}\.json", name):
                continue
            path = folder / name
            record = orjson.loads(self._files.read(path, _MAX_RECORD))
            found.append(
                Generation(
                    int(path.stem), record["at"], record["sha256"], record["reason"], path.with_suffix(".py")
                )
            )
        return found

    def generation(self, filename: str, number: int) -> bytes:
        """The content of an earlier version. Raises ``NoSuchFileError``."""
        return self._files.read(self._generation(filename, number).path)

    def restore(self, filename: str, number: int) -> None:
        """Puts a generation back in service; the present version becomes a generation itself."""
        content = self.generation(filename, number)
        if self._files.exists(self._inside(filename)):
            self.keep_generation(filename, f"before going back to generation {number}")
        self._files.write_durably(self._inside(filename), content)

    def _generation(self, filename: str, number: int) -> Generation:
        wanted = next((kept for kept in self.generations(filename) if kept.number == number), None)
        if wanted is None:
            raise NoSuchFileError(
                f"{filename} has no generation {number}.", do="Ask LearnNew for its generations."
            )
        return wanted

    def _check_name(self, filename: str) -> None:
        """Raises ``BadFileError`` for a name that some system cannot hold beside what is there."""
        if why := why_not_portable(filename):
            raise BadFileError(f"{why[0].upper()}{why[1:]}; nothing was written.", do="Choose another name.")
        folder = self._workspace.agents
        for name in filename.split("/"):
            present = [present for present, _ in self._files.modes(folder)]
            if other := other_spelling(name, present):
                raise BadFileError(
                    f"{shown(other)} is there, and some disks take {shown(name)} for the same file.",
                    do="Choose another name.",
                )
            folder /= name

    def _generations(self, filename: str) -> Path:
        self._inside(filename)
        return self._workspace.kept / "generations" / filename.replace("/", "__")

    def _inside(self, filename: str) -> Path:
        parts = filename.split("/")
        if not all(_NAME.fullmatch(part) for part in parts) or not filename.endswith(
            (".py", LISPY, CARTRIDGE)
        ):
            raise BadFileError(
                f'"{filename[:80]}" is not the name of an agent file.', do="Use a name like weather_agent.py."
            )
        return self._workspace.agents.joinpath(*parts)


def proper_name(filename: str) -> str:
    """A file name as agents have it: the last part, ending in ``_agent.py``, ``_listener.py``, ``.lispy`` or ``.lispy.json``."""
    name = filename.replace("\\", "/").rsplit("/", 1)[-1].strip()
    for ending in (LISPY, CARTRIDGE):
        if name.endswith(ending):
            return (re.sub(r"[^A-Za-z0-9_-]", "_", name.removesuffix(ending)).strip("_-") or "new") + ending
    if not name.endswith(".py"):
        raise BadFileError(f'"{name[:80]}" is not an agent file.', do="Drop a file like weather_agent.py.")
    stem = re.sub(r"[^A-Za-z0-9_]", "_", name[:-3]).strip("_") or "new"
    return (stem if stem.endswith(("_agent", "_listener")) else f"{stem}_agent") + ".py"


def check_syntax(name: str, content: bytes) -> None:
    """Raises ``BadFileError`` with the line when ``content`` is not Python. LisPy is read when it is loaded."""
    if name.endswith((LISPY, CARTRIDGE)):
        return
    try:
        syntax_tree(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if (fault := encoding_fault(content)) is not None:
            raise BadFileError(
                f"{name} {fault}.", do=SAVE_AS_UTF8, file=name, line=fault.line, reason=f"it {fault}"
            ) from error
        if isinstance(error, SyntaxError) and error.lineno:
            text = f"{name} line {error.lineno}: {error.msg}"
            raise BadFileError(
                text, do="Fix it and import it again.", file=name, line=error.lineno, reason=error.msg
            ) from error
        raise BadFileError(f"{name} is not Python: {error}", do="Send a text file in UTF-8.") from error


def check_text(name: str, content: bytes) -> None:
    """Raises ``BadFileError`` when ``content`` is no text in UTF-8."""
    try:
        text = decode(content).text
    except NotUtf8Error as error:
        raise BadFileError(f"{name} {error}.", do=SAVE_AS_UTF8) from error
    if "\0" in text:
        raise BadFileError(f"{name} is no text: it holds zero bytes.", do="Send a text file in UTF-8.")


def sha256(content: bytes) -> str:
    """SHA-256 of a file's content, 64 hex."""
    return hashlib.sha256(content).hexdigest()
