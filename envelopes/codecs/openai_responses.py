"""OpenAI's Responses: items in, a response of items out, and its stream of named, numbered events. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from envelopes.codecs.openai_chat import (
    Message,
    OpenAIRequest,
    allowed,
    choice_of,
    content_of,
    refuse_unsupported,
    session_in,
    split,
    text_of,
    tools_of,
)
from envelopes.errors import MalformedError, ReportableError
from envelopes.program_input import ProgramInput

RESPONSE, MESSAGE, CALL = "resp_", "msg_", "fc_"
"""Beginnings of ids; what follows is their turn's, so that each finds its record."""
COMPLETED, FAILED, INCOMPLETE, IN_PROGRESS = "completed", "failed", "incomplete", "in_progress"
CANCELLED = "cancelled"
ENDS = (COMPLETED, FAILED, INCOMPLETE)
"""Names of the last events."""
MOST_METADATA = 16

_AS_THEY_ARE = ("temperature", "top_p", "parallel_tool_calls", "presence_penalty", "frequency_penalty")
_REASONS = {"length": "max_output_tokens", "filter": "content_filter"}
_INPUT = '{"input": {"type": "string"}}'


def decode(body: dict[str, Any]) -> OpenAIRequest:
    """The request in a JSON body. Raises ``MalformedError``, whose ``key`` is the field, and ``UnsupportedFieldError``."""
    refuse_unsupported(body)
    instructions = text_of(body, "instructions")
    system, history = _items(body.get("input"))
    system = [one for one in (instructions, *system) if one.strip()]
    listed, custom = _with_custom_tools(body.get("tools"))
    tools = allowed(tools_of(listed, nested=False), body.get("tool_choice"))
    metadata = _metadata(body.get("metadata"))
    program = ProgramInput(
        system="\n\n".join(system),
        tools=tools,
        choice=choice_of(body.get("tool_choice"), tools),
        parameters=_parameters(body),
    )
    text, pictures, history, results = split(history, program.system, "input")
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    named = conversation if isinstance(conversation, str) and conversation else session_in(metadata)
    return OpenAIRequest(
        model=text_of(body, "model"),
        text=text,
        pictures=pictures,
        history=history,
        results=results,
        program=program,
        user=text_of(body, "user") or text_of(body, "safety_identifier"),
        session=named or text_of(body, "prompt_cache_key"),
        named=named,
        stream=body.get("stream") is True,
        store=body.get("store") is not False,
        background=body.get("background") is True,
        previous=text_of(body, "previous_response_id"),
        custom=custom,
        echo=_echo(body, instructions, metadata),
    )


def id_of(prefix: str, turn: str, number: int | None = None) -> str:
    """The id of a turn's response, message or call."""
    return f"{prefix}{turn.replace('-', '').lower()}{'' if number is None else f'_{number}'}"


def turn_of(id: str) -> tuple[str, str, int]:
    """The beginning, the turn and the number of an id; all empty for one that no turn of this machine has."""
    prefix = next((one for one in (RESPONSE, MESSAGE, CALL) if id.startswith(one)), "")
    digits, _, number = id[len(prefix) :].partition("_")
    is_hex = len(digits) == 32 and set(digits) <= set("0123456789abcdef")
    if not prefix or not is_hex or (number and not number.isdecimal()) or len(number) > 3:
        return "", "", 0
    dashed = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return prefix, dashed, int(number or 0)


def response(
    turn: str,
    created: int,
    model: str,
    asked: Mapping[str, Any],
    *,
    status: str = IN_PROGRESS,
    output: Sequence[Mapping[str, Any]] = (),
    answer: Mapping[str, Any] | None = None,
    error: Mapping[str, Any] | None = None,
    completed: int | None = None,
) -> dict[str, Any]:
    """The response object. ``asked`` are the fields of the request that it repeats (``OpenAIRequest.echo``)."""
    ending = str(answer.get("ending")) if answer is not None else ""
    return {
        "id": id_of(RESPONSE, turn),
        "object": "response",
        "created_at": created,
        "completed_at": completed,
        "status": status,
        "incomplete_details": {"reason": _REASONS.get(ending, "interrupted")}
        if status == INCOMPLETE
        else None,
        "model": model,
        "previous_response_id": asked.get("previous_response_id"),
        "instructions": asked.get("instructions"),
        "output": list(output),
        "error": error,
        "tools": asked.get("tools", []),
        "tool_choice": asked.get("tool_choice", "auto"),
        "truncation": asked.get("truncation", "disabled"),
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "text": asked.get("text", {"format": {"type": "text"}}),
        "top_p": asked.get("top_p", 1.0),
        "presence_penalty": asked.get("presence_penalty", 0.0),
        "frequency_penalty": asked.get("frequency_penalty", 0.0),
        "top_logprobs": 0,
        "temperature": asked.get("temperature", 1.0),
        "reasoning": {"effort": asked.get("effort"), "summary": None},
        "usage": usage_of(answer) if answer is not None else None,
        "max_output_tokens": asked.get("max_output_tokens"),
        "max_tool_calls": asked.get("max_tool_calls"),
        "store": asked.get("store", True),
        "background": asked.get("background", False),
        "service_tier": "default",
        "metadata": asked.get("metadata", {}),
        "safety_identifier": asked.get("safety_identifier"),
        "prompt_cache_key": asked.get("prompt_cache_key"),
    }


