"""Tools of MCP: endpoints that a program may call and ``ask``, the turn that a call becomes, what came of it, and tasks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from envelopes.codecs import mcp
from envelopes.codecs.chat import ChatRequest
from envelopes.codecs.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcCall, RpcError
from envelopes.codecs.mcp import Questions, Task
from envelopes.envelope import ERROR, PEER_THREAD, Envelope
from envelopes.errors import ReportableError
from rappd.daemon.app import Daemon
from rappd.daemon.home import OPERATOR_KEY
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError
from rappd.listeners.program_turns import (
    RefusedTurnError,
    begin,
    begin_call,
    begin_call_of,
    session_of,
    turn_id,
)
from rappd.listeners.programs import BRAINSTEM, Program, refused, target_of, targets
from rappd.listeners.recorded_program_turns import earlier, question_of, resumed
from rappd.store.conversation_table import PROGRAM_SESSION
from rappd.store.inbox_table import DONE_KEPT_SECONDS
from rappd.tenants.tenant import HOST

ASK = "ask"
_MOST_TWINS_NAMED = 50
MOST_ROUNDS = 20
"""Times that a task may ask."""
MOST_PARTIAL = 256
_RESUMED_SECONDS = 0.5
"""A turn that a restart cut off is mostly answered at once."""
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_LONGEST_NAME = 128


class Tool(NamedTuple):
    """A tool as it is listed, and the endpoint behind it; ``agent`` is "" for ``ask``."""

    workspace: str
    agent: str
    row: dict[str, Any]
    task_only: bool = False


async def tools_of(program: Program) -> dict[str, Tool]:
    """Tools of a program by name: ``ask``, agents of the brainstem and of twins that are awake, and what is of no tenant."""
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
            found.setdefault(
                name,
                Tool(
                    tenant.workspace, one.name, _row(name, one), one.agent is not None and one.agent.task_only
                ),
            )
    await program.daemon.dispatcher.endpoints.look()
    for one in program.daemon.dispatcher.endpoints.of_sources(program.caller):
        name = tool_name(one.name)
        found.setdefault(name, Tool(HOST, one.name, _row(name, one)))
    return found


def tool_name(name: str) -> str:
    """The name of an agent as a tool: an agent that is called like a tool of the protocol's own is told apart."""
    fit = _UNFIT.sub("-", name)[:_LONGEST_NAME]
    return f"agent.{fit}" if fit == ASK else fit


async def begin_tool(
    program: Program,
    name: str,
    arguments: dict[str, Any],
    *,
    id: str,
    takes_tasks: bool,
    alone: bool,
    headers: Mapping[str, str] | None,
) -> Turn:
    """The turn of a call. Raises ``RpcError`` for a tool that is not there for the program, ``ReportableError``.

    ``takes_tasks``: the program can be given a task, without which some agents are not called. ``alone`` is as for
    ``begin``, of calls of agents: a turn of ``ask`` is followed in the page. ``headers`` have to repeat the arguments
    that a tool wants repeated; None where the transport or the revision has none.
    """
    if name == ASK:
        return await _begin_ask(program, arguments, id)
    own = program.daemon.dispatcher.endpoints.named(HOST, name) if program.direct else None
    if own is not None and own.name == name and _is_tool(own, program):
        _check_takes_tasks(own.agent is not None and own.agent.task_only, takes_tasks)
        if headers is not None:
            mcp.check_parameters(headers, own.input, arguments)
        return await begin_call_of(
            program, HOST, own, arguments, id=id, session=_calls_of(program), alone=alone
        )
    tool = (await tools_of(program)).get(name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, f'There is no tool "{name[:80]}".', do="Ask for tools/list.")
    _check_takes_tasks(tool.task_only, takes_tasks)
    if headers is not None:
        mcp.check_parameters(headers, tool.row["inputSchema"], arguments)
    session = _calls_of(program)
    return await begin_call(
        program, tool.workspace, tool.agent, arguments, id=id, session=session, alone=alone
    )


def _check_takes_tasks(task_only: bool, takes_tasks: bool) -> None:
    if task_only and not takes_tasks:
        raise mcp.missing_capability({"extensions": {mcp.TASKS: {}}})


