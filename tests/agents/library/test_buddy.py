"""Buddy asks the daemon for what a buddy does, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

FILE = "buddy_agent.py"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({}, "status"),
        ({"action": "feed"}, "feed"),
        ({"action": " Eat "}, "feed"),
        ({"action": "stroke"}, "pet"),
        ({"action": "mood"}, "status"),
        ({"action": "remember", "text": " plums ", "kind": "fact"}, "remember"),
    ],
)
async def test_it_asks_for_one_action(desk: Any, given: dict[str, str], asked: str) -> None:
    text = given.get("text", "").strip()
    assert await desk.text(FILE, "Buddy", **given) == f"buddy.{asked}: {text}"
    assert desk.keeper.asked == [(f"buddy.{asked}", {"text": text, "kind": given.get("kind", "")})]


@pytest.mark.parametrize("action", ["dance", "../twins.purge", "feed pet", "x" * 500])
async def test_it_asks_for_nothing_else(desk: Any, action: str) -> None:
    answer = await desk.text(FILE, "Buddy", action=action)
    assert answer.startswith("Error: there is no action")
    assert len(answer) < 300
    assert desk.keeper.asked == []


async def test_refusal_has_the_daemons_text(desk: Any) -> None:
    desk.keeper.refusal = "Pip is no buddy."
    assert await desk.text(FILE, "Buddy", action="feed") == "Error: Pip is no buddy."


def test_elsewhere_it_says_where_it_works(elsewhere: Any) -> None:
    assert (
        elsewhere.perform(FILE, "BuddyAgent", action="feed") == "Error: this works inside a brainstem only."
    )
