"""Screens of ``rappd neighborhood``: a snapshot, their list and schedule, a plan, and what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from time import time
from typing import Any

from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control, wrapped
from rappd.cli.formatting import ago, count, tilde
from rappd.cli.tables import table
from twins.byte_sizes import format_bytes

_SHOWN = 8
_NAMED = 4
"""Of the names that stay behind for one reason."""
_CATEGORIES = {
    "twins": "twins' files",
    "agents": "agents",
    "core": "soul and kernel",
    "data": "memory",
    "global_state": "home",
    "peer_twins": "others' twins",
}


def show_snapshot(done: dict[str, Any]) -> None:
    """Shows the result of a snapshot: machines taken, missing, and files that stayed behind."""
    record = done["snapshot"]
    bad = sum("/" not in one["path"] for one in done["failed"])
    captured = record["machines"]
    machines = f"{captured} of {captured + bad} machines" if bad else count(captured, "machine")
    mark = status_mark("note" if done["partial"] else "good")
    name = strip_control(Path(record["path"]).name)
    print_out(f"{mark} {machines} in {name}, {format_bytes(record['size'])}, signed")
    for one in done["failed"][:_SHOWN]:
        path = strip_control(one["path"])
        why = strip_control(one["why"]).removeprefix(f"{path}: ")
        print_out(wrapped(f"  {status_mark('bad')} {path}: {why}", 4))
    if done["failed"]:
        print_out(f"  {arrow()} rerun; only what is missing or changed is copied")
    note = f"  {status_mark('note')}"
    _few(
        f"{note} left out, too large: {strip_control(one['path'])}, {one['why']}  {dim(one['do'])}"
        for one in done["oversize"]
    )
    for one in done["unstable"][:_SHOWN]:
        print_out(wrapped(f"{note} {strip_control(one['path'])} {one['why']} {arrow()} {one['do']}", 4))
    _few(
        f"{note} left out: {strip_control(one['path'])}: {strip_control(one['why'])} {arrow()} {one['do']}"
        for one in done["left_out"]
        if "do" in one
    )
    for one in [one for one in done["left_out"] if "id" in one][:_SHOWN]:
        allow = dim(f"--allow {one['id']}")
        print_out(f"{note} left out: {strip_control(one['path'])} {strip_control(one['why'])}  {allow}")
    reasons: dict[str, list[str]] = {}
    for one in done["left_out"]:
        if "id" not in one and "do" not in one:
            reasons.setdefault(one["why"], []).append(one["path"])
    for why, paths in reasons.items():
        more = f" and {len(paths) - _NAMED} more (--json)" if len(paths) > _NAMED else ""
        named = strip_control(", ".join(paths[:_NAMED]))
        print_out(dim(wrapped(f"  Left out: {named}{more} ({strip_control(why)})", 4)))
    drilled = record["drill"]
    if done["untried"]:
        print_out(wrapped(f"{note} {strip_control(done['untried'])}", 4))
    elif drilled is None:
        print_out(dim(f"  Not tried yet. {arrow()} rappd neighborhood drill {record['name']}"))
    elif record["restorable"]:
        print_out(
            f"{status_mark('good')} Restorable: {count(drilled['files'], 'file')} hatched and compared."
        )
    else:
        print_out(f"{status_mark('bad')} It cannot be restored: {strip_control(drilled['problem'])}")
    _show_apart(record)
    print_out(f"  {tilde(record['path'])}")


def show_drill(record: dict[str, Any]) -> None:
    """Shows whether a snapshot that was tried can be restored."""
    name, drilled = strip_control(record["name"]), record["drill"]
    if record["restorable"]:
        print_out(f"{status_mark('good')} {name} can be restored: {drilled['files']} files.")
    else:
        print_out(f"{status_mark('bad')} {name}: {strip_control(drilled['problem'])}")
    _show_apart(record)


def _show_apart(record: dict[str, Any]) -> None:
    """Names what the drill of a snapshot found to be no twin."""
    apart = record["drill"]["apart"] if record["drill"] else ()
    _few(f"  {status_mark('note')} not a twin: {strip_control(text)}" for text in apart)


def _few(lines: Iterable[str]) -> None:
    """The first lines, and how many more there are."""
    found = list(lines)
    for line in found[:_SHOWN]:
        print_out(wrapped(line, 4))
    if len(found) > _SHOWN:
        print_out(f"    and {len(found) - _SHOWN} more (--json)")


def show_snapshots(found: dict[str, Any]) -> None:
    """Shows the list of snapshots."""
    show_failing(found["schedule"])
    if not found["snapshots"]:
        print_out("There is no snapshot yet. → rappd neighborhood snapshot")
        return
    now = time()
    rows = [
        [
            one["name"],
            ago(now - datetime.fromisoformat(one["taken_at"]).timestamp()),
            _state(one),
            format_bytes(one["size"]),
            str(one["machines"]),
            str(one["twins"]),
        ]
        for one in found["snapshots"]
    ]
    table(["SNAPSHOT", "TAKEN", "STATE", "SIZE", "MACHINES", "TWINS"], rows, shrink=5)


def show_restore_plan(plan: dict[str, Any], *, path: Path) -> None:
    """The plan: who packed it, the counts per category, one block for each other machine. ``path``: the egg's."""
    egg, seal = plan["egg"], plan["seal"]
    print_out(f"{strip_control(egg['name'])}, {format_bytes(egg['size'])}, {_signed(seal)}")
    _categories(plan)
    for peer in plan["peers"]:
        _peer(peer, path)
    if plan["left_archived"]:
        print_out(
            dim(f"  {count(plan['left_archived'], 'archived twin')} stay in the egg (--restore-archived)")
        )
    if plan["boot"] and not plan["nothing_to_do"]:
        print_out(dim(f"  {count(len(plan['boot']), 'twin')} will be started again"))
    for text in plan["notes"]:
        print_out(f"{status_mark('note')} {strip_control(text)}")
    _problems(plan["problems"])


