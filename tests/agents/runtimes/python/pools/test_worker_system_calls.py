"""System calls by which a worker would reach the daemon or what it hears, in each kind of sandbox.

As root, since root is who may do most of this; ``test_worker_as_nobody`` has the ordinary account.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import warm_zygote

from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox import seccomp, syscalls
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home

pytestmark = [
    pytest.mark.skipif(seccomp.missing() != "", reason=seccomp.missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.needs_root,
]
WITHOUT_USER_NAMESPACES = "mount namespace without user namespaces"


@pytest.fixture(params=[MOUNT_NAMESPACE, WITHOUT_USER_NAMESPACES, LANDLOCK, NONE])
async def shut_in(request: pytest.FixtureRequest) -> AsyncIterator[WorkerSupervisor]:
    old = (
        ("tests.agents.runtimes.python.pools.no_user_namespaces",)
        if request.param == WITHOUT_USER_NAMESPACES
        else ()
    )
    kind = MOUNT_NAMESPACE if old else request.param
    made = WorkerSupervisor(preload=(*old, ROOM), sandbox=kind, launch=warm_zygote.launch)
    await made.start()
    assert made.sandbox_report()["kind"] == kind
    yield made
    await made.close()


@pytest.fixture
def pool(shut_in: WorkerSupervisor, home: Home) -> WorkerPool:
    return shut_in.pool("a", home.plan(max_workers=1))


BEGINNING = """
import ctypes, errno, json, mmap, os, resource, socket, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def attempt(deed):
    try:
        found = deed()
        return found if isinstance(found, int) and found else "reached"
    except OSError as problem:
        return errno.errorcode[problem.errno]

def call(number, *arguments):
    answer = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""


async def inside(pool: WorkerPool, code: str) -> Any:
    """``answer`` after ``code``, in the worker."""
    return await pool.request("run", {"code": BEGINNING + textwrap.dedent(code)}, timeout=100)


def outside(code: str) -> Any:
    """The same in an ordinary process of this account: what the attack does where nothing is closed."""
    program = f"{BEGINNING}{textwrap.dedent(code)}\nprint(json.dumps(answer))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


SOCKETS = """
    kinds = [
        (17, socket.SOCK_RAW, 0x300), (17, socket.SOCK_DGRAM, 0x300), (17 | 1 << 32, socket.SOCK_RAW, 0x300),
        (2, 10, 0x300), (2, socket.SOCK_RAW, socket.IPPROTO_ICMP), (2, socket.SOCK_RAW, socket.IPPROTO_TCP),
        (10, socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMPV6),
    ]
    number = {"x86_64": 41, "aarch64": 198, "riscv64": 198}[os.uname().machine]
    answer = [attempt(lambda: call(number, *kind)) for kind in kinds]
    answer.append(attempt(lambda: subprocess.run([sys.executable, "-c",
        "import socket; socket.socket(17, socket.SOCK_RAW, 0x300)"], capture_output=True).returncode))
"""


async def test_no_socket_reads_other_programs_packets(pool: WorkerPool) -> None:
    assert outside(SOCKETS) == ["reached"] * 8, "the positive control"
    assert await inside(pool, SOCKETS) == ["EPERM"] * 7 + [1]


async def test_operators_session_is_not_read_off_the_loopback(pool: WorkerPool) -> None:
    """The review's attack: a packet socket on ``lo``, then the operator's next request."""
    sniff = """
        tap = socket.socket(17, socket.SOCK_RAW, 0x300)
        tap.bind(("lo", 0))
        print("ready", flush=True)
        tap.settimeout(100)
        while b"x-rappd-proof" not in (packet := tap.recv(65536)):
            pass
        answer = "read"
    """
    program = f"{BEGINNING}{textwrap.dedent(sniff)}\nprint(answer, flush=True)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as thief:
        assert thief.stdout is not None
        assert thief.stdout.readline() == "ready\n"
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()) as page,
        ):
            page.sendall(b"POST /agents/run HTTP/1.1\r\nx-rappd-proof: secret\r\n\r\n")
            assert thief.stdout.readline() == "read\n", "the positive control"
    told = await pool.request(
        "run",
        {"code": f"try:\n{textwrap.indent(program, ' ')}\nexcept PermissionError: answer = 'refused'"},
        timeout=100,
    )
    assert told == "refused"


