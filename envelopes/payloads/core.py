"""Payloads of ``core``: what handlers ask of rappd itself, and what rappd tells listeners (``…/ns/core/v1``)."""

from __future__ import annotations

from envelopes.payloads.form import CORE, BadFormError, Field, Kind, PayloadForm, Type

CORE_NS = PayloadForm("core", CORE, "core", "", ()).namespace(1)
SPAWN_THREAD = "spawn-thread"
LONGEST_DELAY = 366 * 86_400
"""Seconds."""


def _form(root: str, description: str, *fields: Field) -> PayloadForm:
    return PayloadForm(root, CORE, root, description, fields)


def _field(name: str, kind: Kind, doc: str, *, required: bool = True) -> Field:
    return Field(name, Type(kind), doc, required=required)


def _maybe(name: str, kind: Kind, doc: str) -> Field:
    return _field(name, kind, doc, required=False)


_AT = _field("timestamp", "datetime", "The moment, in UTC.")
_PAYLOAD = "The payload that is sent then; without it, the one that the handler was called with."

PRIMITIVES: dict[str, PayloadForm] = {
    one.root: one
    for one in (
        _form(
            SPAWN_THREAD,
            "Begins a thread below the present one, and sends a payload on it.",
            _field("name", "str", "Its name; one that is taken gets -1, -2 … at its end."),
            _maybe("payload", "payload", "The first payload on it."),
        ),
        _form(
            "todo-until",
            "Says what is waited for on this thread, and is reminded until it came or was given up.",
            _field("wait_for", "str", "The root of the payload that ends it."),
            _maybe("from_listener", "str", "The listener that has to send it."),
            _maybe("description", "str", "What is to be done, in words."),
        ),
        _form("todo-complete", "Gives up, or ends, what is waited for.", _field("id", "str", "Its id.")),
        _form(
            "timer",
            "Sets and changes timers of the person, in words, as the agent Timer does.",
            _maybe("text", "str", "A whole sentence, in place of the rest."),
            _maybe("action", "str", "add, list, cancel, move, snooze, pause, resume or quiet."),
            _maybe("what", "str", "What to be reminded of, or what to ask."),
            _maybe("when", "str", "The time in words."),
            _maybe("kind", "str", "remind, or ask."),
            _maybe("which", "str", "Words of the timer to change."),
        ),
        _form(
            "delay",
            "Goes on after a time, on the same thread; nothing runs meanwhile.",
            _field("seconds", "float", f"1 to {LONGEST_DELAY}."),
            _maybe("payload", "payload", _PAYLOAD),
        ),
    )
}
"""Payloads that handlers emit, by their roots: ``core`` answers them."""

ANSWERS: dict[str, PayloadForm] = {
    one.root: one
    for one in (
        _form(
            "thread-spawned",
            "A thread was begun.",
            _field("name", "str", "The name that it got."),
            _field("assigned_id", "str", "Its id."),
            _field("parent_id", "str", "The id of the thread above."),
        ),
        _form("todo-registered", "A todo was put on the plan.", _field("id", "str", "Its id.")),
        _form("delayed", "A delay began.", _field("until", "datetime", "Its end, in UTC.")),
        _form(
            "timer-answer",
            "A timer was set, changed or listed.",
            _field("text", "str", "The answer in words."),
        ),
    )
}
"""Payloads with which ``core`` answers: handlers of the emitting file get them that take them, else who asked it."""

SYSTEM: dict[str, PayloadForm] = {
    one.root: one
    for one in (
        _form(
            "boot",
            "rappd started.",
            _field("organism", "str", "The organism's name."),
            _AT,
            _field("listeners", "int", "Listeners and agents that serve."),
        ),
        _form("shutdown", "rappd stops.", _AT),
        _form("heartbeat", "rappd runs.", _AT, _field("uptime_seconds", "int", "Seconds since its start.")),
        _form("listener-joined", "A listener serves from now on.", _field("name", "str", "Its name."), _AT),
        _form("listener-left", "A listener serves no more.", _field("name", "str", "Its name."), _AT),
        _form(
            "context-cleared",
            "What was kept for a conversation is gone.",
            _field("kept_messages", "int", "Messages of it that models still get."),
            _AT,
        ),
    )
}
"""Messages of the system, which listeners get whose payload has that form."""


def check_core(form: PayloadForm) -> None:
    """Raises ``BadFormError`` for a listener of the category core that takes no message of ``core``."""
    if form.category != CORE:
        return
    known = SYSTEM.get(form.root) or ANSWERS.get(form.root)
    if known is None:
        raise BadFormError(
            f"core is rappd's own category; a listener of it takes one of {', '.join((*SYSTEM, *ANSWERS))}."
        )
    if known.digest() != form.digest():
        names = ", ".join(field.name for field in known.fields)
        raise BadFormError(f"{form.root} has other fields than {names}.")
