"""Screens of ``rappd egg``: plans, hatchings and findings."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_out,
    status_mark,
    strip_control,
    terminal_width,
)
from rappd.cli.formatting import count, tilde
from rappd.cli.tables import beginning, cells, middle
from rappd.features.estate.text import show_hatched_members, show_planned_members
from rappd.features.twins.text import handle
from twins.byte_sizes import format_bytes

if TYPE_CHECKING:
    from twins.eggs.parsed_egg import ParsedEgg
    from twins.eggs.readers.diff import Difference

_SHOWN, _LISTED = 8, 20
_ROLES = {
    "identity": ("rappid", "rappids"),
    "soul": ("soul", "souls"),
    "memory": ("memory", "memories"),
    "conversations": ("conversations", "conversations"),
    "page": ("page file", "page files"),
    "workflow": ("workflow", "workflows"),
    "rules": ("rules file", "rules files"),
    "env": (".env", ".env files"),
    "roster": ("roster", "rosters"),
    "other": ("other", "others"),
}
_ALONE = ("identity", "soul", "conversations", "env", "roster")
"""Of these there is one, and nobody counts it."""
_CODE = ("agent", "service", "slot")
_SAME = "the same is there"
_MERGED = "yours was merged into it"
_OWN_HISTORY = "bonds.json"
"""A file that each hatched twin has of its own from the first hatching on: that it differs is no news."""
_OPTIONS = ("soul", "memory", "agents", "services", "slots", "pages", "env")


def show_plan(plan: dict[str, Any], file: str) -> None:
    """The screen of ``rappd egg plan``: who packed it, whether whole, and what would become of its files."""
    from twins.eggs.readers.formats import spoken

    egg, seal = plan["egg"], plan["seal"]
    packed = f", packed {day(egg['packed_at'])}" if egg["packed_at"] else ""
    print_out(f"{strip_control(egg['name'])}, {spoken(egg['kind'])}, {format_bytes(egg['size'])}{packed}")
    whole, signed = _whole(seal), _signed(seal)
    both = f"{whole}    {signed}"
    for line in [both] if cells(click.unstyle(both)) <= terminal_width() else [whole, signed]:
        print_out(line)
    hatches = plan["destination"] != "answer"
    if hatches:
        _rows(plan)
        _variables(plan)
        _reach(plan)
    for one in plan["refuse"]["files"][:_SHOWN]:
        print_out(dim(f"    {middle(strip_control(one['path']), 40)}: {strip_control(one.get('why', ''))}"))
    for text in plan["notes"]:
        print_out(f"{status_mark('note')} {strip_control(text)}")
    for line in plan["answer"].splitlines():
        print_out(strip_control(line))
    show_planned_members(plan)
    if seal["whose"] and seal["standing"] == "unknown" and plan["quarantine"]["count"]:
        trust = command(f"rappd egg signers --trust {seal['signer_name']}")
        print_out(f"  {arrow()} to let all code run that {seal['signer_name']} signs: {trust}")
    if hatches and plan["nothing_to_do"]:
        here = _kept(plan["keep"]) == _SAME and not plan["refuse"]["count"]
        print_out(f"Nothing to do: {'all of it is here.' if here else 'what differs stays yours.'}")
        return
    onward = f" {arrow()} {command(f'rappd egg hatch {shlex.quote(file)}')}" if hatches else ""
    print_out(f"Nothing was written.{onward}")


def show_hatched(done: dict[str, Any]) -> None:
    """Shows the result of a hatching."""
    _show_own(done)
    show_hatched_members(done)


def _show_own(done: dict[str, Any]) -> None:
    if done["answer"] and not done["receipt"]:
        for line in done["answer"].splitlines():
            print_out(strip_control(line))
        return
    talked = done["create"]["roles"].get("conversations", 0)
    files = sum(done[group]["count"] for group in ("create", "replace", "quarantine"))
    written = files - talked
    if written:
        print_out(f"{status_mark('good')} {strip_control(done['name'])} hatched: {count(files, 'file')}.")
    elif done["conversations"] or (done["conversations"] is None and talked):
        print_out(f"{status_mark('good')} {strip_control(done['name'])} goes on.")
    else:
        print_out(
            f"{status_mark('good')} {strip_control(done['name'])} is here already; nothing had to be written."
        )
    kept = _kept(done["keep"])
    if kept not in ("", _SAME):
        print_out(f"  {kept}")
    _quarantined(done)
    if done["released"]:
        print_out(
            f"{status_mark('good')} {count(len(done['released']), 'file')} that waited for approval may be used now."
        )
    if done["conversations"]:
        print_out(f"  {count(done['conversations'], 'record')} of conversations went on.")
    elif done["conversations"] is None and talked:
        print_out("  Its conversations go on at the next start.")
    for text in done["notes"]:
        print_out(f"{status_mark('note')} {strip_control(text)}")
    if done["receipt"] and (written or done["conversations"] is None):
        undo = f"rappd egg rollback {done['receipt']}"
        print_out(f"  {dim('Undo:')} {command(undo)}")


def show_differences(found: Difference) -> None:
    """Prints what ``diff`` found, one line each."""
    for line in found.lines():
        text = strip_control(line.text) if line.verdict != "good" else f"{status_mark('good')} {line.text}"
        print_out(text)


def show_egg(opened: ParsedEgg, egg: dict[str, Any], check: bool) -> None:
    """Shows what is in an egg and who packed it, or, after a ``check`` of every byte, what came of that."""
    from twins.eggs.readers.inspect import ReportLine, lines, verdict

    sure = opened.seal.checked and egg["standing"] in ("self", "trusted")
    signed = ReportLine("good" if sure else "note", egg["signed"])
    for line in (verdict if check else lines)(opened, signed=signed):
        mark = f"{status_mark(line.verdict)} " if line.verdict else ""
        print_out(mark + strip_control(line.text))
    if check and opened.seal.signer:
        print_out(f"  key {opened.seal.signer}")


def show_packed(done: dict[str, Any]) -> None:
    """Shows the result of a packing."""
    from twins.eggs.writers.unread_kinds import in_words

    sealed = f", sealed for {strip_control(done['for'])}" if "for" in done else ""
    show_file_packed(done["name"], done, f"signed{sealed}")
    if done["signature"]:
        print_out(f"  {tilde(done['signature'])} {dim('is its signature')}")
    if unread := in_words(done["unread"]):
        print_out(dim(f"  not scanned for secrets: {unread}"))
    for one in done["odd_names"][:_LISTED]:
        print_out(
            f"{status_mark('note')} {strip_control(one['path'])} is packed, and nobody will install it: {strip_control(one['why'])}"
        )
    for one in done["left_out"][:_LISTED]:
        print_out(dim(f"  left out: {strip_control(one['path'])} {one['why']}"))
    if len(done["left_out"]) > _LISTED:
        print_out(dim(f"  and {len(done['left_out']) - _LISTED} more"))


def show_file_packed(name: str, done: dict[str, Any], how: str, what: str = "") -> None:
    """Shows the file that was packed: its name, what is in it, its size, and where it lies."""
    contents = what or count(done["files"], "file")
    print_out(f"{status_mark('good')} {strip_control(name)}: {contents}, {format_bytes(done['size'])}, {how}")
    print_out(f"  {tilde(done['path'])}")


def day(moment: str) -> str:
    """A moment's day, ``20 Nov``, with its year unless that is this one; as it is written when it is none."""
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return strip_control(moment)[:40]
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    return f"{at.day} {at:%b}{year}"


