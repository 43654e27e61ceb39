"""OpenAI's Responses: begun once and answered once, kept in the record, gone on with by their ids."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import orjson
from aiohttp import web
from msgspec.structs import replace

from envelopes.codecs import openai_responses
from envelopes.codecs.openai_chat import (
    OpenAIRequest,
    UnsupportedFieldError,
    message_call,
    results_at_beginning,
)
from envelopes.codecs.openai_responses import CALL, MESSAGE, RESPONSE, ResponseEvents, id_of, turn_of
from envelopes.envelope import DONE, NOTE, THREAD, Envelope, new_id
from envelopes.errors import ReportableError
from rappd.dispatch.envelope_rows import now
from rappd.dispatch.paused_turns import NoSuchCallError, continuation
from rappd.dispatch.turns import Turn
from rappd.errors import ConflictError, NotFoundError
from rappd.listeners.bodies import ok
from rappd.listeners.event_stream import opened
from rappd.listeners.openai import (
    PROTOCOL,
    begin_turn,
    extras,
    headers,
    named_id,
    pieces,
    problem,
    repeated_id,
    results_for,
    with_names,
)
from rappd.listeners.program_requests import cancel_when_gone, json_body, spoken
from rappd.listeners.program_turns import RefusedTurnError, reply_of
from rappd.listeners.programs import BRAINSTEM, Program, speaking_for, target_of
from rappd.listeners.recorded_program_turns import resumed
from rappd.listeners.request_end import until_stopped
from rappd.store.conversation_table import TurnStart, asked_query, remove, turns_query
from rappd.transcript.model_history import history_of

routes = web.RouteTableDef()

_DELETED = "response_deleted"
_RECORDED = "response"
"""The key of a HELP's data that has what a response repeats of its request."""


class NoSuchResponseError(NotFoundError):
    """No response of that id, none that was stored, or another caller's."""

    def __init__(self, id: str) -> None:
        super().__init__(f'There is no response "{id[:60]}".', do="It may be deleted, or was not stored.")


class _Recorded(NamedTuple):
    """A response in the record. ``answer`` is None while its turn is under way."""

    turn: str
    thread: str
    model: str
    asked: dict[str, Any]
    created: int
    answer: Envelope | None


@routes.post("/v1/responses")
@spoken(PROTOCOL, problem)
async def create(request: web.Request, program: Program) -> web.StreamResponse:
    """A turn: items in, a response out, as named events where `stream` is true."""
    asked = openai_responses.decode(await json_body(request))
    program = speaking_for(program, asked.user)
    target = await target_of(program, asked.model or BRAINSTEM)
    if asked.background and not asked.store:
        raise UnsupportedFieldError(
            "background needs a response that is stored", do="Leave store out.", key="background"
        )
    before = await _recorded(program, asked.previous) if asked.previous else None
    if before is not None and before.answer is None:
        raise ConflictError("The previous response is not there yet.", do="Wait until it is completed.")
    earlier, more = None, {}
    if before is not None:
        results = asked.results or results_at_beginning(asked.history)
        if results and not asked.results:  # a sentence comes behind them
            answer, _ = await continuation(program.daemon.dispatcher, program.sender, results)
            if answer.id != before.turn:
                raise NoSuchCallError
            more["tool_results"] = results_for(answer, results)
            asked = replace(asked, history=with_names(answer, asked.history))
        earlier = await history_of(
            program.daemon.store, before.thread, before.turn, results_follow=bool(results)
        )
    asked = replace(asked, history=await _resolved(program, asked.history))
    created = int(time.time())
    kept = {key: value for key, value in asked.echo.items() if key not in ("tools", "instructions")}
    turn = await begin_turn(
        request,
        program,
        target,
        asked,
        recorded_id=named_id(request, program) or await repeated_id(request, program),
        earlier=earlier,
        session=await _session_of(program, before) if before is not None else "",
        follows=before.turn if before is not None else None,
        more={**more, _RECORDED: {**kept, "created": created, "model": target.id}},
    )
    if not asked.background:
        cancel_when_gone(request, turn)
    if asked.stream:
        return await _streamed(request, turn, asked, target.id, created)
    id = turn.envelope.id
    if asked.background:
        return ok(openai_responses.response(id, created, target.id, asked.echo))
    with until_stopped(request):
        data = await reply_of(turn)
    found = _whole(id, created, target.id, asked.echo, data, asked.custom)
    return ok({**found, "rappd": extras(turn, data)})


