"""OpenAI's chat completions: a request as a sentence with its history and tools, answers and chunks. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from envelopes.codecs.pictures import (
    MOST_PICTURES,
    MOST_TOGETHER,
    ONLY_A_PICTURE,
    Picture,
    checked_picture,
    size_of,
)
from envelopes.envelope import shown
from envelopes.errors import MalformedError, ReportableError
from envelopes.program_input import NONE, REQUIRED, ProgramInput, ToolResult

MOST_TOOLS = 512

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:(image/[a-z+.-]+);base64,", re.IGNORECASE)
_INSTRUCTIONS = frozenset({"system", "developer"})
_HANDED_ON = (
    *("temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "seed", "presence_penalty"),
    *("frequency_penalty", "response_format", "reasoning_effort", "verbosity", "logit_bias"),
    *("parallel_tool_calls", "top_k", "min_p"),
)
"""Fields that go to the model server as they are, where it takes them."""
_NUMBERS = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "max_tokens", "max_completion_tokens"),
    *("max_output_tokens", "max_tool_calls"),
)
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"}
_FINISHES = {"length": "length", "filter": "content_filter"}

Message = dict[str, Any]


class OpenAIRequest(msgspec.Struct, kw_only=True):
    """A request of either API, after checking.

    ``text`` and ``pictures`` are the sentence; "" where the request ends with ``results`` of calls, with which the history ends,
    too. A message of the role "reference" in ``history`` stands for what an earlier answer has under its ``id``.
    """

    model: str
    text: str
    history: list[Message]
    program: ProgramInput
    pictures: list[Picture] = []
    results: list[ToolResult] = []
    user: str = ""
    session: str = ""
    named: str = ""
    """The conversation that it names to go on with, not only to keep its own requests together."""
    stream: bool = False
    include_usage: bool = False
    store: bool = True
    background: bool = False
    previous: str = ""
    custom: frozenset[str] = frozenset()
    """Names of tools that take one text in place of arguments."""
    echo: dict[str, Any] = {}
    """Fields that an answer repeats."""


class UnsupportedFieldError(MalformedError):
    """A field asks for something that is not done here."""

    code = "unsupported"


def decode(body: dict[str, Any]) -> OpenAIRequest:
    """The request in a JSON body. Raises ``MalformedError``, whose ``key`` is the field, and ``UnsupportedFieldError``."""
    refuse_unsupported(body)
    found = body.get("messages")
    if not isinstance(found, list) or not found:
        raise MalformedError(
            "messages must be a list with at least one message", do="Send messages.", key="messages"
        )
    system, history = _messages(found)
    tools = allowed(tools_of(body.get("tools"), nested=True), body.get("tool_choice"))
    stream_options = body.get("stream_options")
    metadata = body.get("metadata")
    program = ProgramInput(
        system="\n\n".join(system),
        tools=tools,
        choice=choice_of(body.get("tool_choice"), tools),
        parameters={key: body[key] for key in _HANDED_ON if body.get(key) is not None},
    )
    text, pictures, history, results = split(history, program.system, "messages")
    return OpenAIRequest(
        model=text_of(body, "model"),
        text=text,
        pictures=pictures,
        history=history,
        results=results,
        program=program,
        user=text_of(body, "user") or text_of(body, "safety_identifier"),
        session=session_in(metadata) or text_of(body, "prompt_cache_key"),
        named=session_in(metadata),
        stream=body.get("stream") is True,
        include_usage=isinstance(stream_options, dict) and stream_options.get("include_usage") is True,
        store=body.get("store") is not False,
    )


def refuse_unsupported(body: Mapping[str, Any]) -> None:
    """Raises ``UnsupportedFieldError`` for fields that would change what is answered, and cannot.

    Raises ``MalformedError`` for numbers that are none: the model server would refuse all of it.
    """
    n = body.get("n")
    if n is not None and (type(n) is not int or n != 1):
        raise UnsupportedFieldError("n: one answer at a time is given", do="Leave n out, or send 1.", key="n")
    for field in ("logprobs", "top_logprobs"):
        if body.get(field):
            raise UnsupportedFieldError(
                f"{field}: probabilities of tokens are not known here", do="Leave it out.", key=field
            )
    modalities = body.get("modalities")
    if isinstance(modalities, list) and any(one != "text" for one in modalities):
        raise UnsupportedFieldError(
            "modalities: answers are text", do='Send ["text"], or leave it out.', key="modalities"
        )
    if body.get("audio"):
        raise UnsupportedFieldError("audio: answers are text", do="Leave it out.", key="audio")
    for field in _NUMBERS:
        if body.get(field) is not None and type(body[field]) not in (int, float):
            raise MalformedError(f"{field} must be a number", do="Send one, or leave it out.", key=field)


def text_of(body: Mapping[str, Any], field: str) -> str:
    """A text that may be left out. Raises ``MalformedError``."""
    found = body.get(field)
    if found is None:
        return ""
    if not isinstance(found, str):
        raise MalformedError(f"{field} must be a string", do="Send text, or leave it out.", key=field)
    return found


def session_in(metadata: object) -> str:
    """The conversation that a request names by ``metadata.session_id``."""
    named = metadata.get("session_id") if isinstance(metadata, dict) else None
    return named if isinstance(named, str) else ""


def tools_of(found: object, *, nested: bool) -> tuple[dict[str, Any], ...]:
    """The functions among a request's tools; other kinds are the vendor's own, and left aside.

    ``nested``: a function's fields are below ``function``. Raises ``MalformedError``.
    """
    if found is None:
        return ()
    if not isinstance(found, list):
        raise MalformedError("tools must be a list", do="Send a list, or leave it out.", key="tools")
    if len(found) > MOST_TOOLS:
        raise MalformedError(
            f"tools has {len(found)} entries; {MOST_TOOLS} are the most", do="Send fewer.", key="tools"
        )
    tools = []
    for index, tool in enumerate(found):
        if not isinstance(tool, dict):
            raise MalformedError(f"tools[{index}] must be an object", do="Send a function.", key="tools")
        if tool.get("type", "function") == "function":
            tools.append(_tool(tool.get("function") if nested else tool, f"tools[{index}]"))
    return tuple(tools)


def allowed(tools: tuple[dict[str, Any], ...], choice: object) -> tuple[dict[str, Any], ...]:
    """The tools that ``tool_choice`` lets the model call: where it is ``allowed_tools``, those that it names alone."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return tools
    inner = choice.get("allowed_tools", choice)
    listed = inner.get("tools") if isinstance(inner, dict) else None
    rows = listed if isinstance(listed, list) else ()
    named = [one.get("function", one) for one in rows if isinstance(one, dict)]
    names = [one.get("name") for one in named if isinstance(one, dict)]
    return tuple(tool for tool in tools if tool["function"]["name"] in names)


