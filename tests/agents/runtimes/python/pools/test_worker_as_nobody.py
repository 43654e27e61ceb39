"""The same without root: user namespaces and Landlock, as on most machines.

Each test runs a program as the account ``nobody``. Where these tests run without root, all the others
here show it already.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.kernel_features import end_without
from fixtures.ordinary_account import NOBODY

from agents.runtimes.python.sandbox import landlock

BEGINNING = """
import asyncio, json, os, sys, time
from pathlib import Path
from agents.errors import WorkerDiedError
from agents.runtimes.python.pools.started_processes import descendants, is_worker_process
from agents.runtimes.python.sandbox.process_limits import processes_of_account
from agents.runtimes.python.pools.config import Limits
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home, is_gone, until

home, kind = Home(Path(sys.argv[1]) / "home").furnish(), sys.argv[2]

async def run(pool, op="run", timeout=30, **body):
    try:
        return await pool.request(op, body, timeout=timeout)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"

async def main():
    supervisor = WorkerSupervisor(preload=(ROOM,), sandbox=kind)
    await supervisor.start()
    if supervisor.sandbox_report()["kind"] != kind:
        print(json.dumps({"skip": supervisor.sandbox_report()["detail"]}))
        return await supervisor.close()
    pool = supervisor.pool("a", home.plan(max_workers=1, limits=Limits(processes=40)))
    answer = await scene(supervisor, pool)
    print(json.dumps({"answer": answer}))
    await supervisor.close()
