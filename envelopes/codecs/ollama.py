"""Ollama's API: ``/api/chat`` and ``/api/generate`` as turns, and its answers as JSON lines.

A request is read as one of OpenAI's, which has the same parts. Fields that steer a model's loading (``keep_alive``,
``raw``, ``template``, ``context``, most ``options``) say nothing to a brainstem and are left aside, as are unknown ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import orjson

from envelopes.codecs import openai_chat, pictures
from envelopes.codecs.openai_chat import OpenAIRequest
from envelopes.codecs.pictures import Picture
from envelopes.errors import MalformedError
from envelopes.program_input import turn_of_call

API_VERSION = "0.12.0"
"""The version of Ollama whose API this is; clients ask for a least one."""
TAG = ":latest"
MEDIA_TYPE = "application/x-ndjson"
_OPTIONS = {
    name: name
    for name in (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
    )
}
"""Options that are a model server's, too, by OpenAI's names."""
_ROLES = frozenset({"system", "user", "assistant", "tool"})


class OllamaRequest(msgspec.Struct):
    """A request for an answer. ``messages`` are OpenAI's; none where it only has a model loaded, or put away.

    ``unnamed``: names and arguments of the calls with whose results it ends. Ollama's calls have no ids, those of a
    turn that waits do. ``more`` are the fields of OpenAI's request beside the messages. ``thinks``: it takes pieces of
    what the model thought.
    """

    model: str
    messages: list[dict[str, Any]]
    stream: bool
    more: dict[str, Any] = {}
    unnamed: list[tuple[str, dict[str, Any]]] = []
    thinks: bool = True

    def asked(self, ids: Sequence[str] = ()) -> OpenAIRequest:
        """The request in OpenAI's terms; ``ids`` are those of the ``unnamed`` calls. Raises ``MalformedError``."""
        known = dict(zip((f"{_UNNAMED}{at}" for at in range(len(ids))), ids, strict=True))
        return openai_chat.decode({**self.more, "messages": [_renamed(one, known) for one in self.messages]})


_UNNAMED = "waits-"


def model_of(body: Mapping[str, Any]) -> str:
    """The model that a request names, without the tag that means any. Raises ``MalformedError``."""
    found = body.get("model") or body.get("name")
    if not isinstance(found, str) or not found.strip():
        raise MalformedError("model is required", do="GET /api/tags lists the models.")
    return found.strip().removesuffix(TAG)


def decode_chat(body: Mapping[str, Any]) -> OllamaRequest:
    """The body of ``/api/chat``. Raises ``MalformedError``."""
    chat_messages = [] if body.get("messages") is None else body["messages"]
    if not isinstance(chat_messages, list):
        raise MalformedError("messages must be a list", do='Send [{"role": "user", "content": "…"}].')
    messages, unnamed = _messages(chat_messages)
    more = _more(body)
    if body.get("tools"):
        more["tools"] = body["tools"]
    return OllamaRequest(
        model_of(body), messages, body.get("stream") is not False, more, unnamed, _thinks(body)
    )


def decode_generate(body: Mapping[str, Any]) -> OllamaRequest:
    """The body of ``/api/generate``. Raises ``MalformedError``."""
    prompt, system = body.get("prompt") or "", body.get("system") or ""
    if not isinstance(prompt, str) or not isinstance(system, str):
        raise MalformedError("prompt and system must be strings", do='Send {"prompt": "…"}.')
    chat_messages = [{"role": "user", "content": prompt, "images": body.get("images")}]
    if system.strip():
        chat_messages.insert(0, {"role": "system", "content": system})
    messages, _ = _messages(chat_messages if prompt.strip() or body.get("images") else [])
    return OllamaRequest(
        model_of(body), messages, body.get("stream") is not False, _more(body), thinks=_thinks(body)
    )


