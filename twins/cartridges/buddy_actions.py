"""Actions of a buddy, their results, and the text that tells them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from twins.cartridges.buddy_schema import NAMELESS, THRESHOLDS
from twins.cartridges.buddy_state import (
    at,
    bounded,
    grow,
    mood_name,
    tidy,
)
from twins.cartridges.field_specs import STAGES
from twins.cartridges.json_documents import Document, format_timestamp

LONG_CAP = 100


class Action(StrEnum):
    """An action on a buddy, as published."""

    FEED = "feed"
    PET = "pet"
    EXPLORE = "explore"
    POST = "post"
    COMMENT = "comment"
    HEARTBEAT = "heartbeat"
    REMEMBER = "remember"
    RECALL = "recall"
    STATUS = "status"


class Effect(msgspec.Struct, frozen=True):
    """Changes by an action: gains, and the energy it ``needs`` to be done at all."""

    xp: int = 0
    energy: int = 0
    mood: int = 0
    social: int = 0
    needs: int = 0
    counts: str = ""


EFFECTS = {
    Action.FEED: Effect(xp=1, energy=25, mood=5),
    Action.PET: Effect(xp=1, mood=15),
    Action.EXPLORE: Effect(xp=3, energy=-5),
    Action.POST: Effect(xp=10, energy=-20, social=5, needs=20, counts="posts_made"),
    Action.COMMENT: Effect(xp=5, energy=-10, social=3, needs=10, counts="comments_made"),
    Action.HEARTBEAT: Effect(xp=2, counts="frames_survived"),
    Action.REMEMBER: Effect(xp=3),
    Action.RECALL: Effect(xp=1),
    Action.STATUS: Effect(),
}
FOUND_SOMETHING = Effect(xp=2)
"""Additional gains of exploring, when something was found."""
PULSE = 5
"""The share of a place's mood that the explorer takes on."""


class ActionResult(msgspec.Struct, frozen=True):
    """The result of an action.

    ``changed``: whether anything but the clock moved; ``found``: what was recalled; ``done``: whether it was
    done at all.
    """

    document: Document
    answer: str
    changed: bool
    found: list[Any] = msgspec.field(default_factory=list)
    done: bool = True


def act(
    document: Document,
    action: Action,
    now: datetime,
    *,
    text: str = "",
    kind: str = "memory",
    found: bool = False,
    pulse: int = 0,
    entropy: bytes = b"",
) -> ActionResult:
    """Lets time pass until ``now``, then does ``action``. The given document stays untouched.

    ``text``: what to remember, or what to recall (words; none recalls the latest). ``kind``: of the memory.
    ``found`` and ``pulse`` (-1, 0, 1) are what exploring met with. ``entropy`` makes the name of one who
    hatches without any.
    """
    before = document
    document = at(document, now)
    organism = document["organism"]
    if organism["stage"] == "egg":
        if action is not Action.FEED:
            text_shown = "An egg. Feed it and it hatches."
            done = action is Action.STATUS
            return ActionResult(document, text_shown, _moved(before, document), done=done)
        _hatch(organism, now, entropy)
        return ActionResult(document, f"The egg hatched. This is {organism['name']}.", True)
    name = organism["name"]
    text = text.strip()
    if action is Action.REMEMBER and not text:
        nothing = f"There was nothing for {name} to remember."
        return ActionResult(document, nothing, _moved(before, document), done=False)
    effect = EFFECTS[action]
    if organism["energy"] < effect.needs:
        tired = f"{name} is too tired to {action}: energy {_shown(organism['energy'])} of {effect.needs}. Feed it."
        return ActionResult(document, tired, _moved(before, document), done=False)
    recalled = _recalled(organism, text) if action is Action.RECALL else []
    _take(organism, effect)
    if action is Action.EXPLORE:
        _take(organism, Effect(mood=PULSE * max(-1, min(1, pulse))))
        _take(organism, FOUND_SOMETHING if found else Effect())
    if action is Action.REMEMBER:
        _remember(organism, text, kind, now)
    if action in _LAST:
        organism[_LAST[action]] = format_timestamp(now)
    if action is not Action.STATUS:
        organism["last_action"] = str(action)
    grown = grow(organism, now)
    answer = _answer_text(organism, action, text, recalled, found) + (
        f" It is {_a(grown)} now." if grown else ""
    )
    return ActionResult(document, answer, _moved(before, document), recalled)


