"""The process that fetches packages: it enters a sandbox first, then becomes pip or uv.

In the sandbox is one folder that can be written, which holds the packages, ``HOME`` and temporary files;
the network; and the system, read-only. Homes, keys, other workspaces and temporary folders are hidden.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agents.programs import programs
from agents.runtimes.python.sandbox import (
    devices,
    landlock,
    namespaces,
    privileges,
    sandbox,
    seccomp,
    syscalls,
)
from agents.runtimes.python.sandbox.sandbox import Sandbox
from agents.runtimes.python.sandbox.syscalls import (
    LINUX,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)

_TEMPORARY = "/tmp"  # noqa: S108 - an empty file system of its own is mounted there
_NAME_SERVICE = (
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/nscd",
    "/run/netconfig",
)
_SYSTEM_OF_NIX = "/run/current-system"
_PLAIN_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main() -> None:
    """Read one order from standard input, carry it out, and end with pip's exit code.

    ``{work, path, requirements, index, uv, sandbox, hidden, shown}``: the descriptor and path of the
    folder; what to install, from which index ("" for pip's own); the path of uv, or ""; the kind of
    sandbox; folders to hide, and others in them to show.
    """
    order = json.load(sys.stdin)
    privileges.die_with_parent()
    privileges.adopt_orphans()
    privileges.leave_session_keyring()
    chosen = sandbox.choose(order["sandbox"])
    reached = (order["path"], *_interpreter(), *order["shown"])
    child = chosen.fork(lambda: _install(order, chosen), reached)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os._exit(code if code >= 0 else 1)


def _install(order: dict[str, Any], chosen: Sandbox) -> None:
    privileges.die_with_parent()
    work = enter(chosen, order["work"], order["path"], order["hidden"], order["shown"])
    for variable, name in (("HOME", "home"), ("TMPDIR", "temporary")):
        os.environ[variable] = os.path.join(work, name)
        os.mkdir(os.environ[variable], 0o700)
    tempfile.tempdir = None  # found anew, from the environment
    target = os.path.join(work, "packages")
    if order["uv"]:
        _become_uv(order, target)
    sys.argv = ["pip", *pip_arguments(order["index"], target, order["requirements"])]
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def pip_arguments(index: str, target: str, requirements: Sequence[str]) -> list[str]:
    """The command line of pip, without its program.

    Nobody else reads it: pip runs in this process, so that a password in the index is in no list of
    processes.
    """
    return [
        "--isolated",  # neither variables nor the account's configuration; the system's stays in force
        "install",
        "--only-binary=:all:",
        "--no-input",
        "--keyring-provider=disabled",
        "--no-cache-dir",
        "--no-user",
        "--no-warn-conflicts",
        "--disable-pip-version-check",
        "--retries=2",
        "--quiet",
        *(["--index-url", index] if index else []),
        "--target",
        target,
        "--",
        *requirements,
    ]


def _become_uv(order: dict[str, Any], target: str) -> None:
    if order["index"]:
        os.environ["UV_DEFAULT_INDEX"] = order["index"]
    options = ["pip", "install", "--no-config", "--no-cache", "--python", sys.executable, "--no-build"]
    options += ["--compile-bytecode", "--no-progress", "--quiet", "--target", target, "--"]
    programs.become(order["uv"], [*options, *order["requirements"]])


def enter(chosen: Sandbox, work: int, path: str, hidden: Sequence[str], shown: Sequence[str]) -> str:
    """Shut this process in, for good, and return the path of the folder ``work`` in there.

    Raises OSError when that cannot be done in full.
    """
    hidden = _outermost_first(map(os.path.realpath, hidden))
    shown = [
        name for name in {*shown, *_interpreter(), *_NAME_SERVICE, _SYSTEM_OF_NIX} if os.path.exists(name)
    ]
    if chosen.account is not None:
        namespaces.map_own_account(*chosen.account)
    if chosen.kind == sandbox.MOUNT_NAMESPACE:
        path = _enter_namespace(_again(work, path), hidden, shown, real_root=chosen.real_root)
    if LINUX:
        privileges.give_up_privileges()
    if chosen.kind == sandbox.LANDLOCK:
        raw = devices.closed_devices() if chosen.real_root else ()
        landlock.confine(
            hidden=[*hidden, *raw],
            readable=[os.path.realpath(name) for name in shown],
            writable=[path, *_PLAIN_DEVICES],
        )
    seccomp.install(shared_processes=not chosen.own_processes)
    os.chdir(path)
    return path


def _again(work: int, path: str) -> int:
    """The same folder, opened in this namespace: of another one nothing can be mounted."""
    own = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not os.path.sameopenfile(work, own):
        raise OSError(errno.ESTALE, "the folder was exchanged", path)
    return own


def _enter_namespace(work: int, hidden: Sequence[str], shown: Sequence[str], *, real_root: bool) -> str:
    syscalls.mount("none", "/", "", MS_REC | MS_PRIVATE)
    places = {os.path.realpath(name) for name in shown} | {os.path.abspath(name) for name in shown}
    opened = [(name, os.open(name, os.O_PATH | os.O_CLOEXEC)) for name in _outermost_first(places)]
    if real_root:
        namespaces.close_to_root().close()
    with contextlib.suppress(OSError):  # containers mask parts of /proc, and then refuse a fresh one
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    syscalls.make_read_only("/")
    covered: list[str] = []
    for name in hidden:
        if not os.path.isdir(name):
            continue  # not there, or hidden with a folder above it
        options = "mode=0755,size=1m,nr_inodes=1k"
        syscalls.mount("rappd", name, "tmpfs", MS_NOSUID | MS_NODEV, options)
        covered.append(name)
        for place, fd in opened:
            if _is_in(place, name):
                _show(place, fd)
    os.makedirs(f"{_TEMPORARY}/install", exist_ok=True)
    inside = f"{_TEMPORARY}/install"
    syscalls.mount(f"/proc/self/fd/{work}", inside, "", MS_BIND)
    for name in covered:
        flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV
        syscalls.mount("none", name, "", flags)
    syscalls.make_writable(inside)
    for fd in (work, *(fd for _, fd in opened)):
        os.close(fd)
    return inside


def _show(place: str, fd: int) -> None:
    if os.path.exists(place):
        return  # with a folder above it
    if os.path.isdir(f"/proc/self/fd/{fd}"):
        os.makedirs(place)
    else:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        Path(place).touch()
    syscalls.mount(f"/proc/self/fd/{fd}", place, "", MS_BIND)
    with contextlib.suppress(OSError):
        syscalls.make_read_only(place)


def _interpreter() -> list[str]:
    """The folders that this Python and pip run from."""
    pip = find_spec("pip")
    named = [sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(os.__file__))]
    named += (pip and pip.submodule_search_locations) or ()
    return [name for name in named if os.path.realpath(name) not in ("/", "/usr")]


def _outermost_first(names: Any) -> list[str]:
    return sorted(set(names), key=lambda name: (name.count("/"), name))


def _is_in(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder.rstrip('/')}/")