def show_way_on(plan: dict[str, Any], *, file: str) -> None:
    """Ends a plan that was only to be looked at: the command that does it, if it would do anything."""
    if plan["target"] == "in-place" and any(peer.get("problem") for peer in plan["peers"]):
        simulated = _options({**plan, "target": "local-simulate"})
        here = command(f"rappd neighborhood hatch {shlex.quote(file)}{simulated}")
        print_out(
            wrapped(
                f"  {status_mark('note')} what has no way to its machine comes back here, into simulated/:", 4
            )
        )
        print_out(f"    {arrow()} {here}")
    if plan["nothing_to_do"]:
        why = "nothing else can be done." if plan["problems"] else "all of it is here, or stays yours."
        print_out(f"Nothing to do: {why}")
        return
    onward = command(f"rappd neighborhood hatch {shlex.quote(file)}{_options(plan)}")
    print_out(f"Nothing was written. {arrow()} {onward}")


def show_restored(done: dict[str, Any], path: Path) -> None:
    """Shows the result of a restore, and how to undo it. ``path``: the egg's."""
    mark = status_mark("note" if done["partial"] else "good")
    nothing = done["nothing_to_do"] and not done["partial"]
    what = "is here already; nothing had to be written" if nothing else "hatched"
    print_out(f"{mark} {strip_control(done['egg']['name'])} {what}.")
    _categories(done)
    for peer in done["peers"]:
        _peer(peer, path)
    if done["booted"]:
        print_out(f"  {count(len(done['booted']), 'twin')} started, or starts with the next start of rappd")
    quarantined = sum(one.get("quarantined", 0) for one in done["local"])
    if quarantined:
        files = count(quarantined, "code file")
        do = command("rappd agents approve")
        print_out(f"{status_mark('note')} {files} wait for your approval: kept, not run. {arrow()} {do}")
    _problems(done["failed"])
    if done["failed"]:
        print_out(f"  {arrow()} put that right and rerun; only what is left is done")
    for receipt in done["receipts"][:_SHOWN]:
        print_out(f"  {dim('Undo:')} {command(f'rappd egg rollback {receipt}')}")


def show_open_calls(number: int) -> None:
    """Says that calls came back unanswered, and how they go out."""
    if number:
        print_out(
            f"{status_mark('note')} {count(number, 'open call')} came back; nothing was sent. {arrow()} "
            f"{command('rappd outbox list')}"
        )


def _categories(plan: dict[str, Any]) -> None:
    for name, label in _CATEGORIES.items():
        counts = plan["categories"][name]
        if any(counts.values()):
            print_out(
                f"  {label:<16} {counts['created']:>6} new  {counts['overwritten']:>6} replaced  {counts['skipped']:>6} stay"
            )


