"""The command line as a person sees it: on a terminal of a given width."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from daemon_under_test import RunningDaemon

BIN = str(Path(sys.executable).parent)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass
class Seen:
    """What a command left on a terminal: ``raw`` as written, ``text`` as read, ``code`` its exit code."""

    raw: str
    code: int

    @property
    def lines(self) -> list[str]:
        """Lines as they stay: what was written over is gone."""
        stayed = re.sub(r"[^\n]*\r\x1b\[K", "", self.raw.replace("\r\n", "\n"))
        return _ANSI.sub("", stayed).rstrip("\n").split("\n")

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Terminal:
    """``rappd`` with stdin, stdout and stderr on one terminal of so many columns.

    The program is on PATH, so that screens call it ``rappd``.
    """

    def __init__(self, daemon: RunningDaemon, *arguments: str, columns: int = 80, **environment: str) -> None:
        self._keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        path = f"{BIN}:{daemon.environment['PATH']}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rappd", *arguments],
            env={"TERM": "xterm-256color", **daemon.environment, "PATH": path, **environment},
            cwd="/",
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
        )
        os.close(screen)
        self._seen = b""

    @property
    def seen(self) -> Seen:
        return Seen(self._seen.decode("utf-8", "replace"), self.process.poll() or 0)

    def read_until(self, condition: Callable[[Seen], bool], seconds: float = 40) -> Seen:
        """Reads on until the screen is so, or the program has ended."""
        until = time.monotonic() + seconds
        while not condition(self.seen):
            if time.monotonic() > until:
                raise AssertionError(f"waited {seconds} s; on the screen:\n{self.seen.text}")
            if not self._read() and self.process.poll() is not None:
                break
        return self.seen

    def to_end(self) -> Seen:
        """Everything, once the program has ended."""
        self.read_until(lambda seen: False if self.process.poll() is None else not self._read())
        code = self.process.wait(30)
        os.close(self._keyboard)
        return Seen(self._seen.decode("utf-8", "replace"), code)

    def type(self, text: str) -> None:
        """Types on the keyboard."""
        os.write(self._keyboard, text.encode())

    def send(self, number: int) -> None:
        """Sends a signal to the program."""
        self.process.send_signal(number)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._keyboard], [], [], 0.1)
        if not ready:
            return False
        try:
            piece = os.read(self._keyboard, 65536)
        except OSError:  # the other side is closed
            return False
        self._seen += piece
        return bool(piece)


def on_terminal(daemon: RunningDaemon, *arguments: str, columns: int = 80, **environment: str) -> Seen:
    """Runs one command to its end."""
    return Terminal(daemon, *arguments, columns=columns, **environment).to_end()


def lives(pid: int) -> bool:
    """Whether there is such a process, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