def _calls_of(program: Program) -> str:
    """The session in which a program's single calls are recorded: one for all of them, not a row in lists for each."""
    return f"{PROGRAM_SESSION}{program.protocol}:calls of {program.name or 'a program'}"


async def _begin_ask(program: Program, arguments: dict[str, Any], id: str) -> Turn:
    message, twin, conversation = (arguments.get(one, "") for one in ("message", "twin", "conversation"))
    if not isinstance(message, str):
        raise UsageProblemError("message must be a text", do='Send {"message": "…"}.')
    if not message.strip():
        raise UsageProblemError("message is required", do='Send {"message": "…"}.')
    if not isinstance(twin, str) or not isinstance(conversation, str):
        raise UsageProblemError("twin and conversation are texts", do="Send them so, or leave them out.")
    target = await target_of(program, twin or BRAINSTEM)
    session = await session_of(program, target, conversation)
    history = await earlier(program, target, session) if conversation else []
    asked = ChatRequest(message.strip(), history, None, program.sender)
    return await begin(program, target, asked, id=id, session=session)


def outcome(reply: Envelope, session: Any = None) -> dict[str, Any]:
    """The tool's result that a reply is. ``session`` is its conversation, where the record does not say it."""
    if reply.verb == ERROR:
        return failure(RefusedTurnError(reply))
    data = reply.data
    if "response" not in data:
        if (questions := _questions(reply)) is not None:
            return {"questions": questions}
        return mcp.call_result(str(data.get("result", "")))
    answer = str(data["response"])
    result: dict[str, Any] = {"response": answer, "conversation": reply.extensions.get(PEER_THREAD, session)}
    result |= {key: data[key] for key in ("model", "notice") if data.get(key)}
    return {"content": [{"type": "text", "text": answer}], "structuredContent": result, "isError": False}


def failure(found: ReportableError) -> dict[str, Any]:
    """A call that failed, as the model that made it reads it."""
    return mcp.call_result(refused(found), is_error=True)


async def result_of(turn: Turn) -> dict[str, Any]:
    """The tool's result of a turn, once there is one."""
    try:
        return outcome(await turn.reply(), turn.session)
    except ReportableError as found:
        return failure(found)


async def task_of(program: Program, id: str) -> Task:
    """A task by its id, as it is now; after a restart, too. Raises ``RpcError`` for none of the program's."""
    return (await _found(program, id)).as_task(program)


class _Found(NamedTuple):
    """A task: its id, how often it asked, and the turn under way, or the reply to the last one."""

    id: str
    asked: int
    turn: Turn | None
    reply: Envelope | None

    @property
    def questions(self) -> Questions | None:
        return _questions(self.reply) if self.reply is not None else None

    def as_task(self, program: Program) -> Task:
        created = mcp.created_at(self.id) or 0
        if self.reply is None:
            return Task(self.id, "working", created, created)
        if (questions := self.questions) is not None:
            answered = _partial(program).get((program.sender, self.id, self.asked), {})
            left = {key: one for key, one in questions.requests.items() if key not in answered}
            return Task(self.id, "input_required", created, created, asked=left)
        return _ended(self.id, created, self.reply)


async def _found(program: Program, id: str) -> _Found:
    if mcp.created_at(id) is None or (found := await _state(program, id, 0)) is None:
        raise RpcError(INVALID_PARAMS, "There is no such task of yours.", do="Ask anew.")
    while found.questions is not None and found.asked < MOST_ROUNDS:
        following = await _state(program, id, found.asked + 1)
        if following is None:
            break
        found = following
    return found


async def _state(program: Program, id: str, asked: int) -> _Found | None:
    name, dispatcher = _round(id, asked), program.daemon.dispatcher
    turn = dispatcher.guests_turns.running(program.sender, turn_id(program, name))
    if turn is None and (reply := await dispatcher.recorded(program.sender, turn_id(program, name))):
        return _Found(id, asked, None, reply)
    if turn is None and (turn := await resumed(program, name)):
        await turn.over_within(_RESUMED_SECONDS)
    if turn is None:
        return None
    return _Found(id, asked, turn, turn.result() if turn.is_over else None)


def _round(id: str, asked: int) -> str:
    return f"{id}#{asked}" if asked else id


def _questions(reply: Envelope) -> Questions | None:
    return mcp.questions_in(str(reply.data.get("result", ""))) if reply.verb != ERROR else None


