"""The processes of a pool, their descent, and that none is left over."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from fixtures.kernel_features import offers_control_group

from agents.errors import WorkerDiedError, WorkerStartError
from agents.runtimes.python.pools.config import Limits
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.started_processes import children, descendants, is_worker_process
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox.privileges import first_in_line
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from agents.runtimes.python.sandbox.syscalls import anonymous_file
from agents.runtimes.python.worker.protocol import packet_pair
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home, is_gone, supervised, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
_SYS_NICE = 23

DAEMON = """
import asyncio, sys
from pathlib import Path
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home, until

async def main():
    supervisor = WorkerSupervisor(preload=(ROOM,), sandbox=sys.argv[2])
    await supervisor.start()
    pool = supervisor.pool("a", Home(Path(sys.argv[1])).plan())
    for op, body in (("spin", {}), ("sleep", {}), ("shell", {"command": "sleep 1000"})):
        asyncio.ensure_future(pool.request(op, body, timeout=600))
    await until(lambda: len(pool.stats()["pids"]) > 1)
    print(supervisor.zygote_pid, *pool.stats()["pids"], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def runs(pid: int, command: str) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:  # it is gone
        return False
    return " ".join(words).strip() == command


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK, NONE])
async def any_kind(request: pytest.FixtureRequest, home: Home) -> AsyncIterator[WorkerSupervisor]:
    async with supervised(request.param) as made:
        yield made


@pytest.mark.parametrize("kind", [MOUNT_NAMESPACE, NONE])
async def test_when_the_daemon_is_killed_nothing_of_it_is_left(home: Home, kind: str) -> None:
    daemon = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        DAEMON,
        str(home.path),
        kind,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[5],
    )
    assert daemon.stdout is not None
    pids = [int(word) for word in (await asyncio.wait_for(daemon.stdout.readline(), 100)).split()]
    assert len(pids) >= 3
    await until(lambda: any(runs(pid, "sleep 1000") for pid in descendants(pids[0])))
    everything = {*pids, *descendants(pids[0])}
    assert not any(is_gone(pid) for pid in pids)
    daemon.kill()
    await daemon.wait()
    await until(lambda: all(is_gone(pid) for pid in everything))


async def test_closing_leaves_nothing(any_kind: WorkerSupervisor, home: Home) -> None:
    pool = any_kind.pool("a", home.plan())
    command = "(setsid sleep 1000 &); nohup sleep 1000 & setsid sleep 1000"
    waiting = asyncio.create_task(pool.request("shell", {"command": command}, timeout=100))
    zygote = any_kind.zygote_pid
    await until(lambda: len(descendants(zygote)) >= 4)
    everything = [zygote, *descendants(zygote)]
    await any_kind.close()
    await asyncio.gather(waiting, return_exceptions=True)
    await until(lambda: all(is_gone(pid) for pid in everything))


async def test_what_a_worker_left_running_ends_with_it(any_kind: WorkerSupervisor, home: Home) -> None:
    pool = any_kind.pool("a", home.plan(max_workers=1))
    for code in ("time.sleep(1000)", "os.setsid(); os.fork(); time.sleep(1000)"):
        await pool.request("whoami", {}, timeout=100)
        await until(lambda: len(pool.stats()["pids"]) == 1)
        (pid,) = pool.stats()["pids"]
        await pool.request("orphan", {"code": code}, timeout=100)
        await until(lambda pid=pid: is_gone(pid))
        after = await pool.request("whoami", {}, timeout=100)
        assert after["count"] == 1, "the same worker went on"
    zygote = any_kind.zygote()
    await until(lambda: set(children(zygote.pid)) <= {*pool.stats()["pids"], zygote.helper})


async def test_a_fork_bomb_ends_in_every_kind_of_sandbox(any_kind: WorkerSupervisor, home: Home) -> None:
    pool = any_kind.pool("a", home.plan(max_workers=1, limits=Limits(processes=40)))
    zygote = any_kind.zygote()
    for patient in (True, False):
        with pytest.raises((WorkerDiedError, AgentRaisedError)) as caught:
            await pool.request("bomb", {"patient": patient}, timeout=60)
        if patient:
            assert "processes and was stopped" in str(caught.value)
        assert await pool.request("echo", {"n": 1}, timeout=100) == {"n": 1}
        await until(lambda: _living(zygote.pid) <= {*pool.stats()["pids"], zygote.helper})


