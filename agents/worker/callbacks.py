"""Performing what a worker asks of the daemon in the middle of a request."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from agents.worker.call import Call
from envelopes.problem import Problem

if TYPE_CHECKING:
    from agents.worker.worker_link import WorkerLink

_log = logging.getLogger(__name__)


def begin_callback(link: WorkerLink, call: Call | None, operation: Any, arguments: Any) -> None:
    """Have the handler of ``call`` perform ``operation`` and reply to the worker, which waits; refuse when
    there is no handler. A reply is always sent, exactly one.

    Raises ValueError for what no worker of ours asks: not an operation, or one before the last is answered.
    """
    if link.asking or not isinstance(operation, str) or not isinstance(arguments, dict):
        raise ValueError("not a callback")
    link.asking = True
    if call is None or call.future.done():
        link.reply(False, {"message": "no request is being performed", "code": "callback"})
    elif call.on_callback is None:
        link.reply(False, {"message": f"nobody here answers {operation!r}", "code": "callback_refused"})
    else:
        task = asyncio.get_running_loop().create_task(_perform(link, call, operation, arguments))
        call.tasks = call.tasks or set()
        call.tasks.add(task)
        task.add_done_callback(call.tasks.discard)


async def _perform(link: WorkerLink, call: Call, operation: str, arguments: dict[str, Any]) -> None:
    assert call.on_callback is not None
    try:
        link.reply(True, await call.on_callback(operation, arguments))
    except asyncio.CancelledError:
        link.reply(False, {"message": "the request is over", "code": "callback"})
        raise
    except Problem as problem:
        link.reply(False, {"message": str(problem), "code": problem.code})
    except Exception:  # noqa: BLE001 - the worker must hear something, and only the log may hear what
        _log.exception("callback %s failed", operation)
        link.reply(False, {"message": f"{operation} failed", "code": "callback"})