"""

Play = Callable[[str], Any]


@pytest.fixture(params=["mount namespace", "landlock"])
def play(request: pytest.FixtureRequest, nobody_python: Path) -> Iterator[Play]:
    """Runs ``async def scene(supervisor, pool)`` as nobody and returns its answer."""
    folder = Path(tempfile.mkdtemp(prefix="rappd-nobody-"))
    os.chown(folder, NOBODY, NOBODY)

    def perform(scene: str) -> Any:
        program = folder / "scene.py"
        program.write_text(BEGINNING + textwrap.dedent(scene) + "\nasyncio.run(main())\n")
        done = subprocess.run(
            [nobody_python, program, folder, request.param],
            user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", env={"PATH": "/usr/bin:/bin", "DAEMON_TOKEN": "sesame"},
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr
        said = json.loads(done.stdout.splitlines()[-1])
        if "skip" in said:
            end_without(request.param, said["skip"], account=NOBODY)
        return said["answer"]

    yield perform
    shutil.rmtree(folder)


def test_secrets_are_closed_and_the_workspace_is_open(play: Play) -> None:
    closed, own, listing, around = play("""
        async def scene(supervisor, pool):
            closed = [await run(pool, "read", path=str(secret)) for secret in home.secrets]
            own = await run(pool, "write", path="own", text="mine")
            listing = await run(pool, "listing", path=str(home.path))
            key = home.secrets[0]
            ways = [
                f"cat /proc/{os.getpid()}/root{key}",
                f"umount -l {home.path}; cat {key}",
                f"unshare --user --map-root-user --mount sh -c 'umount -l {home.path}; cat {key}'",
                f"nsenter --user --mount --target {os.getpid()} cat {key}",
                f"cat {key}",
            ]
            return closed, own, listing, [await run(pool, "shell", command=way) for way in ways]
    """)
    assert all(answer.startswith("AgentRaisedError: ") for answer in closed), closed
    assert own == 4
    assert listing == ["twins"] or "PermissionError" in listing
    assert not [way for way in around if "a secret" in way["out"]]


def test_declared_needs_are_all_that_is_open(play: Play) -> None:
    given, closed = play("""
        async def scene(supervisor, pool):
            from agents.runtimes.python.sandbox.needs import Needs
            agents = home.workspace / "agents"
            agents.mkdir()
            for name in ("own_agent.py", "other_agent.py"):
                (agents / name).write_text(name)
            (home.workspace / ".env").write_text("KEY=1")
            plan = home.plan(needs=Needs(), shown=(str(agents / "own_agent.py"),))
            held = supervisor.pool("held", plan)
            given = [
                await run(held, "read", path=str(agents / "own_agent.py")),
                await run(held, "write", path=".brainstem_data/note", text="mine"),
                await run(held, "can_import", name="zoneinfo"),
            ]
            paths = [agents / "other_agent.py", home.workspace / ".env", "/etc/passwd", f"/proc/{os.getpid()}/cmdline"]
            closed = [await run(held, "read", path=str(path)) for path in (*paths, *home.secrets)]
            return given, closed + [await run(held, "shell", command="true")]
    """)
    assert given == ["own_agent.py", 4, True]
    assert all(isinstance(one, str) and one.startswith("AgentRaisedError: ") for one in closed), closed


def test_the_daemons_environment_is_closed(play: Play) -> None:
    own, direct, any_of_them = play("""
        async def scene(supervisor, pool):
            daemon = os.getpid()
            own = await run(pool, "read", path="/proc/self/environ")
            direct = await run(pool, "read", path=f"/proc/{daemon}/environ")
            swept = await run(pool, "shell", command="cat /proc/[0-9]*/environ 2>/dev/null | tr '\\\\0' '\\\\n'")
            return own, direct, swept["out"]
    """)
    assert "LANG=C.UTF-8" in own
    assert direct.startswith("AgentRaisedError: ")
    assert "sesame" not in own + any_of_them


def test_a_fork_bomb_is_held_back_and_costs_one_call(play: Play) -> None:
    highest, most, outcomes, after, left = play("""
        async def scene(supervisor, pool):
            highest = 0
            # Landlock: the kernel bounds the account as a whole, and other programs of it may end meanwhile
            most = 45 + (processes_of_account() if kind == "landlock" else 0)
            async def count():
                nonlocal highest
                while True:
                    highest = max(highest, len(descendants(supervisor.zygote_pid)))
                    await asyncio.sleep(0.02)
            counting = asyncio.create_task(count())
            outcomes = [await run(pool, "bomb", patient=patient) for patient in (True, False)]
            after = await run(pool, "echo", n=1)
            counting.cancel()
            def living():
                return [pid for pid in descendants(supervisor.zygote_pid) if not is_gone(pid)]
            await until(lambda: len(living()) <= 1)
            return highest, most, outcomes, after, len(living())
    """)
    assert highest <= most
    assert all(outcome.startswith(("WorkerDiedError", "AgentRaisedError")) for outcome in outcomes), outcomes
    assert after == {"n": 1}
    assert left <= 1


def test_memory_without_a_control_group_is_counted(play: Play) -> None:
    report, kept, answers, after = play("""
        from tests.agents.runtimes.python.pools.test_worker_memory import CHILDREN, SHARED, UNNAMED

        async def scene(supervisor, pool):
            plan = home.plan(max_workers=1, limits=Limits(memory=200 << 20, processes=40))
            limited = supervisor.pool("limited", plan)
            taking = [UNNAMED, CHILDREN] + ([SHARED] if kind == "mount namespace" else [])
            kept = [await run(limited, code=code.replace("SIZE", "60")) for code in taking]
            answers = [await run(limited, code=code.replace("SIZE", "400")) for code in taking]
            return supervisor.sandbox_report()["memory"], kept, answers, await run(pool, "echo", n=1)
    """)
    assert "counted" in report
    assert set(kept) == {"kept"}, kept
    told = "WorkerDiedError: The worker took more memory than 200 MB and was stopped"
    assert answers[:2] == [told, told], answers
    # A private /dev/shm is never larger; what is in it counts, and a slow write is seen before it is full.
    assert all(answer == told or "No space left" in answer for answer in answers[2:]), answers
    assert after == {"n": 1}


def test_what_a_worker_started_ends_with_it_and_is_recognised(play: Play) -> None:
    recognised, gone = play("""
        async def scene(supervisor, pool):
            asyncio.ensure_future(run(pool, "shell", command="(setsid sleep 1000 &); setsid sleep 1000"))
            await until(lambda: len(descendants(supervisor.zygote_pid)) >= 4)
            pids = descendants(supervisor.zygote_pid)
            recognised = all(is_worker_process(pid, supervisor.zygote_pid) for pid in pids)
            await supervisor.remove("a")
            await until(lambda: all(is_gone(pid) for pid in pids))
            return recognised, True
    """)
    assert recognised
    assert gone


def test_several_workers_and_pools(play: Play) -> None:
    first, second, workers = play("""
        async def scene(supervisor, pool):
            many = supervisor.pool("b", home.plan())
            slow = [run(many, "sleep", seconds=0.4) for _ in range(8)]
            second = await asyncio.gather(*slow, run(pool, "parallel", number=3))
            return second[-1], second[0], many.stats()["workers"]
    """)
    assert first == [0, 1, 4]
    assert second == "awake"
    assert workers > 1


def test_where_user_namespaces_are_closed_landlock_is_found(nobody_python: Path) -> None:
    program = """
