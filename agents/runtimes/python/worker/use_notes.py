"""Notes of what code with declared needs asks for, made in its worker: for its author, and for the card.

The sandbox refuses; this only tells of it. What agent code does to these notes concerns nobody but itself.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

from agents.runtimes.python.network.host_rules import HostRules
from agents.runtimes.python.network.own_network import ADDRESS
from agents.runtimes.python.sandbox.file_access import folders_above, is_within
from agents.runtimes.python.sandbox.namespaces import MountNamespace
from agents.runtimes.python.sandbox.needs import Needs, Use

_MOST = 50  # of one call
_MOST_USUAL = 1000
_WEB = 443
_REFUSALS = {
    "read": (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ENXIO),
    "write": (errno.EACCES, errno.EPERM, errno.EROFS),
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Folders that libraries look into by themselves; a refusal there counts where the call fails for it.
_SYSTEM_FOLDERS = "/proc /dev /sys /run /boot /etc /usr /lib /opt /var/lib /var/cache /var/run /var/log"
_LOOKED_INTO = tuple(_SYSTEM_FOLDERS.split())


class UseNotes:
    """The notes of this process's calls."""

    def __init__(self, view: MountNamespace, needs: Needs) -> None:
        access = view.access()
        self._verdicts = {
            **dict.fromkeys(access.hidden, "hidden"),
            **dict.fromkeys(access.read_only, "read"),
            **dict.fromkeys(access.writable, "write"),
        }
        self._verdicts |= dict.fromkeys(view.scratch, "write")
        self._own = (view.workspace, *view.programs, *view.scratch, *access.pinned)
        self._programs = {os.path.basename(one) for one in needs.programs}
        self._rules = HostRules(needs.servers(os.environ))
        self._uses: dict[Use, None] = {}
        self._usual: set[str] = set()
        """Absolute paths of which there is no note: an agent opens the same ones in each call."""

    def taken(self) -> list[Use]:
        """The notes since the last time."""
        found, self._uses = list(self._uses), {}
        return found

    def explain(self, problem: BaseException) -> str:
        """A sentence beside an error that the sandbox made; "" for any other. It is noted, too."""
        if isinstance(problem, KeyError) and (name := _missing_variable(problem)):
            self._note("variables", name, False)
            return f" (the variable {name} is not among its needs)"
        if not isinstance(problem, OSError) or not isinstance(name := problem.filename, str):
            return ""
        path = os.path.abspath(name)
        wanted = [kind for kind, numbers in _REFUSALS.items() if problem.errno in numbers]
        for kind in wanted:
            if not self._gives(path, kind):
                self._note(kind, path, False)
                return f" ({path} is not among its needs)"
        return ""

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """An audit event of the interpreter (PEP 578)."""
        if (note := _EVENTS.get(event)) is not None and len(self._uses) < _MOST:
            note(self, arguments)

    def on_open(self, arguments: tuple[Any, ...]) -> None:
        flags = arguments[2] if len(arguments) > 2 and isinstance(arguments[2], int) else 0
        self._on_path(arguments[0], "write" if flags & _WRITES else "read")

    def on_listed(self, arguments: tuple[Any, ...]) -> None:
        if arguments[0] not in sys.path:  # the interpreter looks for modules
            self._on_path(arguments[0], "read")

    def on_changed(self, arguments: tuple[Any, ...]) -> None:
        self._on_path(arguments[0], "write")

    def on_program(self, arguments: tuple[Any, ...]) -> None:
        name = arguments[0] if arguments else None
        if name is None and len(arguments) > 1 and arguments[1]:
            name = arguments[1][0] if isinstance(arguments[1], (list, tuple)) else arguments[1]
        if isinstance(name, (str, bytes, os.PathLike)):
            text = os.path.basename(os.fsdecode(name))
            self._note("programs", text, text in self._programs)

    def on_shell(self, arguments: tuple[Any, ...]) -> None:
        self._note("programs", "sh", "sh" in self._programs)

    def on_host(self, arguments: tuple[Any, ...]) -> None:
        """A connection past the proxy, which tells the daemon of those that go through it."""
        host, port = arguments[:2] if len(arguments) > 1 else ("", "")
        if isinstance(host, bytes):
            host = host.decode("latin-1")
        at = int(port) if isinstance(port, (int, str)) and str(port).isdecimal() else _WEB
        if isinstance(host, str) and host != ADDRESS and not self._rules.admits(host, at):
            self._note("hosts", f"{host}:{at}", False)

    def on_connect(self, arguments: tuple[Any, ...]) -> None:
        address = arguments[1] if len(arguments) > 1 else None
        if isinstance(address, tuple) and len(address) > 1:
            self.on_host(address)

    def _on_path(self, named: Any, kind: str) -> None:
        if not isinstance(named, (str, bytes, os.PathLike)) or (
            isinstance(named, str) and named in self._usual
        ):
            return
        path = os.path.abspath(os.fsdecode(named))
        if any(is_within(path, one) for one in self._own) or any(
            is_within(path, one) for one in _LOOKED_INTO
        ):
            if named == path and len(self._usual) < _MOST_USUAL:
                self._usual.add(path)
            return
        given = self._gives(path, kind)
        if given or not any(name.startswith(".") for name in path.split("/")):
            self._note(kind, path, given)

    def _gives(self, path: str, kind: str) -> bool:
        for above in (path, *folders_above(path)):
            if (verdict := self._verdicts.get(above)) is not None:
                return verdict == "write" or verdict == kind
        return kind == "read"

    def _note(self, kind: str, what: str, given: bool) -> None:
        self._uses[kind, what[:300], given] = None


def _missing_variable(problem: KeyError) -> str:
    """The variable that was looked for in the environment in vain; "" where a key of something else was."""
    last = problem.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    is_of_environment = last is not None and last.tb_frame.f_globals.get("__name__") == "os"
    name = problem.args[0] if is_of_environment and problem.args else ""
    return name if isinstance(name, str) else ""


_EVENTS: dict[str, Callable[[UseNotes, tuple[Any, ...]], None]] = {
    "open": UseNotes.on_open,
    "os.listdir": UseNotes.on_listed,
    "os.scandir": UseNotes.on_listed,
    **dict.fromkeys(("os.mkdir", "os.remove", "os.rename", "os.rmdir"), UseNotes.on_changed),
    **dict.fromkeys(("subprocess.Popen", "os.exec", "os.posix_spawn"), UseNotes.on_program),
    "os.system": UseNotes.on_shell,
    "socket.getaddrinfo": UseNotes.on_host,
    "socket.connect": UseNotes.on_connect,
}

_notes: UseNotes | None = None


def watch(view: MountNamespace, needs: Needs) -> None:
    """Note from now on what this process asks for, for good."""
    global _notes
    _notes = notes = UseNotes(view, needs)
    me = os.getpid()

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _EVENTS and os.getpid() == me:
            notes.hear(event, arguments)

    sys.addaudithook(hear)


def taken() -> list[Use]:
    """The notes since the last time; none where nothing is declared."""
    return _notes.taken() if _notes is not None else []


def explain(problem: BaseException) -> str | None:
    """A sentence beside an error of code that declares its needs; None where it declares nothing."""
    return _notes.explain(problem) if _notes is not None else None