REACHING = """
    victim, ioprio_set = VICTIM, 251 if os.uname().machine == "x86_64" else 30
    answer = dict(
        limit=attempt(lambda: resource.prlimit(victim, resource.RLIMIT_NOFILE, (8, 8))),
        size=attempt(lambda: resource.prlimit(victim, resource.RLIMIT_FSIZE, (0, 0))),
        priority=attempt(lambda: os.setpriority(os.PRIO_PROCESS, victim, 19)),
        account=attempt(lambda: os.setpriority(os.PRIO_USER, 0, -20)),
        cores=attempt(lambda: os.sched_setaffinity(victim, {0})),
        scheduler=attempt(lambda: os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0))),
        disk=attempt(lambda: call(ioprio_set, 1, victim, 3 << 13)),
    )
"""


async def test_nothing_of_the_daemon_is_changed_by_its_number(
    pool: WorkerPool, shut_in: WorkerSupervisor
) -> None:
    """Limits, priority and cores of the daemon and of the zygote, of whom every worker depends."""
    alone = shut_in.sandbox_report()["kind"] == MOUNT_NAMESPACE
    # Programs of this account stand in for the daemon, which the attack would end.
    with subprocess.Popen(["sleep", "100"]) as other, subprocess.Popen(["sleep", "100"]) as daemon:
        try:
            own = REACHING.replace("os.PRIO_USER, 0, -20", "os.PRIO_PROCESS, 0, 19")
            control = outside(own.replace("VICTIM", str(other.pid)))
            assert set(control.values()) == {"reached"}, "the positive control"
            assert resource.prlimit(other.pid, resource.RLIMIT_NOFILE) == (8, 8)
            for victim in (daemon.pid, shut_in.zygote_pid):
                before = _state(victim)
                refused = await inside(pool, REACHING.replace("VICTIM", str(victim)))
                assert _state(victim) == before
                # Raising the priority of a process that is reached is denied by the kernel: EACCES. Own ones are.
                assert refused.pop("account") == ("EACCES" if alone else "EPERM")
                assert set(refused.values()) == {"ESRCH" if alone else "EPERM"}, refused
        finally:
            for program in (other, daemon):
                program.kill()


def _state(pid: int) -> tuple[Any, ...]:
    limits = [resource.prlimit(pid, kind) for kind in range(16)]
    return limits, os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid), os.sched_getscheduler(pid)


OWN = """
    def own():
        resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
        os.sched_setaffinity(0, os.sched_getaffinity(0))
        resource.prlimit(os.getppid() or 1, resource.RLIMIT_NOFILE) if os.getppid() else None
        os.sched_getaffinity(os.getpid())
    answer = attempt(own)
"""


async def test_own_limits_and_priority_can_be_changed(pool: WorkerPool) -> None:
    assert await inside(pool, OWN) == "reached"


INTERFACES = """
    table = {"x86_64": dict(keyctl=250, bpf=321, userfaultfd=323, perf=298, kcmp=312, ptrace=101, mount=165, pivot=155, handle=304, vm=310)}
    numbers = table.get(os.uname().machine) or dict(keyctl=219, bpf=280, userfaultfd=282, perf=241, kcmp=272, ptrace=117, mount=40,
        pivot=41, handle=265, vm=270)
    numbers |= dict(clone3=435, uring=425, uring_enter=426, uring_register=427, pidfd_getfd=438, madvise=440)
    numbers |= dict(open_tree=428, move_mount=429, fsopen=430, fsconfig=431, fsmount=432, fspick=433, setattr=442)
    answer = {name: attempt(lambda: call(number, 0, 0, 0, 0, 0, 0)) for name, number in numbers.items()}
"""
_UNKNOWN = {"keyctl", "bpf", "userfaultfd", "perf", "clone3", "uring", "uring_enter", "uring_register"}


