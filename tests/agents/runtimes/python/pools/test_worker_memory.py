"""Memory of a worker and of all it starts is limited, however it is taken."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.errors import WorkerDiedError
from agents.runtimes.python.pools.config import Limits
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox import cgroup_limit
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from tests.agents.runtimes.python.pools.trial_home import Home, supervised, until
from tests.fixtures.kernel_features import (  # also in a process without fixtures on its path
    offers_control_group,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux limits the memory of workers")

MB = 1 << 20
LIMIT = 200 * MB  # of addresses too, so that no single process gets there by its own memory
UNNAMED = """
held = [os.memfd_create(f"part{number}") for number in range(20)]
for fd in held:
    for _ in range(SIZE // 20):
        os.write(fd, bytes(1 << 20))
import time; time.sleep(3); answer = "kept"
"""
CHILDREN = """
import select, time
children = []
reading, writing = os.pipe()
for _ in range(8):
    child = os.fork()
    if child == 0:
        taken = bytearray(SIZE // 8 << 20)
        taken[::4096] = bytes(len(taken[::4096])).replace(b"\\0", b"x")
        os.write(writing, b".")
        time.sleep(600)
        os._exit(0)
    children.append(child)
taken = 0
while taken < 8 and select.select([reading], [], [], 60)[0]:
    taken += len(os.read(reading, 8))
time.sleep(3)
for child in children:
    os.kill(child, 9); os.waitpid(child, 0)
answer = "kept"
"""
SHARED = """
with open("/dev/shm/part", "wb") as file:
    for _ in range(SIZE):
        file.write(bytes(1 << 20))
import time; time.sleep(3); answer = "kept"
"""


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK, NONE])
async def limited(request: pytest.FixtureRequest) -> AsyncIterator[WorkerSupervisor]:
    async with supervised(request.param) as made:
        yield made


async def ask(supervisor: WorkerSupervisor, home: Home, code: str, size: int) -> str:
    """The fate of code that takes ``size`` MB, in a worker that may take ``LIMIT``."""
    pool = supervisor.pool("a", home.plan(limits=Limits(memory=LIMIT)))
    try:
        return str(await pool.request("run", {"code": code.replace("SIZE", str(size))}, timeout=100))
    except WorkerDiedError as gone:
        return str(gone)


@pytest.mark.parametrize("code", [UNNAMED, CHILDREN, SHARED], ids=["memfd", "children", "shared memory"])
async def test_too_much_memory_ends_the_call_in_words(
    limited: WorkerSupervisor, home: Home, code: str
) -> None:
    if not offers_control_group("memory"):
        pytest.skip("no control group for memory here")
    report = limited.sandbox_report()
    assert "control group" in report["memory"]
    neighbour = limited.pool("b", home.plan())
    before = await neighbour.request("whoami", {}, timeout=100)
    assert await ask(limited, home, code, 60) == "kept"
    answer = await ask(limited, home, code, 400)
    refused = code == SHARED and "No space left" in answer  # a private /dev/shm is never larger
    assert refused or answer == "The worker took more memory than 200 MB and was stopped", answer
    assert await ask(limited, home, code, 60) == "kept"
    assert (await neighbour.request("whoami", {}, timeout=100))["pid"] == before["pid"]


async def test_groups_are_removed_with_their_workers(limited: WorkerSupervisor, home: Home) -> None:
    if not offers_control_group("memory"):
        pytest.skip("no control group for memory here")
    parent = cgroup_limit._writable_parent("memory")
    assert parent is not None
    pool = limited.pool("a", home.plan())
    await pool.request("echo", {}, timeout=100)
    mine = f"rappd-workers-{limited.zygote_pid}-*"
    await until(lambda: len(list(parent.glob(mine))) == 1)
    await limited.remove("a")
    await until(lambda: not list(parent.glob(mine)))


def test_version_2_groups_stand_beside_the_own_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With folders in place of the kernel's: a group with processes in it cannot have groups below."""
    own = tmp_path / "app.slice" / "rappd.service"
    own.mkdir(parents=True)
    (own / "cgroup.subtree_control").write_text("")
    (own.parent / "cgroup.subtree_control").write_text("memory pids\n")
    listed = {
        "/proc/self/mountinfo": f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n",
        "/proc/self/cgroup": "0::/app.slice/rappd.service\n",
    }
    real = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, *more: listed.get(str(path)) or real(path, *more))
    assert cgroup_limit._writable_parent("memory") == own.parent


def test_version_2_limits_swap_and_processes_too(tmp_path: Path) -> None:
    group = tmp_path / "group"
    group.mkdir()
    (group / "memory.max").touch()
    cgroup_limit._limit(group, "1000", "40")
    found = {file.name: file.read_text() for file in group.iterdir()}
    expected = {"memory.max": "1000", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "40"}
    assert found == expected
