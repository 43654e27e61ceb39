"""Slots of an answer (``|||VOICE|||``, ``|||TWIN|||``) and the senses that add more: ``senses/*_sense.py`` (RAPP v1 §18.8)."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from agents.contract.file_discovery import AgentFile, Stamp, find_sense_files, is_entered
from agents.contract.may_run import YOURS, Allowed, Trust
from agents.contract.syntax import syntax_tree
from agents.errors import AgentError
from agents.storage.safe_fs import SafeTree
from envelopes.codecs.chat import ANSWER_KEYS

VOICE = "|||VOICE|||"
TWIN = "|||TWIN|||"
DELIMITER = re.compile(r"\|\|\|[A-Za-z0-9_.-]{1,40}\|\|\|")
"""The form of every delimiter. None is a part of another, so that no two claim the same text."""


class Slot(msgspec.Struct, frozen=True):
    """One further answer beside the main one, under ``response_key`` in ``/chat``.

    ``prompt`` tells the model how to fill it; ``tag`` may wrap the whole of it.
    """

    name: str
    delimiter: str
    response_key: str
    prompt: str = ""
    tag: str = ""


SOUL_SLOTS = (
    Slot("voice", VOICE, "voice_response", tag="voice"),
    Slot("twin", TWIN, "twin_response", tag="twin"),
)
"""The slots that are always split off, and asked for where their mode is on."""


class Slots(NamedTuple):
    """An answer taken apart; a slot that was not there is "". ``senses`` has every sense's, by its key."""

    main: str
    voice: str
    twin: str
    senses: dict[str, str]


class Delimiters:
    """Delimiters at which an answer is cut: the two published ones and those of ``senses``."""

    def __init__(self, senses: Sequence[Slot] = ()) -> None:
        self._slots = {slot.delimiter: slot for slot in (*SOUL_SLOTS, *senses)}
        self._senses = [slot for slot in senses if slot.delimiter not in (VOICE, TWIN)]
        self.mark = re.compile(f"({'|'.join(map(re.escape, self._slots))})")
        starts = {one[:length] for one in self._slots for length in range(1, len(one))}
        longest_first = sorted(starts, key=len, reverse=True)
        self.start_at_end = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})\\Z")
        self.longest_start = len(longest_first[0])

    def split(self, text: str) -> Slots:
        """Cuts ``text`` at every delimiter. A slot runs to the next one; a repeated slot is joined."""
        if "|||" not in text:
            return Slots(text.strip(), "", "", {slot.response_key: "" for slot in self._senses})
        pieces = self.mark.split(text)
        bodies: dict[str, list[str]] = {delimiter: [] for delimiter in self._slots}
        for delimiter, body in zip(pieces[1::2], pieces[2::2], strict=True):
            bodies[delimiter].append(body.strip())

        def filled(slot: Slot) -> str:
            return _unwrap("\n".join(part for part in bodies[slot.delimiter] if part), slot.tag)

        senses = {slot.response_key: filled(slot) for slot in self._senses}
        main = _unwrap(pieces[0].strip(), "main")
        return Slots(main, filled(self._slots[VOICE]), filled(self._slots[TWIN]), senses)


PLAIN = Delimiters()
"""A workspace without senses."""


class MainStream:
    """Lets through only the main part of a text that arrives in pieces."""

    def __init__(self, delimiters: Delimiters = PLAIN) -> None:
        self._delimiters = delimiters
        self._pending = ""
        self._done = False

    def feed(self, piece: str) -> str:
        """Returns the text that may be shown now; the start of a possible delimiter is held back."""
        if self._done:
            return ""
        text = self._pending + piece
        found = self._delimiters.mark.search(text)
        if found:
            self._done = True
            self._pending = ""
            return text[: found.start()]
        held = self._delimiters.start_at_end.search(text, max(0, len(text) - self._delimiters.longest_start))
        self._pending = held[0] if held else ""
        return text[: len(text) - len(self._pending)]

    def finish(self) -> str:
        """Returns text that was held back and turned out to be plain text."""
        rest, self._pending = self._pending, ""
        return "" if self._done else rest