def choice_of(found: object, tools: Sequence[dict[str, Any]]) -> str:
    """``ProgramInput.choice``. Raises ``MalformedError`` where it demands a tool that is not there."""
    if found in (None, "auto", NONE):
        return NONE if found == NONE else ""
    if found == REQUIRED and tools:
        return REQUIRED
    if isinstance(found, dict):
        if found.get("type") == "allowed_tools":
            inner = found.get("allowed_tools", found)
            return REQUIRED if isinstance(inner, dict) and inner.get("mode") == REQUIRED and tools else ""
        function = found.get("function", found)
        name = function.get("name") if isinstance(function, dict) else None
        if any(tool["function"]["name"] == name for tool in tools):
            return str(name)
    raise MalformedError(
        "tool_choice demands a tool that is not among tools", do="Send the tool, or auto.", key="tool_choice"
    )


def split(
    history: list[Message], system: str, field: str
) -> tuple[str, list[Picture], list[Message], list[ToolResult]]:
    """The sentence with its pictures, what came before it, and the results with which a request ends instead.

    Raises ``MalformedError`` where there is nothing to answer.
    """
    results = results_at_end(history)
    if results:
        return "", [], _fewer_pictures(history), results
    at = next((at for at in range(len(history) - 1, -1, -1) if history[at]["role"] == "user"), None)
    if at is None:
        if not system.strip():
            raise MalformedError(
                f"{field} has nothing to answer", do="Send a message of the role user.", key=field
            )
        return system, [], _fewer_pictures(history), []
    last = history[at]
    pictures = last.get("pictures", [])[:MOST_PICTURES]
    text = last["content"].strip() or (ONLY_A_PICTURE if pictures else "")
    if not text:
        raise MalformedError(f"{field} ends with an empty message", do="Send some text.", key=field)
    return text, pictures, _fewer_pictures(history[:at]), []


