"""Fixtures and rules for all tests."""

from __future__ import annotations

import gc

import pytest
from fixtures.agent_names import agent_names
from fixtures.bounded_tests import bound_coroutines, pytest_pyfunc_call
from fixtures.forked_run import processes, run_by_forks, tell_by
from fixtures.ordering_plugin import longest_first
from fixtures.ordinary_account import nobody_python
from fixtures.running_daemon import pytest_runtest_setup
from fixtures.sandboxed_daemon import sandboxed_daemon
from fixtures.time_report import (
    pytest_runtest_logreport,
    pytest_runtest_teardown,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from hypothesis import settings

__all__ = [  # fixtures and rules for every test
    "agent_names",
    "nobody_python",
    "pytest_pyfunc_call",
    "pytest_runtest_logreport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "sandboxed_daemon",
]

# As rappd.__main__: to look for cycles after every 700 objects takes a fifth of what collects the tests.
gc.set_threshold(50_000, 20, 20)

# How long an example takes says more about the machine than about the code; a test that hangs has its timeout.
settings.register_profile("rappd", deadline=None)
settings.load_profile("rappd")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--fast``: the tests that start no process. ``--processes``: how many run tests beside each other."""
    parser.addoption("--fast", action="store_true", help="skip what starts a process")
    parser.addoption(
        "--wire", type=int, help="the descriptor by which a run tells the one that it is a part of"
    )
    parser.addoption(
        "--processes",
        type=processes,
        default=1,
        help="run files of tests beside each other; auto: as many as fit",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Takes the lane that was asked for."""
    if (wire := config.getoption("wire")) is not None:
        tell_by(config, wire)
    if config.getoption("fast"):
        config.pluginmanager.import_plugin("fixtures.fast_lane")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Long texts go by their parameter: keys and ids are others each time, and workers must agree on names."""
    return argname if isinstance(val, str | bytes) and len(val) > 30 else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    longest_first(items)
    bound_coroutines(items)


def pytest_collection_finish() -> None:
    """Keeps 12,000 collected tests out of each later collection of garbage: a tenth of a second every time."""
    gc.collect()
    gc.freeze()


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests in as many processes as were asked for."""
    forks = session.config.getoption("processes")
    if forks < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    run_by_forks(session, forks)
    return True
