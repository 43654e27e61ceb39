"""One step of a chain or a graph: an agent performed once, timed, its failure caught."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from agents.basic_agent import BasicAgent
from agents.runtimes.python.worker.invoke import invoke, settled
from agents.runtimes.python.worker.result_text import as_text
from agents.slosh.slush import parsed, slush_out

log = logging.getLogger(__name__)


Answer = tuple[Any, BaseException | None]


class StepOutcome(NamedTuple):
    """The outcome of a step.

    ``result`` is the parsed result, None when the agent raised or ran out of time; ``error`` is "" unless the
    step failed, which a returned ``{"status": "error"}`` is too.
    """

    result: dict[str, Any] | None
    slush: Any
    error: str
    duration_ms: float


def run_step(name: str, agent: Any, arguments: dict[str, Any], timeout_ms: float | None) -> StepOutcome:
    """Perform ``agent`` (its own ``execute`` where a class has written one), for at most ``timeout_ms``.

    Never raises for what the agent does. A step that ran out of time is left to itself: a thread
    cannot be stopped.
    """
    started = time.perf_counter()
    try:
        value, slush, context = _within(timeout_ms, lambda: _performed(agent, arguments))
        result = as_result(value)
    except _StepTimeoutError:
        return StepOutcome(None, None, f"{name} was stopped after {timeout_ms:g} ms", _since(started))
    except (Exception, SystemExit) as error:  # an agent may raise anything; the chain says so
        log.info("Step %s failed", name, exc_info=True)
        return StepOutcome(None, None, f"{type(error).__name__}: {error}", _since(started))
    status = str(result.get("status", "success"))
    if slush is None:
        signals = {"step_name": name, "step_result_status": status}
        slush = slush_out(context, str(getattr(agent, "name", name)), signals=signals)
    complaint = _complaint(name, result) if status.lower() == "error" else ""
    return StepOutcome(result, slush, complaint, _since(started))


def as_result(value: Any) -> dict[str, Any]:
    """The return value of perform as a dict: itself, its JSON, or ``{"status": "success", "raw": value}``."""
    found = parsed(value) if isinstance(value, str) else value
    if isinstance(found, Mapping):
        return dict(found)
    return {"status": "success", "raw": value if isinstance(value, str) else as_text(value)}


def elsewhere(run: Callable[[], Any], tell: Callable[[Answer], None]) -> None:
    """Run in a daemon thread that sees the caller's context; ``tell`` gets ``(value, exception)``."""

    def work() -> None:
        try:
            answer: Answer = (run(), None)
        except BaseException as error:  # noqa: BLE001  # handed to the waiting thread, which raises it
            answer = (None, error)
        tell(answer)

    Thread(target=copy_context().run, args=(work,), name="agent-step", daemon=True).start()


class _StepTimeoutError(Exception):
    """A step ran past its limit."""


def _within(timeout_ms: float | None, run: Callable[[], Any]) -> Any:
    if timeout_ms is None:
        return run()
    answers: SimpleQueue[Answer] = SimpleQueue()
    elsewhere(run, answers.put)
    try:
        value, error = answers.get(timeout=timeout_ms / 1000)
    except Empty:
        raise _StepTimeoutError from None
    if error is not None:
        raise error
    return value


def _performed(agent: Any, arguments: dict[str, Any]) -> tuple[Any, Any, Mapping[str, Any]]:
    if getattr(type(agent), "execute", BasicAgent.execute) is BasicAgent.execute:
        return invoke(agent, arguments)
    value = settled(agent.execute(**arguments))
    return value, getattr(agent, "last_data_slush", None), {}


def _complaint(name: str, result: Mapping[str, Any]) -> str:
    for key in ("message", "error"):
        if result.get(key):
            return str(result[key])
    return f"{name} answered with status error"


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
