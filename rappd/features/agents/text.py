"""The agents of this home, with the daemon up or down, finding one by what a person types, and test results."""

from __future__ import annotations

import difflib
import sys
import time
from pathlib import Path
from typing import Any

from agents.storage.safe_fs import SafeTree
from rappd.cli.console import (
    Verdict,
    dim,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
    utf8,
    wrapped,
)
from rappd.cli.formatting import sentence
from rappd.cli.progress import progress
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.errors import NotFoundError, RefusedError

_YOURS = "yours"
_FIX = "fix and save; it reloads by itself"
_SHARED = "(serves everybody in one process)"


def agent_rows(home: ControlClient, twin: str = "") -> list[dict[str, Any]]:
    """The table of agents: a row for each, and one for each file that yields none. ``twin``: whose; "" for the brainstem."""
    with progress("Reading agent files…"):
        return [card for file in home.do("agents.list", twin=twin)["files"] for card in file["cards"]]


def show_rows(rows: list[dict[str, Any]]) -> None:
    """The table of agents, then every fault in full."""
    marks: list[Verdict | None] = []
    shown = []
    for row in rows:
        name = row["name"] or row["file"]
        if row["cartridge"]:
            marks.append("note")
            shown.append([name, "a cartridge, no agent", row["origin"]])
        elif row["quarantined"]:
            marks.append("note" if row["waits"] else "bad")
            what = "waits for your approval" if row["waits"] else "not running"
            shown.append([name, what, row["origin"]])
        elif row["shadowed_by"]:
            marks.append("note")
            shown.append([name, f"not used: {row['shadowed_by']} has the name", row["origin"]])
        elif row.get("offered") is False:
            marks.append("note")
            shown.append([name, "not in organism.yaml", row["origin"]])
        else:
            marks.append("note" if row["reason"] else "good")
            what = sentence(row.get("summary") or row["description"])
            shown.append([name, f"{what} {_SHARED}" if row.get("one_worker") else what, row["origin"]])
    table(["AGENT", "WHAT IT DOES", "FROM"], shown, shrink=1, prose=True, marks=marks)
    faulty = {(row["origin"], row["file"]): row for row in rows if row["reason"]}
    if faulty:
        print_out()
    for row in faulty.values():
        way = _FIX
        if row["cartridge"]:
            way = "to run it: rappd cartridge list"
        elif row["held"]:
            way = f"read it, then: rappd agents approve {row['file']}"
        elif row["waits"]:
            way = "read that file, then: rappd agents approve"
        print_status("note" if row["waits"] or row["cartridge"] else "bad", fault(row), way)