def output_of(
    turn: str, answer: Mapping[str, Any], custom: frozenset[str] = frozenset()
) -> list[dict[str, Any]]:
    """The items of an answer: its text, and the calls that the client has to make."""
    calls = answer.get("tool_calls") or []
    text = str(answer.get("response") or "")
    found = [message_item(turn, text, status_of(answer))] if text or not calls else []
    return [*found, *(call_item(turn, number, call, custom) for number, call in enumerate(calls))]


def message_item(turn: str, text: str, status: str = COMPLETED) -> dict[str, Any]:
    """The text of an answer as an item."""
    content = [] if status == IN_PROGRESS else [text_part(text)]
    return {
        "type": "message",
        "id": id_of(MESSAGE, turn),
        "status": status,
        "role": "assistant",
        "content": content,
    }


def text_part(text: str) -> dict[str, Any]:
    """A text as part of an item."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(
    turn: str,
    number: int,
    call: Mapping[str, Any],
    custom: frozenset[str] = frozenset(),
    status: str = COMPLETED,
) -> dict[str, Any]:
    """A call as an item; one of a tool that takes a text has that text."""
    head = {"id": id_of(CALL, turn, number), "status": status, "call_id": call["id"], "name": call["name"]}
    if call["name"] in custom:
        given = orjson.loads(call["arguments"])
        text = given.get("input", "") if isinstance(given, dict) else ""
        return {"type": "custom_tool_call", **head, "input": "" if status == IN_PROGRESS else str(text)}
    return {"type": "function_call", **head, "arguments": "" if status == IN_PROGRESS else call["arguments"]}


def put_call(history: list[Message], call: dict[str, Any]) -> None:
    """Adds a call to a history: calls after a text, and beside each other, are one message's."""
    if history and history[-1]["role"] == "assistant":
        history[-1] = {**history[-1], "tool_calls": [*history[-1].get("tool_calls", ()), call]}
    else:
        history.append({"role": "assistant", "content": "", "tool_calls": [call]})


