"""Fleet looks after all machines of the owner at once: how each of them is, and setting twins aside on every one.

Say "how are my machines?", "archive the twins of kind project on all machines".

Argument `action`, and with it what the action needs:

status                          every machine: health, version, free disk, twins, last snapshot that can be restored
neighborhoods                   the neighborhoods that this machine is in
archive_estate  filter, confirm sets twins aside here and on every other machine, whole; each can be brought back

`filter` has the clauses kind, name_prefix, name_regex, stopped_for_days and exclude_kinds, all of which must hold;
a text like `kind=project` is understood, too. Without `confirm` nothing is done: it says which twins it would be.
A machine that does not answer stops no other, and nothing is rolled back. Answers are JSON, or text that begins
with "Error: ". It works for the owner of this machine only.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/fleet_agent",
    "version": "1.0.0",
    "display_name": "Fleet",
    "description": "Tells how all machines of the owner are, and archives twins on every one of them.",
    "summary": "Tells how all your machines are.",
    "author": "rappd",
    "tags": ["machines", "neighborhood", "lifecycle"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

ACTIONS = ("status", "neighborhoods", "archive_estate")
_CLAUSE = re.compile(
    r"""\b(kind|name_prefix|name_regex|stopped_for_days|exclude_kinds)\s*=\s*("[^"]*"|'[^']*'|\S+)"""
)
_NAMES = 8
_STATES = {"awake": "running"}


class FleetAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Fleet"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Tells how the fleet is, all machines of the person at once: health, version, disk, twins, "
            "last snapshot; lists the neighborhoods that this machine is in; and archives twins on every machine "
            '(archive_estate). Use it for "how are my machines?", "how is my fleet?", "which neighborhoods am I in?", '
            "or to archive twins on all machines.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": list(ACTIONS), "description": "What to do"},
                    "filter": {
                        "type": "object",
                        "description": "Which twins to archive: kind, name_prefix, name_regex, "
                        "stopped_for_days, exclude_kinds",
                    },
                    "confirm": {"type": "boolean", "description": "True only after the person said yes"},
                    "text": {**text, "description": "The filter in words, like kind=project"},
                },
                "required": [],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`; the head of the file describes the arguments."""
        action = str(kwargs.get("action") or "status").strip().lower().replace("-", "_")
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        try:
            if action == "status":
                answer = _status(request("fleet.status"))
            elif action == "neighborhoods":
                answer = _places(request("neighborhood.places")["neighborhoods"])
            else:
                chosen = _filter(kwargs.get("filter"), str(kwargs.get("text") or ""))
                if not chosen:
                    return "Error: archive_estate needs a filter, like kind=project or stopped_for_days=30."
                done = request("fleet.archive_estate", filter=chosen, confirm=kwargs.get("confirm") is True)
                answer = _archived(done, chosen)
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        return json.dumps({"status": "ok", **answer}, ensure_ascii=False, default=str)


def _filter(given: object, text: str) -> dict[str, Any]:
    """The filter as an object; without one, the clauses that a text has."""
    if isinstance(given, dict) and given:
        return given
    clauses: dict[str, Any] = {}
    for clause, value in _CLAUSE.findall(given if isinstance(given, str) else text):
        value = value.strip("\"'").rstrip(".,;!?") if clause != "name_regex" else value.strip("\"'")
        if clause == "exclude_kinds":
            clauses[clause] = [kind.strip() for kind in value.split(",") if kind.strip()]
        else:
            clauses[clause] = int(value) if clause == "stopped_for_days" and value.isdigit() else value
    return clauses


def _status(found: dict[str, Any]) -> dict[str, Any]:
    lines = [_in_words(row) for row in found["fleet"]]
    return {"message": "\n".join(lines), **found, "data_slush": {"machines": len(lines)}}


def _places(rows: list[dict[str, Any]]) -> dict[str, Any]:
    lines = [
        f"- {row['name']}: {row['count']} member{'' if row['count'] == 1 else 's'}"
        for row in rows
        if row["joined"]
    ]
    message = "\n".join(["You are in:", *lines]) if lines else "This machine is in no neighborhood."
    return {
        "message": message,
        "data_slush": {"neighborhoods": [row["name"] for row in rows if row["joined"]]},
    }


def _in_words(row: dict[str, Any]) -> str:
    name = f"{row['name']} (this machine)" if row["peer"] == "self" else str(row["name"])
    if not row["reachable"]:
        return _said_of(name, row["detail"] or "no answer")
    facts = [_STATES.get(row["health"], row["health"]) or "here"]
    if row["rappd_version"]:
        facts.append(f"rappd {row['rappd_version']}")
    if row["free_bytes"] >= 0:
        facts.append(f"{row['free_bytes'] / 1e9:.1f} GB free")
    if row["twins"] is not None:
        facts.append(f"{row['twins']} twin{'' if row['twins'] == 1 else 's'}")
    last = row["last_snapshot"]
    facts.append(f"in the snapshot of {last['taken_at'][:10]}" if last else "in no snapshot")
    return f"{name}: {', '.join([*facts, *row['problems']])}"


def _said_of(name: str, text: str) -> str:
    return text if text.startswith((f"{name} ", f"{name}:", f"{name}'")) else f"{name}: {text}"


def _archived(found: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    is_dry = found["mode"] == "dry-run"
    lines = []
    for row in found["per_peer"]:
        name = "this machine" if row["peer"] == "self" else row["peer"]
        if "error" in row:
            lines.append(_said_of(name, row["error"]))
            continue
        twins = row["would_archive"] if is_dry else row["archived"]
        named = ", ".join(str(one["name"]) for one in twins[:_NAMES]) + (", …" if len(twins) > _NAMES else "")
        wrong = "".join(f"; {one['name']}: {one['error']}" for one in row["errors"][:_NAMES])
        later = "".join(f"; {one['name']} follows" for one in row.get("put_off", ()))
        lines.append(f"{name}: {named or 'none'}{wrong}{later}")
    head = "Set aside, whole:"
    if is_dry:
        again = " ".join(f"{clause}={_word(value)}" for clause, value in chosen.items())
        head = f'Nothing was done yet: "archive estate {again} confirm" does it. It would be:'
    answered = any("error" not in row for row in found["per_peer"])
    missing = "" if found["ok"] else "Not every machine could. "
    state = "ok" if found["ok"] else "partial" if answered else "error"
    return {"status": state, "message": "\n".join([f"{missing}{head}", *lines]), **found}


def _word(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"'{text}'" if re.search(r"\s", text) else text


if __name__ == "__main__":
    sys.stdout.write(FleetAgent().perform(action=" ".join(sys.argv[1:]).strip() or "status") + "\n")
