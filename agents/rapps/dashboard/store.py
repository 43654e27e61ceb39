"""The numbers on disk, for agent and service (RAPP v1 §18.8); written into each of them where they are installed."""

from __future__ import annotations

import json
import math
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system: one process at a time there
    fcntl = None  # type: ignore[assignment]  # checked before use

_FILE = Path(__file__).resolve().parent.parent / ".brainstem_data" / "dashboard" / "dashboard.json"
_NAME = re.compile(r"\w[\w .:%-]{0,63}")
_KEPT = 1000
_MOST_METRICS = 200
_one_thread = threading.Lock()


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300:
        return None
    return value if math.isfinite(value) else None


def _overview(points: list[dict[str, Any]]) -> dict[str, Any]:
    values = [point["value"] for point in points]
    return {
        "latest": values[-1],
        "minimum": min(values),
        "maximum": max(values),
        "average": round(math.fsum(values) / len(values), 6),
        "count": len(values),
        "updated_at": points[-1]["recorded_at"],
    }


def _metrics() -> dict[str, list[dict[str, Any]]]:
    content = _content()
    if content is None:
        return {}
    try:
        metrics = json.loads(content)["metrics"]
        sound = all(
            points and all(p["recorded_at"] and p["value"] + 0 < math.inf for p in points)
            for points in metrics.values()
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError("dashboard.json is damaged; it was left as it is. Move it away to start anew.")
    return dict(metrics)


def _content() -> bytes | None:
    try:
        return _FILE.read_bytes()
    except FileNotFoundError:
        return None


@contextmanager
def _open_metrics() -> Iterator[dict[str, list[dict[str, Any]]]]:
    """The metrics, alone with them; changes are written when the block ends, whole or not at all."""
    _FILE.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(_FILE.parent, os.O_RDONLY)
    try:
        with _one_thread:
            if fcntl:
                fcntl.flock(folder, fcntl.LOCK_EX)
            metrics = _metrics()
            yield metrics
            part = _FILE.with_name(f".{_FILE.name}.{uuid.uuid4().hex}")
            part.write_text(json.dumps({"metrics": metrics}, ensure_ascii=False), encoding="utf-8")
            part.replace(_FILE)
    finally:
        os.close(folder)