_Partial = OrderedDict[tuple[str, str, int], dict[str, dict[str, Any]]]
_PARTIAL: WeakKeyDictionary[Daemon, _Partial] = WeakKeyDictionary()


def _partial(program: Program) -> _Partial:
    """Answers to some of a task's questions. A restart forgets them: then those questions are open again."""
    return _PARTIAL.setdefault(program.daemon, OrderedDict())


async def answer_task(program: Program, id: str, answers: dict[str, dict[str, Any]]) -> None:
    """Takes answers to a task's questions; with the last of them it goes on. Others are passed over. Raises ``RpcError``."""
    found = await _found(program, id)
    questions = found.questions
    if questions is None or found.reply is None:
        return
    kept, key = _partial(program), (program.sender, id, found.asked)
    given = kept.setdefault(key, {})
    given |= {name: one for name, one in answers.items() if name in questions.requests}
    while len(kept) > MOST_PARTIAL:
        kept.popitem(last=False)
    if len(given) < len(questions.requests):
        return
    kept.pop(key, None)
    asked = await question_of(program, found.reply)
    tenants = program.daemon.dispatcher.endpoints.tenants()
    workspace = next((one.workspace for one in tenants if one.id == found.reply.sender), "")
    if asked is None or not workspace:
        raise RpcError(INVALID_PARAMS, "What it asked for is not there any more.", do="Call the tool anew.")
    arguments = with_answers(asked.data.get("args") or {}, given, questions.state)
    name, agent = _round(id, found.asked + 1), str(asked.data.get("agent"))
    await begin_call(program, workspace, agent, arguments, id=name, session=_calls_of(program))


def with_answers(arguments: dict[str, Any], answers: dict[str, Any], state: str) -> dict[str, Any]:
    """The arguments of an agent that is called again, with the answers to its questions and its own state."""
    found = {**arguments, "input_responses": answers}
    return {**found, "request_state": state} if state else found


def sealed(program: Program, tool: str, state: str) -> str:
    """An agent's state as it travels: with a code that no program can make, bound to it and the tool."""
    coded = base64.urlsafe_b64encode(state.encode()).decode()
    return f"{coded}.{_code(program, tool, coded)}" if state else ""


def opened(program: Program, call: RpcCall, tool: str) -> str:
    """The state in a request, "" for none. Raises ``RpcError`` for one that was not given to this program."""
    found = call.params.get("requestState")
    if found is None:
        return ""
    coded, _, code = found.partition(".") if isinstance(found, str) else ("", "", "")
    if not (code.isascii() and hmac.compare_digest(code, _code(program, tool, coded))):
        raise RpcError(
            INVALID_PARAMS, "requestState is not what was sent.", id=call.id, do="Call the tool anew."
        )
    return base64.urlsafe_b64decode(coded).decode()


def _code(program: Program, tool: str, coded: str) -> str:
    key = program.daemon.home.secret(OPERATOR_KEY)
    text = "\0".join((program.protocol, program.sender, tool, coded)).encode(errors="surrogatepass")
    return hmac.digest(hashlib.sha256(b"rappd mcp state" + key).digest(), text, "sha256").hex()


async def cancel_task(program: Program, id: str) -> None:
    """Stops a task. One that is over stays as it is. Raises ``RpcError`` for none of the program's."""
    found = await _found(program, id)
    if found.turn is not None and not found.turn.is_over:
        found.turn.cancel()


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
    published = program.daemon.dispatcher.endpoints.published(workspace)
    return [one for one in published if _is_tool(one, program)]


def _is_tool(one: Endpoint[Call], program: Program) -> bool:
    is_everyday = one.kind == "agent" and one.exposure.kind == "peer" and not one.exposure.mine
    return is_everyday and one.exposure.admits(program.caller)


def _row(name: str, one: Endpoint[Call]) -> dict[str, Any]:
    idempotent = one.agent is not None and one.agent.idempotent
    return mcp.tool(name, one.description, one.input, idempotent=idempotent)


def _ask_row(known: list[str]) -> dict[str, Any]:
    description = (
        "Asks a person's own brainstem, or one of its twins, in words; it uses agents as it needs them."
    )
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
    return mcp.tool(ASK, description, {"type": "object", "properties": properties, "required": ["message"]})
