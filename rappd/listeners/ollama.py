"""Ollama's API below ``/ollama``: the brainstem and the twins as its models. What Home Assistant and its kind speak."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from aiohttp import web

from envelopes.codecs import ollama
from envelopes.codecs.ollama import OllamaRequest
from envelopes.errors import ReportableError
from rappd.dispatch.paused_turns import NoSuchCallError
from rappd.dispatch.turns import Turn
from rappd.listeners.bodies import ok
from rappd.listeners.openai import begin_turn, pieces
from rappd.listeners.program_requests import cancel_when_gone, json_body, spoken
from rappd.listeners.program_turns import reply_of
from rappd.listeners.programs import Program, refused, target_of, targets
from rappd.listeners.request_end import until_stopped

routes = web.RouteTableDef()

PROTOCOL = "ollama"


def _problem(found: ReportableError) -> web.Response:
    return ok(_error(found), found.status)


def _error(found: ReportableError) -> dict[str, Any]:
    return {"error": refused(found), "code": found.code}


SHAPES = {"/ollama": _problem}


@routes.get("/ollama")
@routes.get("/ollama/")
@spoken(PROTOCOL, _problem)
async def here(request: web.Request, program: Program) -> web.Response:
    """Says that somebody is here, as Ollama does at its root."""
    return web.Response(text="Ollama is running")


@routes.get("/ollama/api/version")
@spoken(PROTOCOL, _problem)
async def version(request: web.Request, program: Program) -> web.Response:
    """The version of Ollama whose API this is."""
    return ok({"version": ollama.API_VERSION})


@routes.get("/ollama/api/tags")
@spoken(PROTOCOL, _problem)
async def tags(request: web.Request, program: Program) -> web.Response:
    """The brainstem and the twins that the program may use, as models."""
    found = [(one.id, one.description) for one in await targets(program)]
    return ok(ollama.tags(found, _at(program.daemon.started_at)))


@routes.post("/ollama/api/chat")
@spoken(PROTOCOL, _problem)
async def chat(request: web.Request, program: Program) -> web.StreamResponse:
    """A turn: messages in, the answer out, in pieces unless `stream` is false."""
    return await _answer(request, program, ollama.decode_chat, chat=True)


@routes.post("/ollama/api/generate")
@spoken(PROTOCOL, _problem)
async def generate(request: web.Request, program: Program) -> web.StreamResponse:
    """A turn of one sentence, without what was said before."""
    return await _answer(request, program, ollama.decode_generate, chat=False)


@routes.post("/ollama/api/show")
@spoken(PROTOCOL, _problem)
async def show(request: web.Request, program: Program) -> web.Response:
    """The details of one model."""
    target = await target_of(program, ollama.model_of(await json_body(request)))
    return ok(ollama.show(target.id, target.description, _at(program.daemon.started_at)))


async def _answer(
    request: web.Request, program: Program, decode: Callable[[dict[str, Any]], OllamaRequest], *, chat: bool
) -> web.StreamResponse:
    found = decode(await json_body(request))
    target = await target_of(program, found.model)
    if not found.messages:  # loading a model, or putting it away: nothing to do for it
        return ok(ollama.last(found.model, _at(), chat=chat, reason="load"))
    ids = await _waiting_calls(program, found.unnamed) if found.unnamed else ()
    turn = await begin_turn(request, program, target, found.asked(ids))
    cancel_when_gone(request, turn)
    began = time.monotonic_ns()
    if not found.stream:
        data = await reply_of(turn)
        text, took = str(data.get("response", "")), time.monotonic_ns() - began
        return ok(ollama.last(found.model, _at(), chat=chat, text=text, usage=data, nanoseconds=took))
    response = web.StreamResponse(headers={"Content-Type": ollama.MEDIA_TYPE})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        try:
            with until_stopped(request):
                async for line in _lines(turn, found, chat=chat, began=began):
                    await response.write(ollama.line(line))
        except ReportableError as problem:
            await response.write(ollama.line(_error(problem)))
        await response.write_eof()
    return response


async def _lines(
    turn: Turn, asked: OllamaRequest, *, chat: bool, began: int
) -> AsyncIterator[dict[str, Any]]:
    """The lines of an answer. Raises ``ReportableError`` for a turn that came to none."""
    sent = ""
    async for kind, text in pieces(turn):
        if kind == "text":
            sent += text
            yield ollama.piece(asked.model, _at(), text, chat=chat)
        elif kind == "thought" and asked.thinks:
            yield ollama.piece(asked.model, _at(), text, chat=chat, thought=True)
    data = await reply_of(turn)
    whole = str(data.get("response") or "")
    if whole.strip() not in sent:
        yield ollama.piece(asked.model, _at(), f"\n\n{whole}" if sent else whole, chat=chat)
    took = time.monotonic_ns() - began
    yield ollama.last(asked.model, _at(), chat=chat, usage=data, nanoseconds=took)


async def _waiting_calls(program: Program, calls: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """The ids of calls that a turn of this program waits for, by their names and arguments: Ollama's have none.

    Raises ``NoSuchCallError``. (The latest such turn; its answer stands in the record, so a restart does no harm.)
    """
    await program.daemon.store.flush()
    for (body,) in await program.daemon.store.rows(_LATEST_ANSWERS, (program.sender,)):
        made = orjson.loads(body)["data"].get("tool_calls") or []
        if [(one["name"], _given(one["arguments"])) for one in made] == [*calls]:
            return [one["id"] for one in made]
    raise NoSuchCallError


_LATEST_ANSWERS = """SELECT body FROM events WHERE seq > (SELECT max(seq) FROM events) - 2000
    AND recipient = ? AND verb = 'DONE' AND answers = 1 ORDER BY seq DESC"""


def _given(arguments: object) -> object:
    try:
        return orjson.loads(arguments) if isinstance(arguments, str) and arguments else {}
    except orjson.JSONDecodeError:
        return {}


def _at(seconds: float | None = None) -> str:
    moment = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
