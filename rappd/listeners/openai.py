"""OpenAI's API: models, chat completions, and what of it is only handed on. The brainstem and the twins are its models."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson
from aiohttp import web
from msgspec.structs import replace

from agents.errors import ModelUnavailableError
from envelopes.codecs import openai_chat
from envelopes.codecs.chat import ChatRequest
from envelopes.codecs.openai_chat import OpenAIRequest
from envelopes.envelope import Envelope, as_uuid
from envelopes.errors import ReportableError
from envelopes.program_input import ToolResult
from rappd.dispatch.envelope_rows import thread_of
from rappd.dispatch.paused_turns import came_to_nothing, continuation
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RappdError
from rappd.listeners.bodies import JSON, ok
from rappd.listeners.event_stream import EventStream, opened
from rappd.listeners.program_requests import cancel_when_gone, json_body, raw_body, spoken
from rappd.listeners.program_turns import begin, reply_of, session_of, turn_id
from rappd.listeners.programs import BRAINSTEM, Program, Target, refused, speaking_for, target_of, targets
from rappd.listeners.request_end import until_stopped
from rappd.store.inbox_table import latest_of_beginning
from rappd.transcript.model_history import history_of

routes = web.RouteTableDef()

PROTOCOL = "openai"
VIA_HEADER = "Via"
SESSION_HEADER, KEY_HEADER, RETRY_HEADER = "X-Session-Id", "Idempotency-Key", "x-stainless-retry-count"
_REPEATED_SECONDS = 600
"""For so long a request that says it is a repeat is looked for by its content."""


class NoServerError(NotFoundError):
    """No model server is there to which a request could be handed on."""

    code = "no_model_server"

    def __init__(self, path: str, found: ModelUnavailableError) -> None:
        super().__init__(f"{path}: {found}", do=found.do)


class AskedItselfError(RappdError):
    """The model server of this machine is this machine, on whatever way."""

    code = "asked_itself"
    status = 508

    def __init__(self) -> None:
        super().__init__(
            "That is rappd itself: it would ask itself without end.", do=""
        )  # the one that asked knows a remedy


def problem(found: ReportableError) -> web.Response:
    """A refusal in OpenAI's shape."""
    return ok(openai_chat.error(found), found.status)


def _messages_problem(found: ReportableError) -> web.Response:
    kind = "not_found_error" if found.status == 404 else "api_error"
    return ok({"type": "error", "error": {"type": kind, "message": refused(found)}}, found.status)


SHAPES = {"/v1/messages": _messages_problem, "/v1": problem}


@routes.get("/v1/models")
@spoken(PROTOCOL, problem)
async def models(request: web.Request, program: Program) -> web.Response:
    """The brainstem and the twins that the program may use, as models."""
    found = [(one.id, one.description) for one in await targets(program)]
    return ok(openai_chat.models(found, int(program.daemon.started_at)))


@routes.get("/v1/models/{model:.+}")
@spoken(PROTOCOL, problem)
async def model(request: web.Request, program: Program) -> web.Response:
    """One of them."""
    found = await target_of(program, request.match_info["model"])
    return ok(openai_chat.model_entry(found.id, found.description, int(program.daemon.started_at)))


@routes.post("/v1/chat/completions")
@spoken(PROTOCOL, problem)
async def chat(request: web.Request, program: Program) -> web.StreamResponse:
    """A turn: messages in, the answer out, in chunks where `stream` is true."""
    asked = openai_chat.decode(await json_body(request))
    program = speaking_for(program, asked.user)
    target = await target_of(program, asked.model or BRAINSTEM)
    key = request.headers.get(KEY_HEADER, "")
    turn = await begin_turn(request, program, target, asked, id=key)
    cancel_when_gone(request, turn)
    id, created = f"chatcmpl-{turn.envelope.id.replace('-', '')}", int(time.time())
    if not asked.stream:
        with until_stopped(request):
            data = await reply_of(turn)
        more = extras(turn, data)
        return ok(openai_chat.completion(id, created, target.id, data, {"rappd": more}))
    async with opened(request, **headers(turn)) as events:
        await _stream(request, events, turn, asked, id=id, created=created, model=target.id)
    return events.response


