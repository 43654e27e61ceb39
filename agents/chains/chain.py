"""Agents one after the other, each waking up with what the one before handed on (RAPP v1 §2.5)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from agents.chains.chain_step import run_step

Transform = Callable[[dict[str, Any], Any], Mapping[str, Any] | None]
"""``(last_result, last_slush)`` to arguments for the step."""


@dataclass(slots=True)
class StepResult:
    """One step that ran. ``status`` is success or error; durations are milliseconds."""

    name: str
    status: str
    result: dict[str, Any] | None
    data_slush: Any
    duration_ms: float
    error: str | None = None


@dataclass(slots=True)
class ChainResult:
    """``status`` is success; error, when the chain stopped or every step failed; or partial.

    ``failed_step`` and ``error`` tell of the first failure.
    """

    status: str
    steps: list[StepResult] = field(default_factory=list)
    total_duration_ms: float = 0.0
    final_result: dict[str, Any] | None = None
    final_slush: Any = None
    failed_step: str | None = None
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True, frozen=True)
class _Step:
    name: str
    agent: Any
    arguments: Mapping[str, Any]
    transform: Transform | None


class AgentChain:
    """A sequence of agents. ``step_timeout`` is in milliseconds, None for no limit.

    A step fails when its agent raises, runs out of time or returns ``{"status": "error"}``; the
    chain then stops, unless ``stop_on_error`` is off.
    """

    def __init__(self, stop_on_error: bool = True, step_timeout: float | None = None) -> None:
        self.stop_on_error = stop_on_error
        self.step_timeout = step_timeout
        self._steps: list[_Step] = []

    def add(
        self,
        name: str,
        agent: Any,
        kwargs: Mapping[str, Any] | None = None,
        transform: Transform | None = None,
    ) -> Self:
        """Append a step. ``kwargs`` are its arguments; what ``transform`` makes of the last result wins."""
        self._steps.append(_Step(name, agent, dict(kwargs or {}), transform))
        return self

    def run(self, initial: Mapping[str, Any] | None = None, **more: Any) -> ChainResult:
        """Perform the steps. ``initial`` (and ``more``) go below the first step's own arguments.

        Each step gets the slush of the one before, whole, as ``upstream_slush``.
        """
        started = time.perf_counter()
        done = ChainResult("success")
        for number, step in enumerate(self._steps):
            arguments = {**(initial or {}), **more} if number == 0 else {}
            arguments.update(step.arguments)
            self._take(step, arguments, done, first=number == 0)
            if done.error is not None and self.stop_on_error:
                break
        done.status = self._status(done)
        done.total_duration_ms = round((time.perf_counter() - started) * 1000, 3)
        return done

    def _take(self, step: _Step, arguments: dict[str, Any], done: ChainResult, *, first: bool) -> None:
        try:
            if step.transform is not None and not first:
                arguments.update(step.transform(done.final_result or {}, done.final_slush) or {})
        except Exception as error:  # noqa: BLE001  # code in a chain may raise anything
            self._note(
                done, StepResult(step.name, "error", None, None, 0.0, f"{type(error).__name__}: {error}")
            )
            return
        if done.final_slush:
            arguments["upstream_slush"] = done.final_slush
        ran = run_step(step.name, step.agent, arguments, self.step_timeout)
        if ran.result is not None:
            done.final_result, done.final_slush = ran.result, ran.slush
        status = "error" if ran.error else "success"
        self._note(
            done, StepResult(step.name, status, ran.result, ran.slush, ran.duration_ms, ran.error or None)
        )

    @staticmethod
    def _note(done: ChainResult, step: StepResult) -> None:
        done.steps.append(step)
        if step.error is not None and done.error is None:
            done.failed_step, done.error = step.name, step.error

    def _status(self, done: ChainResult) -> str:
        if done.error is None:
            return "success"
        if self.stop_on_error or all(step.error is not None for step in done.steps):
            return "error"
        return "partial"
