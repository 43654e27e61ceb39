"""Errors of layer 2: an agent file, a worker, a model."""

from __future__ import annotations

from typing import ClassVar

from envelopes.errors import Refusal, ReportableError


class AgentError(ReportableError):
    """Root of this package's errors."""

    code = "agent"
    refusals: ClassVar = {
        "graph_refused": Refusal(
            400, 1, "The graph cannot be run: a circle, a name twice, or a dependency that is not there."
        ),
        "lispy_failed": Refusal(
            500, 1, "A call that the program ended with an error, or that used more than it may."
        ),
        "login_failed": Refusal(502, 1, "GitHub gave no code to sign in with."),
        "login_fixed": Refusal(
            409, 1, "The account cannot be switched: a given token comes before any other."
        ),
        "mistyped": Refusal(400, 2, "The given text cannot name an agent."),
        "no_such_memory": Refusal(404, 4, "A memory that is not there, or not any more."),
        "no_such_todo": Refusal(404, 1, "A todo that is none of this thread's open ones, or one too many."),
        "picture_refused": Refusal(
            422, 1, "A model, or its server, does not take pictures; nothing was answered in its stead."
        ),
        "wrong_answer": Refusal(
            502, 1, "The worker sent an answer that has not the form that its request asks for."
        ),
    }


class WorkerDiedError(AgentError):
    """The worker ended in the middle of a call (crash, ``os._exit``, killed by the kernel)."""

    code = "worker_gone"


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
    (``agents/providers/refusals.py``), "" where nothing is known; ``server_sentence`` is the server's own sentence, bounded,
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
        server_sentence: str = "",
        wait: float = 0.0,
    ) -> None:
        super().__init__(message, do=do)
        self.detail = detail[:300]
        self.upstream_status = upstream_status
        self.model = model
        self.meaning = meaning
        self.server_sentence = server_sentence
        self.wait = wait


class ToolsNeedModelError(AgentError):
    """A program demands a call of one of its own tools, and there is no model that could make it."""

    code = "tools_need_model"
    status = 400

    def __init__(self) -> None:
        super().__init__(
            "tool_choice demands a call, and there is no model to make one.",
            do="Leave tool_choice out, or connect a model: rappd models connect",
        )