def row_of(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The agent that is called so, or a file of that name."""
    found = _named(rows, name)
    if not found:
        raise no_agent(rows, name)
    return next((row for row in reversed(found) if not row["shadowed_by"]), found[-1])


def show_agent(row: dict[str, Any]) -> None:
    """Prints an agent in full."""
    print_out(row["name"] or row["file"])
    if row["description"]:
        print_out(wrapped(strip_control(row["description"]), 0))
    facts = [("from", f"{row['origin']}, {row['file']}"), *_reach_facts(row)]
    if takes := ", ".join(row["parameters"].get("properties", {})):
        facts.insert(1, ("takes", takes))
    _print_facts(facts)
    if row["reason"]:
        print_status("note" if row["waits"] else "bad", fault(row), "")
    if row["exceeded"]:
        print_status("note", _exceeded(row), f"rappd agents needs {row['name']}")


def show_needs(found: dict[str, Any]) -> None:
    """The needs of an agent, then what its calls asked for, refused things first."""
    print_out(found["name"])
    _print_facts(_reach_facts(found))
    if found["needs"] is None:
        print_status(
            "note",
            "It declares nothing, so what it uses is not noted.",
            'begin with "needs": {} in its metadata',
        )
        return
    if found["uses"]:
        from agents.runtimes.python.pools.use_log import (
            VERBS,  # what brings msgspec along; lists of agents go without
        )

        print_out()
        marks: list[Verdict | None] = ["good" if use["given"] else "bad" for use in found["uses"]]
        rows = [
            [VERBS[use["kind"]], use["what"], "" if use["given"] else "refused", str(use["times"])]
            for use in found["uses"]
        ]
        table(["ASKED FOR", "WHAT", "", "CALLS"], rows, shrink=1, marks=marks)
    if found["exceeded"]:
        print_status("note", _exceeded(found), f'what it may have: "needs" in {found["file"]}')
    elif not found["uses"]:
        print_out(dim("Nothing beside its own storage was asked for so far."))


def _reach_facts(row: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [("reach", "; ".join(row["reach"]))]
    return [*facts, ("but", row["unheld"])] if row["unheld"] else facts


def _exceeded(row: dict[str, Any]) -> str:
    many = row["exceeded"]
    return f"{'A call' if many == 1 else f'{many} calls'} failed: it wanted more than it declares."


def _print_facts(facts: list[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in facts) + 2
    for name, text in facts:
        print_out(f"{dim(name.ljust(width))}{wrapped(strip_control(text), width)}")


def fault(row: dict[str, Any]) -> str:
    """ "weather_agent.py line 12: expected ':'.

    The 13:40 version works on."
    """
    if row["waits"]:
        return f"{row['file']} waits for your approval. {row['reason']}"
    line = f" line {row['line']}" if row["line"] else ""
    text = f"{row['file']}{line}: {row['reason']}"
    if row["quarantined"]:
        return text
    since = row.get("good_since")
    at = time.strftime("The %H:%M", time.localtime(since)) if since else "An earlier"
    return f"{text.rstrip('.')}. {at} version works on."


def file_of(rows: list[dict[str, Any]], name: str) -> str:
    """The file of yours that is called ``name``, or holds the agent of that name (any case)."""
    found = _named(rows, name)
    yours = [row for row in found if row["origin"] == _YOURS]
    if yours:
        return str(yours[-1]["file"])
    if found:
        raise RefusedError(
            f"{found[0]['name']} is {found[0]['origin']}, not a file of yours.", do="rappd agents list"
        )
    raise no_agent(rows, name)


def file_in(folder: Path, name: str) -> str | None:
    """The file in an agents folder that a person means by its path in there, with ``_agent.py`` or without; None when there is none.

    Compared and not looked up: a name may be too long for a file, or lead out of the folder.
    """
    listed = SafeTree(folder).files((), lambda found: found.endswith(".py"), lambda _: True)
    there = {path for path, _ in listed}
    return next((file for file in (name, f"{name}_agent.py", f"{name}_listener.py") if file in there), None)


def agent_of(rows: list[dict[str, Any]], name: str) -> str:
    """The agent that is called so, or that the file of that name holds; ``""``: the file holds none."""
    found = _named(rows, name)
    if not found:
        raise no_agent(rows, name)
    return str(next((row["name"] for row in reversed(found) if row["name"]), ""))


def no_agent(rows: list[dict[str, Any]], name: str) -> NotFoundError:
    """``No agent "Wether".``, with the nearest; of one that the owner's list does not name, just that."""
    hidden = {row["name"].casefold() for row in rows if row.get("offered") is False}
    if name.casefold() in hidden:
        return NotFoundError(
            f"{name[:80]} is not in organism.yaml.", do=f"rappd organism add listener {name[:80]}"
        )
    known = {row["name"].casefold(): row["name"] for row in rows if row["name"]}
    near = difflib.get_close_matches(name.casefold(), list(known), 1)
    do = f"did you mean `{known[near[0]]}`?" if near else "rappd agents list"
    return NotFoundError(f'No agent "{name[:80]}".', do=do)


def _named(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    wanted = name.casefold()
    by_file = [row for row in rows if row["file"] in (name, f"{name}_agent.py", f"{name}_listener.py")]
    return by_file or [
        row for row in rows if wanted in (row["name"].casefold(), Path(row["file"]).name.casefold())
    ]


_NAMES = 25  # columns for a test's name


def run_tests(home: ControlClient, folder: Path, name: str) -> list[dict[str, Any]]:
    """Outcomes of the tests over an agent (by its name or that of its file in ``folder``) or a file (by its path)."""
    path = Path(name)
    with progress(f"Testing {name}…"):
        if name.endswith(".py") and path.is_file():
            body = {"path": str(path.absolute())}
        else:
            rows = agent_rows(home)
            agent = agent_of(rows, name)
            body = {"agent": agent} if agent else {"path": str(folder / file_of(rows, name))}
        tests: list[dict[str, Any]] = home.post("/agents/test", body)["tests"]
        return tests


def failed(test: dict[str, Any]) -> bool:
    """True for a failure that counts against the agent; requirements of registries alone do not."""
    return not test["passed"] and not test.get("skipped") and bool(test.get("required", True))


def show_tests(tests: list[dict[str, Any]]) -> None:
    """Prints a line for each test; what was not tested has neither tick nor cross."""
    for test in tests:
        if test.get("skipped"):
            sign = "–" if utf8(sys.stdout) else "-"
            print_out(dim(f"{sign} {test['test']:<{_NAMES}} {test.get('message', '')}".rstrip()))
            continue
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
