"""Tools of MCP: endpoints that a program may call and ``ask``, the turn that a call becomes, what came of it, and tasks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from envelopes.codecs import mcp
from envelopes.codecs.chat import ChatRequest
from envelopes.codecs.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from envelopes.codecs.mcp import Task
from envelopes.envelope import ERROR, PEER_THREAD, Envelope
from envelopes.errors import ReportableError
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError
from rappd.listeners.program_turns import earlier, resumed
from rappd.listeners.programs import (
    BRAINSTEM,
    Program,
    RefusedTurnError,
    begin,
    begin_call,
    refused,
    session_of,
    target_of,
    targets,
    turn_id,
)
from rappd.store.inbox_table import DONE_KEPT_SECONDS
from rappd.tenants.tenant import HOST

ASK = "ask"
_MOST_TWINS_NAMED = 50
_RESUMED_SECONDS = 0.5
"""A turn that a restart cut off is mostly answered at once."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME = 128


class Tool(NamedTuple):
    """A tool as it is listed, and the endpoint behind it; ``agent`` is "" for ``ask``."""

    workspace: str
    agent: str
    row: dict[str, Any]


async def tools_of(program: Program) -> dict[str, Tool]:
    """Tools of a program by name: ``ask`` first, then agents of the brainstem, then those of twins that are awake."""
    known = await targets(program)
    found = {ASK: Tool(HOST, "", _ask_row([one.id for one in known]))} if known else {}
    if not program.direct:
        return found
    slugs = {one.workspace: one.id.partition("/")[2] for one in known}
    for tenant in program.daemon.dispatcher.endpoints.tenants():
        beginning = "" if tenant.workspace == HOST else f"{slugs.get(tenant.workspace, '')}."
        if beginning == ".":
            continue  # a twin that the program may not use
        for one in _agents(program, tenant.workspace):
            name = tool_name(f"{beginning}{one.name}")
            found.setdefault(name, Tool(tenant.workspace, one.name, _row(name, one)))
    return found


def tool_name(name: str) -> str:
    """The name of an agent as a tool: an agent that is called like a tool of the protocol's own is told apart."""
    fit = _UNFIT.sub("-", name)[:_LONGEST_NAME]
    return f"agent.{fit}" if fit == ASK else fit


async def begin_tool(program: Program, name: str, arguments: dict[str, Any], *, id: str) -> Turn:
    """The turn of a call. Raises ``RpcError`` for a tool that is not there for the program, ``ReportableError``."""
    if name == ASK:
        return await _begin_ask(program, arguments, id)
    if program.direct and any(one.name == name for one in _agents(program, HOST)):
        return await begin_call(program, HOST, name, arguments, id=id, session=_calls_of(program))
    tool = (await tools_of(program)).get(name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f'There is no tool "{name[:80]}".', do="Ask for tools/list.")
    return await begin_call(program, tool.workspace, tool.agent, arguments, id=id, session=_calls_of(program))


def _calls_of(program: Program) -> str:
    """The session in which a program's single calls are recorded: one for all of them, not a row in lists for each."""
    return f"calls of {program.name or 'a program'}"


async def _begin_ask(program: Program, arguments: dict[str, Any], id: str) -> Turn:
    message, twin, conversation = (arguments.get(one, "") for one in ("message", "twin", "conversation"))
    if not isinstance(message, str) or not message.strip():
        raise UsageProblemError("message is required", do='Send {"message": "…"}.')
    if not isinstance(twin, str) or not isinstance(conversation, str):
        raise UsageProblemError("twin and conversation are texts", do="Send them so, or leave them out.")
    target = await target_of(program, twin or BRAINSTEM)
    session = await session_of(program, target, conversation)
    history = await earlier(program, target, session) if conversation else []
    asked = ChatRequest(message.strip(), history, None, program.sender)
    return await begin(program, target, asked, id=id, session=session)