@routes.get("/v1/responses/{id}")
@spoken(PROTOCOL, problem)
async def show(request: web.Request, program: Program) -> web.StreamResponse:
    """A stored response, while it is under way, too; `?stream=true&starting_after=N` has its events again."""
    program = speaking_for(program, request.query.get("user", ""))
    found = await _recorded(program, request.match_info["id"])
    if request.query.get("stream") == "true":
        turn = program.daemon.dispatcher.guests_turns.lately(program.sender, found.turn)
        after = request.query.get("starting_after", "")
        return await _events_again(request, found, turn, int(after[:6]) if after.isdecimal() else -1)
    return ok(_shown(found))


@routes.delete("/v1/responses/{id}")
@spoken(PROTOCOL, problem)
async def delete(request: web.Request, program: Program) -> web.Response:
    """Takes a response off the lists; the record keeps it."""
    program = speaking_for(program, request.query.get("user", ""))
    found = await _recorded(program, request.match_info["id"])
    if found.answer is None:
        raise ConflictError("The response is under way.", do="Cancel it first, or wait.")
    daemon = program.daemon
    data = {"kind": f"{_DELETED} {found.turn}", "text": ""}
    note = Envelope(new_id(), program.sender, program.sender, NOTE, data, {THREAD: found.thread})
    await daemon.dispatcher.record_first(note)
    if await _is_all_deleted(program, found.thread):
        await daemon.store.change(remove(found.thread, now()))
    id = id_of(RESPONSE, found.turn)
    return ok({"id": id, "object": "response.deleted", "deleted": True})


@routes.post("/v1/responses/{id}/cancel")
@spoken(PROTOCOL, problem)
async def cancel(request: web.Request, program: Program) -> web.Response:
    """Stops a response that is under way."""
    program = speaking_for(program, request.query.get("user", ""))
    found = await _recorded(program, request.match_info["id"])
    turn = program.daemon.dispatcher.guests_turns.running(program.sender, found.turn)
    if turn is not None:
        turn.cancel()
        await turn.over_within(None)
        found = await _recorded(program, request.match_info["id"])
    return ok(_shown(found))


async def _streamed(
    request: web.Request, turn: Turn, asked: OpenAIRequest, model: str, created: int
) -> web.StreamResponse:
    made = ResponseEvents(turn.envelope.id, created, model, asked.echo, asked.custom)
    return await _written(request, turn, _events(request, turn, made), -1)


async def _events_again(
    request: web.Request, found: _Recorded, turn: Turn | None, after: int
) -> web.StreamResponse:
    made = ResponseEvents(found.turn, found.created, found.model, found.asked)
    events = _events(request, turn, made) if turn is not None else _recorded_events(found, made, after)
    return await _written(request, turn, events, after)


async def _written(
    request: web.Request, turn: Turn | None, news: AsyncIterator[dict[str, Any] | None], after: int
) -> web.StreamResponse:
    """Writes events with a number above ``after``, each under its name, and Open Responses' mark of the end.

    None is a sign of life.
    """
    async with opened(request, **(headers(turn) if turn is not None else {})) as events:
        async for event in news:
            if event is None:
                await events.comment("waiting")
            elif event["sequence_number"] > after:
                named = f"event: {event['type']}\ndata: ".encode()
                await events.response.write(named + orjson.dumps(event, default=str) + b"\n\n")
        await events.send(b"[DONE]")
    return events.response


async def _events(
    request: web.Request, turn: Turn, made: ResponseEvents
) -> AsyncIterator[dict[str, Any] | None]:
    for event in made.begin():
        yield event
    try:
        with until_stopped(request):
            async for kind, piece in pieces(turn):
                if kind == "text":
                    for event in made.text(piece):
                        yield event
                elif kind == "waiting":
                    yield None
            data = await reply_of(turn)
    except ReportableError as found:
        for event in made.fail(found):
            yield event
        return
    for event in made.end(data, int(time.time())):
        yield event


