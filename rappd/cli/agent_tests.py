"""Contract tests of an agent or a file: where they run, and how their outcomes are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rappd.cli.agent_view import agent_of, agent_rows, file_of
from rappd.cli.console import Verdict, dim, print_out, status_mark, strip_control, terminal_width, wrapped
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

_NAMES = 25  # columns for a test's name


def run_tests(home: Home, name: str) -> list[dict[str, Any]]:
    """Outcomes of the tests over an agent (by its name or its file's) or a file (by its path).

    A running daemon tests what it serves; whatever else is tested in workers started for it.
    """
    from rappd.cli.standalone import test_agent, test_file, workspace_of
    from rappd.settings.load import Settings

    path = Path(name)
    daemon = ControlClient(home, timeout=120)
    with progress() as line:
        line(f"Testing {name}…")
        if name.endswith(".py") and path.is_file():
            return test_file(home, path, line)
        if not daemon.running():
            return test_agent(home, name, line)
        rows = agent_rows(home, daemon)
        agent = agent_of(rows, name)
        if agent:
            tests: list[dict[str, Any]] = daemon.post("/agents/test", {"agent": agent})["tests"]
            return tests
        return test_file(home, workspace_of(home, Settings.load(home)).agents / file_of(rows, name), line)


def failed(test: dict[str, Any]) -> bool:
    """True for a failure that counts against the agent; requirements of registries alone do not."""
    return not test["passed"] and bool(test.get("required", True))


def show_tests(tests: list[dict[str, Any]]) -> None:
    """One line per test."""
    for test in tests:
        verdict: Verdict = "bad" if failed(test) else ("good" if test["passed"] else "note")
        _show(verdict, test["test"], strip_control(test.get("message", "")))


def _show(verdict: Verdict, name: str, message: str) -> None:
    lead = 3 + _NAMES
    if not message:
        print_out(f"{status_mark(verdict)} {name}")
    elif terminal_width() - lead > _NAMES:
        print_out(f"{status_mark(verdict)} {name:<{_NAMES}} {dim(wrapped(message, lead))}")
    else:
        print_out(f"{status_mark(verdict)} {name}")
        print_out(f"  {dim(wrapped(message, 2))}")
