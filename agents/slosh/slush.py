"""Data that an agent hands on to the next one: reading it from a result, and making it (RAPP v1 §5.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import orjson


def outcome(value: Any) -> tuple[Any, Any]:
    """``(data_slush, slosh_feedback)`` of what a perform returned: JSON text or a dict; else None."""
    if isinstance(value, str):
        # Most results hold neither: look before parsing what may be megabytes.
        if "data_slush" not in value and "slosh_feedback" not in value:
            return None, None
        value = parsed(value)
    if not isinstance(value, Mapping):
        return None, None
    return value.get("data_slush"), value.get("slosh_feedback")


def parsed(text: str) -> Any:
    """The JSON value in ``text``, or None when there is none. Takes what ``json.dumps`` writes, NaN too."""
    with suppress(ValueError):  # NaN and lone surrogates, which json below takes
        return orjson.loads(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def slush_out(
    context: Mapping[str, Any],
    agent_name: str,
    confidence: Any = None,
    signals: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """``{source_agent, timestamp, orientation?, temporal_snapshot?, confidence?, signals?, …extra}``.

    The orientation and the time of day come from ``context``, as far as it shows them.
    """
    slush: dict[str, Any] = {"source_agent": agent_name, "timestamp": datetime.now().isoformat()}
    for key, layer, parts in (
        ("orientation", "orientation", ("confidence", "approach")),
        ("temporal_snapshot", "temporal", ("time_of_day", "fiscal")),
    ):
        content = context.get(layer)
        if isinstance(content, Mapping) and (
            shown := {part: content[part] for part in parts if part in content}
        ):
            slush[key] = shown
    if confidence is not None:
        slush["confidence"] = confidence
    if signals is not None:
        slush["signals"] = dict(signals)
    if extra:
        slush.update(extra)
    return slush
