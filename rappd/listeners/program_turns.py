"""The turn that a foreign program's request becomes: its conversation, its id in the record, and what it came to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from envelopes.codecs.chat import ChatRequest, request_envelope
from envelopes.envelope import DONE, HELP, THREAD, Envelope, as_uuid, new_id
from envelopes.errors import ReportableError
from envelopes.program_input import ProgramInput
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.envelope_rows import thread_of
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RappdError
from rappd.listeners.programs import Program, Target, brainstem_of, refused
from rappd.store.conversation_table import PROGRAM_SESSION, one_query
from rappd.tenants.tenant import HOST

MOST_OF_A_SESSION = 200


async def begin(
    program: Program,
    target: Target,
    asked: ChatRequest,
    *,
    id: str = "",
    session: str = "",
    more: Mapping[str, Any] | None = None,
    brings: ProgramInput | None = None,
    recorded_id: str = "",
    alone: bool = False,
) -> Turn:
    """The turn that a request becomes; ``turn.session`` is its conversation, to be named again as it is.

    ``id`` is the client's own for it: such a turn is begun once and answered once, whatever is killed in between, and
    a repeat of the id gets the recorded answer, without events. ``session`` names the conversation; without it,
    ``asked.history`` finds the one that it repeats. ``more`` goes into the HELP's data. ``brings`` is what the program
    has for the model beside the sentence. ``recorded_id`` is an id as the record has it, in place of ``id``.
    ``alone``: nobody follows it or asks for it again, so that one without an id runs on the task of who waits for
    its reply.
    """
    daemon = program.daemon
    tenant = daemon.host if target.workspace == HOST else await daemon.tenants.twin(target.workspace)
    tenant.active_requests += 1  # so that it is not closed to make room for others
    try:
        if not session and asked.history:
            session = daemon.programs.session_after(program, program.sender, asked.history)
        named = await session_of(program, target, session)
        own = recorded_id or (turn_id(program, id) if id else "")
        envelope = _envelope(program, asked, tenant.id, own, more or {})
        caller = _caller_for(program, target)
        joined = False
        if own:
            envelope = envelope.extended(**{THREAD: named})
            turn = daemon.dispatcher.submit_once(envelope, caller, synced=not program.owners, program=brings)
            joined = turn.envelope is not envelope
            turn.session = named
        else:
            turn = daemon.dispatcher.submit(
                envelope,
                caller,
                session=named,
                fresh=not session,
                named=not alone,
                listed=alone,
                repeats=False,
                program=brings,
            )
    except BaseException:
        tenant.active_requests -= 1
        raise

    def ended() -> None:
        tenant.active_requests -= 1
        if not joined and (turn.recorded_at or not own):  # no repeat
            answer = _count(program, turn)
            if brings is not None and answer is not None:  # clients of a chat protocol repeat what was said
                _remember(program, asked, answer, str(turn.session))

    turn.when_over(ended)
    return turn


async def begin_call(
    program: Program,
    workspace: str,
    agent: str,
    arguments: dict[str, Any],
    *,
    id: str = "",
    session: str = "",
    more: Mapping[str, Any] | None = None,
    recorded_id: str = "",
    alone: bool = False,
) -> Turn:
    """A direct call of one agent of a tenant, of a workflow, or of another machine's agent, as a turn.

    ``id``, ``session``, ``more``, ``recorded_id`` and ``alone`` are as for ``begin``; what is of no tenant is called
    at the brainstem.

    Raises ``RefusedError`` for a program that may not call directly, or not that agent.
    """
    daemon = program.daemon
    endpoints = daemon.dispatcher.endpoints
    found = endpoints.named(workspace, agent)
    if found is None and workspace == HOST and program.direct:
        found = await endpoints.found_in_sources(agent, program.caller)
    if not program.direct or found is None or not found.exposure.admits(program.caller):
        raise NotFoundError(f'No agent "{agent[:80]}".', do="Ask this machine's owner to share it.")
    return await begin_call_of(
        program,
        workspace,
        found,
        arguments,
        id=id,
        session=session,
        more=more,
        recorded_id=recorded_id,
        alone=alone,
    )


async def begin_call_of(
    program: Program,
    workspace: str,
    found: Endpoint[Call],
    arguments: dict[str, Any],
    *,
    id: str = "",
    session: str = "",
    more: Mapping[str, Any] | None = None,
    recorded_id: str = "",
    alone: bool = False,
) -> Turn:
    """The same of an endpoint that the program is known to be allowed to call."""
    target = brainstem_of(program) if workspace == HOST else Target("", workspace, "", "")
    asked = ChatRequest("", [], None, program.sender)
    call = {
        **(more or {}),
        "agent": found.agent.name if found.agent is not None else found.name,
        "args": arguments,
    }
    if not (id or recorded_id or program.owners):
        id = new_id()  # nobody can ask for it again, but what is answered elsewhere is on the disk first
    return await begin(
        program, target, asked, id=id, session=session, more=call, recorded_id=recorded_id, alone=alone
    )


async def session_of(program: Program, target: Target, named: str) -> str:
    """The session of a conversation that a program names, in full; a new one for "".

    Conversations of a program are its own. One of the owner's that exists can be gone on with by programs that are
    the owner's.
    """
    named = named.strip()
    if len(named) > MOST_OF_A_SESSION or not named.isprintable():
        named = hashlib.sha256(named.encode(errors="surrogatepass")).hexdigest()
    prefix = f"{PROGRAM_SESSION}{program.protocol}:"
    if named.startswith(prefix):
        return named
    if named and program.owners:
        thread, _ = thread_of(target.workspace, program.sender, named)
        await program.daemon.store.flush()
        if await program.daemon.store.rows(*one_query(program.sender, thread)):
            return named
    return f"{prefix}{named or new_id()}"


def turn_id(program: Program, id: str) -> str:
    """The id in the record of a turn that a program calls ``id``: no program meets another's, nor a person's."""
    text = f"{program.protocol}\0{program.sender}\0{id}"
    return as_uuid(hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32], "8")


async def reply_of(turn: Turn) -> dict[str, Any]:
    """The data of a turn's DONE. Raises ``ReportableError`` for anything else."""
    reply = await turn.reply()
    if reply.verb == DONE:
        return reply.data
    raise RefusedTurnError(reply)


