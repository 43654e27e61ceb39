"""The log: one file under the home, the terminal only for what a person must see; never a secret."""

from __future__ import annotations

import atexit
import logging
import logging.handlers
import os
import queue
import re
import time
from collections.abc import Callable, Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 8 << 20
AGENTS = "agents"
"""The logger that tells what became of agent files."""

_NOISY = ("aiohttp.access",)
_BLOCK = 64 << 10
_MOST_NEW = 1 << 20
_SHORTEST_SECRET = 6
_BLOT = "[secret]"
_LOOK_SECONDS = 0.1
_SECRET = re.compile(
    r"(gh[a-z]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|sk-[A-Za-z0-9_-]{8,}|Bearer\s+\S{8,}|(?<=#k=)[\w-]{8,})"
)

Show = Callable[[logging.LogRecord], None]


Keep = Callable[[logging.LogRecord], bool]


def start(path: Path, *, show: Show | None = None, keep: Keep | None = None) -> Callable[[], None]:
    """Sends all logging to ``path`` (rotated at 8 MB) until the process ends, or the returned function is called.

    ``show`` gets warnings of every kind, and whatever is said of agent files. Both happen on a thread of
    their own: neither a slow disk nor a stopped terminal holds up who logs. ``keep`` says of a record, on the
    thread that logs, whether it is of this log, where one process has several.
    """
    handlers: list[logging.Handler] = [_file(path)]
    if show is not None:
        handlers.append(_Shown(show))
    waiting: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(waiting, *handlers)
    listener.start()
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    handler = _WithoutSecrets(waiting)
    if keep is not None:
        handler.addFilter(keep)
    root.addHandler(handler)
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)

    def stop() -> None:
        root.removeHandler(handler)
        listener.stop()
        for file in handlers:
            file.close()
        atexit.unregister(stop)

    atexit.register(stop)
    return stop


def tail(path: Path, count: int) -> list[str]:
    """The last ``count`` lines; [] when there is no log yet."""
    try:
        with path.open("rb") as file:
            file.seek(_start_of_last(file.fileno(), count))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return text.removesuffix("\n").split("\n") if text else []


def since(path: Path, mark: str, count: int) -> tuple[list[str], str]:
    """The whole lines written since ``mark``, and the mark for the next call.

    The last ``count`` lines for a mark that is not of this file, as after a rotation, or too far back.
    """
    try:
        with path.open("rb") as file:
            here = os.fstat(file.fileno())
            inode, _, position = mark.partition("-")
            start = int(position[:18]) if position.isdecimal() and inode == str(here.st_ino) else -1
            if not max(0, here.st_size - _MOST_NEW) <= start <= here.st_size:
                start = _start_of_last(file.fileno(), count)
            file.seek(start)
            raw = file.read(_MOST_NEW + MAX_BYTES)
    except FileNotFoundError:
        return [], ""
    whole = raw[: raw.rfind(b"\n") + 1]
    lines = whole.decode("utf-8", "replace").split("\n")[:-1]
    return lines, f"{here.st_ino}-{start + len(whole)}"


def without(lines: Iterable[str], secrets: Iterable[str]) -> list[str]:
    """The lines with these secrets, and whatever looks like a token, blotted out."""
    known = [secret for secret in secrets if len(secret) >= _SHORTEST_SECRET]
    found = []
    for line in lines:
        for secret in known:
            line = line.replace(secret, _BLOT)
        found.append(_SECRET.sub(_BLOT, line))
    return found


def follow(path: Path, count: int) -> Iterator[str]:
    """The last ``count`` lines, then each new one as it comes, across rotation. Never ends."""
    is_first = True
    while True:
        try:
            file = path.open("rb")
        except FileNotFoundError:  # none yet, or between two
            time.sleep(_LOOK_SECONDS)
            continue
        with file:
            if is_first:
                file.seek(_start_of_last(file.fileno(), count))
            is_first = False
            yield from _lines_of(file, path)


def _lines_of(file: BinaryIO, path: Path) -> Iterator[str]:
    """Every line of an open log, as it comes; ends when ``path`` is another file and this one is used up."""
    here = os.fstat(file.fileno())
    rest = b""
    ends = False
    while True:
        piece = file.readline()
        if piece.endswith(b"\n"):
            yield (rest + piece).decode("utf-8", "replace").rstrip("\n")
            rest = b""
            continue
        rest += piece
        if ends:
            return
        # Lines may have come between the last look and the change of files: one more round takes them.
        ends = not _still(path, here, file.tell())
        if not ends:
            time.sleep(_LOOK_SECONDS)


class _WithoutSecrets(logging.handlers.QueueHandler):
    """Masks everything that looks like a token."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        prepared: logging.LogRecord = super().prepare(record)
        prepared.msg = prepared.message = _SECRET.sub(_BLOT, prepared.getMessage())
        return prepared


class _Shown(logging.Handler):
    def __init__(self, show: Show) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING or record.name == AGENTS:
            try:
                self._show(record)
            except OSError:  # the terminal went; the file goes on
                self.handleError(record)


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Readable by its owner alone, after rotation too."""

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="replace")


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line for some reader, or speak to a terminal; not a tab or a line feed."""


class _Lines(logging.Formatter):
    """One record, one line; what follows in it is indented, so that nobody can write lines of others."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\n", "\n    ")
        return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _file(path: Path) -> logging.Handler:
    file = _PrivateFile(path, maxBytes=MAX_BYTES, backupCount=2, encoding="utf-8")
    file.setFormatter(_Lines("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S"))
    return file


def _start_of_last(descriptor: int, count: int) -> int:
    """Returns the offset at which the last ``count`` lines begin, read block by block from the end."""
    end = os.fstat(descriptor).st_size
    if count <= 0:
        return end
    position, wanted = end, count + 1
    while position > 0:
        begin = max(0, position - _BLOCK)
        block = os.pread(descriptor, position - begin, begin)
        if position == end and not block.endswith(b"\n"):
            wanted -= 1  # the last line is not finished and counts
        cut = len(block)
        while (cut := block.rfind(b"\n", 0, cut)) >= 0:
            wanted -= 1
            if wanted <= 0:
                return begin + cut + 1
        position = begin
    return 0


def _still(path: Path, here: os.stat_result, position: int) -> bool:
    """True while ``path`` is the file that was opened, and was not emptied."""
    try:
        now = path.stat()
    except FileNotFoundError:
        return True  # between two files; the old one may have an end yet
    return (now.st_dev, now.st_ino) == (here.st_dev, here.st_ino) and now.st_size >= position
