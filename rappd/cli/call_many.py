"""``rappd call --first`` and ``--all``: several machines at once."""

from __future__ import annotations

import json
from typing import Any

from rappd.cli.console import dim, print_err, print_json, print_out, print_status, status_mark, strip_control
from rappd.cli.formatting import count, took
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotReadyError

Row = dict[str, Any]

_LATER = ("away", "late")
_WORDS = {"stopped": "stopped, another was faster", "late": "no answer in time, stopped"}
_SPARE_SECONDS = 60.0


def call_many(which: str, peers: str, body: Row, as_json: bool) -> int:
    """Asks them, and shows what came: of ``first`` the winner, of ``all`` everyone. The exit code."""
    names = [one for one in (name.strip() for name in peers.split(",")) if one]
    asked = {**body, "which": which, "peers": "all" if names in ([], ["all"]) else names}
    daemon = ControlClient(Home.here(), timeout=body["wait"] + _SPARE_SECONDS)
    with progress() as line:
        line(f"Asking {'every peer' if asked['peers'] == 'all' else ', '.join(names)}…")
        found = daemon.post("/call/broadcast", asked)
    calls = found["calls"]
    if as_json:
        print_json(found)
    elif which == "first":
        _winner(found)
    else:
        _everyone(calls)
    return _exit_code(which, calls)


def _winner(found: Row) -> None:
    won = next((row for row in found["calls"] if row["peer"] == found["winner"]), None)
    if won is None:
        for row in found["calls"]:
            print_status("bad", f"{row['peer']}: {_trouble(row)}")
        return
    print_out(_result(won))
    others = count(len(found["calls"]) - 1, "other")
    print_err(dim(f"  done on {won['peer']} in {took(won['seconds'])}, {others} asked"))


def _everyone(calls: list[Row]) -> None:
    for row in calls:
        if row["state"] == "done":
            print_out(f"{status_mark('good')} {row['peer']}  {dim(took(row['seconds']))}")
            for text in _result(row).splitlines():
                print_out(f"  {text}")
        else:
            print_status("note" if row["state"] in _LATER else "bad", f"{row['peer']}: {_trouble(row)}")


def _trouble(row: Row) -> str:
    return _WORDS.get(row["state"]) or strip_control(str(row.get("error") or "it failed")).rstrip(".")


def _result(row: Row) -> str:
    result = row.get("result")
    return strip_control(
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    )


def _exit_code(which: str, calls: list[Row]) -> int:
    done = [row["state"] == "done" for row in calls]
    if all(done) or (which == "first" and any(done)):
        return 0
    if any(done):
        return 7
    return NotReadyError.exit_code if all(row["state"] in _LATER for row in calls) else 1
