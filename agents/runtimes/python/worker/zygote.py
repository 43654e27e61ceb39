"""The warm process that workers are forked from: one thread, everything loaded, nothing secret in it."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from agents.runtimes.python.pools import started_processes
from agents.runtimes.python.sandbox import cgroup_limit, namespaces, privileges, process_limits, sandbox
from agents.runtimes.python.sandbox.devices import DeviceFolder, closed_devices
from agents.runtimes.python.sandbox.private_paths import PrivatePaths
from agents.runtimes.python.sandbox.protected_paths import MachinePaths
from agents.runtimes.python.sandbox.syscalls import LINUX
from agents.runtimes.python.worker import worker_watch
from agents.runtimes.python.worker.spawn import Spawner, SpawnRequest, needs_of, serve_worker, view_of

_PACKET_BYTES = 64 * 1024
_ORDER_FDS = 4 if LINUX else 3
_NETWORK_FD = 1  # one more, where the plan has hosts and there can be a network of its own
_KEEP_CLOSED_ON_EXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_USUAL = """
abc ast base64 binascii bisect calendar collections collections.abc concurrent.futures contextlib
copy csv ctypes dataclasses datetime decimal difflib email email.message enum fnmatch functools glob
graphlib gzip hashlib heapq hmac html html.parser http.client http.cookiejar importlib.machinery
importlib.util inspect io itertools json logging math mimetypes numbers operator os pathlib platform
pprint queue random re secrets select shlex shutil signal socket sqlite3 ssl statistics string
struct subprocess tempfile textwrap threading time traceback types typing unicodedata urllib.error
urllib.parse urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
"""
USUAL_MODULES = tuple(_USUAL.split())


def main(control: int) -> None:
    """Serve the daemon at the other end of the socket ``control`` until it goes away.

    First comes ``{parent, follow, preload, sandbox, ceiling, homes, programs}``; the answer is ``{ready:
    {sandbox report}, missing: {module: why}, adopts, helper}``. Then ``{spawn}`` with its descriptors (see
    ``birth.PackRequest``) is answered by ``{spawned, pid}`` or ``{refused, why}``, and ``{kill: pid}`` and
    ``{sweep}`` by nothing. Every end of a worker is told: ``{gone: pid, status, cpu, why}``, where ``why`` is
    why it was ended here.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = socket.socket(fileno=control)
    settings = orjson.loads(channel.recv(_PACKET_BYTES))
    if settings["follow"]:
        privileges.die_with_parent()
    if os.getppid() != settings["parent"]:
        return
    Zygote(channel, settings).run()