def results_at_end(history: Sequence[Message]) -> list[ToolResult]:
    """The results with which a history ends."""
    return results_at_beginning(history[::-1])[::-1]


def results_at_beginning(history: Sequence[Message]) -> list[ToolResult]:
    """The results with which a history begins."""
    begin = takewhile(lambda message: message["role"] == "tool", history)
    return [ToolResult(one["tool_call_id"], one["content"], str(one.get("name") or "")) for one in begin]


def content_of(content: object, where: str) -> tuple[str, list[Picture]]:
    """Text and pictures of a message: a text, or parts of either API. Raises ``MalformedError``.

    Parts that are only a model's or a server's (thoughts, refusals) have their text.
    """
    if content is None:
        return "", []
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        raise MalformedError(f"{where}.content must be text or a list of parts", do="Send text.", key=where)
    texts: list[str] = []
    pictures: list[Picture] = []
    for index, part in enumerate(content):
        at = f"{where}.content[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, str):
            texts.append(part)
        elif kind in ("text", "input_text", "output_text", "refusal"):
            text = part.get("refusal") if kind == "refusal" else part.get("text")
            if not isinstance(text, str):
                raise MalformedError(f"{at}.text must be a string", do="Send text.", key=at)
            texts.append(text)
        elif kind in ("image_url", "input_image"):
            pictures.append(_picture(part.get("image_url"), at))
        else:
            name = shown(kind) if isinstance(kind, str) else "a part without a type"
            raise UnsupportedFieldError(
                f"{at}: {name} is not taken, text and pictures are", do="Send it as text.", key=at
            )
    return "\n".join(texts), pictures


def completion(
    id: str,
    created: int,
    model: str,
    answer: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The answer to a request that was not streamed; ``answer`` is the DONE's data."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.get("response") or "", "refusal": None}
    if calls := answer.get("tool_calls"):
        message["content"] = message["content"] or None
        message["tool_calls"] = [message_call(one) for one in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_of(answer)}
    return {
        **_head(id, created, model, "chat.completion"),
        "choices": [choice],
        "usage": usage_of(answer),
        **(more or {}),
    }


def chunk(
    id: str, created: int, model: str, delta: Mapping[str, Any], finish: str | None = None
) -> dict[str, Any]:
    """A piece of a streamed answer."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_head(id, created, model, "chat.completion.chunk"), "choices": [choice]}


def call_deltas(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The calls as they go into the ``tool_calls`` of a chunk."""
    return [{"index": index, **message_call(one)} for index, one in enumerate(calls)]


def message_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that an answer has, as a message of a model has it."""
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": call["id"], "type": "function", "function": function}


def usage_chunk(id: str, created: int, model: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The piece that tells the tokens, where ``stream_options`` asks for it."""
    return {
        **_head(id, created, model, "chat.completion.chunk"),
        "choices": [],
        "usage": usage_of(answer),
    }


def usage_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens as chat completions count them; 0 where nobody counted."""
    read, written = int(answer.get("input_tokens", 0)), int(answer.get("output_tokens", 0))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def finish_of(answer: Mapping[str, Any]) -> str:
    """``finish_reason``."""
    return "tool_calls" if answer.get("tool_calls") else _FINISHES.get(str(answer.get("ending")), "stop")


def error(found: ReportableError) -> dict[str, Any]:
    """A refusal in OpenAI's shape: sentence and advice, the field where one is to blame, our code."""
    kind = _TYPES.get(found.status, "invalid_request_error" if found.status < 500 else "server_error")
    if found.status == 429:
        kind = "rate_limit_error"
    error = {"message": found.with_advice(), "type": kind, "param": None, "code": found.code}
    return {"error": {**error, "param": (getattr(found, "key", "") or None)}}


def models(found: Sequence[tuple[str, str]], created: int) -> dict[str, Any]:
    """The list of models: (id, description)."""
    return {"object": "list", "data": [model_entry(id, listed, created) for id, listed in found]}


def model_entry(id: str, description: str, created: int) -> dict[str, Any]:
    """A model, as the list of models has it."""
    return {
        "id": id,
        "object": "model",
        "created": created,
        "owned_by": "rappd",
        "description": description,
    }


def _head(id: str, created: int, model: str, kind: str) -> dict[str, Any]:
    return {"id": id, "object": kind, "created": created, "model": model, "system_fingerprint": None}


def _messages(found: list[Any]) -> tuple[list[str], list[Message]]:
    """Texts of instructions, and the other messages."""
    system: list[str] = []
    history: list[Message] = []
    names: dict[str, str] = {}
    for index, message in enumerate(found):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str):
            raise MalformedError(
                f"{where} must be an object with a role", do="Send {role, content}.", key=where
            )
        text, pictures = content_of(message.get("content"), where)
        if role in _INSTRUCTIONS:
            system.append(text)
        elif role == "user":
            history.append({"role": role, "content": text, **({"pictures": pictures} if pictures else {})})
        elif role == "assistant":
            calls = _calls(message.get("tool_calls"), where)
            names |= {call["id"]: call["function"]["name"] for call in calls}
            history.append({"role": role, "content": text, **({"tool_calls": calls} if calls else {})})
        elif role in ("tool", "function"):
            id = message.get("tool_call_id") or message.get("name")
            if not isinstance(id, str):
                raise MalformedError(
                    f"{where}.tool_call_id must be a string", do="Send the call's id.", key=where
                )
            history.append(
                {"role": "tool", "tool_call_id": id, "name": names.get(id, "tool"), "content": text}
            )
        else:
            raise MalformedError(
                f"{where} has an unknown role", do="Send user, assistant, system or tool.", key=where
            )
    return [one for one in system if one.strip()], history