def _unwrap(text: str, tag: str) -> str:
    opening, closing = f"<{tag}>", f"</{tag}>"
    if (
        tag
        and text.startswith(opening)
        and text.endswith(closing)
        and len(text) >= len(opening) + len(closing)
    ):
        return text[len(opening) : -len(closing)].strip()
    return text


class SenseFault(msgspec.Struct, frozen=True):
    """The reason why a file gives no slot, or not the one it describes now.

    ``file`` lies below the folder of senses; ``last_good``: its earlier version is in force; ``quarantined``: it
    waits for approval.
    """

    file: str
    reason: str
    line: int | None = None
    last_good: bool = False
    quarantined: bool = False


class SenseOutput(msgspec.Struct, frozen=True):
    """The senses in force, in the order of their files.

    ``prompts`` are the words for the daemon's own slots, by delimiter, where a sense has some.
    """

    slots: tuple[Slot, ...] = ()
    prompts: dict[str, str] = msgspec.field(default_factory=dict)
    delimiters: Delimiters = PLAIN
    faults: tuple[SenseFault, ...] = ()


class _File(msgspec.Struct, frozen=True):
    """The state of one version of a file. ``slot`` is the last one that it described well."""

    stamp: Stamp
    sha256: str = ""
    slot: Slot | None = None
    fault: SenseFault | None = None


class Senses:
    """The folder of senses of one workspace."""

    def __init__(self, folder: Path, *, trust: Trust, files: SafeTree | None = None) -> None:
        """``files``: the tree that the folder is in."""
        self._folder = folder
        self._tree = files or SafeTree(folder)
        self._trust = trust
        self._files: dict[str, _File] = {}
        self._seen: list[tuple[Slot | None, SenseFault | None]] = []
        self.now = SenseOutput()
        self.places: tuple[Path, ...] = (folder,)
        """The folders and files that were looked at: one of them has another stamp before anything is different."""

    def look(self) -> SenseOutput:
        """Reads again what changed, sets ``now`` and returns it. Blocks on the disk."""
        inner = self._tree.folders(self._folder, is_entered)
        found = find_sense_files(self._folder, self._tree)
        self.places = (self._folder, *map(self._folder.joinpath, inner), *(file.path for file in found))
        known = self._files
        self._files = {file.rel: _read(file, known.get(file.rel)) for file in found}
        seen = [self._usable(file, self._files[file.rel]) for file in found]
        if seen != self._seen:
            self._seen = seen
            self.now = _settled(zip((file.rel for file in found), seen, strict=True))
        return self.now

    def _usable(self, file: AgentFile, known: _File) -> tuple[Slot | None, SenseFault | None]:
        found = self._trust.may_run(YOURS, file.path, known.sha256)
        if isinstance(found, Allowed):
            return known.slot, known.fault
        return None, SenseFault(file.rel, found.why, quarantined=True)


def _read(file: AgentFile, known: _File | None) -> _File:
    if known is not None and known.stamp == file.stamp:
        return known
    earlier = known.slot if known else None
    sha256 = ""
    try:
        content = file.content()
        sha256 = hashlib.sha256(content).hexdigest()
        return _File(file.stamp, sha256, read_sense(content, file.path.stem))
    except OSError as error:
        fault = SenseFault(file.rel, f"it cannot be read: {error.strerror or error}", None, bool(earlier))
    except BadSenseError as problem:
        fault = SenseFault(file.rel, str(problem), problem.line, bool(earlier))
    return _File(file.stamp, sha256, earlier, fault)


