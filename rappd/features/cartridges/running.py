"""A cartridge runs: frames of a LisPy agent, actions of a buddy in its file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rappd.errors import UsageProblemError
from twins.cartridges import buddy_actions, buddy_state
from twins.cartridges.buddy_actions import Action
from twins.cartridges.buddy_status_cache import buddy_status
from twins.cartridges.json_documents import Document, canonical, same
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape, checked
from twins.errors import BadCartridgeError


def run_lispy(
    document: Document, frames: int, inputs: Sequence[Any], steps: int | None, fuel: int | None, now: datetime
) -> tuple[Document, dict[str, Any]]:
    """Runs frames of a LisPy agent: the cartridge as it is then, and the answer about it."""
    from agents.runtimes.lispy.limits import Limits
    from twins.cartridges import lispy_runner

    limits = Limits() if fuel is None else Limits(max_steps=fuel)
    ran = lispy_runner.run(document, frames=frames, steps=steps, inputs=inputs, limits=limits, now=now)
    return ran.document, {**ran.as_json(), "next": lispy_runner.inspect(ran.document)}


def overruled(document: Document) -> list[str]:
    """Returns the changes to ``env`` made while the machine was frozen that its own values override."""
    from agents.runtimes.lispy.errors import BadValueError
    from agents.runtimes.lispy.value_codec import from_wire

    if document.get("continuation", {}).get("image") is None:
        return []
    changed = []
    plain = document.get("env", {})
    for name, wire in document.get("env_wire", {}).items():
        try:
            if name in plain and not same(plain[name], from_wire(wire)):
                changed.append(name)
        except BadValueError:  # a run reports it
            continue
    return [f"{name} was changed by hand; the frozen machine goes on with its own." for name in changed]


def live(
    name: str, document: Document, shape: Shape, frames: int | None, inputs: Sequence[Any], now: datetime
) -> tuple[Document, dict[str, Any]]:
    """Actions of a buddy, one a frame; it goes back into the shape it came in."""
    _must_live(name, document, shape)
    buddy = convert(document, Shape.BUDDY)
    buddy["_meta"].pop("as_of", None)  # in a file no time passes
    actions = [_action(one) for one in inputs]
    actions += [(Action.HEARTBEAT, {})] * (
        (1 if frames is None and not actions else frames or 0) - len(actions)
    )
    events: list[dict[str, Any]] = []
    entropy = hashlib.sha256(canonical(document)).digest()[:2]
    for action, given in actions:
        lived = buddy_actions.act(buddy, action, now, entropy=entropy, **given)
        buddy = lived.document
        events.append(
            {"frame": buddy["organism"]["frames_survived"], "action": action.value, "result": lived.answer}
        )
    back = convert(buddy_state.exported(buddy, now), shape)
    checked(back, name=name)
    return back, {
        "status": "done",
        "output": "",
        "echo_frames_run": len(events),
        "frames": events,
        "steps": 0,
        "notes": [],
        "next": "",
        "buddy": buddy_status(buddy),
    }


def _must_live(name: str, document: Document, shape: Shape) -> None:
    if shape is not Shape.SPEC:
        return
    scale = document["organism"].get("scale", "daemon")
    if scale != "daemon" or document["body"]["kind"] == "cartridge_xml":
        what = f"of scale {scale}" if scale != "daemon" else "in XML"
        raise BadCartridgeError(
            f"{name} is an organism {what}; nothing here runs it.", do=f"rappd cartridge inspect {name}"
        )


def _action(given: Any) -> tuple[Action, dict[str, Any]]:
    """An input of a buddy: ``"feed"``, or ``{"action": "remember", "text": …, "kind": …}``."""
    action = {"action": given} if isinstance(given, str) else given
    name = action.get("action") if isinstance(action, dict) else None
    if not isinstance(name, str) or name not in set(Action):
        raise UsageProblemError(
            "A buddy takes actions.", do=f"""--input '"feed"'; there are: {", ".join(Action)}."""
        )
    rest = {key: value for key, value in action.items() if key in ("text", "kind")}
    if not all(isinstance(value, str) for value in rest.values()) or len(rest) + 1 != len(action):
        raise UsageProblemError(f"{name} takes text and kind, both text.", do="Leave the rest out.")
    return Action(name), rest
