"""Errors of a model server as short sentences for people."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agents.errors import ModelUnavailableError, PictureRefusedError

_PICTURES_DO = "choose a model that sees pictures, or describe it in words"
_LONGEST_SAID = 160
_LONGEST = 1 << 16
_LONGEST_SECRET = 4096
_SENTENCE = re.compile(r'"(?:message|error)"\s*:\s*"([^"\\]+)')
_SECRET = re.compile(r"\b(?:sk-|gh[a-z]_|github_pat_|tid=)[\w\-=;:.]{6,}")


def scrub(text: str, secrets: Iterable[str]) -> str:
    """``text`` on one line, with the given secrets and anything that looks like a key blotted out.

    A long text is cut.
    """
    is_long = len(text) > _LONGEST
    text = text[:_LONGEST]
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    told = " ".join(_SECRET.sub("***", text).split())
    return told[:-_LONGEST_SECRET] if is_long else told  # the cut may have left half a key at its end


def refused(label: str, model: str, status: int, body: str, secrets: Iterable[str]) -> ModelUnavailableError:
    """The server answered with an HTTP error, or with an error inside a stream (status 0)."""
    detail = scrub(body, secrets)
    if status == 429 or "quota" in detail.lower():
        message = f"{label} usage limit reached — another model may still answer."
        do = "wait, or choose another model"
    elif status:
        message, do = f"Model '{model}' returned {status}.", _do(status)
    else:
        message, do = f"Model '{model}' broke off its answer.", "ask again"
    return ModelUnavailableError(message, do=do, detail=detail, upstream_status=status, model=model)


def silent(label: str, model: str, do: str, detail: str = "") -> ModelUnavailableError:
    """Nobody answers at that address."""
    return ModelUnavailableError(f"{label} doesn't answer.", do=do, detail=detail, model=model)


def taken_over(model: str, what: str) -> ModelUnavailableError:
    """An agent's process listens at the model server's address; nothing was sent to it."""
    do = "remove the agent that you do not know, then restart rappd"
    return ModelUnavailableError(f"{what.rstrip('.')} in place of the model server.", do=do, model=model)


def slow(label: str, model: str, seconds: float) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"{label} took longer than {seconds:g} s.", do="ask again, or choose a smaller model", model=model
    )


def empty(model: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"Model '{model}' returned no choices.", do="choose another model", model=model
    )


def unreadable(model: str, body: str, secrets: Iterable[str]) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"Model '{model}' returned something unreadable.",
        do="check provider.url",
        detail=scrub(body, secrets),
        model=model,
    )


def pictures_refused(
    model: str, count: int, problem: ModelUnavailableError | None = None
) -> PictureRefusedError:
    """The model takes no pictures, or its server refused a request with some."""
    them = "the picture" if count == 1 else "the pictures"
    if problem is None:
        return PictureRefusedError(f"Model '{model}' takes no pictures.", do=_PICTURES_DO)
    said = _said(problem.detail)
    why = f" The server says: {said}" if said else ""
    return PictureRefusedError(f"Model '{model}' did not take {them}.{why}", do=_PICTURES_DO)


def no_model_for_pictures(do: str) -> PictureRefusedError:
    """There is only the offline brain."""
    return PictureRefusedError("No model is set up, and without one nobody can see a picture.", do=do)


def _said(body: str) -> str:
    """The sentence in an error of a model server, "" where there is none."""
    found = _SENTENCE.search(body)
    said = found[1].strip()[:_LONGEST_SAID] if found else ""
    return said if said.isprintable() else ""


def _do(status: int) -> str:
    if status in (401, 403):
        return "check the key"
    if status == 404:
        return "choose another model, or check provider.url"
    if status >= 500:
        return "ask again, or choose another model"
    return "choose another model"
