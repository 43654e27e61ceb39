"""Shipped agents by name: the order in which their examples are offered, and those that come later."""

from __future__ import annotations

NOT_AT_ONCE = frozenset({"AskPeer", "Buddy", "HatchEgg", "NeighborhoodRun", "SwarmFactory"})
"""Shipped agents that need something a new home has not: another machine, a buddy, an egg, a workshop."""
SHIPPED_FIRST = (
    "QuickAnswers",
    "ManageMemory",
    "ContextMemory",
    "HackerNews",
    "LearnNew",
    "Twin",
    "LayEgg",
    "NeighborhoodSnapshot",
    "Fleet",
)
"""The other shipped agents, those first that are of use to anybody."""
SHIPPED = NOT_AT_ONCE | frozenset(SHIPPED_FIRST)


def order_of(name: str) -> int:
    """The place of an agent where agents are listed: the owner's, shipped ones of use to anybody, the others."""
    if name in SHIPPED_FIRST:
        return 1 + SHIPPED_FIRST.index(name)
    return len(SHIPPED) if name in NOT_AT_ONCE else 0
