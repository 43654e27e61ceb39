"""Chooses the strongest sandbox that this machine allows, found out once by trying."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.runtimes.python.network import own_network
from agents.runtimes.python.sandbox import landlock, namespaces, privileges, seccomp
from agents.runtimes.python.sandbox.file_access import folders_above
from agents.runtimes.python.sandbox.namespace_fork import Accounts, fork
from agents.runtimes.python.sandbox.namespaces import MountNamespace
from agents.runtimes.python.sandbox.needs import Needs
from agents.runtimes.python.sandbox.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    LINUX,
)

MOUNT_NAMESPACE, LANDLOCK, NONE = "mount namespace", "landlock", "none"
AUTO = "auto"

_OWN = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC
_PID_MAX = Path("/proc/sys/kernel/pid_max")
_OWN_PID_MAX_SINCE = (6, 14)  # before, writing it would change the whole machine's
_PROBED_PROCESSES = 256
_PROBED_MEMORY = 1 << 20


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One way to shut a worker in.

    ``namespaces``: what to fork it into. ``real_root``: the worker has the number of the whole machine's
    root, whose files these are, also in a user namespace of its own. ``bounded``: the kernel bounds the
    number of processes in each worker's own namespace. ``account``: the user and group to stay in a user
    namespace of its own; root has more than itself in there. ``network``: it can be forked into a network of its own.
    """

    kind: str
    detail: str
    namespaces: int = 0
    real_root: bool = False
    bounded: bool = False
    account: tuple[int, int] | None = None
    network: bool = False

    def report(self) -> dict[str, Any]:
        """``{kind, detail, network}`` and, if system calls are not filtered, ``unfiltered``: why; for people."""
        why = {"unfiltered": reason} if (reason := seccomp.missing()) else {}
        return {"kind": self.kind, "detail": self.detail, "network": self.network} | why

    def sockets(self, needs: Needs | None) -> str:
        """The kinds of sockets that code with these needs may have, as ``seccomp.install`` takes them."""
        if needs is None:
            return seccomp.ANY
        return seccomp.INTERNET if needs.hosts else seccomp.PAIRS

    @property
    def own_processes(self) -> bool:
        """True when all processes of a worker end with it, whatever they did to hide."""
        return bool(self.namespaces & CLONE_NEWPID)

    @property
    def own_files(self) -> bool:
        """True when a worker sees a file system of its own."""
        return self.kind == MOUNT_NAMESPACE

    @property
    def own_account(self) -> bool:
        """True when the kernel counts a worker's processes apart from the rest of the account's."""
        return self.account is not None

    @property
    def hides_workers(self) -> bool:
        """True when workers are kept out of each other's memory once they have entered.

        A mount namespace does it with a ``/proc`` of its own, which some containers refuse.
        """
        if self.kind == LANDLOCK:
            return True  # a process may only trace those that it restricted itself
        return self.kind == MOUNT_NAMESPACE and Path("/proc/self").readlink().name == str(os.getpid())

    def fork(
        self,
        entry: Callable[[], None],
        reached: Iterable[str],
        programs: tuple[str, ...] = (),
        *,
        own_network: bool = False,
        sockets: str = seccomp.ANY,
    ) -> int:
        """Fork into the namespaces; ``entry`` must call ``enter``. See ``clone.fork``.

        ``own_network``: one more namespace, where ``network`` says that there can be; ``sockets`` as ``enter`` gets it.

        The owners of the paths ``reached``, of ``programs``, and of the folders above them stay known in root's
        user namespace: to root in there, a file of any other account is a stranger's. Those of ``programs``
        are looked up once.
        """
        seccomp.encoded(shared_processes=not self.own_processes, sockets=sockets)  # remembered by the child
        flags = self.namespaces | (CLONE_NEWNET if own_network else 0)
        if not self.real_root or self.account is None:
            return fork(flags, entry)
        around, lasting = _owners(frozenset(reached)), _owners_once(programs)
        accounts = Accounts(around.users | lasting.users, around.groups | lasting.groups)
        return fork(flags, entry, accounts)

    def enter(self, view: MountNamespace, sockets: str = seccomp.ANY) -> None:
        """Shut this process in, for good. Raises OSError when that cannot be done in full."""
        if self.account is not None:
            namespaces.map_own_account(*self.account)
        if self.kind == MOUNT_NAMESPACE:
            namespaces.enter(view, real_root=self.real_root)
        if LINUX:
            privileges.give_up_privileges()
        if self.kind == LANDLOCK:
            landlock.enter(view, real_root=self.real_root)
        elif self.kind == MOUNT_NAMESPACE:
            landlock.close_abstract_sockets()
        seccomp.install(shared_processes=not self.own_processes, sockets=sockets)