def _settled(files: Iterable[tuple[str, tuple[Slot | None, SenseFault | None]]]) -> SenseOutput:
    """Of two that claim one delimiter or key, the earlier by path has it."""
    slots: list[Slot] = []
    prompts: dict[str, str] = {}
    faults: list[SenseFault] = []
    owners: dict[str, str] = {}
    for rel, (slot, fault) in files:
        if fault is not None:
            faults.append(fault)
        if slot is None:
            continue
        claims = (slot.delimiter, slot.response_key)
        claimed = next((claim for claim in claims if claim in owners), None)
        if claimed is not None:
            faults.append(SenseFault(rel, f"{claimed} is taken by {owners[claimed]}"))
            continue
        owners |= dict.fromkeys(claims, rel)
        if slot.delimiter in (VOICE, TWIN):
            prompts[slot.delimiter] = slot.prompt
        else:
            slots.append(slot)
    return SenseOutput(tuple(slots), prompts, Delimiters(slots) if slots else PLAIN, tuple(faults))


MAX_BYTES = 64 << 10
SUFFIX = "_sense"

_FIELDS = ("name", "delimiter", "response_key", "system_prompt", "wrapper_tag")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_BUILT_IN = {slot.delimiter: slot for slot in SOUL_SLOTS}


class BadSenseError(AgentError):
    """A file that gives no slot. ``line`` is where in it, None when it is about the file as a whole."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, do="Fix and save; it is read again by itself.")
        self.line = line


def read_sense(content: bytes, stem: str) -> Slot:
    """The slot that a file's text describes; ``stem`` is the file's name without ``.py``.

    One with the delimiter and key of a slot of the daemon is that slot, in words of its own.
    Raises ``BadSenseError``.
    """
    texts = _constants(content)
    delimiter, line = _needed(texts, "delimiter")
    if not DELIMITER.fullmatch(delimiter):
        raise BadSenseError("its delimiter must look like |||NAME|||", line)
    key, key_line = _needed(texts, "response_key")
    prompt, _ = _needed(texts, "system_prompt")
    builtin = _BUILT_IN.get(delimiter)
    if builtin is not None:
        if key != builtin.response_key:
            raise BadSenseError(f"{delimiter} is the daemon's own, and fills {builtin.response_key}", line)
        return replace(builtin, prompt=prompt.strip())
    if key in ANSWER_KEYS:
        raise BadSenseError(f"{key} is a key of every answer, and not for a sense to fill", key_line)
    if not _KEY.fullmatch(key):
        raise BadSenseError("its response_key must be letters, digits and _, a letter first", key_line)
    tag, tag_line = texts.get("wrapper_tag", ("", None))
    if tag and not _TAG.fullmatch(tag):
        raise BadSenseError("its wrapper_tag must be the name of a tag, without < and >", tag_line)
    name, _ = texts.get("name", ("", None))
    return Slot(name.strip() or stem.removesuffix(SUFFIX), delimiter, key, prompt.strip(), tag)


def _needed(texts: dict[str, tuple[str, int]], field: str) -> tuple[str, int]:
    if field not in texts:
        raise BadSenseError(f"it has no {field}")
    text, line = texts[field]
    if not text.strip():
        raise BadSenseError(f"its {field} is empty", line)
    return text, line


def _constants(content: bytes) -> dict[str, tuple[str, int]]:
    """The fields that the text assigns at its top level, each with its line; the last one counts."""
    if len(content) > MAX_BYTES:
        raise BadSenseError(f"it is larger than {MAX_BYTES >> 10} kB")
    found: dict[str, tuple[str, int]] = {}
    for node in _tree(content).body:
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in _FIELDS and node.value is not None:
                found[target.id] = (_text(node.value, target.id), node.lineno)
    return found


def _tree(content: bytes) -> ast.Module:
    try:
        return syntax_tree(content)
    except SyntaxError as error:
        raise BadSenseError(error.msg, error.lineno or None) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadSenseError(f"it is not Python: {error}") from error


def _text(value: ast.expr, field: str) -> str:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str | None):
        raise BadSenseError(f"{field} must be a text, written out: senses are read, not run", value.lineno)
    text = value.value or ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadSenseError(f"{field} holds half a character", value.lineno) from error
    return text