@routes.post("/v1/embeddings")
@routes.post("/v1/audio/{what:speech|transcriptions|translations}")
@spoken(PROTOCOL, problem)
async def hand_on(request: web.Request, program: Program) -> web.Response:
    """Vectors and speech are the configured model server's: the request is handed on to it as it is."""
    via = _via(request, program)
    await target_of(program, BRAINSTEM)
    body = await raw_body(request)
    kind = request.headers.get("Content-Type", JSON)
    path = request.path.removeprefix("/v1")
    try:
        found, answer = await program.daemon.providers.hand_on(path, body, kind, via)
    except ModelUnavailableError as told:
        if not told.upstream_status:
            raise NoServerError(request.path, told) from told
        raise
    return web.Response(body=answer, content_type=found)


@routes.post("/v1/messages")
@spoken(PROTOCOL, _messages_problem)
async def messages(request: web.Request, program: Program) -> web.Response:
    """Anthropic's API is not served; the answer names the ways there are."""
    raise NotFoundError(
        "Anthropic's Messages API is not served here.",
        do="Use /v1/chat/completions or /v1/responses (OpenAI), or /ollama/api/chat (Ollama).",
    )


async def begin_turn(
    request: web.Request,
    program: Program,
    target: Target,
    asked: OpenAIRequest,
    *,
    id: str = "",
    recorded_id: str = "",
    earlier: list[dict[str, Any]] | None = None,
    session: str = "",
    follows: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Turn:
    """The turn of a request: a sentence, or the results of calls with which an earlier turn goes on.

    ``earlier`` are messages that the request does not repeat. Raises ``NoSuchCallError``, ``missing_result``,
    ``AskedItselfError``.
    """
    daemon = program.daemon
    named = request.headers.get(SESSION_HEADER, "") or session or asked.session
    brings, data = replace(asked.program, via=_via(request, program)), dict(more or {})
    if brings.tools:
        data["program_tools"] = [tool["function"]["name"] for tool in brings.tools]
    if asked.results:
        answer, recorded_id = await continuation(daemon.dispatcher, program.sender, asked.results)
        thread = await daemon.store.find_thread(answer.thread)
        named = orjson.loads(thread.session) if thread.session else named
        brings, follows = replace(brings, continues=answer.id), answer.id
        data["tool_results"] = results_for(answer, asked.results)
        asked = replace(asked, history=with_names(answer, asked.history))
    if earlier is None:
        earlier = await _recorded_before(request, program, target, asked)
    chat = ChatRequest(
        asked.text, [*earlier, *asked.history], None, program.sender, follows=follows, pictures=asked.pictures
    )
    return await begin(
        program, target, chat, id=id, recorded_id=recorded_id, session=named, more=data, brings=brings
    )


def _via(request: web.Request, program: Program) -> str:
    found = ", ".join(request.headers.getall(VIA_HEADER, []))
    if program.daemon.providers.asked_itself(found):
        raise AskedItselfError
    return found


def results_for(answer: Envelope, results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    """The results of an answer's calls as the record has them."""
    names = _names_of_calls(answer)
    return [{"call": one.call, "name": names[one.call], "content": one.content} for one in results]


def with_names(answer: Envelope, history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history with the names of an answer's calls at their results, which not every request repeats."""
    names = _names_of_calls(answer)
    found = []
    for message in history:
        name = names.get(message.get("tool_call_id", ""))
        found.append({**message, "name": name} if name else message)
    return found


def _names_of_calls(answer: Envelope) -> dict[str, str]:
    return {call["id"]: call["name"] for call in answer.data["tool_calls"]}


async def repeated_id(request: web.Request, program: Program) -> str:
    """An id for the turn of a request that has none: a program that says it repeats its request gets that one's.

    (Libraries repeat a request whose connection broke, and say so, without a name for it.) One that was refused, or
    stopped as its program hung up, is begun anew.
    """
    digest = hashlib.sha256(f"{program.protocol}\0{program.sender}\0".encode())
    digest.update(await request.read())
    beginning = as_uuid(f"{digest.hexdigest()[:20]}{'0' * 12}", "8")[:-12]
    if request.headers.get(RETRY_HEADER, "0") not in ("", "0"):
        since = (time.time_ns() // 1000) - _REPEATED_SECONDS * 1_000_000
        rows = await program.daemon.store.rows(*latest_of_beginning(program.sender, beginning, since))
        if rows and not came_to_nothing(await program.daemon.dispatcher.recorded(program.sender, rows[0][0])):
            return str(rows[0][0])
    return beginning + secrets.token_hex(6)


def named_id(request: web.Request, program: Program) -> str:
    """The id in the record of a turn that the program named by ``Idempotency-Key``, "" without."""
    key = request.headers.get(KEY_HEADER, "")
    return turn_id(program, key) if key else ""


def headers(turn: Turn) -> dict[str, str]:
    """Headers of an answer: its conversation, to be named again."""
    named = str(turn.session)
    return {SESSION_HEADER: named} if named.isascii() and named.isprintable() else {}


def extras(turn: Turn, data: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of an answer for which OpenAI has no place: a notice for the person, the agents, the conversation."""
    found = {"session_id": turn.session, "turn_id": turn.envelope.id}
    return found | {key: data[key] for key in ("notice", "agents_used", "cost_usd") if data.get(key)}


async def pieces(turn: Turn) -> AsyncIterator[tuple[str, str]]:
    """Pieces of an answer as they come: ("text" | "thought" | "waiting", piece). An agent's call parts two texts."""
    has_text = parted = False
    async for _, event in turn.events():
        event_data = orjson.loads(event)
        match event_data["type"]:
            case "delta":
                yield "text", f"\n\n{event_data['text']}" if parted else event_data["text"]
                has_text, parted = True, False
            case "call":
                parted = has_text
            case "thought":
                yield "thought", event_data["text"]
            case "waiting":
                yield "waiting", ""


async def _stream(
    request: web.Request,
    events: EventStream,
    turn: Turn,
    asked: OpenAIRequest,
    *,
    id: str,
    created: int,
    model: str,
) -> None:
    """Writes the chunks of an answer; a refusal is an error event, and the end."""

    async def send(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> None:
        await events.send({**openai_chat.chunk(id, created, model, delta, finish), **more})

    await send({"role": "assistant", "content": ""})
    text = ""
    try:
        with until_stopped(request):
            async for kind, piece in pieces(turn):
                if kind == "text":
                    text += piece
                    await send({"content": piece})
                elif kind == "thought":
                    await send({"reasoning_content": piece})
                else:
                    await events.comment("waiting")
            data = await reply_of(turn)
    except ReportableError as found:
        await events.send(openai_chat.error(found))
        return
    whole = str(data.get("response") or "")
    if whole.strip() not in text:
        await send({"content": f"\n\n{whole}" if text else whole})
    for call in openai_chat.call_deltas(data.get("tool_calls") or []):
        await send({"tool_calls": [call]})
    await send({}, openai_chat.finish_of(data), rappd=extras(turn, data))
    if asked.include_usage:
        await events.send(openai_chat.usage_chunk(id, created, model, data))
    await events.send(b"[DONE]")


async def _recorded_before(
    request: web.Request, program: Program, target: Target, asked: OpenAIRequest
) -> list[dict[str, Any]]:
    """Earlier messages of a conversation that a request names, and of which it repeats nothing."""
    named = request.headers.get(SESSION_HEADER, "") or asked.named
    if not named or asked.results or any(one["role"] != "user" for one in asked.history):
        return []
    session = await session_of(program, target, named)
    thread, _ = thread_of(target.workspace, program.sender, session)
    return await history_of(program.daemon.store, thread)
