"""Counters for Prometheus, read from the daemon when somebody asks."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon


def expose(daemon: Daemon) -> tuple[bytes, str]:
    """(text, content type) of every metric."""
    registry = CollectorRegistry()
    registry.register(_Collector(daemon))
    return generate_latest(registry), CONTENT_TYPE_LATEST


class _Collector(Collector):
    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def collect(self) -> Iterable[Metric]:
        daemon = self._daemon
        yield _counter("rappd_turns", "Turns answered.", daemon.dispatcher.passed)
        yield _counter("rappd_turns_refused", "Turns answered with an error.", daemon.dispatcher.refused)
        yield _counter("rappd_agent_calls", "Agent calls.", daemon.dispatcher.calls)
        yield _counter("rappd_agent_calls_failed", "Agent calls that failed.", daemon.dispatcher.calls_failed)
        yield _counter("rappd_model_rounds", "Rounds asked of the model.", daemon.providers.meter.rounds)
        yield _counter(
            "rappd_model_tokens",
            "Tokens the model counted.",
            daemon.providers.meter.input_tokens + daemon.providers.meter.output_tokens,
        )
        yield _gauge(
            "rappd_turns_running",
            "Turns under way.",
            len(daemon.dispatcher.turns) + len(daemon.dispatcher.guests_turns),
        )
        yield _gauge("rappd_agents", "Agents that answer now.", len(daemon.host.registry.serving()))
        yield _gauge(
            "rappd_agents_unavailable",
            "Files with faults that serve nothing.",
            len(daemon.host.registry.unavailable()),
        )
        yield _counter(
            "rappd_security_events",
            "Lines of the log that say security:.",
            daemon.security_events.count,
        )
        workers = daemon.supervisor.stats()
        yield _gauge("rappd_workers", "Worker processes.", workers["workers"])
        yield _counter("rappd_worker_requests", "Requests that workers were given.", workers["requests"])
        yield _counter(
            "rappd_zygotes_started",
            "Starts of the process that workers are forked from.",
            workers["zygotes_started"],
        )
        yield _gauge("rappd_uptime_seconds", "Seconds since the start.", time.time() - daemon.started_at)


def _counter(name: str, text: str, value: float) -> Metric:
    family = CounterMetricFamily(name, text)
    family.add_metric([], value)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text)
    family.add_metric([], value)
    return family
