"""Dashboard serves numbers over time. The agent does all of it without this file.

GET             {metrics: {name: {latest, minimum, maximum, average, count, updated_at}}}
GET <metric>    {metric, points: the last 100, oldest first}
POST <metric>   {value} -> 201 {status, metric, value}; 400 without a value
DELETE <metric> {status, metric}

Points are in `.brainstem_data/dashboard/dashboard.json`, beside the services folder, shared with the agent.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from agents.rapps.dashboard.store import (
    _KEPT,
    _MOST_METRICS,
    _NAME,
    _metrics,
    _number,
    _open_metrics,
    _overview,
)

__manifest__: dict[str, Any] = {"needs": {}}
name = "dashboard"

_SHOWN = 100


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
