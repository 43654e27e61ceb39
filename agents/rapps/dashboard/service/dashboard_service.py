"""Dashboard serves numbers over time. The agent does all of it without this file.

GET             {metrics: {name: {latest, minimum, maximum, average, count, updated_at}}}
GET <metric>    {metric, points: the last 100, oldest first}
POST <metric>   {value} -> 201 {status, metric, value}; 400 without a value
DELETE <metric> {status, metric}

Points are in `.brainstem_data/dashboard/dashboard.json`, beside the services folder, shared with the agent.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system: one process at a time there
    fcntl = None  # type: ignore[assignment]  # checked before use

name = "dashboard"

_SHOWN = 100


# The store, the same in service and agent (agents/rapps/make_bundles.py).
_FILE = Path(__file__).resolve().parent.parent / ".brainstem_data" / "dashboard" / "dashboard.json"
_BEFORE = _FILE.parents[1] / _FILE.name  # where earlier versions kept it; the next change moves it
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
    for file in (_FILE, _BEFORE, _FILE):  # it may move between two looks
        try:
            return file.read_bytes()
        except FileNotFoundError:
            continue
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
            if _BEFORE.exists() and not _FILE.exists():
                _BEFORE.replace(_FILE)
            metrics = _metrics()
            yield metrics
            part = _FILE.with_name(f".{_FILE.name}.{uuid.uuid4().hex}")
            part.write_text(json.dumps({"metrics": metrics}, ensure_ascii=False), encoding="utf-8")
            part.replace(_FILE)
    finally:
        os.close(folder)


# End of the store.


def handle(method: str, path: str, body: Any) -> tuple[dict[str, Any], int]:
    """One request; see above."""
    metric = path.strip("/").strip()
    if not metric and method.upper() == "GET":
        return {"metrics": {key: _overview(points) for key, points in _metrics().items()}}, 200
    match method.upper():
        case "GET":
            points = _metrics().get(metric)
            if points is None:
                return _error(f"There is no metric {metric}.", 404)
            return {"metric": metric, "points": points[-_SHOWN:], **_overview(points)}, 200
        case "POST":
            return _log(metric, body if isinstance(body, dict) else {})
        case "DELETE":
            with _open_metrics() as metrics:
                if metrics.pop(metric, None) is None:
                    return _error(f"There is no metric {metric}.", 404)
            return {"status": "success", "metric": metric}, 200
    return _error(f"dashboard has no {method} {path or '/'}.", 404)


def _log(metric: str, given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    if not _NAME.fullmatch(metric):
        return _error("A metric's name has up to 64 letters, digits, spaces or . : % -", 400)
    value = _number(given.get("value"))
    if value is None:
        return _error("A value is needed, and it has to be a number.", 400)
    with _open_metrics() as metrics:
        if metric not in metrics and len(metrics) >= _MOST_METRICS:
            return _error(f"There are {_MOST_METRICS} metrics already; delete one first.", 409)
        points = metrics.setdefault(metric, [])
        points.append({"value": value, "recorded_at": datetime.now(UTC).isoformat(timespec="milliseconds")})
        del points[:-_KEPT]
    return {"status": "success", "metric": metric, "value": value}, 201


def _error(message: str, status: int) -> tuple[dict[str, Any], int]:
    return {"status": "error", "error": message}, status