def piece(model: str, at: str, text: str, *, chat: bool, thought: bool = False) -> dict[str, Any]:
    """A line with a piece of the answer, or of what the model thought."""
    if chat:
        message = {"role": "assistant", "content": "" if thought else text}
        return {
            "model": model,
            "created_at": at,
            "message": {**message, "thinking": text} if thought else message,
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
    """The last line, or the whole answer with its ``text`` and calls. ``usage``: the data of the turn's DONE."""
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
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls := usage.get("tool_calls"):
        message["tool_calls"] = [_call(one) for one in calls]
    body = {"message": message} if chat else {"response": text}
    reason = "length" if usage.get("ending") == "length" else reason
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
    """A line of a stream."""
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


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    try:
        arguments = orjson.loads(call["arguments"] or "{}")
    except orjson.JSONDecodeError:
        arguments = {}
    return {"id": call["id"], "function": {"name": call["name"], "arguments": arguments}}


def _messages(listed: Sequence[object]) -> tuple[list[dict[str, Any]], list[tuple[str, dict[str, Any]]]]:
    """Messages in OpenAI's terms, and the calls without ids with whose results they end.

    A result without an id is that of the first call of its name, else of the first call, that has none yet.
    """
    messages: list[dict[str, Any]] = []
    open_calls: list[tuple[str, str]] = []
    unnamed: list[tuple[str, dict[str, Any]]] = []
    for index, found in enumerate(listed):
        where = f"messages[{index}]"
        role, content = _role_and_content(found, where)
        assert isinstance(found, dict)
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "user" and (shown := _pictures(found.get("images"), f"{where}.images")):
            urls = [{"url": f"data:{one['type']};base64,{one['data']}"} for one in shown]
            parts = [{"type": "image_url", "image_url": url} for url in urls]
            message["content"] = [{"type": "text", "text": content}, *parts]
        elif role == "assistant" and (calls := _calls(found.get("tool_calls"), where)):
            named = [(id or f"call-{index}-{at}", name, given) for at, (id, name, given) in enumerate(calls)]
            message["tool_calls"] = [_openai_call(*one) for one in named]
            open_calls = [(id, name) for id, name, _ in named]
            unnamed = [] if all(id for id, _, _ in calls) else [(name, given) for _, name, given in calls]
        elif role == "tool":
            id = _answered(found, open_calls)
            message["tool_call_id"] = id or f"{where}"
        messages.append(message)
    ends = bool(messages) and messages[-1]["role"] == "tool"
    if not (ends and unnamed):
        return messages, []
    last = max(at for at, one in enumerate(messages) if one.get("tool_calls"))
    known = {call["id"]: f"{_UNNAMED}{at}" for at, call in enumerate(messages[last]["tool_calls"])}
    return [*messages[:last], *(_renamed(one, known) for one in messages[last:])], unnamed


def _role_and_content(found: object, where: str) -> tuple[str, str]:
    if not isinstance(found, dict):
        raise MalformedError(f"{where} must be an object", do='Send {"role": "user", "content": "…"}.')
    role, content = found.get("role"), found.get("content")
    if not isinstance(role, str) or role not in _ROLES:
        raise MalformedError(f"{where}.role is not known", do="Send system, user, assistant or tool.")
    if content is not None and not isinstance(content, str):
        raise MalformedError(f"{where}.content must be a string", do='Send {"role": "user", "content": "…"}.')
    return role, content or ""


def _calls(found: object, where: str) -> list[tuple[str, str, dict[str, Any]]]:
    """(id, name, arguments) of calls; an id that no turn of this machine gave is "" as one that is not there."""
    calls = []
    for call in (found if isinstance(found, list) else [None]) if found else []:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        given = function.get("arguments") if isinstance(function, dict) else None
        if not isinstance(name, str) or not isinstance(given or {}, dict):
            raise MalformedError(f"{where}.tool_calls must have functions", do="Send them back as they came.")
        id = call.get("id") if isinstance(call, dict) else None
        calls.append((id if isinstance(id, str) and turn_of_call(id) else "", name, given or {}))
    return calls


def _openai_call(id: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": orjson.dumps(given, default=str).decode()}
    return {"id": id, "type": "function", "function": function}


def _answered(found: Mapping[str, Any], open_calls: list[tuple[str, str]]) -> str:
    """The id of the call whose result this is, which is open no more; "" where none is."""
    id, name = found.get("tool_call_id"), found.get("tool_name") or found.get("name")
    ways: tuple[Callable[[tuple[str, str]], bool], ...] = (
        lambda call: call[0] == id,
        lambda call: call[1] == name,
        lambda _: True,
    )
    for fits in ways:
        for call in open_calls:
            if fits(call):
                open_calls.remove(call)
                return call[0]
    return ""


def _renamed(message: dict[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    """A message with other ids of calls."""
    if message.get("tool_call_id") in ids:
        return {**message, "tool_call_id": ids[message["tool_call_id"]]}
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**one, "id": ids.get(one["id"], one["id"])} for one in calls]}
    return message


def _pictures(found: object, where: str) -> list[Picture]:
    if not found:
        return []
    if not isinstance(found, list):
        raise MalformedError(f"{where} must be a list", do="Send base64 texts.")
    return pictures.checked([{"data": one} for one in found], where)


def _more(body: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of OpenAI's request for what is handed on to a model."""
    if body.get("logprobs"):
        raise MalformedError("logprobs are not given here", do="Leave logprobs out.")
    options = body.get("options")
    options = options if isinstance(options, dict) else {}
    more = {theirs: options[ours] for ours, theirs in _OPTIONS.items() if options.get(ours) is not None}
    most = options.get("num_predict")
    if isinstance(most, int) and most > 0:
        more["max_tokens"] = most
    wanted, effort = body.get("format"), body.get("think")
    if wanted == "json":
        more["response_format"] = {"type": "json_object"}
    elif isinstance(wanted, dict):
        schema = {"name": "answer", "schema": wanted}
        more["response_format"] = {"type": "json_schema", "json_schema": schema}
    if effort in ("low", "medium", "high"):
        more["reasoning_effort"] = effort
    return more


def _thinks(body: Mapping[str, Any]) -> bool:
    return body.get("think") is not False