def _calls(found: object, where: str) -> list[dict[str, Any]]:
    if not found:
        return []
    calls = []
    for call in found if isinstance(found, list) else [None]:
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        id = call.get("id") if isinstance(call, dict) else None
        if not isinstance(name, str) or not isinstance(id, str):
            raise MalformedError(
                f"{where}.tool_calls must have ids and functions",
                do="Send them back as they came.",
                key=where,
            )
        assert isinstance(function, dict)
        arguments = function.get("arguments")
        given = {"name": name, "arguments": arguments if isinstance(arguments, str) else "{}"}
        calls.append({"id": id, "type": "function", "function": given})
    return calls


def _tool(found: object, where: str) -> dict[str, Any]:
    name = found.get("name") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise MalformedError(
            f"{where} must have a name of letters, digits, - and _, at most 64", do="Rename it.", key=where
        )
    description, parameters = found.get("description"), found.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise MalformedError(f"{where}.parameters must be a JSON schema", do="Send an object.", key=where)
    function: dict[str, Any] = {"name": name}
    if isinstance(description, str):
        function["description"] = description
    function["parameters"] = parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def _picture(found: object, where: str) -> Picture:
    url = found.get("url") if isinstance(found, dict) else found
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if match is None or not isinstance(url, str):
        raise UnsupportedFieldError(
            f"{where}: pictures are taken as data: URLs, nothing is fetched",
            do="Send data:image/…;base64,…",
            key=where,
        )
    kind = match[1].lower().replace("image/jpg", "image/jpeg")
    return checked_picture({"type": kind, "data": url[match.end() :]}, where)


def _fewer_pictures(history: list[Message]) -> list[Message]:
    """The history with the newest pictures; of older ones only that they were there."""
    count = octets = 0
    found: list[Message] = []
    for message in reversed(history):
        pictures = message.get("pictures", [])
        count, octets = count + len(pictures), octets + sum(map(size_of, pictures))
        if pictures and (count > MOST_PICTURES or octets > MOST_TOGETHER):
            content = f"{message['content']}\n[an earlier picture]".strip()
            message = {"role": message["role"], "content": content}
        found.append(message)
    return found[::-1]