async def test_kernel_interfaces_are_refused(pool: WorkerPool) -> None:
    found = await inside(pool, INTERFACES)
    assert found == {name: "ENOSYS" if name in _UNKNOWN else "EPERM" for name in found}
    control = outside(INTERFACES)
    assert {name for name in found if control[name] == found[name]} <= {"userfaultfd"}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the calls of a 32-bit process on x86-64")
async def test_calls_of_another_architecture_are_refused(pool: WorkerPool) -> None:
    """``int 0x80`` with socketcall's relative 359, socket(AF_PACKET, SOCK_RAW, 0)."""
    code = """
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        # push rbx; mov eax, 359; mov ebx, 17; mov ecx, 3; xor edx, edx; int 0x80; pop rbx; ret
        page.write(bytes.fromhex("53 b867010000 bb11000000 b903000000 31d2 cd80 5b c3"))
        run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        answer = run()
    """
    assert await inside(pool, code) == -38
    assert await inside(pool, "answer = attempt(lambda: call(0x40000000 | 41, 17, 3, 0))") == "ENOSYS"


async def test_own_user_namespace_gives_nothing_back(pool: WorkerPool, home: Home) -> None:
    """Browsers shut themselves in with one, so agents may have one; mounts and packets stay closed in it."""
    code = """
        def attack():
            unshared = libc.unshare(0x10000000 | 0x20000)
            if unshared:
                return ["no namespace"]
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                attempt(lambda: open(f"/proc/self/{name}", "w").write(text))
            mounted = attempt(lambda: libc.mount(b"none", b"/mnt", b"tmpfs", 0, None) and call(165))
            return [mounted, attempt(lambda: socket.socket(17, socket.SOCK_RAW, 0).close())]
        uid, gid = os.getuid(), os.getgid()
        out, into = os.pipe()
        if (child := os.fork()) == 0:
            try:
                os.write(into, json.dumps(attack()).encode())
            except BaseException as problem:
                os.write(into, json.dumps(repr(problem)).encode())
            os._exit(0)
        os.waitpid(child, 0)
        answer = json.loads(os.read(out, 1000))
    """
    assert await inside(pool, code) == ["EPERM", "EPERM"]


BECOMING = """
    answer = dict(
        owner=attempt(lambda: os.chown("own", 1234, 1234)),
        user=attempt(lambda: os.setuid(1234)),
        group=attempt(lambda: os.setgid(1234)),
        groups=attempt(lambda: os.setgroups([])),
        port=attempt(lambda: socket.create_server(("127.0.0.1", 997)).close()),
        network=attempt(lambda: subprocess.run(["ip", "link", "set", "lo", "mtu", "60000"], capture_output=True).returncode),
        name=attempt(lambda: socket.sethostname("taken")),
    )
"""


async def test_root_in_a_worker_is_no_other_account(pool: WorkerPool, home: Home) -> None:
    (home.workspace / "own").write_text("mine")
    found = await inside(pool, BECOMING)
    assert found.pop("network") in (1, 2)
    assert set(found.values()) <= {"EPERM", "EINVAL", "EACCES"}, found


