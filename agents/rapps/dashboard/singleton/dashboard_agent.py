"""Dashboard keeps numbers over time: log them, look at them, compare them.

Say "log weight 81.5", "how did page views go?". Arguments: `action` (overview, log, query, delete; a bare
call gives the overview), `metric`, `value` for log, `limit` for query (default 100 points). The answer is
JSON: `{status, message, metrics | points, data_slush: {metric, latest, change}}`.

Points are in `.brainstem_data/dashboard/dashboard.json`, beside the agents folder. A page and a service, where they
are installed, show the same file; this agent needs neither.
"""

from __future__ import annotations

import json
import sys
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

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/dashboard_agent",
    "version": "1.0.0",
    "display_name": "Dashboard",
    "description": "Numbers over time: logged, listed, summarised.",
    "summary": "Keeps numbers, to compare them over time.",
    "author": "rappd",
    "tags": ["dashboard", "metrics", "analytics"],
    "category": "analysis",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}


class DashboardAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Dashboard"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Logs numbers (metrics) over time and reports them: latest, average, highest, lowest.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        **text,
                        "enum": ["overview", "log", "query", "delete"],
                        "default": "overview",
                        "description": "What to do.",
                    },
                    "metric": {**text, "description": "Name of the number, such as weight."},
                    "value": {"type": "number", "description": "log: the number."},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 1000,
                        "default": 100,
                        "description": "query: how many of the last points.",
                    },
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        metric = str(kwargs.get("metric") or "").strip()
        usual = "log" if metric and kwargs.get("value") is not None else "query" if metric else "overview"
        action = str(kwargs.get("action") or usual).strip().lower()
        try:
            if action == "overview":
                reply = _all()
            elif action == "log":
                reply = _log(metric, kwargs.get("value"))
            elif action == "query":
                reply = _query(metric, kwargs.get("limit"))
            elif action == "delete":
                with _open_metrics() as metrics:
                    del metrics[_known(metric, metrics)]
                reply = {"message": f"{metric} is deleted.", "metric": metric}
            else:
                raise ValueError(
                    f"Dashboard knows no action {action!r}; it knows overview, log, query, delete."
                )
        except (ValueError, OSError) as error:
            return json.dumps({"status": "error", "message": str(error)}, ensure_ascii=False)
        return json.dumps({"status": "success", **reply}, ensure_ascii=False)


def _all() -> dict[str, Any]:
    found = {key: _overview(points) for key, points in _metrics().items()}
    lines = [
        f"- {key}: {row['latest']:g} (average {row['average']:g}, {row['minimum']:g} to {row['maximum']:g}, "
        f"{row['count']} points)"
        for key, row in found.items()
    ]
    message = "\n".join(lines) or "No number is kept yet."
    latest = {key: row["latest"] for key, row in found.items()}
    return {"message": message, "metrics": found, "data_slush": {"latest": latest}}


def _log(metric: str, given: Any) -> dict[str, Any]:
    if not _NAME.fullmatch(metric):
        raise ValueError("A metric's name has up to 64 letters, digits, spaces or . : % -")
    value = _number(given)
    if value is None:
        raise ValueError("A value is needed, and it has to be a number.")
    with _open_metrics() as metrics:
        if metric not in metrics and len(metrics) >= _MOST_METRICS:
            raise ValueError(f"There are {_MOST_METRICS} metrics already; delete one first.")
        points = metrics.setdefault(metric, [])
        points.append({"value": value, "recorded_at": datetime.now(UTC).isoformat(timespec="milliseconds")})
        del points[:-_KEPT]
        slush = _signals(metric, points)
    return {"message": f"{metric} is {value:g}.", "metric": metric, "value": value, "data_slush": slush}


def _query(metric: str, limit: Any) -> dict[str, Any]:
    metrics = _metrics()
    metric = _known(metric, metrics)
    try:
        count = min(_KEPT, max(1, int(limit or 100)))
    except (TypeError, ValueError):
        count = 100
    points = metrics[metric]
    row = _overview(points)
    message = (
        f"{metric}: {row['latest']:g} at {row['updated_at']}; average {row['average']:g}, "
        f"{row['minimum']:g} to {row['maximum']:g}, {row['count']} points."
    )
    slush = _signals(metric, points)
    return {"message": message, "metric": metric, "points": points[-count:], **row, "data_slush": slush}


def _known(metric: str, metrics: dict[str, Any]) -> str:
    found = next((key for key in metrics if key.casefold() == metric.casefold()), None)
    if found is None:
        raise ValueError(f"There is no metric {metric!r}; there are {', '.join(metrics) or 'none'}.")
    return found


def _signals(metric: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    latest = points[-1]["value"]
    change = latest - points[-2]["value"] if len(points) > 1 else 0
    return {"metric": metric, "latest": latest, "change": change}


if __name__ == "__main__":
    sys.stdout.write(DashboardAgent().perform() + "\n")
