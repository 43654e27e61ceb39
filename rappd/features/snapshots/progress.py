"""The snapshot, drill or restore that is under way in the daemon: how far each machine is, for everybody who asks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any, TypedDict

from envelopes.events import Work
from rappd.dispatch.turns import Turn
from rappd.errors import ConflictError

SNAPSHOT, DRILL, RESTORE = "snapshot", "drill", "restore"

_PACE_SECONDS = 0.1


class WorkView(TypedDict):
    """Work that is under way: its phase, and how far the machines, or the files of the egg, are."""

    id: str
    kind: str
    phase: str
    began_at: float
    egg: str
    machines: list[dict[str, Any]]
    parts: dict[str, Any]
    can_cancel: bool


class UnaskedToken(TypedDict):
    """A variable with a token that would be sent to a host for a machine."""

    member: str
    variable: str
    host: str


class SnapshotWork:
    """One piece of work. ``tell`` may be called from any thread, everything else on the event loop."""

    def __init__(self, id: str, kind: str) -> None:
        self.id = id
        self.kind = kind
        self.task: asyncio.Task[dict[str, Any]] | None = None
        self.turn: Turn | None = None
        """Is told the state whenever something changed."""
        self._began_at = time.time()
        self._machines: dict[str, dict[str, Any]] = {}
        self._phase = {SNAPSHOT: "reading", DRILL: "drilling", RESTORE: "reading"}[kind]
        self._egg = ""
        self._parts: dict[str, Any] = {"done": 0, "whole": 0, "last": "", "problems": []}
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._reported: dict[str, tuple[str, float]] = {}

    def tell(self, event: dict[str, Any]) -> None:
        """Takes an event of a snapshot or restore; of a machine's bytes no more than ten a second."""
        if event["event"] == "machine":
            with self._lock:
                state, at = self._reported.get(event["machine"], ("", 0.0))
                now = time.monotonic()
                if event["state"] == state and now - at < _PACE_SECONDS:
                    return
                self._reported[event["machine"]] = event["state"], now
        with contextlib.suppress(RuntimeError):  # the daemon stops
            self._loop.call_soon_threadsafe(self._take, event)

    def as_json(self) -> WorkView:
        """The state for the page and for agents."""
        return {
            "id": self.id,
            "kind": self.kind,
            "phase": self._phase,
            "began_at": self._began_at,
            "egg": self._egg,
            "machines": [{"name": name, **row} for name, row in self._machines.items()],
            "parts": {**self._parts, "problems": list(self._parts["problems"])},
            "can_cancel": self.can_cancel,
        }

    @property
    def can_cancel(self) -> bool:
        """True until the egg lies on disk; a restore goes on to its end."""
        return self.kind == SNAPSHOT and self._phase == "reading"

    def check_cancel(self) -> None:
        """Raises ``ConflictError`` when it is too late to cancel it."""
        if not self.can_cancel:
            raise ConflictError("Too late to cancel; it goes on to its end.", do="Wait until it is done.")

    def _take(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "machine":
                row = {key: value for key, value in event.items() if key not in ("event", "machine")}
                self._machines[event["machine"]] = row
            case "drill":
                self._phase, self._egg = "drilling", event["path"]
            case "planned":
                self._phase = "hatching"
                self._parts["whole"] = event["parts"]
            case "hatched":
                self._parts["done"] += 1
                self._parts["last"] = event["name"]
                if event["problem"]:
                    machine = event.get("machine", "")
                    name = f"{machine}/{event['name']}" if machine else event["name"]
                    self._parts["problems"].append(f"{name}: {event['problem']}")
        if self.turn is not None:
            self.turn.tell(Work(self.as_json()))


def ended_line(done: dict[str, Any]) -> str:
    """A line about the result of a snapshot, drill or restore."""
    if (restored := done.get("hatched")) is not None:
        failed = f"; {len(restored['failed'])} failed: {restored['failed'][0]}" if restored["failed"] else ""
        where = " as a simulation" if restored["target"] == "local-simulate" else ""
        return f"{restored['egg']['name']} is restored{where}{failed}."
    row = done["snapshot"]
    absent = [*row["missing"], *row["left_behind"]]
    lacks = f", without {', '.join(absent)}" if absent else ""
    if row["drill"] is None:
        state = "not tried"
    else:
        state = "restorable" if row["restorable"] else f"not restorable: {row['drill']['problem']}"
    contents = f"{_many(row['machines'], 'machine')} and {_many(row['twins'], 'twin')}"
    return f"The snapshot {row['name']} holds {contents}{lacks}; it is {state}."


def _many(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"
