"""A test that would hang fails, says where, and the tests after it run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent
CONFTEST = """
from fixtures import bounded_tests
from fixtures.bounded_tests import bound_coroutines, pytest_pyfunc_call

bounded_tests.PART = 1 / 40


def pytest_collection_modifyitems(items):
    bound_coroutines(items)
"""
TESTS = """
import asyncio
import threading

import pytest

pytestmark = pytest.mark.timeout(40)


class TestMethod:
    async def test_coroutine(self):
        await asyncio.Event().wait()  # here


def test_lock():
    threading.Event().wait()  # here


def test_loop_of_its_own():
    asyncio.run(asyncio.Event().wait())  # here


@pytest.mark.parametrize("given", [1])
async def test_that_ends(given):
    await asyncio.sleep(0)
"""


def test_tests_that_wait_for_ever_fail_where_they_wait(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_waits.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\ntimeout_method = thread\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={FIXTURES}",
        ".",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "3 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("# here") == 3, done.stdout