_ACTIONS = {
    "create": "New",
    "replace": "Replaced",
    "keep": "Unchanged",
    "quarantine": "For approval",
    "refuse": "Rejected",
}


def _rows(plan: dict[str, Any]) -> None:
    digits = max(len(str(plan[action]["count"])) for action in _ACTIONS)
    for action, label in _ACTIONS.items():
        group = plan[action]
        if group["count"]:
            head = f"  {label:<12} {group['count']:>{digits}}  "
            about = _fitted(action, _about(action, group), terminal_width() - len(head))
            print_out(f"{head}{about}".rstrip())


def _variables(plan: dict[str, Any]) -> None:
    """The names that a placed ``.env`` sets, and those of them that no agent gets."""
    for one in plan["variables"]:
        path = strip_control(one["path"])
        if one["problem"]:
            print_out(f"{status_mark('note')} {strip_control(one['problem'])}")
        if one["names"]:
            print_out(f"  {path} sets {_listed(one['names'])}")
        if one["never_taken"]:
            print_out(
                f"{status_mark('note')} {path} sets what is never taken from it: {_listed(one['never_taken'])}"
            )


def _reach(plan: dict[str, Any]) -> None:
    """The reach of the egg's code: what it declares, or all of it."""
    for one in plan["permissions"][:_SHOWN]:
        path, may = strip_control(one["path"]), strip_control("; ".join(one["may"]))
        print_out(f"  {path}: {may}")
    if (more := len(plan["permissions"]) - _SHOWN) > 0:
        print_out(dim(f"  and {count(more, 'file')} of code more (--json)"))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return strip_control(", ".join(names[:_SHOWN])) + more