def usage_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Tokens as Responses count them; 0 where nobody counted."""
    read, written = int(answer.get("input_tokens", 0)), int(answer.get("output_tokens", 0))
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


def status_of(answer: Mapping[str, Any]) -> str:
    """``completed``, or ``incomplete`` where a limit or a filter ended the answer."""
    return INCOMPLETE if answer.get("ending") in _REASONS and not answer.get("tool_calls") else COMPLETED


def error_of(found: ReportableError) -> dict[str, Any]:
    """A refusal as the ``error`` of a response."""
    return {"code": found.code, "message": found.with_advice()}


class ResponseEvents:
    """The events of one response as they are streamed, in their order. Each call returns those that are due."""

    def __init__(
        self,
        turn: str,
        created: int,
        model: str,
        asked: Mapping[str, Any],
        custom: frozenset[str] = frozenset(),
    ) -> None:
        self._turn, self._created, self._model, self._asked = turn, created, model, asked
        self._custom = custom
        self._number = -1
        self._text = ""
        self._open = False

    def begin(self) -> Iterator[dict[str, Any]]:
        """The response is there, and under way."""
        for kind in ("response.created", "response.in_progress"):
            yield self._event(kind, response=self._response())

    def text(self, piece: str) -> Iterator[dict[str, Any]]:
        """A piece of the text."""
        if not piece:
            return
        if not self._open:
            yield from self._begin_text()
        self._text += piece
        yield self._event("response.output_text.delta", **self._place, delta=piece, logprobs=[])

    def end(self, answer: Mapping[str, Any], completed: int) -> Iterator[dict[str, Any]]:
        """The answer is whole: what is left of its text, its calls, the response with all of it."""
        whole = str(answer.get("response") or "")
        calls = answer.get("tool_calls") or []
        if whole.strip() not in self._text:
            gap = "\n\n" if self._text else ""
            yield from self.text(f"{gap}{whole}")
        if not self._open and not calls:
            yield from self._begin_text()
        status = status_of(answer)
        yield from self._close(status)
        output = [message_item(self._turn, self._text, status)] if self._open else []
        for number, call in enumerate(calls):
            index = len(output)
            yield from self._call(index, number, call)
            output.append(call_item(self._turn, number, call, self._custom))
        found = self._response(status=status, output=output, answer=answer, completed=completed)
        yield self._event(f"response.{status}", response=found)

    def fail(self, found: ReportableError) -> Iterator[dict[str, Any]]:
        """There is no answer, or no whole one."""
        yield from self._close(INCOMPLETE)
        output = [message_item(self._turn, self._text, INCOMPLETE)] if self._open else []
        failed = self._response(status=FAILED, output=output, error=error_of(found))
        yield self._event("response.failed", response=failed)

    @property
    def said(self) -> str:
        """The text so far."""
        return self._text

    @property
    def _place(self) -> dict[str, Any]:
        return {"item_id": id_of(MESSAGE, self._turn), "output_index": 0, "content_index": 0}

    def _begin_text(self) -> Iterator[dict[str, Any]]:
        self._open = True
        item = message_item(self._turn, "", IN_PROGRESS)
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.content_part.added", **self._place, part=text_part(""))

    def _close(self, status: str) -> Iterator[dict[str, Any]]:
        if not self._open:
            return
        yield self._event("response.output_text.done", **self._place, text=self._text, logprobs=[])
        yield self._event("response.content_part.done", **self._place, part=text_part(self._text))
        item = message_item(self._turn, self._text, status)
        yield self._event("response.output_item.done", output_index=0, item=item)

    def _call(self, index: int, number: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        begun = call_item(self._turn, number, call, self._custom, IN_PROGRESS)
        done = call_item(self._turn, number, call, self._custom)
        place = {"item_id": done["id"], "output_index": index}
        field = "input" if call["name"] in self._custom else "arguments"
        kind = f"response.{'custom_tool_call_input' if field == 'input' else 'function_call_arguments'}"
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield self._event(f"{kind}.delta", **place, delta=done[field])
        more = {"name": call["name"]} if field == "arguments" else {}
        yield self._event(f"{kind}.done", **place, **more, **{field: done[field]})
        yield self._event("response.output_item.done", output_index=index, item=done)

    def _response(self, **more: Any) -> dict[str, Any]:
        return response(self._turn, self._created, self._model, self._asked, **more)

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **fields}


def _items(found: object) -> tuple[list[str], list[Message]]:
    """Texts of instructions among the input, and the other messages; calls beside each other are one message's."""
    if isinstance(found, str):
        return [], [{"role": "user", "content": found}]
    if not isinstance(found, list) or not found:
        raise MalformedError("input must be text or a list of items", do="Send input.", key="input")
    system: list[str] = []
    history: list[Message] = []
    names: dict[str, str] = {}
    for index, item in enumerate(found):
        where = f"input[{index}]"
        if not isinstance(item, dict):
            raise MalformedError(f"{where} must be an object", do="Send items.", key=where)
        kind = item.get("type", "message")
        if kind == "message":
            _message(item, where, system, history)
        elif kind in ("function_call", "custom_tool_call"):
            call = _call_of(item, where)
            names[call["id"]] = call["function"]["name"]
            put_call(history, call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            id = item.get("call_id")
            if not isinstance(id, str):
                raise MalformedError(f"{where}.call_id must be a string", do="Send the call's id.", key=where)
            output = item.get("output")
            text = output if isinstance(output, str) else _result_text(output, where)
            history.append(
                {"role": "tool", "tool_call_id": id, "name": names.get(id, "tool"), "content": text}
            )
        elif kind == "item_reference":
            history.append({"role": "reference", "id": str(item.get("id"))})
        # Thoughts and calls of a vendor's own tools mean nothing to another model.
    return system, history


def _result_text(output: object, where: str) -> str:
    text, pictures = content_of(output, where)
    return f"{text}\n[{len(pictures)} pictures that are not passed on]".strip() if pictures else text


def _message(item: Mapping[str, Any], where: str, system: list[str], history: list[Message]) -> None:
    role = item.get("role")
    text, pictures = content_of(item.get("content"), where)
    if role in ("system", "developer"):
        system.append(text)
    elif role == "user":
        history.append({"role": "user", "content": text, **({"pictures": pictures} if pictures else {})})
    elif role == "assistant":
        history.append({"role": "assistant", "content": text})
    else:
        raise MalformedError(
            f"{where} has an unknown role", do="Send user, assistant, system or developer.", key=where
        )


def _call_of(item: Mapping[str, Any], where: str) -> dict[str, Any]:
    id, name = item.get("call_id"), item.get("name")
    if not isinstance(id, str) or not isinstance(name, str):
        raise MalformedError(
            f"{where} must have a call_id and a name", do="Send it back as it came.", key=where
        )
    arguments = item.get("arguments")
    if "input" in item and not isinstance(arguments, str):
        arguments = orjson.dumps({"input": str(item["input"])}).decode()
    function = {"name": name, "arguments": arguments if isinstance(arguments, str) else "{}"}
    return {"id": id, "type": "function", "function": function}


def _with_custom_tools(found: object) -> tuple[object, frozenset[str]]:
    """The tools with those that take a text as functions of one argument; and their names."""
    if not isinstance(found, list):
        return found, frozenset()
    listed: list[Any] = []
    names = set()
    for tool in found:
        if isinstance(tool, dict) and tool.get("type") == "custom" and isinstance(tool.get("name"), str):
            names.add(tool["name"])
            schema = {"type": "object", "properties": orjson.loads(_INPUT), "required": ["input"]}
            tool = {
                "type": "function",
                "name": tool["name"],
                "description": _custom_text(tool),
                "parameters": schema,
            }
        listed.append(tool)
    return listed, frozenset(names)


def _custom_text(tool: Mapping[str, Any]) -> str:
    """The description of a tool that takes a text, with the grammar of that text."""
    described = tool.get("description")
    form = tool.get("format")
    grammar = form.get("definition") if isinstance(form, dict) else None
    return "\n\n".join(one for one in (described, grammar) if isinstance(one, str))


def _parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: body[key] for key in _AS_THEY_ARE if body.get(key) is not None}
    if body.get("max_output_tokens") is not None:
        found["max_tokens"] = body["max_output_tokens"]
    reasoning, text = body.get("reasoning"), body.get("text")
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        found["reasoning_effort"] = reasoning["effort"]
    form = text.get("format") if isinstance(text, dict) else None
    if isinstance(form, dict) and form.get("type") == "json_schema":
        schema = {key: form[key] for key in ("name", "description", "schema", "strict") if key in form}
        found["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(form, dict) and form.get("type") == "json_object":
        found["response_format"] = {"type": "json_object"}
    return found


def _metadata(found: object) -> dict[str, Any]:
    if found is None:
        return {}
    if not isinstance(found, dict) or len(found) > MOST_METADATA:
        raise MalformedError(
            f"metadata must be an object with at most {MOST_METADATA} keys", do="Send fewer.", key="metadata"
        )
    return found


def _echo(body: Mapping[str, Any], instructions: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """Fields of a request that its response repeats."""
    kept = (
        *("tools", "tool_choice", "parallel_tool_calls", "top_p", "presence_penalty", "frequency_penalty"),
        *("temperature", "max_output_tokens", "max_tool_calls", "previous_response_id"),
        *("truncation", "safety_identifier", "prompt_cache_key"),
    )
    found = {key: body[key] for key in kept if body.get(key) is not None}
    if isinstance(found.get("tools"), list):
        found["tools"] = [_shown_tool(tool) for tool in found["tools"] if isinstance(tool, dict)]
    text, reasoning = body.get("text"), body.get("reasoning")
    if isinstance(text, dict):
        found["text"] = {**text, "format": _shown_format(text.get("format"))}
    if isinstance(reasoning, dict) and reasoning.get("effort"):
        found["effort"] = reasoning["effort"]
    return {
        **found,
        "instructions": instructions or None,
        "metadata": metadata,
        "store": body.get("store") is not False,
        "background": body.get("background") is True,
    }


def _shown_format(found: object) -> object:
    if not isinstance(found, dict):
        return {"type": "text"}
    if found.get("type") != "json_schema":
        return found
    return {"description": None, **found, "strict": found.get("strict") is True}


def _shown_tool(tool: dict[str, Any]) -> dict[str, Any]:
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}