class Zygote:
    """The loop: orders in, ends of workers out."""

    def __init__(self, channel: socket.socket, settings: dict[str, Any]) -> None:
        gc.disable()
        privileges.leave_session_keyring()
        privileges.adopt_orphans()
        privileges.narrow_bounds()
        self._channel = channel
        self._workers: set[int] = set()
        missing = load_modules([*USUAL_MODULES, *settings["preload"]])
        _keep_only_standard_library()
        chosen = sandbox.choose(settings["sandbox"])
        if not chosen.own_processes:
            privileges.outlive_parent()  # what agents started is ended here, once the daemon has hung up
        note = self._bound_processes(chosen, settings["ceiling"])
        self._groups = cgroup_limit.MemoryGroups.open() if LINUX else None
        note |= self._memory_note()
        self._watch = worker_watch.WorkerWatch(self._groups, mounts=chosen.kind == sandbox.MOUNT_NAMESPACE)
        self._why: dict[int, str] = {}
        self._devices: DeviceFolder | None = None
        if chosen.real_root and chosen.kind == sandbox.MOUNT_NAMESPACE:
            with contextlib.suppress(OSError):  # in a container without the right, each worker does it itself
                namespaces.own_mounts()
                self._devices = namespaces.close_to_root()
        # Landlock would have to name each file of /etc, and would then not see one that is replaced.
        system = chosen.kind == sandbox.MOUNT_NAMESPACE
        private = PrivatePaths(settings["homes"], settings["may_read"], system=system)
        machine = MachinePaths(settings["homes"], settings["programs"], private, settings["sockets"])
        self._spawner = Spawner(chosen, machine, *os.pipe())
        self._wakeup, wakeup_in = os.pipe()
        os.set_blocking(wakeup_in, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_in, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        adopts = LINUX and not chosen.own_processes
        helper = self._groups.helper if self._groups is not None else 0
        ready = {**chosen.report(), **note}
        self._send({"ready": ready, "missing": missing, "adopts": adopts, "helper": helper})

    def run(self) -> None:
        """Until the daemon hangs up; then end every worker."""
        watch = select.poll()
        watch.register(self._channel, select.POLLIN)
        watch.register(self._wakeup, select.POLLIN)
        if self._watch.fd is not None:
            watch.register(self._watch.fd, select.POLLIN)
        look_at = 0.0
        try:
            while True:
                for fd, _ in watch.poll(self._watch.timeout if LINUX else None):
                    if fd == self._wakeup:
                        os.read(self._wakeup, 4096)
                        self._reap()
                    elif fd == self._watch.fd:
                        self._end_all(self._watch.replaced())
                    elif not self._handle_request():
                        return
                if LINUX and time.monotonic() >= look_at:
                    self._end_all({**self._watch.over_limit(), **self._watch.replaced()})
                    look_at = time.monotonic() + worker_watch.SECONDS
        except (ConnectionResetError, BrokenPipeError):
            return  # the daemon ended with words of ours unread
        finally:
            for pid in self._workers:
                self._end(pid)

    def _handle_request(self) -> bool:
        packet, fds, _, _ = socket.recv_fds(
            self._channel, _PACKET_BYTES, _ORDER_FDS + _NETWORK_FD, _KEEP_CLOSED_ON_EXEC
        )
        if not packet:
            return False
        order = orjson.loads(packet)
        if "kill" in order:
            if order["kill"] in self._workers:  # else it is gone, and its number may be another's
                self._end(order["kill"])
            return True
        if "sweep" in order:
            self._end_leftovers()
            return True
        try:
            if len(fds) not in (_ORDER_FDS, _ORDER_FDS + _NETWORK_FD):
                raise OSError("descriptors got lost on the way")
            spawn = SpawnRequest(*fds)
            plan = spawn.read_plan()
            if not self._spawner.sandbox.network:
                spawn = replace(spawn, network=-1)
            read_only = worker_watch.make_missing(plan["read_only"], plan["workspace"])
            pid = self._spawn(spawn, plan, list(read_only))
            self._watch.add(pid, plan, read_only)
        except OSError as problem:
            self._send({"refused": order["spawn"], "why": problem.strerror or str(problem)})
        else:
            self._workers.add(pid)
            self._send({"spawned": order["spawn"], "pid": pid})
        for fd in fds:
            os.close(fd)
        return True

    def _spawn(self, order: SpawnRequest, plan: dict[str, Any], read_only: list[str]) -> int:
        if LINUX and len(list(Path("/proc/self/task").iterdir())) > 1:
            raise OSError("the zygote has more than one thread and must not fork")
        chosen = self._spawner.sandbox
        if self._devices is not None:
            self._devices.refresh()
        elif chosen.real_root:
            closed_devices()  # remembered by all who are forked
        self._spawner.machine.refresh()
        shared = None
        if LINUX and os.geteuid() != 0 and not chosen.own_account:
            shared = process_limits.processes_of_account()
        view = replace(view_of(plan, read_only, self._spawner), closed_to_root=self._devices is not None)
        view.access()  # remembered by all who are forked
        with os.scandir(view.workspace) as entries:
            reached = [one.path for one in entries] if chosen.real_root else []
        reached += (view.workspace, *read_only)
        programs, needs = self._spawner.machine.programs, needs_of(plan)
        return chosen.fork(
            lambda: serve_worker(order, self._spawner, plan, view, shared),
            reached,
            programs,
            own_network=chosen.network and needs is not None,
            sockets=chosen.sockets(needs),
        )

    def _reap(self) -> None:
        """Collects all that ended, then ends what they left behind: once for a whole crowd, not for each of it."""
        ended: list[tuple[int, int, float]] = []
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    break
                ended.append((pid, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime))
        gone = [one for one in ended if one[0] in self._workers]
        for pid, code, _ in gone:
            why = self._watch.remove(pid, killed=code == -signal.SIGKILL)
            self._why.setdefault(pid, why)
        self._workers.difference_update(pid for pid, _, _ in gone)
        if ended:
            self._end_leftovers()
        for pid, code, cpu in gone:
            self._send({"gone": pid, "status": code, "cpu": cpu, "why": self._why.pop(pid, "")})

    def _end_all(self, condemned: dict[int, str]) -> None:
        for pid, why in condemned.items():
            self._why.setdefault(pid, why)
            self._end(pid)

    def _end(self, pid: int) -> None:
        if not self._spawner.sandbox.own_processes:
            _end_below(pid)
        if not LINUX:  # all that is known of its descendants there is the group
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        _signal(pid, signal.SIGKILL)

    def _end_leftovers(self) -> None:
        """Ends processes that ended workers left behind, unless their process namespace ended them."""
        if self._spawner.sandbox.own_processes or not LINUX:
            return
        helpers = {self._groups.helper} if self._groups is not None else set()
        for pid in set(started_processes.children(os.getpid())) - self._workers - helpers:
            _end_below(pid)
            _signal(pid, signal.SIGKILL)

    @staticmethod
    def _bound_processes(chosen: sandbox.Sandbox, ceiling_processes: int) -> dict[str, Any]:
        if not LINUX or os.geteuid() != 0 or chosen.bounded:
            return {}
        why = cgroup_limit.impose(ceiling_processes)
        return {"processes": why or f"at most {ceiling_processes} in all workers together", "groups": True}

    def _memory_note(self) -> dict[str, Any]:
        if self._groups is not None:
            return {"memory": "each worker with all it starts, by a control group", "groups": True}
        if LINUX:
            return {"memory": "each worker with all it starts, counted every quarter of a second"}
        return {"memory": "each process by itself"}

    def _send(self, message: dict[str, Any]) -> None:
        self._channel.send(orjson.dumps(message))


def _end_below(pid: int) -> None:
    """Stop everything below ``pid`` until nothing new appears, then kill it all."""
    stopped: set[int] = set()
    with privileges.first_in_line():
        _signal(pid, signal.SIGSTOP)
        while found := set(started_processes.descendants(pid)) - stopped:
            _signal_all(found, signal.SIGSTOP)
            stopped |= found
        _signal_all(stopped, signal.SIGKILL)


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        _signal(pid, number)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def load_modules(names: Iterable[str]) -> dict[str, str]:
    """Import ``names``, and call what ``module:function`` names; returns why, where that cannot be done."""
    missing = {}
    for name in names:
        module, _, function = name.partition(":")
        try:
            loaded = importlib.import_module(module)
            if function:
                getattr(loaded, function)()
        except Exception as problem:  # noqa: BLE001 - a broken room must be reported, not end the zygote
            missing[name] = f"{type(problem).__name__}: {problem}"
    return missing


def _keep_only_standard_library() -> None:
    """Take everything but the standard library off ``sys.path``: packages of the daemon are not an agent's.

    What is loaded stays loaded, and modules below loaded packages (``agents.…``) are still found.
    """
    library = Path(os.__file__).parent
    inside = (library, library / "lib-dynload")
    sys.path[:] = [path for path in sys.path if Path(path) in inside or path.endswith(".zip")]
    sys.path_importer_cache.clear()
