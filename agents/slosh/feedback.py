"""Feedback of an agent on the usefulness of its signals, fading with every call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.slosh.filters import texts
from agents.slosh.layer_names import FILTERED, published

DECAY = 0.9
FORGOTTEN_BELOW = 0.01
SUPPRESSED_AT = -3.0

Scores = dict[str, float]
"""Signal path ("temporal.fiscal"): how useful it was, zero being unknown."""


def decayed(scores: Scores) -> Scores:
    """The scores one call later."""
    faded = {path: score * DECAY for path, score in scores.items()}
    return {path: score for path, score in faded.items() if abs(score) >= FORGOTTEN_BELOW}


def scored(scores: Scores, feedback: Any) -> Scores:
    """The scores after ``{useful_signals: [path], useless_signals: [path]}``."""
    if not isinstance(feedback, Mapping):
        return scores
    new = dict(scores)
    for key, step in (("useful_signals", 1.0), ("useless_signals", -1.0)):
        for path in texts(feedback.get(key)):
            new[path] = new.get(path, 0.0) + step
    return new


def suppressed(scores: Scores) -> frozenset[str]:
    """The categories whose paths together were useless often enough."""
    sums: dict[str, float] = {}
    for path, score in scores.items():
        category = published(path.partition(".")[0])
        sums[category] = sums.get(category, 0.0) + score
    return frozenset(name for name in FILTERED if sums.get(name, 0.0) <= SUPPRESSED_AT)
