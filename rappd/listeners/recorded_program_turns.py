"""Turns of foreign programs in the record: what was said before in a conversation, and what a restart cut off."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec.structs import replace

from envelopes.codecs import emergence
from envelopes.envelope import HELP, THREAD, Envelope
from rappd.dispatch.envelope_rows import as_it_came, thread_of
from rappd.dispatch.turns import Turn
from rappd.listeners.program_turns import turn_id
from rappd.listeners.programs import Program, Target
from rappd.store.conversation_table import ConversationRow, one_query
from rappd.tenants.tenant import HOST
from rappd.transcript.model_history import history_of

_ASKED = """SELECT body FROM events WHERE thread = (SELECT number FROM threads WHERE substr(threads.id, 25) = substr(?1, 25)
    AND threads.id = ?1) AND id = ?2 AND verb = 'HELP' ORDER BY n LIMIT 1"""
MOST_REMEMBERED = 20
"""Turns of a conversation that a program goes on with."""
_CLAIMED = """SELECT workspace, (SELECT body FROM events WHERE thread = (SELECT number FROM threads
        WHERE substr(threads.id, 25) = substr(inbox.thread, 25) AND threads.id = inbox.thread)
    AND id = inbox.id AND verb = inbox.verb ORDER BY n LIMIT 1)
    FROM inbox WHERE sender = ? AND id = ? AND verb = ? AND state = 'started'"""


async def earlier(program: Program, target: Target, session: str) -> list[dict[str, Any]]:
    """The last turns of a conversation as a history, from the record: a program need not repeat them."""
    thread, _ = thread_of(target.workspace, program.sender, session)
    return await history_of(program.daemon.store, thread, most=MOST_REMEMBERED)


async def thread_in(program: Program, known: list[Target], session: str) -> tuple[Target, str] | None:
    """The partner among ``known`` with whom ``session`` was last used, and its thread; None for a session without turns."""
    found: tuple[int, Target, str] | None = None
    await program.daemon.store.flush()
    for target in known:
        thread, _ = thread_of(target.workspace, program.sender, session)
        rows = await program.daemon.store.rows(*one_query(program.sender, thread))
        updated = ConversationRow._make(rows[0]).updated if rows else -1
        if rows and (found is None or updated > found[0]):
            found = updated, target, thread
    return found[1:] if found is not None else None


async def question_of(program: Program, reply: Envelope) -> Envelope | None:
    """The recorded HELP that ``reply`` answers; None where it is not there any more."""
    rows = await program.daemon.store.rows(_ASKED, (reply.thread, reply.id))
    return emergence.from_object(orjson.loads(rows[0][0])) if rows else None


async def resumed(program: Program, id: str, *, recorded_id: str = "") -> Turn | None:
    """The turn that a program calls ``id``, where a restart cut it off: begun again if that does no harm, else answered so.

    ``recorded_id``: its id as the record has it, in place of ``id``. None where there is none: it never began, or it is answered, or under way.
    """
    daemon = program.daemon
    rows = await daemon.store.rows(_CLAIMED, (program.sender, recorded_id or turn_id(program, id), HELP))
    if not rows or not rows[0][1]:
        return None
    workspace, body = rows[0]
    tenant = daemon.host if workspace == HOST else await daemon.tenants.twin(workspace)
    recorded = emergence.from_object(orjson.loads(body))
    asked = replace(as_it_came(recorded), recipient=tenant.id)
    turn = daemon.dispatcher.submit_once(asked, program.caller)
    turn.session = asked.extensions.get(THREAD)
    return turn
