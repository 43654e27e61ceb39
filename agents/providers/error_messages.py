"""Errors of a model server as short sentences for people, in the server's own words where it has some."""

from __future__ import annotations

from agents.errors import AgentError, ModelUnavailableError
from agents.providers.refusals import REMEDIES, Meaning, Refusal

_PICTURES_DO = REMEDIES[Meaning.NO_PICTURES]


def unavailable(
    refusal: Refusal, label: str, model: str, *, silent_do: str, seconds: float
) -> ModelUnavailableError:
    """The error for a refusal; ``silent_do`` helps where nobody answers, ``seconds`` is the limit of waiting."""
    do = silent_do if refusal.meaning is Meaning.SILENT else REMEDIES[refusal.meaning]
    return ModelUnavailableError(
        _sentence(refusal, label, model, seconds),
        do=do,
        detail=refusal.sent,
        upstream_status=refusal.status,
        model=model,
        meaning=refusal.meaning,
        server_sentence=refusal.server_sentence,
        wait=refusal.wait,
    )


def taken_over(model: str, what: str) -> ModelUnavailableError:
    """An agent's process listens at the model server's address; nothing was sent to it."""
    do = "remove the agent that you do not know, then restart rappd"
    return ModelUnavailableError(f"{what.rstrip('.')} in place of the model server.", do=do, model=model)


def pictures_refused(model: str, count: int, problem: ModelUnavailableError | None = None) -> AgentError:
    """The model takes no pictures, or its server refused a request with some."""
    them = "the picture" if count == 1 else "the pictures"
    if problem is None:
        return AgentError(f"Model '{model}' takes no pictures.", do=_PICTURES_DO, code="picture_refused")
    why = f" The server says: {problem.server_sentence}" if problem.server_sentence else ""
    return AgentError(f"Model '{model}' did not take {them}.{why}", do=_PICTURES_DO, code="picture_refused")


def no_model_for_pictures(do: str) -> AgentError:
    """There is only keyword matching."""
    return AgentError(
        "No model is set up, and without one nobody can see a picture.", do=do, code="picture_refused"
    )


def _sentence(refusal: Refusal, label: str, model: str, seconds: float) -> str:
    wait = f" It asks to wait {refusal.wait:.0f} s." if refusal.wait >= 1 else ""
    if refusal.server_sentence:
        return f"{label} said: “{refusal.server_sentence}”.{wait}"
    match refusal.meaning:
        case Meaning.SILENT:
            return f"{label} doesn't answer."
        case Meaning.SLOW:
            return f"{label} took longer than {seconds:g} s."
        case Meaning.BROKE_OFF:
            return f"{label} broke off before it had answered."
        case Meaning.NOT_A_MODEL_SERVER:
            what = "a web page" if refusal.sent[:1] == "<" else "no JSON"
            return f"{label} answered with {what}: that is not a model server."
        case Meaning.ELSEWHERE:
            return f"{label} sends visitors on to {refusal.sent or 'another address'}."
        case Meaning.NO_ANSWER:
            return f"{label} answered, but not in the way of OpenAI."
        case Meaning.TOO_LONG:
            return f"{label} sent more than one answer can hold."
    status = f" {refusal.status}" if refusal.status else " an error"
    return f"{label} answered{status} for model '{model}'.{wait}"
