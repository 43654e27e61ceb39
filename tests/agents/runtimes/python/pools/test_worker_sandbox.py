"""Things that a worker cannot read, write or reach, in each sandbox that this machine has."""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home, supervised

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="Linux shuts workers in"),
]
PROJECT = Path(__file__).parents[5]


OLD_KERNEL = "mount namespace before Linux 5.12"


@pytest.fixture(params=[MOUNT_NAMESPACE, OLD_KERNEL, LANDLOCK])
async def shut_in(request: pytest.FixtureRequest, home: Home) -> AsyncIterator[WorkerSupervisor]:
    old = ("tests.agents.runtimes.python.pools.old_kernel",) if request.param == OLD_KERNEL else ()
    kind = MOUNT_NAMESPACE if old else request.param
    async with supervised(kind, *old) as made:
        yield made


@pytest.fixture
def kind(shut_in: WorkerSupervisor) -> str:
    return str(shut_in.sandbox_report()["kind"])


@pytest.fixture
def pool(shut_in: WorkerSupervisor, home: Home) -> WorkerPool:
    return shut_in.pool("a", home.plan())


async def run(pool: WorkerPool, code: str) -> object:
    """The value of ``answer`` after ``code``, or the name of what it raised."""
    wrapped = "\n".join(f"    {line}" for line in code.splitlines())
    guarded = f"try:\n{wrapped}\nexcept Exception as problem:\n    answer = type(problem).__name__"
    return await pool.request("run", {"code": guarded}, timeout=100)


async def shell(pool: WorkerPool, command: str) -> str:
    told = await pool.request("shell", {"command": command}, timeout=100)
    return str(told["out"] + told["err"])


async def test_everything_in_the_home_but_the_workspace_is_closed(pool: WorkerPool, home: Home) -> None:
    for secret in home.secrets:
        assert await run(pool, f"answer = open({str(secret)!r}).read()") in (
            "FileNotFoundError",
            "PermissionError",
        )
        assert "a secret" not in await shell(pool, f"cat {secret}")
        assert await run(pool, f"answer = open({str(secret)!r}, 'w').write('x')") != 1
    assert "a secret" not in await shell(pool, f"grep -r secret {home.path}")
    for secret in home.secrets:
        assert secret.read_text() == "a secret"


async def test_the_workspace_is_the_workers_to_read_and_write(pool: WorkerPool, home: Home) -> None:
    (home.workspace / "soul.md").write_text("kind")
    assert await run(pool, "answer = open('soul.md').read()") == "kind"
    assert await run(pool, "os.makedirs('x/y'); answer = open('x/y/z', 'w').write('new')") == 3
    assert await run(
        pool, "os.rename('x/y/z', 'z'); os.remove('soul.md'); answer = sorted(os.listdir('.'))"
    ) == [
        "x",
        "z",
    ]
    assert (home.workspace / "z").read_text() == "new"
    assert not (home.workspace / "soul.md").exists()


async def test_the_home_can_not_be_written_or_listed(pool: WorkerPool, home: Home, kind: str) -> None:
    for path in (home.path / "new", home.path / "twins" / "new", home.path / "keys" / "new"):
        assert await run(pool, f"answer = open({str(path)!r}, 'w').write('x')") != 1
        assert not path.exists()
    listed = await run(pool, f"answer = os.listdir({str(home.path)!r})")
    assert listed == (["twins"] if kind == MOUNT_NAMESPACE else "PermissionError")


