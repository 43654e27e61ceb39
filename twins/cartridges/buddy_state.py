"""The state of a buddy: how time, experience and actions change it. Pure functions.

A buddy is a document in the published Buddy's shape. ``_meta.as_of`` says up to which moment energy and
mood were reckoned; time is not ticked but reckoned when somebody looks. A document without it (as others
write it) has slept: its time begins when it is taken in.
"""

from __future__ import annotations

import copy
import math
from datetime import datetime, timedelta

from twins.cartridges.buddy_schema import NAMELESS, THRESHOLDS, complete, meta
from twins.cartridges.field_specs import STAGES
from twins.cartridges.json_documents import Document, format_timestamp, parse_timestamp

CONTEXT_CAP = 10
FULL = 100
ENERGY_A_MINUTE = 1
MOOD_A_MINUTE = 0.5
_MOODS = ((80, "happy"), (50, "neutral"), (25, "anxious"))


def egg(now: datetime, *, name: str = NAMELESS, github_user: str | None = None) -> Document:
    """A new egg. It waits to be fed."""
    document: Document = {"_meta": meta(), "organism": {"name": name, "github_user": github_user}}
    document["organism"]["created_at"] = format_timestamp(now)
    complete(document)
    document["_meta"]["as_of"] = format_timestamp(now)
    return document


def at(document: Document, now: datetime) -> Document:
    """A copy as it is at ``now``: energy and mood have fallen, and a stage that was earned is reached.

    Whole minutes count and the rest is kept for later, so it does not matter how often somebody looks.
    """
    document = copy.deepcopy(document)
    complete(document)
    organism, head = document["organism"], document["_meta"]
    since = parse_timestamp(head.get("as_of"))
    if since is None or since > now:
        since = now
    minutes = (now - since) // timedelta(minutes=1)
    head["as_of"] = format_timestamp(since + minutes * timedelta(minutes=1))
    if organism["stage"] != "egg":
        for key, lost in (("energy", ENERGY_A_MINUTE), ("mood", MOOD_A_MINUTE)):
            organism[key] = bounded(organism[key] - minutes * lost)
        grow(organism, now)
    return document


def hear(document: Document, text: str, source: str, now: datetime) -> Document:
    """A copy that has ``text`` in mind: what was just said, and by whom.

    It keeps the last ten; an egg hears nothing.
    """
    document = at(document, now)
    organism = document["organism"]
    if organism["stage"] == "egg":
        return document
    entry = {"text": text, "at": format_timestamp(now), "source": source}
    organism["context_memory"] = [*organism["context_memory"], entry][-CONTEXT_CAP:]
    return document


def exported(document: Document, now: datetime) -> Document:
    """The document as others read it: settled, dated, without what only this machine keeps."""
    document = at(document, now)
    del document["_meta"]["as_of"]
    document["_meta"]["exported_at"] = format_timestamp(now)
    return document


def mood_name(mood: float) -> str:
    """happy, neutral, anxious or sad."""
    return next((name for least, name in _MOODS if mood >= least), "sad")


def stage_at(xp: float) -> str:
    """The stage that so much experience earns, once hatched."""
    return [stage for stage in STAGES[1:] if xp >= THRESHOLDS[stage]][-1] if xp >= 0 else "hatchling"


def grow(organism: Document, now: datetime) -> str:
    """Reaches the stage that the experience earns, never an earlier one; "" when it stays as it is."""
    earned = stage_at(organism["xp"])
    if STAGES.index(earned) <= STAGES.index(organism["stage"]):
        return ""
    organism["stage"] = earned
    event = {"type": "evolution", "to": earned, "at": format_timestamp(now)}
    organism["memories"] = [*organism["memories"], event]
    return earned


def bounded(value: float) -> float:
    """Energy or mood as it may be: 0 to 100."""
    return tidy(max(0, min(FULL, value)))


def tidy(value: float) -> float:
    """Whole numbers as integers, and no more than three digits behind the point."""
    if isinstance(value, int) or not math.isfinite(value):
        return value
    return int(value) if value.is_integer() and abs(value) < 1e15 else round(value, 3)
