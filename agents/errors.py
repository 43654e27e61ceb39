"""Errors of floor 2: an agent file, a worker, a model."""

from __future__ import annotations

from envelopes.problem import Problem


class AgentError(Problem):
    """Root of this package's errors."""

    code = "agent"


class WorkerGone(AgentError):
    """The worker ended in the middle of a call (crash, ``os._exit``, killed by the kernel)."""

    code = "worker_gone"


class CallTimeout(AgentError):
    """The call ran past its deadline and its worker was stopped."""

    code = "call_timeout"
    status = 504


class WorkerRefused(AgentError):
    """The worker could not be started, or its sandbox could not be built."""

    code = "worker_refused"


class ModelUnavailable(AgentError):
    """The configured model did not answer; the turn goes on with the offline brain."""

    code = "model_unavailable"
    status = 502