_LAST = {Action.FEED: "last_fed", Action.PET: "last_petted"}


def _hatch(organism: Document, now: datetime, entropy: bytes) -> None:
    """The first food makes a hatchling; it is spent on that, so nothing else is gained by it."""
    organism |= {"stage": "hatchling", "energy": 100, "mood": 90, "hatched_at": format_timestamp(now)}
    organism["last_fed"] = format_timestamp(now)
    organism["last_action"] = str(Action.FEED)
    organism["memories"] = [*organism["memories"], {"type": "hatch", "at": format_timestamp(now)}]
    if organism["name"] == NAMELESS:
        organism["name"] = (organism["github_user"] or "")[:200] or f"buddy-{(entropy.hex() + '0000')[:4]}"
    grow(organism, now)


def _take(organism: Document, effect: Effect) -> None:
    organism["xp"] = tidy(organism["xp"] + effect.xp)
    organism["social"] = tidy(organism["social"] + effect.social)
    organism["energy"] = bounded(organism["energy"] + effect.energy)
    organism["mood"] = bounded(organism["mood"] + effect.mood)
    if effect.counts:
        organism[effect.counts] += 1


def _remember(organism: Document, text: str, kind: str, now: datetime) -> None:
    entry = {
        "text": text,
        "type": kind,
        "saved_at": format_timestamp(now),
        "mood": organism["mood"],
        "stage": organism["stage"],
    }
    organism["long_memory"] = [*organism["long_memory"], entry][-LONG_CAP:]


def _recalled(organism: Document, text: str) -> list[Any]:
    """Memories that have every word of ``text``, the latest first."""
    words = text.casefold().split()
    return [
        entry
        for entry in reversed(organism["long_memory"])
        if isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
        and all(word in entry["text"].casefold() for word in words)
    ]


def _moved(before: Document, after: Document) -> bool:
    """True when anything is new but the moment up to which time was reckoned."""
    return {**before, "_meta": None} != {**after, "_meta": None}


def _answer_text(organism: Document, action: Action, text: str, recalled: list[Any], found: bool) -> str:
    name = organism["name"]
    feels = f"Energy {_shown(organism['energy'])}, {mood_name(organism['mood'])}."
    if action is Action.REMEMBER:
        return f"{name} will remember: {text}"
    if action is Action.RECALL:
        memories = "\n".join(entry["text"] for entry in recalled[:10])
        return f"{name} remembers:\n{memories}" if memories else f"{name} remembers nothing of that."
    if action is Action.STATUS:
        return f"{name}, {_a(organism['stage'])}. {feels} {_experience(organism)}"
    if action is Action.EXPLORE:
        return f"{name} explored and found {'something' if found else 'nothing'}. {feels}"
    return f"{name} {_DID[action]}. {feels}"


_DID = {
    Action.FEED: "ate",
    Action.PET: "was petted",
    Action.POST: "posted",
    Action.COMMENT: "commented",
    Action.HEARTBEAT: "lived on",
}


def _experience(organism: Document) -> str:
    later = STAGES[STAGES.index(organism["stage"]) + 1 :]
    if not later:
        return f"Experience {_shown(organism['xp'])}."
    return f"Experience {_shown(organism['xp'])} of {THRESHOLDS[later[0]]} to be {_a(later[0])}."


def _a(stage: str) -> str:
    return f"an {stage}" if stage[0] in "ae" else f"a {stage}"


def _shown(value: float) -> str:
    return f"{value:g}"
