"""Paths that decide what runs on this machine, and the folders that workers may write all the same.

A worker may write what ``writable_paths`` names, except what ``protected_paths`` names inside of it. Every
other path of the machine is read-only.
"""

from __future__ import annotations

import os
import pwd
import site
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/mnt", "/media", "/run/media", "/srv")  # noqa: S108
"""Folders for everybody's files; so is each folder at the top that is not in ``SYSTEM``."""

SYSTEM = frozenset(
    "bin boot dev efi etc gnu home init lib lib32 lib64 libx32 lost+found nix opt proc root run sbin snap srv"
    " sys usr var tmp mnt media".split()
)
"""Names at the top of the file system that are read-only, or handled by themselves."""

HOME_PROTECTED = frozenset({"bin", "Library", "snap"})
"""Names in a home folder that are read-only, besides all that begin with a dot."""

HOME_WRITABLE = frozenset({".cache"})
"""Names with a dot in a home folder that workers may write."""

TOOL_CACHES = ("pip", "uv", "pypoetry", "pre-commit", "virtualenv", "pipx", "conda", "go-build", "npm", "yarn")
"""Folders in ``.cache`` from which tools install programs."""

CONTROL_SOCKETS = (
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/crio",
    "/run/snapd.socket",
    "/run/user/{uid}/bus",
    "/run/user/{uid}/systemd",
    "/run/user/{uid}/docker.sock",
    "/run/user/{uid}/podman",
    "/run/user/{uid}/gnupg",
    "/run/user/{uid}/keyring",
    "/tmp/tmux-{uid}",  # noqa: S108
    "/run/screen",
)
"""Sockets of services that start programs for whoever asks: closed in a mount namespace."""


def home_folders(environment: Mapping[str, str]) -> list[Path]:
    """This account's home folders: by the account database and by the environment."""
    found = [environment.get("HOME", "")]
    try:
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # an account of a container that has no entry
        pass
    resolved = (Path(os.path.realpath(home)) for home in found if home.startswith("/"))
    return [home for home in dict.fromkeys(resolved) if home.is_dir() and not _is_shared(home)]


def writable_paths(homes: Iterable[Path]) -> list[Path]:
    """Existing folders and files outside workspaces that workers may write."""
    found = [Path(folder) for folder in SCRATCH if Path(folder).is_dir()]
    found += [Path(entry.path) for entry in os.scandir("/") if entry.name not in SYSTEM and _is_folder(entry)]
    for home in homes:
        found += _writable_in_home(home)
    return found


def protected_paths(homes: Iterable[Path]) -> list[Path]:
    """Existing paths in and around home folders that are read-only where they lie inside a writable one."""
    found = list(homes)
    for home in homes:
        found += [home / ".cache" / name for name in TOOL_CACHES if (home / ".cache" / name).is_dir()]
    return found


def program_paths(search_path: Sequence[str], module_path: Sequence[str]) -> list[Path]:
    """Folders and files that programs of this account are loaded from: this program, its environment, the
    interpreter below it, ``module_path`` (``sys.path``, with what ``.pth`` files added), the modules of the
    account, and ``search_path`` (``PATH``)."""
    import agents

    python = Path(sys.executable)
    found = [
        str(Path(next(iter(agents.__path__))).parent),
        *(sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix),
        *(str(python.parent), str(python.resolve().parent), str(Path(os.__file__).parent)),
        site.getusersitepackages(),
        *module_path,
        *search_path,
    ]
    resolved = (Path(os.path.realpath(path)) for path in found if path.startswith("/"))
    return [path for path in dict.fromkeys(resolved) if path.exists() and not _is_shared(path)]


def control_sockets() -> list[str]:
    """The paths of ``CONTROL_SOCKETS`` that exist."""
    named = (path.format(uid=os.getuid()) for path in CONTROL_SOCKETS)
    return [path for path in named if os.path.lexists(path)]


def _writable_in_home(home: Path) -> list[Path]:
    found = []
    try:
        entries = list(os.scandir(home))
    except OSError:
        return []  # closed to its own account: nobody writes there
    for entry in entries:
        hidden = entry.name.startswith(".") and entry.name not in HOME_WRITABLE
        if not hidden and entry.name not in HOME_PROTECTED and not entry.is_symlink():
            found.append(Path(entry.path))
    return found


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _is_shared(path: Path) -> bool:
    """Whether a path is the whole file system or a folder for everybody's files."""
    return str(path) == "/" or str(path) in SCRATCH
