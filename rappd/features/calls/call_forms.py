"""The data of a call to another machine, and the row of what came of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from envelopes.envelope import COST_USD, DONE, ERROR, USAGE_TOKENS, Envelope
from envelopes.errors import ReportableError
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError


def call_data(
    text: str, agent: str, args: dict[str, Any] | None, known: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The data of a HELP: a sentence for a brainstem, or arguments for one agent. Raises ``UsageProblemError``.

    ``known`` are the agents that the other machine announced: they tell how ``agent`` is written there,
    and which argument a ``text`` fills: the only required one that is text, else ``query`` and ``user_input``.
    """
    if agent:
        card: dict[str, Any] = next((one for one in known if _is_called(one, agent)), {})
        given = dict(args or {})
        if text and (wanted := _only_text(card.get("parameters"))):
            given.setdefault(wanted, text)
        elif text and not args:
            given = {"query": text, "user_input": text}
        return {"agent": card.get("name", agent), "args": given, **({"user_input": text} if text else {})}
    if not text.strip():
        raise UsageProblemError("There is nothing to ask.", do='rappd call PEER "how are you?"')
    return {"user_input": text}


def _is_called(card: dict[str, Any], agent: str) -> bool:
    return str(card["name"]).casefold() == agent.casefold()


def _only_text(parameters: object) -> str:
    """The one required parameter that is text; "" when there are none or several."""
    schema = parameters if isinstance(parameters, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return ""
    texts = [
        name
        for name in required
        if isinstance(name, str)
        and isinstance(properties.get(name), dict)
        and properties[name].get("type") == "string"
    ]
    return texts[0] if len(texts) == 1 else ""


def with_twin(data: dict[str, Any], twin: str) -> dict[str, Any]:
    """The same for a twin of the other machine, by the name that people know it by."""
    return {**data, "twin": twin.strip()} if twin.strip() else data


def summary_of(data: dict[str, Any]) -> str:
    """A line about a HELP, for lists."""
    text = data.get("user_input") or data.get("prompt")
    return str(text or f"{data.get('agent', '')}")[:120]


def failed(asked: Envelope, problem: ReportableError) -> Envelope:
    """The ERROR that is written down where no answer came."""
    data = {"code": problem.status, "msg": str(problem), "reason": problem.code}
    return Envelope(asked.id, asked.recipient, asked.sender, ERROR, data)


def trace_of(id: str, outer: str = "") -> str:
    """The W3C traceparent of a call: the trace of ``outer`` goes on; without one, the call's id begins it."""
    digits = id.replace("-", "").lower()
    trace, flags = (outer.split("-")[1], outer.split("-")[3]) if outer else (digits, "01")
    return f"00-{trace}-{digits[16:]}-{flags}"


class CallView(TypedDict):
    """A call to a peer: what came of it, or why nothing did, and what it used."""

    id: str
    peer: str
    state: str
    thread: str
    seconds: float
    result: NotRequired[Any]
    data: NotRequired[dict[str, Any]]
    tokens: NotRequired[int]
    cost_usd: NotRequired[float]
    error: NotRequired[str]
    do: NotRequired[str]
    code: NotRequired[str]
    status: NotRequired[int]
    why: NotRequired[str]
    legacy: NotRequired[bool]


class CallOfPeer(TypedDict):
    """A call, by its id, and who works on it."""

    id: str
    peer: str


@dataclass(frozen=True, slots=True)
class OwnersCall:
    """A call of the owner's: its turn, which goes on when its caller disconnects, and how its reply is shown."""

    turn: Turn
    peer: str
    started: float
    is_legacy: bool = False

    async def row(self) -> CallView:
        """``{"call": {id, peer, state, result, seconds, thread, …}}``.

        ``state``: done, failed (the other machine said so), accepted (it works on it still), queued (away).
        """
        reply = await self.turn.reply()
        state = {DONE: "done", ERROR: "failed"}.get(reply.verb) or reply.data["state"]
        row = call_row(self.peer, self.turn.envelope, state, self.started, reply=reply)
        return {**row, "legacy": True} if self.is_legacy else row


def call_row(
    peer: str, asked: Envelope, state: str, started: float, *, reply: Envelope | None = None
) -> CallView:
    """A call to the peer of that name, begun at ``started``, as screens show it."""
    row: CallView = {
        "id": asked.id,
        "peer": peer,
        "state": state,
        "thread": asked.thread,
        "seconds": round(time.monotonic() - started, 3),
    }
    if reply is None:
        return row
    if reply.verb == DONE:
        row["result"] = reply.data.get("result", reply.data.get("response", reply.data))
        row["data"] = reply.data
        if USAGE_TOKENS in reply.extensions:
            row["tokens"] = reply.extensions[USAGE_TOKENS]
        if COST_USD in reply.extensions:
            row["cost_usd"] = reply.extensions[COST_USD]
    elif reply.verb == ERROR:
        row |= {
            "error": reply.data.get("msg", ""),
            "do": reply.data.get("do", ""),
            "code": reply.data.get("reason", "failed"),
            "status": reply.data.get("code", 500),
        }
    elif "why" in reply.data:
        row["why"] = reply.data["why"]
    return row