class RefusedTurnError(RappdError):
    """The ERROR that a turn came to."""

    def __init__(self, reply: Envelope) -> None:
        data = reply.data
        super().__init__(str(data.get("msg") or "It failed."), do=str(data.get("do") or ""))
        status = data.get("code")
        self.code = str(data.get("reason") or "failed")
        self.status = status if isinstance(status, int) and 400 <= status < 600 else 500


def _caller_for(program: Program, target: Target) -> Caller:
    caller = program.caller
    if program.only is None or target.workspace == HOST or target.id not in program.only:
        return caller
    whole = f"{HELP}.{target.workspace}.*"
    return msgspec.structs.replace(caller, caps=(*(caller.caps or ()), whole))


def _envelope(
    program: Program, asked: ChatRequest, recipient: str, id: str, more: Mapping[str, Any]
) -> Envelope:
    made = request_envelope(asked, recipient=recipient)
    data = {**made.data, "program": {"protocol": program.protocol, "name": program.name}, **more}
    return Envelope(id or made.id, program.sender, recipient, HELP, data, made.extensions)


def _count(program: Program, turn: Turn) -> str | None:
    """Counts a turn that is over. Its answer in words, None where it has none."""
    if turn.was_stopped:
        return None
    try:
        reply = turn.result()
    except ReportableError as found:
        program.daemon.programs.seen(program, error=refused(found))
        return None
    if reply.verb != DONE:
        program.daemon.programs.seen(program, error=refused(RefusedTurnError(reply)))
        return None
    program.daemon.programs.answered(program, reply.data)
    answer = reply.data.get("response")
    return answer if isinstance(answer, str) else None


def _remember(program: Program, asked: ChatRequest, answer: str, session: str) -> None:
    messages = [
        *asked.history,
        {"role": "user", "content": asked.user_input},
        {"role": "assistant", "content": answer},
    ]
    program.daemon.programs.continues(program, program.sender, messages, session)
