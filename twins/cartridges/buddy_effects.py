"""Actions on a buddy, with their gains and costs, as published."""

from __future__ import annotations

from enum import StrEnum

import msgspec


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
