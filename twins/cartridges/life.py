"""The life of a buddy: what it does, what that costs, how time and experience change it. Pure functions.

A buddy is a document in the published Buddy's shape. ``_meta.as_of`` says up to which moment energy and
mood were reckoned; time is not ticked but reckoned when somebody looks. A document without it (as others
write it) has slept: its time begins when it is taken in.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from twins.cartridges.buddy_words import NAMELESS, THRESHOLDS, complete, meta
from twins.cartridges.documents import Document
from twins.cartridges.fields import STAGES

CONTEXT_CAP = 10
LONG_CAP = 100
FULL = 100
ENERGY_A_MINUTE = 1
MOOD_A_MINUTE = 0.5
_MOODS = ((80, "happy"), (50, "neutral"), (25, "anxious"))


class Action(StrEnum):
    """What can be done with a buddy, as published."""

    FEED = "feed"
    PET = "pet"
    EXPLORE = "explore"
    POST = "post"
    COMMENT = "comment"
    HEARTBEAT = "heartbeat"
    REMEMBER = "remember"
    RECALL = "recall"
    STATUS = "status"


@dataclass(slots=True, frozen=True)
class Effect:
    """What an action changes: gains, and ``needs`` energy before it is done at all."""

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
"""What exploring brings beside, when something was found."""
PULSE = 5
"""How far the mood of a place moves the mood of who explores it."""


@dataclass(slots=True, frozen=True)
class Lived:
    """What came of an action. ``changed``: whether anything but the clock moved; ``found``: what was recalled."""

    document: Document
    said: str
    changed: bool
    found: list[Any] = field(default_factory=list)


def egg(now: datetime, *, name: str = NAMELESS, github_user: str | None = None) -> Document:
    """A new egg. It waits to be fed."""
    document: Document = {"_meta": meta(), "organism": {"name": name, "github_user": github_user}}
    document["organism"]["created_at"] = stamp(now)
    complete(document)
    document["_meta"]["as_of"] = stamp(now)
    return document


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
) -> Lived:
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
            return Lived(document, "An egg. Feed it and it hatches.", _moved(before, document))
        _hatch(organism, now, entropy)
        return Lived(document, f"The egg hatched. This is {organism['name']}.", True)
    name = organism["name"]
    text = text.strip()
    if action is Action.REMEMBER and not text:
        return Lived(document, f"There was nothing for {name} to remember.", _moved(before, document))
    effect = EFFECTS[action]
    if organism["energy"] < effect.needs:
        tired = f"{name} is too tired to {action}: energy {_shown(organism['energy'])} of {effect.needs}. Feed it."
        return Lived(document, tired, _moved(before, document))
    recalled = _recalled(organism, text) if action is Action.RECALL else []
    _take(organism, effect)
    if action is Action.EXPLORE:
        _take(organism, Effect(mood=PULSE * max(-1, min(1, pulse))))
        _take(organism, FOUND_SOMETHING if found else Effect())
    if action is Action.REMEMBER:
        _remember(organism, text, kind, now)
    if action in _LAST:
        organism[_LAST[action]] = stamp(now)
    if action is not Action.STATUS:
        organism["last_action"] = str(action)
    grown = _grow(organism, now)
    said = _said(organism, action, text, recalled, found) + (f" It is {_a(grown)} now." if grown else "")
    return Lived(document, said, _moved(before, document), recalled)


def at(document: Document, now: datetime) -> Document:
    """A copy as it is at ``now``: energy and mood have fallen, and a stage that was earned is reached.

    Whole minutes count and the rest is kept for later, so it does not matter how often somebody looks.
    """
    document = copy.deepcopy(document)
    complete(document)
    organism, head = document["organism"], document["_meta"]
    since = moment(head.get("as_of"))
    if since is None or since > now:
        since = now
    minutes = (now - since) // timedelta(minutes=1)
    head["as_of"] = stamp(since + minutes * timedelta(minutes=1))
    if organism["stage"] != "egg":
        for key, lost in (("energy", ENERGY_A_MINUTE), ("mood", MOOD_A_MINUTE)):
            organism[key] = _bounded(organism[key] - minutes * lost)
        _grow(organism, now)
    return document


def hear(document: Document, text: str, source: str, now: datetime) -> Document:
    """A copy that has ``text`` in mind: what was just said, and by whom. It keeps the last ten; an egg
    hears nothing."""
    document = at(document, now)
    organism = document["organism"]
    if organism["stage"] == "egg":
        return document
    entry = {"text": text, "at": stamp(now), "source": source}
    organism["context_memory"] = [*organism["context_memory"], entry][-CONTEXT_CAP:]
    return document


def exported(document: Document, now: datetime) -> Document:
    """The document as others read it: settled, dated, without what only this house keeps."""
    document = at(document, now)
    del document["_meta"]["as_of"]
    document["_meta"]["exported_at"] = stamp(now)
    return document


def mood_name(mood: float) -> str:
    """happy, neutral, anxious or sad."""
    return next((name for least, name in _MOODS if mood >= least), "sad")


def stage_at(xp: float) -> str:
    """The stage that so much experience earns, once hatched."""
    return [stage for stage in STAGES[1:] if xp >= THRESHOLDS[stage]][-1] if xp >= 0 else "hatchling"


def stamp(now: datetime) -> str:
    """A moment as the published Buddy writes it, ``2026-04-12T14:33:00.000Z``."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: Any) -> datetime | None:
    """The moment that ``text`` names; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


_LAST = {Action.FEED: "last_fed", Action.PET: "last_petted"}


def _hatch(organism: Document, now: datetime, entropy: bytes) -> None:
    """The first food makes a hatchling; it is spent on that, so nothing else is gained by it."""
    organism |= {"stage": "hatchling", "energy": 100, "mood": 90, "hatched_at": stamp(now)}
    organism["last_fed"] = stamp(now)
    organism["last_action"] = str(Action.FEED)
    organism["memories"] = [*organism["memories"], {"type": "hatch", "at": stamp(now)}]
    if organism["name"] == NAMELESS:
        organism["name"] = (organism["github_user"] or "")[:200] or f"buddy-{(entropy.hex() + '0000')[:4]}"
    _grow(organism, now)


def _take(organism: Document, effect: Effect) -> None:
    organism["xp"] = _tidy(organism["xp"] + effect.xp)
    organism["social"] = _tidy(organism["social"] + effect.social)
    organism["energy"] = _bounded(organism["energy"] + effect.energy)
    organism["mood"] = _bounded(organism["mood"] + effect.mood)
    if effect.counts:
        organism[effect.counts] += 1


def _grow(organism: Document, now: datetime) -> str:
    """Reaches the stage that the experience earns, never an earlier one; "" when it stays as it is."""
    earned = stage_at(organism["xp"])
    if STAGES.index(earned) <= STAGES.index(organism["stage"]):
        return ""
    organism["stage"] = earned
    event = {"type": "evolution", "to": earned, "at": stamp(now)}
    organism["memories"] = [*organism["memories"], event]
    return earned


def _remember(organism: Document, text: str, kind: str, now: datetime) -> None:
    entry = {
        "text": text,
        "type": kind,
        "saved_at": stamp(now),
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


def _said(organism: Document, action: Action, text: str, recalled: list[Any], found: bool) -> str:
    name = organism["name"]
    feels = f"Energy {_shown(organism['energy'])}, {mood_name(organism['mood'])}."
    if action is Action.REMEMBER:
        return f"{name} will remember: {text}"
    if action is Action.RECALL:
        told = "\n".join(entry["text"] for entry in recalled[:10])
        return f"{name} remembers:\n{told}" if told else f"{name} remembers nothing of that."
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


def _moved(before: Document, after: Document) -> bool:
    """Whether anything is new but the moment up to which time was reckoned."""
    return {**before, "_meta": None} != {**after, "_meta": None}


def _bounded(value: float) -> float:
    return _tidy(max(0, min(FULL, value)))


def _tidy(value: float) -> float:
    """Whole numbers as integers, and no more than three digits behind the point."""
    if isinstance(value, int) or not math.isfinite(value):
        return value
    return int(value) if value.is_integer() and abs(value) < 1e15 else round(value, 3)


def _shown(value: float) -> str:
    return f"{value:g}"
