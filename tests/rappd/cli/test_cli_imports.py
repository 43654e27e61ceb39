"""The cost of a verb before it does anything."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fixtures.running_daemon import RunningDaemon

HEAVY = (
    "aiohttp",
    "rich",
    "cryptography",
    "orjson",
    "msgspec",
    "prometheus_client",
    "asyncinotify",
)


def _imported(daemon: RunningDaemon, *arguments: str) -> set[str]:
    program = (
        "import sys\n"
        "from rappd.cli.app import run\n"
        f"code = run({list(arguments)!r})\n"
        "print('imported', *sys.modules, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=daemon.environment, capture_output=True, text=True, check=False
    )
    return set(done.stderr.partition("imported ")[2].split())


@pytest.mark.parametrize("arguments", [("--help",), (), ("--version",), ("nonsense",)], ids=str)
def test_help_imports_nothing_heavy(idle: RunningDaemon, arguments: tuple[str, ...]) -> None:
    found = _imported(idle, *arguments)
    assert "click" in found
    assert not found & {*HEAVY, "asyncio", "sqlite3", "ssl", "dotenv"}


def test_verbs_that_only_ask_import_no_server(busy: RunningDaemon) -> None:
    for verb in (("status",), ("agents", "list"), ("config", "show")):
        assert not _imported(busy, *verb) & {"aiohttp", "rich", "msgspec"}


@pytest.mark.parametrize("verb", [("members",), ("snapshot", "--no-drill")], ids=str)
def test_the_daemon_reads_the_neighborhood_and_not_the_command(
    busy: RunningDaemon, verb: tuple[str, ...]
) -> None:
    found = _imported(busy, "neighborhood", *verb)
    assert "rappd.features.snapshots.cli" in found
    assert not found & {
        "aiohttp",
        "rappd.tenants.tenant",
        "agents.brainstem.turn",
        "neighborhoods.snapshot.capture",
        "neighborhoods.snapshot.transports.ssh",
    }
