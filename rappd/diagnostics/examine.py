"""Every check, one after the other."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

from envelopes.errors import ReportableError
from rappd.daemon.home import Home
from rappd.daemon.home_check import find_obstacle
from rappd.diagnostics.agents import (
    check_agents,
    check_approvals,
    check_programs,
    check_sandbox,
    check_souls,
    check_variables,
)
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.diagnostics.home import (
    check_data,
    check_key,
    check_links,
    check_notify_command,
    check_port,
    check_python,
    check_settings,
    check_store,
)
from rappd.diagnostics.model import check_thinking
from rappd.diagnostics.network import check_clients, check_listener, check_nearby, check_peers, check_phones
from rappd.diagnostics.snapshots import check_schedule, check_snapshots


def examine(home: Home, looking_at: Callable[[str], None] = lambda about: None) -> list[Finding]:
    """Every finding, good ones included; a check that fails to look is a finding itself.

    ``looking_at`` is told each subject before it is looked at.
    """
    if (obstacle := find_obstacle(home.root)) is not None:  # every other check looks into it
        return [Finding("Data", "bad", obstacle.what, obstacle.do)]
    visit = CheckContext(home)
    found: list[Finding] = []
    for about, check_it in _CHECKS:
        looking_at(about)
        try:
            found.extend(check_it(visit))
        except ReportableError as problem:
            found.append(Finding(about, "bad", str(problem).rstrip("."), problem.do))
        except OSError as error:
            what = f"cannot be looked at: {error.filename or ''} {error.strerror or error}".replace(
                ":  ", ": "
            )
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            do = "free some space" if is_full else "look at the file's owner and rights"
            found.append(Finding(about, "bad", what, do))
    return found


_CHECKS: tuple[tuple[str, Callable[[CheckContext], Iterator[Finding]]], ...] = (
    ("Data", check_data),
    ("Settings", check_settings),
    ("Links", check_links),
    ("Port", check_port),
    ("Key", check_key),
    ("Record", check_store),
    ("Agents", check_agents),
    ("Approvals", check_approvals),
    ("Variables", check_variables),
    ("Soul", check_souls),
    ("Model", check_thinking),
    ("Workers", check_sandbox),
    ("Programs", check_programs),
    ("Notices", check_notify_command),
    ("Listener", check_listener),
    ("Clients", check_clients),
    ("Nearby", check_nearby),
    ("Peers", check_peers),
    ("Phones", check_phones),
    ("Snapshot", check_snapshots),
    ("Schedule", check_schedule),
    ("Python", check_python),
)
