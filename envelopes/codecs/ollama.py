"""Ollama's API: ``/api/chat`` and ``/api/generate`` as turns, and its answers as JSON lines.

Fields that steer a model's loading (``keep_alive``, ``options``, ``raw``, ``template``, ``context``) say nothing to a
brainstem and are left aside, as are unknown ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from envelopes.codecs import pictures
from envelopes.codecs.chat import DEFAULT_USER_GUID, ChatRequest
from envelopes.codecs.pictures import Picture
from envelopes.errors import MalformedError

API_VERSION = "0.12.0"
"""The version of Ollama whose API this is; clients ask for a least one."""
TAG = ":latest"
MEDIA_TYPE = "application/x-ndjson"
_ROLES = frozenset({"system", "user", "assistant", "tool"})


class OllamaRequest(msgspec.Struct):
    """A request for an answer. ``asked`` is None for one that only has a model loaded, or put away.

    ``system`` is what the client says to the model before all else. ``tools`` are the client's own. ``thinks``:
    it takes pieces of what the model thought.
    """

    model: str
    asked: ChatRequest | None
    stream: bool
    system: str = ""
    tools: list[dict[str, Any]] = msgspec.field(default_factory=list)
    thinks: bool = True


def model_of(body: Mapping[str, Any]) -> str:
    """The model that a request names, without the tag that means any. Raises ``MalformedError``."""
    found = body.get("model") or body.get("name")
    if not isinstance(found, str) or not found.strip():
        raise MalformedError("model is required", do="GET /api/tags lists the models.")
    return found.strip().removesuffix(TAG)


def decode_chat(body: Mapping[str, Any]) -> OllamaRequest:
    """The body of ``/api/chat``. Raises ``MalformedError``."""
    _refuse(body)
    said = [] if body.get("messages") is None else body["messages"]
    if not isinstance(said, list):
        raise MalformedError("messages must be a list", do='Send [{"role": "user", "content": "…"}].')
    messages = [_message(one, f"messages[{index}]") for index, one in enumerate(said)]
    system = "\n\n".join(one["content"] for one in messages if one["role"] == "system")
    spoken = [one for one in messages if one["role"] != "system"]
    asked = _turn(spoken) if spoken else None
    return OllamaRequest(model_of(body), asked, _stream(body), system, _tools(body), _thinks(body))


def decode_generate(body: Mapping[str, Any]) -> OllamaRequest:
    """The body of ``/api/generate``. Raises ``MalformedError``."""
    _refuse(body)
    prompt, system = body.get("prompt") or "", body.get("system") or ""
    if not isinstance(prompt, str) or not isinstance(system, str):
        raise MalformedError("prompt and system must be strings", do='Send {"prompt": "…"}.')
    shown = _pictures(body.get("images"), "images")
    asked = _request(prompt, [], shown) if prompt.strip() else None
    return OllamaRequest(model_of(body), asked, _stream(body), system, thinks=_thinks(body))


def piece(model: str, at: str, text: str, *, chat: bool, thought: bool = False) -> dict[str, Any]:
    """A line with a piece of the answer, or of what the model thought."""
    if chat:
        said = {"role": "assistant", "content": "" if thought else text}
        return {
            "model": model,
            "created_at": at,
            "message": {**said, "thinking": text} if thought else said,
            "done": False,
        }
    response = {"response": "" if thought else text}
    return {
        "model": model,
        "created_at": at,
        **({**response, "thinking": text} if thought else response),
        "done": False,
    }


def last(
    model: str,
    at: str,
    *,
    chat: bool,
    text: str = "",
    reason: str = "stop",
    usage: Mapping[str, Any] = {},
    nanoseconds: int = 0,
) -> dict[str, Any]:
    """The last line, or the whole answer with its ``text``. ``usage``: the data of the turn's DONE."""
    counts = {
        "prompt_eval_count": int(usage.get("input_tokens") or 0),
        "eval_count": int(usage.get("output_tokens") or 0),
    }
    spent = {
        "total_duration": nanoseconds,
        "load_duration": 0,
        "prompt_eval_duration": 0,
        "eval_duration": nanoseconds,
    }
    body = {"message": {"role": "assistant", "content": text}} if chat else {"response": text}
    return {"model": model, "created_at": at, **body, "done": True, "done_reason": reason, **spent, **counts}