def test_ending_many_processes_gets_priority_and_returns_it() -> None:
    rights = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with pytest.raises(ZeroDivisionError), first_in_line():
        assert os.getpriority(os.PRIO_PROCESS, 0) == (-20 if int(rights, 16) >> _SYS_NICE & 1 else before)
        raise ZeroDivisionError
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


async def test_workers_and_what_they_start_are_recognised(any_kind: WorkerSupervisor, home: Home) -> None:
    """As the control socket does: by the process at the other end of a connection."""
    zygote = any_kind.zygote_pid
    pool = any_kind.pool("a", home.plan())
    where = home.workspace / "control"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(os.path.relpath(where))
        door.listen()
        door.setblocking(False)
        call = "s = socket.socket(socket.AF_UNIX); s.connect('control'); s.send(b'x'); s.recv(1)"
        loop = asyncio.get_running_loop()
        waiting = [asyncio.create_task(pool.request("run", {"code": call}, timeout=100))]
        inside = textwrap.indent(call, "    ")
        for start in ("", "    os.setsid()\n    if os.fork(): os._exit(0)\n"):
            code = f"if os.fork() == 0:\n{start}{inside}\n    os._exit(0)\nimport time; time.sleep(1)"
            waiting.append(asyncio.create_task(pool.request("run", {"code": code}, timeout=100)))
        for _ in range(3):
            connection, _ = await loop.sock_accept(door)
            with connection:
                await loop.sock_recv(connection, 1)
                credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                assert is_worker_process(int.from_bytes(credentials[:4], sys.byteorder), zygote)
        await asyncio.gather(*waiting)
    assert is_worker_process(zygote, zygote)
    assert all(is_worker_process(pid, zygote) for pid in pool.stats()["pids"])
    assert not is_worker_process(os.getpid(), zygote)
    assert not is_worker_process(os.getppid(), zygote)
    with subprocess.Popen(["sleep", "100"]) as own:
        assert not is_worker_process(own.pid, zygote)
        own.kill()
    assert is_worker_process(own.pid, zygote), "a process that is gone proves nothing"


_ENDED_ORPHAN = """
import os, time
child = os.fork()
if not child:
    if not os.fork():
        Path("ran").touch()
    os._exit(0)
os.waitpid(child, 0)
while not Path("ran").exists():
    time.sleep(0.01)
time.sleep(0.1)
"""


async def test_ended_orphans_are_collected(supervisor: WorkerSupervisor, home: Home) -> None:
    """By the worker that adopted them, between requests, some time after they ended."""
    pool = supervisor.pool("a", home.plan(max_workers=1))
    impatient = "import agents.runtimes.python.worker.worker_main as orphans; orphans.SECONDS = 0.05"
    await pool.request("run", {"code": impatient}, timeout=100)
    await pool.request("run", {"code": _ENDED_ORPHAN}, timeout=100)
    (pid,) = pool.stats()["pids"]
    while children(pid):
        await pool.request("echo", {}, timeout=100)
        await asyncio.sleep(0.01)


async def test_a_crowd_of_ended_children_does_not_use_up_the_limit(
    supervisor: WorkerSupervisor, home: Home
) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=1, limits=Limits(processes=40)))
    for _ in range(3):
        forking = "for _ in range(30):\n    if os.fork() == 0: os._exit(0)"
        await pool.request("run", {"code": forking}, timeout=100)
        await until(lambda: not _living(pool.stats()["pids"][0]))
        with pytest.raises(AgentRaisedError, match="enough"):
            await pool.request("run", {"code": "raise ValueError('enough')"}, timeout=20)


async def test_an_agents_own_child_keeps_its_exit_status(supervisor: WorkerSupervisor, home: Home) -> None:
    pool = supervisor.pool("a", home.plan(max_workers=1))
    start = (
        "import subprocess, sys; sys.kept = subprocess.Popen(['sh', '-c', 'exit 5'])\n"
        "os.waitid(os.P_PID, sys.kept.pid, os.WEXITED | os.WNOWAIT)"  # what still runs would be ended
    )
    await pool.request("run", {"code": start}, timeout=100)
    for _ in range(20):
        with pytest.raises(AgentRaisedError):
            await pool.request("run", {"code": "raise ValueError"}, timeout=20)
    told = await pool.request("run", {"code": "import sys; answer = sys.kept.wait()"}, timeout=100)
    assert told == 5


