"""A run of tests by several forks, and its report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures.forked_run import processes
from fixtures.time_report import too_many

TESTS = Path(__file__).parent
FILES = {
    "test_passes.py": "def test_one(tmp_path): (tmp_path / 'a').touch()\ndef test_two(): print('unseen')",
    "test_fails.py": "def test_wrong():\n    print('what it said')\n    assert 1 == 2",
    "test_ends.py": "import os\ndef test_before(): pass\ndef test_end(): os._exit(3)\ndef test_after(): pass",
    "test_warns.py": "import warnings\ndef test_warned(): warnings.warn('be careful')",
    "test_apart.py": (
        "import sys, pytest\npytestmark = pytest.mark.forks\n"
        "def test_is_in_another_process(): assert '--wire' in sys.argv, sys.argv\n"
        "def test_wrong_there(): assert 'there' == 'here'\n"
    ),
    "test_dies_apart.py": (
        "import os, pytest\npytestmark = pytest.mark.forks\ndef test_dies(): os._exit(9)\n"
    ),
    "conftest.py": (
        "from fixtures.forked_run import run_by_forks, tell_by\n"
        "def pytest_addoption(parser):\n    parser.addoption('--wire', type=int)\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'forks: it does')\n"
        "    if config.getoption('wire') is not None:\n        tell_by(config, config.getoption('wire'))\n"
        "def pytest_runtestloop(session):\n"
        "    if session.config.getoption('wire') is None:\n"
        "        run_by_forks(session, 3)\n        return True\n"
    ),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_each_test_is_told_with_its_output_and_a_dead_process_fails_its_test(project: Path) -> None:
    done = run(project)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 failed, 5 passed, 1 warning" in done.stdout
    assert "assert 'there' == 'here'" in done.stdout
    assert "its process ended (9)" in done.stdout
    assert "what it said" in done.stdout
    assert "assert 1 == 2" in done.stdout
    assert "be careful" in done.stdout
    assert "unseen" not in done.stdout
    assert "its process ended (3)" in done.stdout
    assert "FAILED test_ends.py::test_end" in done.stdout


def test_the_first_failure_ends_the_run_where_that_is_asked_for(project: Path) -> None:
    done = run(project, "-x", "test_fails.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout
    assert "stopping after 1 failures" in done.stdout


def test_files_of_many_machines_do_not_run_beside_each_other(project: Path) -> None:
    alone = "import pathlib, time\nBUSY = pathlib.Path(__file__).parents[1] / 'busy'\n"
    alone += "def test_alone():\n    BUSY.touch(exist_ok=False)\n    time.sleep(0.5)\n    BUSY.unlink()\n"
    for name in ("lan/test_one.py", "lan/test_two.py", "storm/test_three.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(alone)
    others = [f"test_other{number}.py" for number in range(4)]  # a process takes its next file while one ends
    for name in others:
        (project / name).write_text("import time\ndef test_long(): time.sleep(1.5)\n")
    done = run(project, "lan", "storm", *others)
    assert "7 passed" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("daemons", "told"), [(9, []), (10, ["10.00 daemons were started for 100 tests, 9.5 is the most"])]
)
def test_run_that_starts_more_daemons_than_allowed_says_so(daemons: int, told: list[str]) -> None:
    said = too_many({"daemons": daemons, "browsers": 1}, 100, {"daemons": 9.5, "browsers": 1.0})
    assert [sentence.partition(":")[0] for sentence in said] == told


@pytest.mark.parametrize(
    ("processors", "gigabytes", "suits"), [(2, 16, 5), (1, 16, 3), (64, 64, 16), (8, 4.1, 5), (2, 0.5, 1)]
)
def test_as_many_processes_as_the_machine_has_room_for(
    processors: int, gigabytes: float, suits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": int(gigabytes * 1e9 / 4096)}
    monkeypatch.setattr(os, "sysconf", memory.__getitem__)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert processes("auto") == suits
    assert processes("2") == 2