async def test_workspace_of_another_account_is_read_and_written(
    shut_in: WorkerSupervisor, home: Home
) -> None:
    """``sudo rappd start`` in somebody's home: the folders are that account's, and closed to others."""
    note, memory = home.workspace / "note", home.workspace / ".brainstem_data" / "memory"
    memory.parent.mkdir()
    for path in (note, memory):
        path.write_text("theirs")
    for path in (home.path, *home.path.rglob("*")):
        os.chown(path, 1234, 1235)
        path.chmod(0o700 if path.is_dir() else 0o600)
    pool = shut_in.pool("a", home.plan(max_workers=1))
    code = """
        answer = [open("note").read(), open(".brainstem_data/memory", "r+").write("more"), open("new", "w").write("new")]
        os.mkdir(".deps"); os.rename("note", ".deps/note"); os.chmod(".deps/note", 0o640); os.utime(".deps/note", (1, 1))
    """
    kind = shut_in.sandbox_report()["kind"]
    if kind == LANDLOCK:  # there nothing new is made beside protected folders, their owner or not
        code = code.replace('os.mkdir(".deps"); os.rename("note", ".deps/note"); ', "").replace(
            ".deps/note", "note"
        )
    assert await inside(pool, code) == ["theirs", 4, 3]
    assert memory.read_text().startswith("more")


DEVICES = """
    def look(path, mode):
        with open(path, mode, buffering=0) as device:
            return len(device.read(16) or b"") if mode == "rb" else device.write(b"x")
    found = {}
    for folder, _, names in os.walk("/dev"):
        for name in names:
            path = f"{folder}/{name}"
            if os.path.islink(path) or folder.startswith(("/dev/pts", "/dev/shm")) or name in OPEN:
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
            except OSError:
                continue
            if os.fstat(descriptor).st_rdev:
                found[path] = os.fstat(descriptor).st_rdev
            os.close(descriptor)
    answer = sorted(found)
"""
_OPEN_DEVICES = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "fuse", "kvm"),
    *("ttyS0", "ttyS1", "ttyS2", "ttyS3", "renderD128", "card0"),
)


async def test_root_opens_no_device_of_others(pool: WorkerPool, shut_in: WorkerSupervisor) -> None:
    """Disks, memory, consoles, keyboards, tunnels: uid 0 owns them in every user namespace."""
    code = DEVICES.replace("OPEN", repr(_OPEN_DEVICES))
    assert {"/dev/vcs", "/dev/loop-control"} <= set(outside(code)) or len(outside(code)) > 5, (
        "the positive control"
    )
    found = await inside(pool, code)
    if shut_in.sandbox_report()["kind"] == NONE:
        assert found, "nothing is closed there, and nothing said to be"
    else:
        assert found == []
        assert (
            await inside(
                pool, 'answer = open("/dev/null", "w").write("x") + len(open("/dev/urandom", "rb").read(2))'
            )
            == 3
        )


async def test_root_writes_no_setting_of_the_kernel(pool: WorkerPool, shut_in: WorkerSupervisor) -> None:
    paths = [
        "/proc/sys/kernel/hostname",
        "/proc/sys/vm/swappiness",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
    ]
    paths += [
        "/sys/kernel/profiling",
        "/sys/kernel/mm/ksm/run",
        "/sys/fs/cgroup/cgroup.subtree_control",
        "/proc/mtrr",
    ]
    code = f"""
        answer = [path for path in {paths!r} if attempt(lambda: os.close(os.open(path, os.O_WRONLY))) == "reached"]
    """
    assert len(outside(code)) >= 4, "the positive control"
    found = await inside(pool, code)
    if shut_in.sandbox_report()["kind"] == MOUNT_NAMESPACE:
        found = [path for path in found if path != "/proc/sysrq-trigger"]  # an empty file stands there
    if shut_in.sandbox_report()["kind"] != NONE:
        assert found == []


async def test_session_keyring_of_the_daemon_is_not_handed_on(tmp_path: Path) -> None:
    """The keyring holds what a login put there, and every fork would come along with it."""
    told = tmp_path / "keyring"
    made = WorkerSupervisor(
        preload=("tests.agents.runtimes.python.pools.session_keyring",),
        environ={"PATH": os.defpath, "SESSION_KEYRING": str(told)},
    )
    await made.start()
    await made.close()
    assert int(told.read_text()) > 0
    assert int(told.read_text()) != syscalls.session_keyring()