def _owners(paths: Iterable[str]) -> Accounts:
    users, groups = set(), set()
    for path in {above for one in paths for above in (one, *folders_above(one))}:
        with contextlib.suppress(OSError):
            status = os.stat(path)  # noqa: PTH116 - a worker's start would pay for pathlib
            users.add(status.st_uid)
            groups.add(status.st_gid)
    return Accounts(frozenset(users), frozenset(groups))


@lru_cache(maxsize=4)
def _owners_once(paths: tuple[str, ...]) -> Accounts:
    return _owners(paths)


def choose(wish: str = AUTO) -> Sandbox:
    """Try the ways from strong to weak, each in a process of its own, and return the first that works.

    ``wish`` names one kind to use; when it does not work here, what is returned is weaker and says so.
    The caller must have one thread and have called ``adopt_orphans``.
    """
    refusals = []
    for candidate in _candidates(wish):
        why = _probe(candidate)
        if not why:
            return candidate
        refusals.append(f"{candidate.kind}: {why}")
    failed = "; ".join(dict.fromkeys(refusals)) or (
        "switched off" if LINUX else "this system has no way to close it"
    )
    return Sandbox(NONE, f"workers have all rights of this account and can read the home folder ({failed})")


def _candidates(wish: str) -> Iterable[Sandbox]:
    if not LINUX:
        return
    if wish in (AUTO, MOUNT_NAMESPACE):
        detail = "workers see neither the home folder nor other workspaces, and only their own processes"
        bounded = _kernel() >= _OWN_PID_MAX_SINCE
        account, real_root = (os.getuid(), os.getgid()), os.geteuid() == 0
        for network in (True, False):
            for bound in (True, False) if bounded else (False,):
                flags = CLONE_NEWUSER | _OWN
                yield Sandbox(MOUNT_NAMESPACE, detail, flags, real_root, bound, account, network)
                if real_root:  # user namespaces are switched off
                    yield Sandbox(MOUNT_NAMESPACE, detail, _OWN, True, bound, network=network)
    if wish in (AUTO, MOUNT_NAMESPACE, LANDLOCK):
        detail = "workers can open neither the home folder nor other workspaces"
        yield Sandbox(LANDLOCK, detail, real_root=os.geteuid() == 0)


def _kernel() -> tuple[int, ...]:
    parts = platform.release().split("-")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


def _probe(candidate: Sandbox) -> str:
    """The reason why ``candidate`` does not work here; "" when it does."""
    root = Path(tempfile.mkdtemp(prefix="rappd-probe-")).resolve()
    out, into = os.pipe()
    before = _PID_MAX.read_text()
    try:
        workspace, secret = root / "workspace", root / "secret"
        for folder in (workspace, workspace / "agents", workspace / ".deps"):
            folder.mkdir()
        secret.write_text("hidden")
        view = MountNamespace(
            str(workspace),
            str(root),
            writable=(tempfile.gettempdir(),),
            read_only=(f"{workspace}/agents",),
            processes=_PROBED_PROCESSES if candidate.bounded else None,
            shared_memory=_PROBED_MEMORY,
        )
        child = candidate.fork(
            lambda: _try(candidate, view, secret, into), (str(workspace),), own_network=candidate.network
        )
        status = os.waitpid(child, 0)[1]
        os.write(into, b"\n")  # so that there is something to read
        outcome = os.read(out, 500).decode().strip()
        if _PID_MAX.read_text() != before:
            _PID_MAX.write_text(before)
            return "process numbers are not bounded per namespace"
        return "" if status == 0 else outcome or "the trial process failed"
    except OSError as problem:
        return problem.strerror or str(problem)
    finally:
        os.close(out)
        os.close(into)
        shutil.rmtree(root, ignore_errors=True)


def _try(candidate: Sandbox, view: MountNamespace, secret: Path, into: int) -> None:
    workspace = Path(view.workspace)
    try:
        if candidate.network:
            own_network.listen().close()
        candidate.enter(view)
        (workspace / ".deps" / "written").write_text("allowed")
        if not _fails(secret.read_text):
            os.write(into, b"a hidden file stayed readable")
        elif not _fails(lambda: (workspace / "agents" / "planted").write_text("")):
            os.write(into, b"a protected folder stayed writable")
        else:
            return
    except OSError as problem:
        os.write(into, str(problem.strerror).encode()[:500])
    os._exit(1)


def _fails(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return True
    return False
