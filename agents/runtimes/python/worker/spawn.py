"""From a fresh fork of the zygote to a worker that serves: the steps in between."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from agents.runtimes.python.network import own_network
from agents.runtimes.python.sandbox import private_paths, privileges, process_limits
from agents.runtimes.python.sandbox.confinement import confined
from agents.runtimes.python.sandbox.namespaces import DATA_FOLDERS, MountNamespace
from agents.runtimes.python.sandbox.needs import PROXIES, Confines, Needs
from agents.runtimes.python.sandbox.protected_paths import MachinePaths
from agents.runtimes.python.sandbox.sandbox import Sandbox
from agents.runtimes.python.sandbox.syscalls import LINUX
from agents.runtimes.python.worker import use_notes
from agents.runtimes.python.worker.channel import WorkerChannel, use_channel
from agents.runtimes.python.worker.protocol import READY, REFUSED
from agents.runtimes.python.worker.worker_main import describe, serve

# Idle threads that numeric libraries start when they are imported would count as left behind by a call.
_THREADS_OF_LIBRARIES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """Descriptors that the daemon hands over for one worker."""

    plan: int
    stream: int
    output: int
    queue: int = -1  # where requests come from; -1 where they come over the stream
    network: int = -1  # where its own network's way out is handed over; -1 where its needs have no hosts

    def read_plan(self) -> dict[str, Any]:
        """The plan that its descriptor holds."""
        plan: dict[str, Any] = orjson.loads(os.pread(self.plan, os.fstat(self.plan).st_size, 0))
        return plan


@dataclass(frozen=True, slots=True)
class Spawner:
    """State of the zygote that every worker needs.

    ``life`` is the reading end of a pipe whose other end, ``alive``, only the zygote keeps open.
    """

    sandbox: Sandbox
    machine: MachinePaths
    life: int
    alive: int


def view_of(plan: dict[str, Any], read_only: list[str], spawner: Spawner) -> MountNamespace:
    """The paths that a worker of this plan may see and write; made before the fork.

    ``read_only`` are those of its read-only paths that exist.
    """
    machine = spawner.machine
    linked = [os.path.realpath(path) for path in read_only if os.path.islink(path)]
    view = MountNamespace(
        plan["workspace"],
        plan["private_root"] or None,
        machine.programs,
        machine.writable,
        (*machine.read_only, *read_only, *filter(os.path.exists, linked), *machine.private.shown),
        machine.sockets,
        plan["limits"]["processes"] if spawner.sandbox.bounded else None,
        plan["limits"]["memory"],
        private=machine.private.hidden,
    )
    needs = needs_of(plan)
    if needs is None:
        return view
    with contextlib.suppress(OSError):  # it may be there, or the disk is full
        os.mkdir(f"{view.workspace}/{DATA_FOLDERS[0]}")
    confines = Confines(needs, plan["private"], tuple(plan["shown"]), tuple(plan["imported"]))
    return confined(view, confines, machine, plan["env"])


def serve_worker(
    order: SpawnRequest,
    spawner: Spawner,
    plan: dict[str, Any],
    view: MountNamespace,
    shared_account: int | None,
) -> None:
    """Become the worker of ``order`` and serve until its stream ends; never goes back to the zygote."""
    signal.set_wakeup_fd(-1)
    os.close(spawner.alive)
    _end_with_zygote(spawner.life)
    os.setsid()
    _take_over_output(order.output)
    _close_all_but({0, 1, 2, order.stream, order.queue, order.network, spawner.life})
    queue = socket.socket(fileno=order.queue) if order.queue >= 0 else None
    channel = WorkerChannel(socket.socket(fileno=order.stream), queue)
    os.register_at_fork(after_in_child=channel.close)  # it is the worker's alone
    try:
        handle = _prepare(plan, spawner.sandbox, view, shared_account, order.network)
    except BaseException as problem:  # noqa: BLE001 - a room may fail in any way, and the daemon must hear it
        channel.send(orjson.dumps((REFUSED, 0, describe(problem, plan["workspace"]))))
        _flush()
        os._exit(1)
    use_channel(channel)
    channel.send(orjson.dumps((READY, 0, None)))
    serve(channel, handle, plan["workspace"])
    _flush()
    os._exit(0)


def needs_of(plan: dict[str, Any]) -> Needs | None:
    """The needs in an encoded plan."""
    return None if plan["needs"] is None else msgspec.convert(plan["needs"], Needs)


def _prepare(
    plan: dict[str, Any], sandbox: Sandbox, view: MountNamespace, shared_account: int | None, network: int
) -> Any:
    os.environ.clear()
    for name, value in plan[
        "env"
    ].items():  # update() asks every kind of mapping there is, and unshares them all
        os.environ[name] = value
    for name in _THREADS_OF_LIBRARIES:
        os.environ.setdefault(name, "1")
    needs = needs_of(plan)
    if network >= 0:
        for name in [
            one for one in os.environ if one.lower() in PROXIES
        ]:  # they may have the owner's password
            del os.environ[name], plan["env"][name]
        os.environ.update(own_network.environment())
        own_network.hand_over(own_network.listen(), network)
    if needs is not None and not sandbox.own_files:
        tempfile.tempdir = os.environ["TMPDIR"] = f"{plan['workspace']}/{DATA_FOLDERS[0]}"
    time.tzset()
    process_limits.apply(plan["limits"], shared_account=shared_account)
    privileges.let_the_daemon_go_on()
    if LINUX and not sandbox.own_processes:
        privileges.adopt_orphans()
    sandbox.enter(view, sandbox.sockets(needs))
    private_paths.remember(view.access().hidden)
    if LINUX and (plan["trusted"] or not sandbox.hides_workers):
        privileges.protect_process()  # a trusted worker's from forks of it, too, that run files of the workspace
    privileges.die_with_parent()  # losing privileges may have undone it
    os.chdir(plan["workspace"])
    gc.enable()
    module, _, name = plan["room"].partition(":")
    room = getattr(importlib.import_module(module), name)(plan["settings"])
    if needs is not None:
        use_notes.watch(view, needs)
    return room.handle


def _end_with_zygote(life: int) -> None:
    privileges.die_with_parent()
    watch = select.poll()
    watch.register(life, 0)
    if watch.poll(0):
        os._exit(0)  # the zygote ended before the line above
    if not LINUX:
        threading.Thread(target=_wait_for_end, args=(life,), daemon=True).start()


def _wait_for_end(life: int) -> None:
    os.read(life, 1)
    os._exit(0)


def _take_over_output(output: int) -> None:
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 - stays
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _close_all_but(kept: set[int]) -> None:
    for entry in list(os.scandir("/proc/self/fd" if LINUX else "/dev/fd")):
        if int(entry.name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(int(entry.name))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed by agent code, or nobody reads any more
            stream.flush()