async def _recorded_events(
    found: _Recorded, made: ResponseEvents, after: int
) -> AsyncIterator[dict[str, Any] | None]:
    """The events that the record makes, which are fewer than were told at first: the last one is behind ``after`` always."""
    for event in made.begin():
        yield event
    answer = found.answer
    assert answer is not None
    ended = (
        made.end(answer.data, found.created) if answer.verb == DONE else made.fail(RefusedTurnError(answer))
    )
    for event in ended:
        last = event["type"] in (f"response.{status}" for status in openai_responses.ENDS)
        yield {**event, "sequence_number": max(event["sequence_number"], after + 1)} if last else event


async def _recorded(program: Program, id: str) -> _Recorded:
    """A response by its id. Raises ``NoSuchResponseError``."""
    daemon = program.daemon
    prefix, turn, _ = turn_of(id)
    if prefix != RESPONSE:
        raise NoSuchResponseError(id)
    answer = await daemon.dispatcher.recorded(program.sender, turn)
    running = None if answer is not None else daemon.dispatcher.guests_turns.running(program.sender, turn)
    if answer is None and running is None:
        cut_off = await resumed(program, "", recorded_id=turn)  # None: it ended since the record was read
        answer = await (
            cut_off.reply() if cut_off is not None else daemon.dispatcher.recorded(program.sender, turn)
        )
    if running is not None:
        asked = running.envelope.data.get(_RECORDED)
        thread = ""
    else:
        thread = answer.thread if answer is not None else ""
        await daemon.store.flush()
        rows = await daemon.store.rows(*asked_query(thread, turn)) if thread else []
        asked = orjson.loads(rows[0][0])["data"].get(_RECORDED) if rows else None
    if not isinstance(asked, dict) or not asked.get("store", True):
        raise NoSuchResponseError(id)
    if thread and await daemon.store.noted(thread, f"{_DELETED} {turn}"):
        raise NoSuchResponseError(id)
    return _Recorded(turn, thread, str(asked.get("model", "")), asked, int(asked.get("created", 0)), answer)


async def _is_all_deleted(program: Program, thread: str) -> bool:
    """True where no turn of a conversation is left, be it a response's or another's."""
    store = program.daemon.store
    for row in reversed(await store.rows(*turns_query(thread))):
        if not await store.noted(thread, f"{_DELETED} {TurnStart(*row).id}"):
            return False
    return True


async def _session_of(program: Program, found: _Recorded) -> str:
    thread = await program.daemon.store.find_thread(found.thread)
    return str(orjson.loads(thread.session)) if thread.session else ""


async def _resolved(program: Program, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history with what it only refers to. Raises ``NoSuchResponseError``."""
    found: list[dict[str, Any]] = []
    for message in history:
        if message["role"] != "reference":
            found.append(message)
            continue
        prefix, turn, number = turn_of(message["id"])
        if prefix not in (MESSAGE, CALL):
            continue  # thoughts of another model's
        answer = await program.daemon.dispatcher.recorded(program.sender, turn)
        calls = answer.data.get("tool_calls", []) if answer is not None and answer.verb == DONE else []
        if answer is None or answer.verb != DONE or (prefix == CALL and number >= len(calls)):
            raise NoSuchResponseError(message["id"])
        if prefix == MESSAGE:
            found.append({"role": "assistant", "content": str(answer.data.get("response") or "")})
        else:
            openai_responses.put_call(found, message_call(calls[number]))
    return found


def _whole(
    turn: str,
    created: int,
    model: str,
    asked: Mapping[str, Any],
    data: Mapping[str, Any],
    custom: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    return openai_responses.response(
        turn,
        created,
        model,
        asked,
        status=openai_responses.status_of(data),
        output=openai_responses.output_of(turn, data, custom),
        answer=data,
        completed=int(time.time()),
    )


def _shown(found: _Recorded) -> dict[str, Any]:
    if found.answer is None:
        return openai_responses.response(found.turn, found.created, found.model, found.asked)
    if found.answer.verb == DONE:
        return _whole(found.turn, found.created, found.model, found.asked, found.answer.data)
    refused = RefusedTurnError(found.answer)
    status = openai_responses.CANCELLED if refused.code == "stopped" else openai_responses.FAILED
    return openai_responses.response(
        found.turn,
        found.created,
        found.model,
        found.asked,
        status=status,
        error=openai_responses.error_of(refused),
    )
