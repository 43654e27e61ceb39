"""Changes between two JSON documents, as data: carried along in a cartridge, or shown as a diff.

An edit is ``{"at": [keys and indexes], "was": value, "is": value}``; without ``was`` it adds, without
``is`` it takes away.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from twins.cartridges.json_documents import canonical, same

Path = list[str | int]
Edit = dict[str, Any]
Whole = Callable[[Path, Any, Any], bool]
"""True when two different objects or lists at a path are to be exchanged whole instead of part by part."""


def between(before: Any, after: Any, *, whole: Whole | None = None) -> list[Edit]:
    """The edits that lead from ``before`` to ``after``. They hold copies, never parts of either."""
    found: list[Edit] = []
    _compare([], before, after, whole or _never, found)
    return found


def apply(edits: list[Edit], document: Any) -> Any:
    """A copy of ``document`` with the edits made where they still fit.

    An edit fits when what lies there is what it was made from. One that no longer fits is left out:
    what was changed since then wins. Only what an edit adds to a list always comes in, at its end if
    need be. Raises ``ValueError`` for what is no list of edits.
    """
    check(edits)
    root = [copy.deepcopy(document)]
    for edit in edits:
        _make(root, [0, *edit["at"]], edit)
    return root[0]


def lines(found: list[Edit]) -> list[str]:
    """Edits for people to read, one a line: ``stats.snark: 81 → 99``, ``memory[2] added: …``."""
    return [_line(edit) for edit in found]


def has(document: Any, at: Path) -> bool:
    """True when something lies at a path."""
    return _find(document, at)[0]


def get(document: Any, at: Path) -> Any:
    """The value at a path; None without one."""
    return _find(document, at)[1]


def remove(document: dict[str, Any], at: Path) -> None:
    """Takes a key out of an object, if it is there. Raises ``ValueError`` for what is no path of keys."""
    if not isinstance(at, list) or not at or not all(isinstance(step, str) for step in at):
        raise ValueError("a place is made of keys")
    there, holder = _find(document, at[:-1])
    if there and isinstance(holder, dict):
        holder.pop(at[-1], None)


def check(edits: Any) -> None:
    """Raises ``ValueError`` for anything but a list of edits."""
    if not isinstance(edits, list):
        raise ValueError("edits are a list")
    for edit in edits:
        if not isinstance(edit, dict) or not edit.keys() <= {"at", "was", "is"} or len(edit) < 2:
            raise ValueError("an edit has at, and was or is")
        steps = edit.get("at")
        if not isinstance(steps, list) or not all(
            isinstance(step, str) or (type(step) is int and step >= 0) for step in steps
        ):
            raise ValueError("an edit's place is made of keys and indexes")


def _compare(at: Path, before: Any, after: Any, whole: Whole, found: list[Edit]) -> None:
    if same(before, after):
        return
    exchanged = type(before) is not type(after) or whole(at, before, after)
    if not exchanged and isinstance(before, dict):
        for key in sorted(before.keys() | after.keys()):
            if key not in after:
                found.append({"at": [*at, key], "was": copy.deepcopy(before[key])})
            elif key not in before:
                found.append({"at": [*at, key], "is": copy.deepcopy(after[key])})
            else:
                _compare([*at, key], before[key], after[key], whole, found)
    elif not exchanged and isinstance(before, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            _compare([*at, index], old, new, whole, found)
        found.extend(
            {"at": [*at, index], "was": copy.deepcopy(before[index])}
            for index in range(len(before) - 1, len(after) - 1, -1)
        )
        found.extend(
            {"at": [*at, index], "is": copy.deepcopy(after[index])}
            for index in range(len(before), len(after))
        )
    else:
        found.append({"at": at, "was": copy.deepcopy(before), "is": copy.deepcopy(after)})


def _make(root: list[Any], at: Path, edit: Edit) -> None:
    holder: Any = root
    for step in at[:-1]:
        if isinstance(holder, dict) and isinstance(step, str):
            holder = holder.get(step)
        elif isinstance(holder, list) and isinstance(step, int) and step < len(holder):
            holder = holder[step]
        else:
            return
    last = at[-1]
    if isinstance(holder, dict) and isinstance(last, str):
        _make_in_object(holder, last, edit)
    elif isinstance(holder, list) and isinstance(last, int):
        _make_in_list(holder, last, edit)


def _make_in_object(holder: dict[str, Any], key: str, edit: Edit) -> None:
    if (key in holder) != ("was" in edit):
        return
    if "was" in edit and not same(holder[key], edit["was"]):
        _add_to_list(holder[key], edit)
        return
    if "is" in edit:
        holder[key] = copy.deepcopy(edit["is"])
    else:
        del holder[key]


def _make_in_list(holder: list[Any], index: int, edit: Edit) -> None:
    if "was" not in edit:
        holder.append(copy.deepcopy(edit["is"]))
    elif index < len(holder) and same(holder[index], edit["was"]):
        if "is" in edit:
            holder[index] = copy.deepcopy(edit["is"])
        else:
            del holder[index]


def _add_to_list(found: Any, edit: Edit) -> None:
    """Of a list that was exchanged whole, and changed since: what the exchange had added."""
    added = edit.get("is")
    if isinstance(found, list) and isinstance(edit["was"], list) and isinstance(added, list):
        known = {canonical(one) for one in (*edit["was"], *found)}
        found.extend(copy.deepcopy(one) for one in added if canonical(one) not in known)


def _line(edit: Edit) -> str:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in edit["at"])
    place = place.removeprefix(".") or "everything"
    if "was" not in edit:
        return f"{place} added: {_shortly(edit['is'])}"
    if "is" not in edit:
        return f"{place} removed: {_shortly(edit['was'])}"
    return f"{place}: {_shortly(edit['was'])} → {_shortly(edit['is'])}"


def _shortly(value: Any) -> str:
    text = canonical(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}…"


def _find(document: Any, at: Path) -> tuple[bool, Any]:
    for step in at:
        if isinstance(document, dict):
            inside = isinstance(step, str) and step in document
        else:
            inside = isinstance(document, list) and type(step) is int and 0 <= step < len(document)
        if not inside:
            return False, None
        document = document[step]
    return True, document


def _never(at: Path, before: Any, after: Any) -> bool:
    return False