import asyncio, ctypes, os, sys
from pathlib import Path

if "closed" not in sys.argv:
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(0x10000000):
        sys.exit("no user namespaces here")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.execv(sys.executable, [sys.executable, *sys.argv, "closed"])

from agents.runtimes.python.pools.supervisor import WorkerSupervisor

async def main():
    supervisor = WorkerSupervisor(preload=())
    await supervisor.start()
    print(supervisor.sandbox_report()["kind"])
    await supervisor.close()

asyncio.run(main())
"""
    with tempfile.NamedTemporaryFile("w", suffix=".py", prefix="rappd-closed-") as file:
        file.write(program)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        done = subprocess.run(
            [nobody_python, file.name], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    if "no user namespaces here" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.strip() == ("landlock" if landlock.version() else "none"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_protected_process_is_closed_to_its_own_account(nobody_python: Path) -> None:
    program = """
import os, time
from pathlib import Path
from agents.runtimes.python.sandbox.privileges import protect_daemon

def can_be_read(pid):
    try:
        return bool(Path(f"/proc/{pid}/environ").read_bytes())
    except PermissionError:
        return False

answers = []
for protected in (False, True):
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        if protected:
            protect_daemon()
        os.write(into, b".")
        time.sleep(100)
    os.read(out, 1)
    answers.append(can_be_read(child))
    os.kill(child, 9)
    os.waitpid(child, 0)
print(answers)
"""
    done = subprocess.run(
        [nobody_python, "-c", program],
        user=NOBODY,
        group=NOBODY,
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    assert done.stdout.strip() == "[True, False]"


def test_declared_needs_are_held_without_root_too(play: Play) -> None:
    own, given, closed, network = play("""
        async def scene(supervisor, pool):
            from agents.runtimes.python.sandbox.needs import Needs
            data = home.workspace / ".brainstem_data"
            data.mkdir()
            folder = Path(sys.argv[1]) / "shown"
            folder.mkdir()
            (folder / "note").write_text("words")
            (folder.parent / "beside").write_text("a diary")
            plan = home.plan(needs=Needs(read=(str(folder),), programs=("cat",)))
            pool = supervisor.pool("declared", plan)
            own = await run(pool, "write", path=str(data / "x"), text="mine")
            given = [await run(pool, "read", path=str(folder / "note"))]
            given += [(await run(pool, "shell", command="cat note"))]
            closed = [await run(pool, "read", path=str(folder.parent / "beside"))]
            closed += [await run(pool, "write", path=str(folder / "note"), text="x")]
            closed += [await run(pool, code="import subprocess\\nsubprocess.run(['ls'])")]
            closed += [await run(pool, code="socket.create_connection(('127.0.0.1', 9))")]
            hosts = supervisor.pool("hosts", home.plan(needs=Needs(hosts=("127.0.0.1:9",))))
            fetch = "import urllib.request\\nurllib.request.urlopen('http://127.0.0.1:{}/')"
            network = [await run(hosts, code=fetch.format(port)) for port in (9, 10)]
            return own, given, closed, network if supervisor.sandbox_report()["network"] else None
        """)
    assert own == 4 and given[0] == "words"
    assert all("AgentRaisedError" in one or "Error" in one for one in closed), closed
    if network is not None:
        assert "does not answer" in network[0] and "not among the hosts" in network[1], network
