"""Envelopes as rows of the event log: the thread that each is on, and what of it is kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import orjson
from msgspec.structs import replace

from agents.providers.provider import Usage
from envelopes.codecs import emergence
from envelopes.envelope import (
    ERROR,
    HELP,
    PARENT,
    PEER_THREAD,
    THREAD,
    THREAD_PATH,
    Envelope,
    is_uuid,
    new_id,
    thread_id,
    thread_id_below,
)
from envelopes.errors import MalformedError
from rappd.dispatch.turns import RequestContext
from rappd.errors import TooManyCallsError
from rappd.store.records import ListenerState, Record, ThreadInfo

log = logging.getLogger(__name__)

WIDTH = 80
"""Characters of a title, or of a text in a list."""


def placed(envelope: Envelope, workspace: str) -> tuple[Envelope, ThreadInfo]:
    """A peer's record on this machine's own thread: what it says of its thread is a claim, kept beside."""
    claimed = envelope.extensions.get(THREAD)
    text = orjson.dumps(claimed or envelope.id).decode()
    thread = thread_id(workspace, envelope.sender, text)
    data = envelope.data
    title = data.get("user_input") or data.get("prompt") or data.get("agent") or ""
    info = ThreadInfo(thread, workspace, envelope.sender, text, headline(str(title)), now())
    found = on_thread(envelope, thread)
    if claimed:
        found.extensions[PEER_THREAD] = claimed
    return found, info


def as_it_came(recorded: Envelope) -> Envelope:
    """A recorded HELP as its caller sent it: its own thread, where it named one, in the place of this machine's."""
    extensions = {
        key: value for key, value in recorded.extensions.items() if key not in (THREAD, PEER_THREAD)
    }
    if PEER_THREAD in recorded.extensions:
        extensions[THREAD] = recorded.extensions[PEER_THREAD]
    return Envelope(
        recorded.id, recorded.sender, recorded.recipient, recorded.verb, recorded.data, extensions
    )


def record_of(envelope: Envelope, *, answers: bool, state: ListenerState | None = None) -> Record:
    """The row of an envelope that is on a thread. Raises ``MalformedError`` for data that is no JSON."""
    if envelope.verb == HELP and "conversation_history" in envelope.data:
        envelope = _without_history(envelope)
    return Record(
        envelope.extensions[THREAD],
        envelope.verb,
        envelope.sender,
        envelope.recipient,
        envelope.id,
        emergence.encode(envelope),
        time.time_ns() // 1000,
        answers,
        envelope.parent,
        state,
    )


def opened(
    envelope: Envelope, workspace: str, session: Any, *, fresh: bool, title: str = ""
) -> tuple[Envelope, ThreadInfo]:
    """A record on the thread of its caller's session, or on one of its own, and that thread's information.

    ``title`` is what a new thread is called; else it has the beginning of the sentence.
    """
    if session is None:
        session, fresh = new_id(), True
    thread, text = thread_of(workspace, envelope.sender, session)
    if not title:
        title = (
            envelope.data.get("user_input", "")[:1000].strip().partition("\n\n")[0]
        )  # attached text is below
    info = ThreadInfo(thread, workspace, envelope.sender, text, headline(title), now(), fresh)
    return on_thread(envelope, thread), info


def may_be_below(thread: object) -> bool:
    """False for an id that no thread below another one has: those are made of their paths, and not random."""
    return is_uuid(thread) and str(thread)[14] != "4"


DEEPEST = 16
"""Threads below one another."""


def below(outer: RequestContext, names: Sequence[str]) -> tuple[RequestContext, ThreadInfo]:
    """A request on the thread of these names below that of ``outer``, and that thread's information.

    Raises ``TooManyCallsError``.
    """
    above = outer.envelope.thread
    path = (*(outer.path or (above,)), *names)
    if len(path) > DEEPEST + 1:
        raise TooManyCallsError(
            f"More than {DEEPEST} calls would be inside one another.", do="Ask for less at once."
        )
    thread = thread_id_below(path[0], path[1:])
    outer.usage = outer.usage or Usage()  # one sum for both
    info = ThreadInfo(
        thread, outer.workspace, outer.envelope.recipient, None, headline(names[-1]), now(),
        parent=above, path=orjson.dumps(path).decode(),
    )  # fmt: skip
    inner = replace(outer, envelope=outer.envelope.extended(**{THREAD: thread}), path=path, forked="")
    return inner, info


def thread_of(workspace: str, caller: str, session: Any) -> tuple[str, str]:
    """The thread of a caller's session in a workspace, and the session as JSON text."""
    text = orjson.dumps(session, option=orjson.OPT_SORT_KEYS).decode()
    return thread_id(workspace, caller, text), text


def on_thread(envelope: Envelope, thread: str) -> Envelope:
    """The same record on a thread of this machine. What another machine says of its parent is nothing here."""
    extensions = {**envelope.extensions, THREAD: thread}
    extensions.pop(PARENT, None)
    extensions.pop(THREAD_PATH, None)
    return Envelope(
        envelope.id, envelope.sender, envelope.recipient, envelope.verb, envelope.data, extensions
    )


def recordable(reply: Envelope, state: ListenerState | None) -> tuple[Envelope, Record]:
    """A reply and its record. What cannot be written down cannot be sent either: that is the answer, then."""
    try:
        return reply, record_of(reply, answers=True, state=state)
    except MalformedError as problem:
        log.error("an answer cannot be written down: %s", problem)
        refused = Envelope(
            reply.id,
            reply.sender,
            reply.recipient,
            ERROR,
            {"code": 500, "msg": "The answer cannot be written down.", "reason": "failed"},
            reply.extensions,
        )
        return refused, record_of(refused, answers=True)


def headline(text: str, width: int = WIDTH) -> str:
    """The text on one line, its end cut off at ``width``."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def _without_history(envelope: Envelope) -> Envelope:
    """Replaces the client's conversation history by its size: it is input, not log."""
    history = envelope.data["conversation_history"]
    kept = {key: value for key, value in envelope.data.items() if key != "conversation_history"}
    return Envelope(
        envelope.id,
        envelope.sender,
        envelope.recipient,
        envelope.verb,
        {**kept, "history_messages": len(history)},
        envelope.extensions,
    )


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000