async def test_the_rest_of_the_machine_is_there(pool: WorkerPool, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    assert await run(pool, "answer = open('/etc/hostname').read() is not None") is True
    assert await run(pool, "import subprocess; answer = subprocess.run(['true']).returncode") == 0
    assert await run(pool, "open('/dev/null', 'w').write('x'); answer = len(os.urandom(3))") == 3
    assert await run(pool, "s = socket.create_server(('127.0.0.1', 0)); answer = s.fileno() > 0") is True
    assert await run(pool, f"answer = open({str(tmp_path / 'outside' / 'f')!r}, 'w').write('x')") == 1


async def test_the_program_itself_can_be_read_and_not_changed(pool: WorkerPool) -> None:
    victim = PROJECT / "agents" / "runtimes" / "new.py"
    assert await run(pool, f"answer = open({str(victim)!r}, 'w').write('x')") in (
        "OSError",
        "PermissionError",
    )
    assert not victim.exists()
    assert (
        await run(pool, f"answer = len(open({str(PROJECT / 'agents' / 'errors.py')!r}).read()) > 0") is True
    )


async def test_no_way_around_through_proc(pool: WorkerPool, home: Home) -> None:
    key = home.path / "keys" / "identity"
    daemon = os.getpid()
    for way in (
        f"/proc/{daemon}/root{key}",
        f"/proc/{daemon}/environ",
        f"/proc/{daemon}/mem",
        f"/proc/{daemon}/cwd/pyproject.toml",
        f"/proc/{os.getppid()}/root{key}",
        f"/proc/1/root{key}",
        f"/proc/self/root{key}",
        "/proc/self/cwd/../../keys/identity",
    ):
        told = await shell(pool, f"head -c 100 {way}")
        assert "head:" in told, way
        assert "a secret" not in told
    zygote = await shell(pool, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "PYTEST_CURRENT_TEST" not in zygote


async def test_no_way_around_by_changing_mounts(pool: WorkerPool, home: Home) -> None:
    key = home.path / "keys" / "identity"
    for way in (
        f"umount {home.path}",
        f"umount -l {home.path}",
        "mount --bind / /mnt",
        "mount -t tmpfs none /mnt",
        f"unshare --mount umount -l {home.path}",
        f"unshare --user --map-root-user --mount sh -c 'umount -l {home.path}; cat {key}'",
        f"unshare --user --map-root-user --mount --pid --fork sh -c 'mount -t proc p /proc; cat /proc/*/root{key}'",
        f"nsenter --mount=/proc/{os.getpid()}/ns/mnt cat {key}",
        f"nsenter --mount=/proc/1/ns/mnt cat {key}",
    ):
        assert "a secret" not in await shell(pool, f"{way}; cat {key}"), way
    assert key.read_text() == "a secret"


async def test_nothing_dangerous_is_left_in_the_worker(pool: WorkerPool) -> None:
    status = await shell(pool, "cat /proc/self/status")
    sets = {
        line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Cap")
    }
    forbidden = sum(1 << number for number in (2, 16, 17, 19, 21, 22, 24, 27, 38, 39, 40))
    assert all(value & forbidden == 0 for name, value in sets.items())
    assert "NoNewPrivs:\t1" in status
    assert await run(pool, "answer = ctypes.CDLL(None).ptrace(16, os.getppid() or 1, 0, 0)") != 0


async def test_neither_child_nor_thread_is_outside(pool: WorkerPool, home: Home) -> None:
    key = str(home.path / "keys" / "identity")
    reading = f"print(open({key!r}).read())"
    code = f"""
import subprocess, sys, threading
said = []
def look():
    try:
        said.append(open({key!r}).read())
    except OSError as problem:
        said.append('closed')
thread = threading.Thread(target=look); thread.start(); thread.join()
child = subprocess.run([sys.executable, '-c', {reading!r}], capture_output=True, text=True)
answer = [said, child.stdout]
"""
    assert await pool.request("run", {"code": code}, timeout=100) == [["closed"], ""]


async def test_workers_cannot_signal_the_daemon(pool: WorkerPool) -> None:
    for pid in (os.getpid(), os.getppid()):
        assert await run(pool, f"os.kill({pid}, 0); answer = 'reached'") in (
            "ProcessLookupError",
            "PermissionError",
        )


@pytest.mark.needs_root
async def test_a_root_worker_reads_no_disk_and_sets_no_kernel_setting(pool: WorkerPool, kind: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    disks = [entry.path for entry in os.scandir("/dev") if _is_disk(entry)]
    for disk in disks:
        answer = await run(pool, f"answer = len(open({disk!r}, 'rb').read(16))")
        assert answer in (0, "PermissionError"), disk
    if kind == MOUNT_NAMESPACE:
        for setting in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/pid_max", "/sys/kernel/profiling"):
            assert await run(pool, f"answer = open({setting!r}, 'r+').write('1')") in (
                "OSError",
                "FileNotFoundError",
            )
    assert "Operation not permitted" in await shell(pool, "mknod disk b 254 0")


async def test_a_workspace_outside_the_home_hides_the_home_too(
    shut_in: WorkerSupervisor, home: Home, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    plan = home.plan()
    pool = shut_in.pool("x", type(plan)(elsewhere, env=plan.env, private_root=home.path, room=plan.room))
    assert await run(pool, "answer = open('own', 'w').write('x')") == 1
    assert "a secret" not in await shell(pool, f"cat {home.path}/keys/identity {home.workspace}/../b/soul.md")


async def test_links_to_the_home_do_not_open_it(
    shut_in: WorkerSupervisor, home: Home, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(home.path)
    plan = home.plan()
    linked = type(plan)(link / "twins" / "a", env=plan.env, private_root=link, room=plan.room)
    pool = shut_in.pool("x", linked)
    assert await run(pool, "answer = open('own', 'w').write('x')") == 1
    for path in (link, home.path):
        assert "a secret" not in await shell(pool, f"cat {path}/keys/identity")


async def test_a_plan_without_private_root_hides_nothing(shut_in: WorkerSupervisor, home: Home) -> None:
    pool = shut_in.pool("x", home.plan(private_root=None))
    assert await run(pool, f"answer = open({str(home.secrets[0])!r}).read()") == "a secret"


async def test_without_a_sandbox_the_report_says_so(home: Home) -> None:
    supervisor = WorkerSupervisor(preload=(ROOM,), sandbox=NONE)
    try:
        assert supervisor.sandbox_report()["kind"] == "unknown"
        await supervisor.start()
        report = supervisor.sandbox_report()
        assert report["kind"] == NONE
        assert "can read the home folder" in report["detail"]
        pool = supervisor.pool("a", home.plan())
        assert await run(pool, f"answer = open({str(home.secrets[0])!r}).read()") == "a secret"
    finally:
        await supervisor.close()


def _is_disk(entry: os.DirEntry[str]) -> bool:
    return stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)


async def test_terminals_of_the_account_cannot_be_reached(pool: WorkerPool, kind: str) -> None:
    """A terminal multiplexer starts programs for everybody who can connect to its socket."""
    if kind != MOUNT_NAMESPACE:
        pytest.skip("Landlock knows no rule for sockets")
    assert await run(pool, "answer = 'running'") == "running"
    folder = Path(f"/tmp/tmux-{os.getuid()}")
    path = folder / f"rappd-probe-{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))  # later than the worker came
            server.listen()
            with socket.socket(socket.AF_UNIX) as outside:
                outside.connect(str(path))
            code = f"socket.socket(socket.AF_UNIX).connect({str(path)!r})\nanswer = 'connected'"
            assert await run(pool, f"import socket\n{code}") in ("FileNotFoundError", "PermissionError")
    finally:
        path.unlink(missing_ok=True)


async def test_terminals_that_the_owner_types_at_are_not_opened(pool: WorkerPool, kind: str) -> None:
    if kind != MOUNT_NAMESPACE:
        pytest.skip("Landlock cannot tell an agent's own terminals from these")
    ours, theirs = os.openpty()
    try:
        path = os.ttyname(theirs)
        with Path(path).open("wb", buffering=0) as control:
            assert control.write(b"x") == 1, "the positive control"
        assert await run(pool, f"answer = open({path!r}, 'wb', buffering=0).write(b'typed')") != 5
        own = "ours, theirs = os.openpty(); os.write(theirs, b'own'); answer = os.read(ours, 9).decode()"
        assert await run(pool, own) == "own"
    finally:
        os.close(ours)
        os.close(theirs)
