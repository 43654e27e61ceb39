"""How plans, hatchings and findings look on a terminal (``rappd egg``)."""

from __future__ import annotations

from typing import Any

from rappd.cli.phrases import count, size
from rappd.cli.screen import arrow, command, dim, mark, say, tame
from rappd.cli.tables import middle

_SHOWN = 8
_ROLES = {
    "identity": ("rappid", "rappids"),
    "soul": ("soul", "souls"),
    "memory": ("memory file", "memory files"),
    "conversations": ("conversation", "conversations"),
    "page": ("page file", "page files"),
    "env": (".env", ".env files"),
    "roster": ("roster", "rosters"),
    "other": ("other file", "other files"),
}
_CODE = ("agent", "service", "slot")
_EXPLAINED = {
    "keep": "yours differ and stay",
    "quarantine": "read them, then: rappd agents approve",
}


def show_plan(plan: dict[str, Any], *, file: str, dry: bool) -> None:
    """The screen of ``rappd egg plan``: who packed it, whether whole, and what would become of its files."""
    egg, seal = plan["egg"], plan["seal"]
    packed = f", packed {egg['packed_at'][:10]}" if egg["packed_at"] else ""
    say(f"{tame(egg['name'])}, {_article(egg['kind'])}, {size(egg['size'])}{packed}")
    whole = f"{mark('good')} whole" if seal["whole"] else f"{mark('note')} carries no hashes"
    say(f"{whole}    {_signed(seal)}")
    for action in ("create", "replace", "keep", "quarantine", "refuse"):
        group = plan[action]
        if group["count"] or action in ("create", "refuse"):
            _row(action, group, plan)
    for one in plan["refuse"]["files"][:_SHOWN]:
        say(dim(f"    {middle(tame(one['path']), 40)}: {tame(one.get('why', ''))}"))
    for text in plan["notes"]:
        say(f"{mark('note')} {tame(text)}")
    for line in plan["answer"].splitlines():
        say(tame(line))
    if dry:
        say(f"Nothing was written. {arrow()} {command(f'rappd egg hatch {file}')}")


def show_hatched(done: dict[str, Any]) -> None:
    """What a hatching came to."""
    if done["answer"] and not done["receipt"]:
        for line in done["answer"].splitlines():
            say(tame(line))
        return
    if not done["receipt"]:
        say(f"{mark('good')} {tame(done['name'])} is here already, whole; nothing had to be written.")
        return
    written = done["create"]["count"] + done["replace"]["count"]
    say(f"{mark('good')} {tame(done['name'])} hatched: {count(written, 'file')}.")
    held = done["quarantine"]["count"]
    if held:
        say(f"{mark('note')} {count(held, 'code file')} quarantined: kept, not run.")
        for one in done["quarantine"]["files"][:_SHOWN]:
            say(dim(f"    {tame(one['path'])}"))
        say(f"  {arrow()} read them, then: {command('rappd agents approve')}")
    if done["conversations"]:
        say(f"  {done['conversations']} records of conversations went on.")
    say(dim(f"  Undo: rappd egg rollback {done['receipt']}"))


def _row(action: str, group: dict[str, Any], plan: dict[str, Any]) -> None:
    about = _EXPLAINED.get(action, "") if group["count"] else ""
    if action == "create":
        about = _what(group["roles"])
    if action == "keep":
        categories = sorted(
            {role for role in group["roles"] if role in ("soul", "memory")} | _plural(group["roles"])
        )
        about += f" (--overwrite {','.join(categories)})" if categories else ""
    say(f"  {action:<10} {group['count']:>4}  {about}".rstrip())


def _plural(roles: dict[str, int]) -> set[str]:
    return {f"{role}s" for role in roles if role in ("agent", "service", "slot", "page")}


def _what(roles: dict[str, int]) -> str:
    words = []
    for role, (one, many) in _ROLES.items():
        if number := roles.get(role):
            words.append(one if number == 1 else f"{number} {many}")
    code = sum(roles.get(role, 0) for role in _CODE)
    if code:
        words.append(count(code, "code file"))
    return ", ".join(words)


def _signed(seal: dict[str, Any]) -> str:
    if seal["standing"] == "self":
        return f"{mark('good')} signed by this machine"
    if seal["standing"] == "trusted":
        return f"{mark('good')} signed by {tame(seal['signer_name'])}"
    if seal["signer"]:
        return f"{mark('note')} signed by {seal['signer'][:16]}, not trusted here"
    return f"{mark('note')} not signed"


def _article(kind: str) -> str:
    return f"{'an' if kind[:1] in 'aeio' else 'a'} {kind}"
