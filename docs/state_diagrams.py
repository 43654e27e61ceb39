"""Diagrams of the rules without I/O: every event is tried in every state, or the table of the rule is drawn."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from envelopes.errors import ReportableError
from neighborhoods.durable_tables import OUTBOX_TRANSITIONS
from neighborhoods.pairing.pairing_states import TRANSITIONS as PAIRING_TRANSITIONS
from rappd.sessions.workflows.run_state import RunState
from rappd.tether import proofs
from rappd.tether.handshake import Handshake, HostProof


def states(made: str) -> str:
    """states.md: diagrams of the state tables."""
    return f"""# States

{made}

The rules without I/O. Those that are code are drawn by trying every event in every state, those that are a table from
the table. An event that changes nothing is left out.

## A run of a workflow

`rappd/sessions/workflows/run_state.py`, for one step; an answer leads to the next step, or to the
end after the last. *asks*: the step is under way; *second try*: it failed once; *interrupted*:
the operator is being answered.

{_diagram(_run_states())}

## The handshake of a phone

`rappd/tether/handshake.py`: a phone that pairs, and one that comes back.

{_diagram(_handshake_states(resumes=False))}

{_diagram(_handshake_states(resumes=True))}

## A pairing of two machines

`neighborhoods/pairing/pairing_states.py`, as each side sees it. By words, both go through *words*; by a code, the side that
types it proves it and waits, and the side that shows it goes from *asking* to *paired*.

{_diagram(_table_states(PAIRING_TRANSITIONS))}

## A row of the outbox

`neighborhoods/durable_tables.py`. *delivered*: on its way, no word yet; *accepted*: kept by the peer, which works on it.
DONE, ERROR, CANCEL and ACK owe no answer: their ACK ends them.

{_diagram(_table_states(OUTBOX_TRANSITIONS))}
"""


_Edge = tuple[str, str, str]
"""(from, to, event)"""


def _diagram(edges: Iterable[_Edge]) -> str:
    """A state diagram as Mermaid draws it; the first edge begins at the first state."""
    found = list(dict.fromkeys(edges))
    labels: dict[tuple[str, str], list[str]] = {}
    for before, after, event in found:
        labels.setdefault((before, after), []).append(event)
    names = {
        name: f"s{number}"
        for number, name in enumerate(dict.fromkeys(one for edge in found for one in edge[:2]))
    }
    lines = [f'  state "{name}" as {short}' for name, short in names.items()]
    lines.append("  [*] --> s0")
    lines += [f"  {names[a]} --> {names[b]}: {', '.join(events)}" for (a, b), events in labels.items()]
    return "\n".join(("```mermaid", "stateDiagram-v2", *lines, "```"))


def _explored(
    first: Any, shown: Callable[[Any], str], events: Mapping[str, Callable[[Any], Any]]
) -> Iterator[_Edge]:
    """Every change that an event makes of a machine's state, the nearest first. ``shown`` tells states apart."""
    known, waiting = {shown(first)}, [first]
    while waiting:
        machine = waiting.pop(0)
        for event, happen in events.items():
            after = copy.copy(machine)
            try:
                happen(after)
            except ReportableError:
                continue
            if shown(after) != shown(machine):
                yield shown(machine), shown(after), event
            if shown(after) not in known:
                known.add(shown(after))
                waiting.append(after)


def _table_states(table: Mapping[str, Mapping[Any, str]]) -> Iterator[_Edge]:
    for state, events in table.items():
        yield from ((state, after, event) for event, after in events.items() if after != state)


def _run_states() -> Iterator[_Edge]:
    def shown(run: RunState) -> str:
        more = [("asks", run.asking), ("second try", run.tried), ("interrupted", run.interjections > 0)]
        return run.status + "".join(f", {word}" for word, holds in more if holds and not run.is_over)

    def interject(run: RunState) -> None:
        if not run.interjections:  # a second one waits for the first
            run.interject()

    events: dict[str, Callable[[RunState], Any]] = {
        "start": lambda run: None if run.asking or run.tried or run.interjections else run.start(),
        "answered": lambda run: run.answered() if run.asking else None,
        "failed": lambda run: run.failed("") if run.asking else None,
        "pause": RunState.pause,
        "resume": RunState.resume,
        "interject": interject,
        "interjection over": lambda run: run.interjection_over() if run.interjections else None,
        "abort": RunState.abort,
    }
    return _explored(RunState(1), shown, events)


def _handshake_states(*, resumes: bool) -> Iterator[_Edge]:
    key, nonce = b"k" * 32, b"n" * proofs.NONCE_BYTES
    parts = proofs.Parts("window", b"h" * 32, b"g" * 32, nonce, b"", b"host key")
    digest = replace(parts, guest_nonce=nonce).digest()
    auth = {"type": "auth", "nonce": proofs.b64(nonce), "mac": proofs.b64(proofs.proof(key, "guest", digest))}
    host = HostProof(lambda text: b"", b"")
    events: dict[str, Callable[[Handshake], Any]] = {
        "open": lambda one: one.on_open(parts.guest_print),
        "open with another certificate": lambda one: one.on_open(b"x" * 32),
        "proof": lambda one: one.on_frame(auth),
        "wrong proof": lambda one: one.on_frame({**auth, "mac": proofs.b64(b"x" * 32)}),
        "phone agrees": lambda one: one.on_frame({"type": "confirm", "same": True}),
        "phone differs": lambda one: one.on_frame({"type": "confirm", "same": False}),
        "operator agrees": lambda one: one.on_operator(True),
        "operator differs": lambda one: one.on_operator(False),
        "time is over": Handshake.on_timeout,
        "goodbye": lambda one: one.on_frame({"type": "bye"}),
    }

    def shown(one: Handshake) -> str:
        agrees = [
            word
            for word, holds in (
                ("phone agrees", one._guest_agrees),
                ("operator agrees", one._operator_agrees),
            )
            if holds
        ]
        return ", ".join([one.state, *agrees]) if one.state == "compare" else one.state

    return _explored(Handshake(parts, proofs.commitment(nonce), (key,), host, resumes=resumes), shown, events)
