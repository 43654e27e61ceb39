"""Answers where the model cannot see the pictures, or did not answer: what is asked and said instead."""

from __future__ import annotations

from msgspec.structs import replace

from agents.errors import ModelUnavailableError
from agents.providers import error_messages
from agents.providers.managed_provider import ManagedProvider
from agents.providers.pictures import has_pictures, without_pictures
from agents.providers.provider import Completion, ModelRequest
from agents.providers.refusals import Meaning

OFFLINE_CALL = "offline-"  # begins the id of a call that keyword matching made in a model's stead
_PERHAPS_OF_PICTURES = (400, 404, 413, 415, 422, 500, 501)
"""Statuses by which servers refuse pictures; llama.cpp and Ollama answer 500."""


def replied_without(problem: ModelUnavailableError | None) -> str:
    """The sentence that says why keyword matching answered, in the words of the server that refused."""
    if problem is None:
        return ""
    do = f" — {problem.do}" if problem.do else ""
    why = str(problem)
    reason = why if problem.wait >= 1 else why.rstrip(".")
    return f"{reason} Replied without it{do}." if problem.wait >= 1 else f"{reason}; replied without it{do}."


async def complete(managed: ManagedProvider, request: ModelRequest) -> Completion:
    """Asks the model once. Pictures of earlier sentences become words for a model that takes none.

    Raises ``picture_refused`` where the sentence that is answered has some.
    """
    with managed.asked(request.model):
        return await _complete_as_seen(managed, request)


async def _complete_as_seen(managed: ManagedProvider, request: ModelRequest) -> Completion:
    if not any(map(has_pictures, request.messages)):
        return await managed.provider.complete(request)
    model = request.model or managed.provider.model
    if await managed.takes_pictures(model) is not False:
        try:
            return await managed.provider.complete(request)
        except ModelUnavailableError as problem:
            if problem.meaning != Meaning.NO_PICTURES and problem.upstream_status not in _PERHAPS_OF_PICTURES:
                raise
            if request.pictures:
                raise error_messages.pictures_refused(model, request.pictures, problem) from problem
    elif request.pictures:
        raise error_messages.pictures_refused(model, request.pictures)
    return await managed.provider.complete(replace(request, messages=without_pictures(request.messages)))


def answers_without_model(request: ModelRequest) -> bool:
    """True when keyword matching has taken this turn over: the calls being answered are its own."""
    if not request.round:
        return False
    for message in reversed(request.messages):
        if message.get("role") == "assistant":
            calls = message.get("tool_calls") or ()
            return any(str(call.get("id", "")).startswith(OFFLINE_CALL) for call in calls)
        if message.get("role") == "user":
            return False
    return False