def outcome(reply: Envelope) -> dict[str, Any]:
    """The tool's result that a reply is."""
    if reply.verb == ERROR:
        return failure(RefusedTurnError(reply))
    data = reply.data
    if "response" not in data:
        return mcp.call_result(str(data.get("result", "")))
    answer = str(data["response"])
    told: dict[str, Any] = {"response": answer, "conversation": reply.extensions.get(PEER_THREAD)}
    told |= {key: data[key] for key in ("model", "notice") if data.get(key)}
    return {"content": [{"type": "text", "text": answer}], "structuredContent": told, "isError": False}


def failure(found: ReportableError) -> dict[str, Any]:
    """A call that failed, as the model that made it reads it."""
    return mcp.call_result(refused(found), is_error=True)


async def result_of(turn: Turn) -> dict[str, Any]:
    """The tool's result of a turn, once there is one."""
    try:
        return outcome(await turn.reply())
    except ReportableError as found:
        return failure(found)


async def task_of(program: Program, id: str) -> Task:
    """A task by its id, as it is now; after a restart, too. Raises ``RpcError`` for none of the program's."""
    recorded = turn_id(program, id)
    turns = program.daemon.dispatcher.guests_turns
    created = mcp.created_at(id)
    if created is not None:
        turn = turns.running(program.sender, recorded)
        if turn is None and (reply := await program.daemon.dispatcher.recorded(program.sender, recorded)):
            return _ended(id, created, reply)
        if turn is None and (turn := await resumed(program, id)):
            await turn.over_within(_RESUMED_SECONDS)
        if turn is not None and not turn.is_over:
            return Task(id, "working", created, created)
        if turn is not None:
            return _ended(id, created, turn.result())
    raise RpcError(INVALID_PARAMS, "There is no such task of yours.", do="Ask anew.")


async def cancel_task(program: Program, id: str) -> None:
    """Stops a task. One that is over stays as it is. Raises ``RpcError`` for none of the program's."""
    await task_of(program, id)
    turn = program.daemon.dispatcher.guests_turns.running(program.sender, turn_id(program, id))
    if turn is not None:
        turn.cancel()


def _ended(id: str, created: int, reply: Envelope) -> Task:
    updated, kept = created, int(DONE_KEPT_SECONDS * 1000)
    if reply.verb != ERROR:
        return Task(id, "completed", created, updated, outcome(reply), kept_ms=kept)
    reason = reply.data.get("reason")
    if reason == "stopped":
        return Task(id, "cancelled", created, updated, kept_ms=kept)
    if reason == "interrupted":
        problem = {"code": INTERNAL_ERROR, "message": refused(RefusedTurnError(reply))}
        return Task(id, "failed", created, updated, problem=problem, kept_ms=kept)
    return Task(id, "completed", created, updated, failure(RefusedTurnError(reply)), kept_ms=kept)


def _agents(program: Program, workspace: str) -> list[Endpoint[Call]]:
    found = program.daemon.dispatcher.endpoints.agents(workspace, program.caller)
    return [
        one for one in found if one.kind == "agent" and one.exposure.kind == "peer" and not one.exposure.mine
    ]


def _row(name: str, one: Endpoint[Call]) -> dict[str, Any]:
    idempotent = one.agent is not None and one.agent.idempotent
    return mcp.tool(name, one.description, one.input, idempotent=idempotent)


def _ask_row(known: list[str]) -> dict[str, Any]:
    told = "Asks a person's own brainstem, or one of its twins, in words; it uses agents as it needs them."
    twins = [one for one in known if one != BRAINSTEM]
    properties: dict[str, Any] = {"message": {"type": "string", "description": "The request, in words."}}
    if twins:
        properties["twin"] = {"type": "string", "description": "Whom to ask in place of the brainstem."}
        if len(known) <= _MOST_TWINS_NAMED:
            properties["twin"]["enum"] = known
    properties["conversation"] = {
        "type": "string",
        "description": "The conversation of an earlier answer, to go on with it.",
    }
    return mcp.tool(ASK, told, {"type": "object", "properties": properties, "required": ["message"]})