def tags(models: Iterable[tuple[str, str]], at: str) -> dict[str, Any]:
    """The list of models, each (id, description)."""
    return {
        "models": [
            {
                "name": f"{id}{TAG}",
                "model": f"{id}{TAG}",
                "modified_at": at,
                "size": 0,
                "digest": hashlib.sha256(id.encode()).hexdigest(),
                "details": _details(),
            }
            for id, _ in models
        ]
    }


def show(id: str, description: str, at: str) -> dict[str, Any]:
    """The details of one model. Pictures are taken where the model behind takes them, which says so else."""
    return {
        "modelfile": f"# {description}\nFROM {id}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "modified_at": at,
        "details": _details(),
        "model_info": {"general.architecture": "rapp", "general.basename": id},
        "capabilities": ["completion", "tools", "vision"],
    }


def line(body: Mapping[str, Any]) -> bytes:
    """One line of a stream."""
    return orjson.dumps(body, default=str) + b"\n"


def _details() -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "rapp",
        "family": "rapp",
        "families": ["rapp"],
        "parameter_size": "",
        "quantization_level": "",
    }


def _message(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise MalformedError(f"{where} must be an object", do='Send {"role": "user", "content": "…"}.')
    role, content = found.get("role"), found.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        raise MalformedError(f"{where}.role is not known", do="Send system, user, assistant or tool.")
    if content is not None and not isinstance(content, str):
        raise MalformedError(f"{where}.content must be a string", do='Send {"role": "user", "content": "…"}.')
    message: dict[str, Any] = {"role": role, "content": content or ""}
    if role == "user" and (shown := _pictures(found.get("images"), f"{where}.images")):
        message["pictures"] = shown
    return message


def _turn(spoken: list[dict[str, Any]]) -> ChatRequest:
    """The last sentence of the user's as what is asked, and all before it as history."""
    place = next((at for at in range(len(spoken) - 1, -1, -1) if spoken[at]["role"] == "user"), None)
    if place is None:
        raise MalformedError("No message is the user's", do='Send {"role": "user", "content": "…"}.')
    asked = spoken[place]
    history = [one for one in spoken[:place] if one["content"].strip() and one["role"] != "tool"]
    return _request(asked["content"], history, asked.get("pictures", []))


def _request(text: str, history: list[dict[str, Any]], shown: list[Picture]) -> ChatRequest:
    if not text.strip():
        raise MalformedError("There is nothing to answer", do='Send {"role": "user", "content": "…"}.')
    together = [picture for one in history for picture in one.get("pictures", [])]
    pictures.check_together(together, "messages")
    return ChatRequest(text.strip(), history, None, DEFAULT_USER_GUID, pictures=shown)


def _pictures(found: object, where: str) -> list[Picture]:
    if not found:
        return []
    if not isinstance(found, list):
        raise MalformedError(f"{where} must be a list", do="Send base64 texts.")
    return pictures.checked([{"data": one} for one in found], where)


def _refuse(body: Mapping[str, Any]) -> None:
    if body.get("logprobs"):
        raise MalformedError("logprobs are not given here", do="Leave logprobs out.")


def _thinks(body: Mapping[str, Any]) -> bool:
    return body.get("think") is not False


def _stream(body: Mapping[str, Any]) -> bool:
    return body.get("stream") is not False


def _tools(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = body.get("tools") or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise MalformedError("tools must be a list of objects", do="Send tools, or leave them out.")
    return list(found)
