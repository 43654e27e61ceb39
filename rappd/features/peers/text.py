"""Other machines on the screen: the list, one in full, and how each is called and typed."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

from rappd.cli.console import (
    arrow,
    command,
    dim,
    plain,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
    wrapped,
)
from rappd.cli.formatting import ago, count
from rappd.cli.tables import cells, fitted, middle

Row = dict[str, Any]

NOT_RUNNING = "not known, rappd isn't running"

_HEADER = ("PEER", "PRESENCE", "REACHED BY", "AGENTS", "WAITING")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PASSING = re.compile(r" is (away|busy)( \(\d+\))?\.$")
_EGG = "EGG"
_SNAPSHOT = "SNAPSHOT"
_WIDE = 76
_SOURCES = {
    "nearby": "local network",
    "last address": "last known addresses",
    "list": "peers.json",
    "typed": "added by hand",
}
_EMPTY = {"nearby": "nothing found", "last address": "none", "list": "nothing in it", "typed": "nothing"}


def show_peers(found: Row) -> None:
    """Peers, then found ones with what to type, who asks, and, of an empty list, where was looked."""
    rows = found["peers"]
    paired = [row for row in rows if row["paired"]]
    strangers = [row for row in rows if not row["paired"] and not row["legacy"]]
    legacy = [row for row in rows if row["legacy"]]
    asking = [one for one in found["asking"] if one["state"] in ("asking", "words")]
    names = _told_apart([*strangers, *asking], [*paired, *strangers])
    _paired_and_found(paired, list(zip(names, strangers, strict=False)))
    agents = [row for row in legacy if row["kind"] == "agent"]
    brainstems = [row for row in legacy if row["kind"] != "agent"]
    for title, some in (("Published brainstems, without keys:", brainstems), ("A2A agents:", agents)):
        if some:
            print_out(title)
        for row in some:
            print_out(f"  {strip_control(row['name'])}  {dim(strip_control(row['address']))}")
    for name, one in zip(names[len(strangers) :], asking, strict=True):
        host = one["address"].rpartition(":")[0].strip("[]")
        _with_command(
            f"{status_mark('note')} {strip_control(name)} ({host}) wants to pair.",
            typed(name, one["short"]),
        )
    for row in paired:
        if trouble := trouble_of(row):
            print_status("bad", trouble, way_out(row["name"], trouble))
    if not rows and not asking:
        _nobody(found)
    elif not found["self"].get("running", True):
        print_out(f"  {arrow()} {command('rappd start')}")


def show_peer(row: Row) -> None:
    """One peer, all that is known of it."""
    print_out(f"{strip_control(row['name'])}  {dim(f'{_whose(row)}, {presence(row)}')}")
    print_out()
    agents = [str(agent.get("name", "")) for agent in row.get("agents_here", ())]
    own = "" if row["called"] == row["name"] else f"{row['called']}, by itself"
    for label, value in (
        ("Called", own),
        ("Note", row["note"]),
        ("Key", row["fingerprint"]),
        ("Address", ", ".join(filter(None, (row["address"], row["reached"])))),
        ("Paired", _day(row["paired_at"])),
        ("May here", may_here(row)),
        ("", "\n".join(row["scopes"]) if set(row["scopes"]) - {"*", _EGG} else ""),
        ("Snapshots", "it may read every twin here" if {"*", _SNAPSHOT} & set(row["scopes"]) else ""),
        ("Agents", ", ".join(agents)),
        ("Twins", ", ".join(map(str, row.get("twins_here", ())))),
        ("Offered", "its agents are tools of the brainstem here" if row["offered"] else ""),
        ("Waiting", f"{row['waiting']} in the outbox" if row["waiting"] else ""),
    ):
        if value:
            print_out(f"  {label:<10}{wrapped(strip_control(str(value)), 12)}")
    if trouble := trouble_of(row):
        print_out()
        print_status("bad", trouble, way_out(row["name"], trouble))
    print_out()
    print_out(f"What it may do here: {command('rappd peers scopes ' + row['name'])}")


def may_here(row: Row) -> str:
    """ "use everything approved", "send eggs", "do 3 things", "do nothing"."""
    scopes = row["scopes"]
    if "*" in scopes:
        return "use everything approved"
    if not scopes:
        return "do nothing here"
    return "send eggs, nothing else" if scopes == [_EGG] else f"do {count(len(scopes), 'thing')}"


def presence(row: Row) -> str:
    """ "here, 2 ms", "last seen 12 s ago", "not known, rappd isn't running"."""
    match row["presence"]:
        case "here":
            return f"here, {_ms(row['ms'])}" if row["ms"] is not None else "here"
        case "away":
            return f"last seen {ago(time.time() - row['since'])}" if row["since"] else "away, never seen"
        case "found":
            return str(row["short"])
        case "not known":
            return NOT_RUNNING
    return str(row["presence"])


def trouble_of(row: Row) -> str:
    """Returns the reason why a reachable peer is not used; being away is none."""
    trouble = str(row.get("trouble") or "")
    return "" if _PASSING.search(trouble) else trouble


def way_out(name: str, trouble: str) -> str:
    """Returns the command that helps with a peer that is not used; "" when only waiting does."""
    if "key has changed" in trouble:
        return f"reinstalled? rappd peers revoke {name}, and pair anew; else keep away"
    return f"pair anew: rappd peers pair {name}" if "does not trust this machine" in trouble else ""


def called(name: str, fingerprint: str) -> str:
    """Returns the text that selects a machine: never anything that a shell would act on."""
    return name if _PLAIN.fullmatch(name) else fingerprint[:8]


def typed(name: str, key: str) -> str:
    """The command that pairs with it."""
    return f"rappd peers pair {called(name, key)}"


def _paired_and_found(paired: Sequence[Row], strangers: Sequence[tuple[str, Row]]) -> None:
    upper = [[row["name"], _short_presence(row), row["reached"], *_numbers(row)] for row in paired]
    lower = [[name, _stranger(row), row["reached"]] for name, row in strangers]
    lines = [[_one_line(cell) for cell in fields] for fields in ([list(_HEADER)] if upper else []) + upper]
    below = [[_one_line(cell) for cell in fields] for fields in lower]
    columns = len(_HEADER) if upper else 3
    natural = [
        max((cells(fields[at]) for fields in [*lines, *below] if at < len(fields)), default=0)
        for at in range(columns)
    ]
    widths = fitted(natural, terminal_width())
    for number, fields in enumerate(lines):
        text = _line(fields, widths)
        print_out(text if number else dim(text))
    if lower:
        print_out("Found, not trusted:")
    for fields, (name, row) in zip(below, strangers, strict=True):
        known = row["fingerprint"] and row["name"]
        what = typed(name, row["fingerprint"]) if known else f"rappd peers pair {quote(row['address'])}"
        _with_command(_line(fields, widths[:3], ragged=False), what)


def _with_command(line: str, what: str) -> None:
    """A line and, behind it where there is room, what to type; a command is never cut."""
    shown = f"{arrow()} {command(what)}"
    if cells(f"{line}  {shown}") <= terminal_width():
        print_out(f"{line}  {shown}")
    else:
        print_out(line.rstrip())
        print_out(f"  {shown}")


def _address_sources(found: Row) -> list[Row]:
    """``sources`` of an answer, or ``rungs``, as a daemon answers that was started before an upgrade to 0.1.0."""
    return found.get("sources") or [{**one, "source": one["rung"]} for one in found.get("rungs", ())]


def _nobody(found: Row) -> None:
    print_out("No peers yet. Looked in:")
    for source in _address_sources(found):
        known = (
            f"{count(source['found'], 'machine')}, no peer"
            if source["found"]
            else _EMPTY.get(source["source"], "")
        )
        what = source["trouble"].rstrip(".") or known
        print_out(
            f"  {_SOURCES.get(source['source'], source['source']):<22}{wrapped(strip_control(what), 24)}"
        )
    if not found["self"].get("running", True):
        print_out(f"  {arrow()} {command('rappd start')}")
        return
    print_out(f"  {arrow()} start rappd on another machine, or {command('rappd peers add ADDRESS')}")


def _told_apart(rows: Sequence[Row], every: Iterable[Row]) -> list[str]:
    """Names of machines that are not paired; one that several go by is followed by four of the key."""
    keys: Counter[str] = Counter()
    for name, _ in {(_name(row).casefold(), row["short"]) for row in [*every, *rows]}:
        keys[name] += 1
    return [
        f"{_name(row)}_{row['short']}" if keys[_name(row).casefold()] > 1 and row["short"] else _name(row)
        for row in rows
    ]


def _name(row: Row) -> str:
    return str(row.get("name") or row.get("peer") or row.get("address") or row["short"])


def _short_presence(row: Row) -> str:
    state = presence(row)
    return state.partition(",")[0] if state == NOT_RUNNING and terminal_width() < _WIDE else state


def _stranger(row: Row) -> str:
    return str(row["short"] if row["presence"] == "found" else row["presence"])


def _numbers(row: Row) -> list[str]:
    agents = "" if row["agents"] is None else str(row["agents"])
    return [agents, str(row["waiting"])]


def _whose(row: Row) -> str:
    return "mine" if row["whose"] == "mine" else "a friend's"


def _line(fields: Sequence[str], widths: Sequence[int], *, ragged: bool = True) -> str:
    shown = []
    for cell, size in zip(fields, widths, strict=False):
        short = middle(cell, size)
        shown.append(short + " " * (size - cells(short)))
    text = "  ".join(shown)
    return text.rstrip() if ragged else text


def _one_line(cell: object) -> str:
    return " ".join(plain(strip_control(str(cell)), sys.stdout).split())


def _ms(number: float) -> str:
    return f"{max(1, round(number))} ms" if number < 950 else f"{number / 1000:.1f} s"


def _day(seconds: float | None) -> str:
    return time.strftime("%d %b %Y %H:%M", time.localtime(seconds)).lstrip("0") if seconds else ""
