"""``utils.host``: what an agent that may change the daemon asks of it.

Callback ``host`` takes the arguments and ``operation`` in one object; the daemon decides who may.
"""

from __future__ import annotations

from typing import Any

from agents.runtimes.python.worker.channel import call


def request(operation: str, /, **arguments: Any) -> Any:
    """Has the daemon perform ``operation``; returns its answer.

    Raises ``CallbackRefusedError`` with the daemon's reason: this agent may not, or the operation failed.
    """
    return call("host", {**arguments, "operation": operation})
