"""Errors of layer 2: an agent file, a worker, a model."""

from __future__ import annotations

from envelopes.errors import ReportableError


class AgentError(ReportableError):
    """Root of this package's errors."""

    code = "agent"


class WorkerDiedError(AgentError):
    """The worker ended in the middle of a call (crash, ``os._exit``, killed by the kernel)."""

    code = "worker_gone"


class WrongAnswerError(AgentError):
    """The worker sent an answer that has not the form that its request asks for."""

    code = "wrong_answer"
    status = 502


class CallTimeoutError(AgentError):
    """The call ran past its deadline and its worker was stopped."""

    code = "call_timeout"
    status = 504


class WorkerStartError(AgentError):
    """The worker could not be started, or its sandbox could not be built."""

    code = "worker_refused"


class CallbackDeniedError(AgentError):
    """Worker code asked for something that it may not have."""

    code = "callback_refused"
    status = 403


class ModelUnavailableError(AgentError):
    """The configured model did not answer; the turn goes on with keyword matching.

    ``detail`` is at most 300 characters of what the server sent, without secrets, for the log. ``upstream_status``
    is the server's HTTP status, 0 when it gave none. ``model`` is the one that was asked. ``meaning`` says why
    (``agents/providers/refusals.py``), "" where nothing is known; ``said`` is the server's own sentence, bounded,
    as text; ``wait`` the seconds that it asks to wait.
    """

    code = "model_unavailable"
    status = 502

    def __init__(
        self,
        message: str,
        *,
        do: str = "",
        detail: str = "",
        upstream_status: int = 0,
        model: str = "",
        meaning: str = "",
        said: str = "",
        wait: float = 0.0,
    ) -> None:
        super().__init__(message, do=do)
        self.detail = detail[:300]
        self.upstream_status = upstream_status
        self.model = model
        self.meaning = meaning
        self.said = said
        self.wait = wait


class PictureRefusedError(AgentError):
    """A model, or its server, does not take pictures; nothing was answered in its stead."""

    code = "picture_refused"
    status = 422


class ToolsNeedModelError(AgentError):
    """A program demands a call of one of its own tools, and there is no model that could make it."""

    code = "tools_need_model"
    status = 400

    def __init__(self) -> None:
        super().__init__(
            "tool_choice demands a call, and there is no model to make one.",
            do="Leave tool_choice out, or connect a model: rappd models connect",
        )
