"""Paths that decide what runs on this machine, and the folders that workers may write all the same.

A worker may write what ``writable_paths`` names, except what ``protected_paths`` names inside of it. Every
other path of the machine is read-only.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import site
import sys
from collections.abc import Iterable, Mapping, Sequence

from agents.runtimes.python.sandbox.private_paths import PrivatePaths

SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/mnt", "/media", "/run/media", "/srv")  # noqa: S108
"""Folders for everybody's files; so is each folder at the top that is not in ``SYSTEM``."""

_SYSTEM = (
    "bin boot dev efi etc gnu home init lib lib32 lib64 libx32 lost+found nix opt proc root run sbin snap srv"
    " sys usr var tmp mnt media"
)
_TEMPORARY = "/tmp"  # noqa: S108
SYSTEM = frozenset(_SYSTEM.split())
"""Names at the top of the file system that are read-only, or handled by themselves."""

HOME_PROTECTED = frozenset({"bin", "Library", "snap"})
"""Names in a home folder that are read-only, besides all that begin with a dot."""

HOME_WRITABLE = frozenset({".cache"})
"""Names with a dot in a home folder that workers may write."""

_TOOL_CACHES = "pip uv pypoetry pre-commit virtualenv pipx conda go-build npm yarn"
TOOL_CACHES = tuple(_TOOL_CACHES.split())
"""Folders in ``.cache`` from which tools install programs."""

CONTROL_SOCKETS = (
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/snapd.socket",
    "/run/user/{uid}",
    "/run/pcscd",
    "/run/screen",
    "/tmp/ssh-*",  # noqa: S108
    "/tmp/.X11-unix",  # noqa: S108
    "/tmp/emacs{uid}",  # noqa: S108
)
"""Sockets of services that start programs, sign or type for everybody who asks: closed in a mount namespace.

A ``*`` ends a name in ``/tmp``.
"""

OF_OTHERS = ("/run/user", "/tmp/tmux-*", "/tmp/emacs*")  # noqa: S108
"""Paths of all accounts, which root may use."""

TERMINALS = "/tmp/tmux-{uid}"  # noqa: S108
"""The folder of this account's terminal multiplexer. It is made where it is missing: one that came later would
be open to the workers that run then."""


class MachinePaths:
    """Paths outside workspaces, looked up again when a folder that lists them has changed."""

    def __init__(
        self,
        homes: Sequence[str],
        programs: Sequence[str],
        private: PrivatePaths,
        agent_sockets: Sequence[str] = (),
    ) -> None:
        self.programs = tuple(programs)
        self.private = private
        self.homes = tuple(homes)
        self._agent_sockets = agent_sockets
        self._listed = ["/", *homes, *(f"{home}/.cache" for home in homes)]
        self._stamps: list[int] = []
        self.writable: tuple[str, ...] = ()
        self.read_only: tuple[str, ...] = ()
        self.sockets: tuple[str, ...] = ()

    def refresh(self) -> None:
        """Look whether a path has come or gone. Sockets are looked for each time."""
        self.private.refresh()
        self.sockets = tuple(
            dict.fromkeys((*control_sockets(), *filter(os.path.exists, self._agent_sockets)))
        )
        stamps = [_changed_at(folder) for folder in self._listed]
        if stamps != self._stamps:
            self.writable = tuple(writable_paths(self.homes))
            self.read_only = tuple(protected_paths(self.homes))
            self._stamps = stamps


def secret_sockets(environment: Mapping[str, str]) -> list[str]:
    """Paths of the sockets by which programs of this account sign and unlock, as its environment names them."""
    bus = environment.get("DBUS_SESSION_BUS_ADDRESS", "")
    named = [environment.get("SSH_AUTH_SOCK", ""), environment.get("GPG_AGENT_INFO", "").partition(":")[0]]
    named += [part.partition("path=")[2].partition(",")[0] for part in bus.split(";") if "path=" in part]
    return [os.path.realpath(path) for path in dict.fromkeys(named) if path.startswith("/")]


def home_folders(environment: Mapping[str, str]) -> list[str]:
    """This account's home folders: by the account database and by the environment."""
    found = [environment.get("HOME", "")]
    with contextlib.suppress(KeyError):  # an account of a container that has no entry
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    resolved = (os.path.realpath(home) for home in found if home.startswith("/"))
    return [home for home in dict.fromkeys(resolved) if os.path.isdir(home) and not _is_shared(home)]


def writable_paths(homes: Iterable[str]) -> list[str]:
    """Existing folders and files outside workspaces that workers may write."""
    found = [folder for folder in SCRATCH if os.path.isdir(folder) and not os.path.islink(folder)]
    with os.scandir("/") as entries:
        found += [one.path for one in entries if one.name not in SYSTEM and one.is_dir(follow_symlinks=False)]
    for home in homes:
        found += _writable_in_home(home)
    return found


def protected_paths(homes: Iterable[str]) -> list[str]:
    """Existing paths in and around home folders that are read-only where they lie inside a writable one."""
    found = list(homes)
    for home in homes:
        caches = (f"{home}/.cache/{name}" for name in TOOL_CACHES)
        found += [cache for cache in caches if os.path.isdir(cache)]
    return found


def program_paths(search_path: Sequence[str], module_path: Sequence[str]) -> list[str]:
    """Folders and files that programs of this account are loaded from.

    These are this program, its environment, the interpreter below it, ``module_path`` (``sys.path``, with
    what ``.pth`` files added), the modules of the account, and ``search_path`` (``PATH``).
    """
    import agents

    found = [
        os.path.dirname(next(iter(agents.__path__))),
        *(sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix),
        *(os.path.dirname(path) for path in (sys.executable, os.path.realpath(sys.executable), os.__file__)),
        site.getusersitepackages(),
        *module_path,
        *search_path,
    ]
    resolved = (os.path.realpath(path) for path in found if path.startswith("/"))
    return [path for path in dict.fromkeys(resolved) if os.path.exists(path) and not _is_shared(path)]


def control_sockets() -> list[str]:
    """The paths of ``CONTROL_SOCKETS`` and ``TERMINALS`` that exist; links are not followed."""
    uid = os.getuid()
    terminals = TERMINALS.format(uid=uid)
    with contextlib.suppress(OSError):
        os.mkdir(terminals, 0o700)
    wanted = (terminals, *(one.format(uid=uid) for one in CONTROL_SOCKETS), *(OF_OTHERS if uid == 0 else ()))
    found = [path for path in wanted if not path.endswith("*") and os.path.lexists(path)]
    starts = tuple(os.path.basename(path[:-1]) for path in wanted if path.endswith("*"))
    with contextlib.suppress(OSError), os.scandir(_TEMPORARY) as entries:
        found += [entry.path for entry in entries if entry.name.startswith(starts)]
    return [path for path in dict.fromkeys(found) if not os.path.islink(path)]


def _writable_in_home(home: str) -> list[str]:
    found = []
    with contextlib.suppress(OSError), os.scandir(home) as entries:  # closed: nobody of this account writes
        for entry in entries:
            hidden = entry.name.startswith(".") and entry.name not in HOME_WRITABLE
            if not hidden and entry.name not in HOME_PROTECTED and not entry.is_symlink():
                found.append(entry.path)
    return found


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def _is_shared(path: str) -> bool:
    """True when a path is the whole file system or a folder for everybody's files."""
    return path == "/" or path in SCRATCH
