"""The last event of a streamed ``/chat`` turn: its answer, or its refusal."""

from __future__ import annotations

from typing import Any

from envelopes.codecs.chat import reply_body
from envelopes.envelope import ERROR, Envelope
from envelopes.errors import ReportableError
from rappd.dispatch.turns import Turn
from rappd.tenants.tenant import Tenant


def answer_body(tenant: Tenant, reply: Envelope, session: Any) -> dict[str, Any]:
    """A DONE as ``/chat`` answers it."""
    modes = tenant.settings
    return reply_body(reply, session_id=session, voice_mode=modes.voice, twin_mode=modes.twin)


async def last_event(turn: Turn, tenant: Tenant) -> dict[str, Any]:
    """Waits for a turn's end: ``{"type": "done", …}``, or ``{"type": "error", …}`` with the refusal."""
    try:
        reply = await turn.reply()
    except ReportableError as found:
        return {"type": "error", **found.as_json(), "status": found.status}
    if reply.verb == ERROR:
        data = reply.data
        return {
            "type": "error",
            "error": data.get("msg", ""),
            "do": data.get("do", ""),
            "code": data.get("reason", "failed"),
            "status": data.get("code", 500),
        }
    answer = answer_body(tenant, reply, turn.session)
    return {"type": "done", "thread": reply.thread, "turn_id": reply.id, **answer}