def _about(action: str, group: dict[str, Any]) -> str:
    if not group["count"]:
        return ""
    match action:
        case "create":
            return _what(group["roles"])
        case "replace":
            merged = any(one.get("why") == _MERGED for one in group["files"])
            return _what(group["roles"]) + ("; yours was merged into it (--no-memory)" if merged else "")
        case "keep":
            return _kept(group)
        case "quarantine":
            return f"{_what(group['roles'])}; read, then: {command('rappd agents approve')}"
    return ""


def _fitted(action: str, about: str, room: int) -> str:
    """As much of it as the row has room for; options and commands are there whole, or not at all."""
    if cells(about) <= room:
        return about
    return beginning(about.partition("; " if action == "quarantine" else " (")[0], max(12, room))


def _kept(group: dict[str, Any]) -> str:
    """Returns the files that stay and the option that replaces them; "" when there are none."""
    differing = [one for one in group["files"] if one.get("why") != _SAME and one["path"] != _OWN_HISTORY]
    if not differing:
        return _SAME if group["count"] else ""
    some = "yours" if len(differing) == group["count"] else f"{len(differing)} of yours"
    stay = "differ and stay" if len(differing) > 1 else "differs and stays"
    options = _options(differing)
    return f"{some} {stay}{f' (--overwrite {options})' if options else ''}"


def _options(files: Iterable[dict[str, Any]]) -> str:
    """Returns the value of ``--overwrite`` that replaces these files; "" when none does."""
    from twins.eggs.parsed_egg import Role
    from twins.installer.placement_rules import category_of

    found = {category_of(one["path"], Role(one["role"])) for one in files}
    return ",".join(one for one in _OPTIONS if one in {category.value for category in found if category})


def _what(roles: dict[str, int]) -> str:
    words = []
    for role, (one, many) in _ROLES.items():
        if number := roles.get(role):
            words.append(one if number == 1 and role in _ALONE else count(number, one, many))
        if role == "conversations" and (code := sum(roles.get(one, 0) for one in _CODE)):
            words.append(count(code, "code file"))
    return ", ".join(words)


def _quarantined(done: dict[str, Any]) -> None:
    files = [one["path"] for one in done["quarantine"]["files"]]
    if not files:
        return
    what, used = ("file", "used") if done["quarantine"]["roles"].get("env") else ("code file", "run")
    verb = "waits" if len(files) == 1 else "wait"
    print_out(f"{status_mark('note')} {count(len(files), what)} {verb} for your approval: kept, not {used}.")
    for path in files[:_SHOWN]:
        print_out(dim(f"    {strip_control(path)}"))
    if len(files) > _SHOWN:
        print_out(dim(f"    and {len(files) - _SHOWN} more"))
    whose = f" --twin {handle(done['name'], done['key'])}" if done["destination"] == "twin" else ""
    print_out(f"  {arrow()} read them, then: {command(f'rappd agents approve{whose}')}")


def _whole(seal: dict[str, Any]) -> str:
    from twins.eggs.readers.inspect import complete_text

    if seal["whole"]:
        return f"{status_mark('good')} {complete_text(seal['listed'])}"
    if seal["listed"]:
        return f"{status_mark('note')} readable; {seal['listed']:,} files with a hash"
    return f"{status_mark('note')} readable; it carries no hashes"


def _signed(seal: dict[str, Any]) -> str:
    mark = status_mark("good" if seal["standing"] in ("self", "trusted") else "note")
    return f"{mark} {strip_control(seal['signed'])}"