def _peer(peer: dict[str, Any], path: Path) -> None:
    way = f" {arrow()} {tilde(peer['way'])}" if peer["way"] else ""
    print_out(f"  {strip_control(peer['name'])}{way}")
    if not peer["twins"] and not peer["agents"] and not peer["agents_kept"]:
        print_out(dim("    nothing of it is in the egg"))
    for step in peer["twins"][:_SHOWN]:
        why = f", {strip_control(step['why'])}" if step.get("why") else ""
        print_out(f"    {step['action']:<10} {strip_control(step['name'])}{dim(why)}")
    if len(peer["twins"]) > _SHOWN:
        print_out(dim(f"    and {len(peer['twins']) - _SHOWN} more"))
    groups: dict[tuple[str, str], list[str]] = {}
    for step in peer["agents"]:
        groups.setdefault((step["action"], step.get("why", "")), []).append(step["name"])
    for (action, why), names in groups.items():
        agents = f"{count(len(names), 'agent')} of its brainstem{f', {strip_control(why)}' if why else ''}"
        print_out(wrapped(f"    {action:<10} {agents}", 15))
    if peer["agents_kept"]:
        kept = len(peer["agents_kept"])
        text = (
            f"{count(kept, 'file')} beside its agents {'stay' if kept > 1 else 'stays'} in the egg {arrow()} "
        )
        print_out(dim(wrapped(f"    {text}rappd egg extract {shlex.quote(str(path))} FOLDER", 4)))


def _problems(problems: list[str]) -> None:
    for text in problems[:_SHOWN]:
        print_out(wrapped(f"  {status_mark('bad')} {strip_control(text)}", 4))
    if len(problems) > _SHOWN:
        print_out(dim(f"    and {len(problems) - _SHOWN} more"))


def _signed(seal: dict[str, Any]) -> str:
    if not seal["signer"]:
        return "not signed"
    who = {"self": "this machine", "trusted": strip_control(seal["signer_name"])}.get(seal["standing"])
    return f"signed by {who}" if who else f"signed by an unknown key {seal['signer'][:16]}"


def _options(plan: dict[str, Any]) -> str:
    words = [] if plan["target"] == "in-place" else [f" --target {plan['target']}"]
    words += [f" --{name.replace('_', '-')}" for name, value in plan["options"].items() if value is True]
    return "".join(words)


def show_schedule(found: dict[str, Any] | None) -> None:
    """Shows the schedule: its rule, next moment and last outcome."""
    if found is None:
        print_out("No snapshots are scheduled.")
        print_out(f"  {arrow()} {command('rappd neighborhood schedule daily 03:00')}")
        return
    zone = f" ({strip_control(found['zone'])})" if found["zone"] else ""
    print_out(
        f"{strip_control(found['rule'])}{zone}, keeps the last {count(found['keep'], 'whole snapshot')}"
    )
    if found["missed"]:
        print_out(f"{status_mark('note')} {_local(found['next'])} was missed: rappd isn't running.")
        print_out(f"  {arrow()} {command('rappd start')}; it runs then")
    else:
        print_out(f"  Next  {_local(found['next'])}")
    if not found["last"]:
        print_out(dim("  It has not run yet."))
    elif found["outcome"]:
        show_failing(found)
    else:
        print_out(f"{status_mark('good')} Last  {_local(found['last'])}")


def show_failing(found: dict[str, Any] | None) -> None:
    """Shows since when the schedule fails, and why; nothing when it does not."""
    if found is not None and found["outcome"]:
        since = f"since {_local(found['failed_since'])}"
        print_out(f"{status_mark('bad')} Scheduled snapshots fail {since}: {strip_control(found['outcome'])}")


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%a %d %b %Y %H:%M}"


def _state(one: dict[str, Any]) -> str:
    drilled = one["drill"]
    if not one["there"]:
        return "file is gone"
    if drilled is None:
        return "not tried"
    if not one["restorable"]:
        return f"cannot be restored: {strip_control(drilled['problem'])}"
    absent = len(one["missing"]) + len(one["left_behind"])
    lacks = f", lacks {absent}" if absent else ""
    return f"restorable, {drilled['at'][:10]}{lacks}"