def test_a_zygote_with_more_than_one_thread_refuses_to_fork(tmp_path: Path, home: Home) -> None:
    module = tmp_path / "threaded_room.py"
    module.write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from agents.runtimes.python.worker.zygote import main; main(int(sys.argv[1]))"
    )
    ours, theirs = packet_pair()
    with (
        ours,
        theirs,
        subprocess.Popen(
            [sys.executable, "-c", program, str(theirs.fileno())], pass_fds=[theirs.fileno()]
        ) as zygote,
    ):
        first = {
            "parent": os.getpid(),
            "follow": True,
            "preload": ["threaded_room"],
            "sandbox": "none",
            "ceiling": 100,
            "homes": [],
            "programs": [],
            "may_read": [],
            "sockets": [],
        }
        ours.send(orjson.dumps(first))
        ready = orjson.loads(ours.recv(65536))
        assert ready["missing"] == {}
        plan = anonymous_file(home.plan().encoded())
        socket.send_fds(ours, [orjson.dumps({"spawn": 1})], [plan, 0, 0, 0])
        os.close(plan)
        told = orjson.loads(ours.recv(65536))
        assert told == {"refused": 1, "why": "the zygote has more than one thread and must not fork"}
        zygote.kill()


async def test_a_zygote_that_cannot_start_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    supervisor = WorkerSupervisor(preload=(ROOM,))
    pool = supervisor.pool("a", home.plan())
    with pytest.raises(WorkerStartError):
        await pool.request("echo", {}, timeout=20)
    monkeypatch.undo()
    assert (await pool.request("echo", {}, timeout=100)) == {}
    await supervisor.close()


async def test_missing_host_module_is_reported_at_preload(home: Home) -> None:
    supervisor = WorkerSupervisor(preload=("agents.nowhere", ROOM))
    await supervisor.start()
    assert "agents.nowhere" in supervisor.sandbox_report()["missing"]
    assert await supervisor.pool("a", home.plan()).request("echo", {"n": 1}, timeout=100) == {"n": 1}
    await supervisor.close()


def test_the_control_group_holds_back_a_fork_bomb() -> None:
    program = """
import os, sys
from agents.runtimes.python.sandbox.cgroup_limit import impose
why = impose(20)
if why:
    print(why); os._exit(3)
made = []
try:
    while len(made) < 100:
        child = os.fork()
        if child == 0:
            os.read(0, 1); os._exit(0)
        made.append(child)
except BlockingIOError:
    pass
print(len(made), flush=True)
"""
    done = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    out, _ = done.communicate(timeout=100)
    if not offers_control_group("pids"):
        pytest.skip(out)
    assert int(out) == 19
    groups = list(Path("/sys/fs/cgroup").rglob(f"rappd-workers-{done.pid}"))
    assert groups
    after = subprocess.run(
        [sys.executable, "-c", "from agents.runtimes.python.sandbox.cgroup_limit import clear; clear()"],
        check=True,
    )
    assert after.returncode == 0
    assert not any(group.exists() for group in groups), "groups of ended zygotes are removed"


def test_a_crowd_that_ended_is_looked_through_once() -> None:
    """Once for each of it took half a minute after a few hundred. Apart, for it collects every child there is."""
    program = """
import os, time
from types import SimpleNamespace
from agents.runtimes.python.worker import zygote
for _ in range(40):
    if os.fork() == 0:
        os._exit(0)
time.sleep(0.3)
looked, told, children = [], [], zygote.started_processes.children
zygote.started_processes.children = lambda pid: looked.append(pid) or children(pid)
made = object.__new__(zygote.Zygote)
made._workers = {children(os.getpid())[0]}
made._spawner = SimpleNamespace(sandbox=SimpleNamespace(own_processes=False))
made._groups, made._why = None, {}
made._watch = SimpleNamespace(remove=lambda pid, killed: "")
made._send = told.append
made._reap()
print(len(looked), len(told), len(children(os.getpid())), len(made._workers))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "0", "0"]


def test_processes_of_ended_and_unknown_numbers() -> None:
    assert is_worker_process(1 << 22, os.getpid())
    assert not is_worker_process(1, os.getpid())
    assert descendants(1 << 22) == []


def _living(above: int) -> set[int]:
    return {pid for pid in descendants(above) if not is_gone(pid)}
