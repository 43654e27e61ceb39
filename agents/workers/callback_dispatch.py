"""Performs what a worker asks of the daemon in the middle of a call."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from agents.workers.call import Call
from envelopes.problem import ReportableError

_log = logging.getLogger(__name__)


class Asker(Protocol):
    """The worker that asked; it waits for exactly one reply."""

    def reply(self, worked: bool, value: Any) -> None:
        """Send the answer to its open callback. Raises TypeError for what is not JSON."""
        ...


def start_callback(worker: Asker, call: Call, operation: str, arguments: dict[str, Any]) -> None:
    """Run the handler of ``call`` in a task and reply to the worker; reply with a refusal if there is none."""
    if call.on_callback is None:
        words = f"nobody here answers {operation!r}"
        worker.reply(False, {"message": words, "code": "callback_refused"})
        return
    task = asyncio.get_running_loop().create_task(_perform(worker, call, operation, arguments))
    call.tasks = call.tasks or set()
    call.tasks.add(task)
    task.add_done_callback(call.tasks.discard)


async def _perform(worker: Asker, call: Call, operation: str, arguments: dict[str, Any]) -> None:
    assert call.on_callback is not None
    try:
        worker.reply(True, await call.on_callback(operation, arguments))
    except asyncio.CancelledError:
        worker.reply(False, {"message": "the request is over", "code": "callback"})
        raise
    except ReportableError as problem:
        worker.reply(False, {"message": str(problem), "code": problem.code})
    except Exception:  # noqa: BLE001 - the worker must be answered, and only the log may hold the details
        _log.exception("callback %s failed", operation)
        worker.reply(False, {"message": f"{operation} failed", "code": "callback"})
