"""NeighborhoodSnapshot copies all machines of the neighborhood, with their twins, into one egg.

Say "snapshot my machines", "what snapshots are there", "how far is the snapshot". Argument `action`:

snapshot    takes one and tries at once whether it can be restored. `name`; `max_twin_bytes`, above which a twin
            stays behind; `include_archived`, `include_twin_workspaces`, `include_stopped_twins`,
            `include_brainstem_core`, `include_brainstem_data`, `include_global_state`
inspect     the machines and twins in one, `egg_path` (a name or whole path; else the newest). While one is being
            taken and no `egg_path` is given: how far it is
list_eggs   every snapshot, the newest first, and whether it can be restored
schedule    the times at which snapshots are taken by themselves; sets none

Long work goes on after the answer; its end is told in a later turn. Answers are JSON, or text that begins with
"Error: ". It works for the owner of this machine only.
"""

from __future__ import annotations

import json
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
    "name": "@rappd/neighborhood_snapshot_agent",
    "version": "1.0.0",
    "display_name": "NeighborhoodSnapshot",
    "description": "Copies all machines of the neighborhood into one egg, and lists such snapshots.",
    "summary": "Copies all your machines into one file.",
    "author": "rappd",
    "tags": ["neighborhood", "eggs", "snapshot"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

ACTIONS = ("snapshot", "inspect", "list_eggs", "schedule")
_FLAGS = {
    "include_archived": "Archived twins, too",
    "include_twin_workspaces": "False lists the twins and leaves their files behind",
    "include_stopped_twins": "False leaves out twins of this machine that are stopped",
    "include_brainstem_core": "False leaves out the soul and the kernel",
    "include_brainstem_data": "False leaves out the brainstem's memory",
    "include_global_state": "False leaves out the few kept files of the home",
}
_MOST = 20


class NeighborhoodSnapshotAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "NeighborhoodSnapshot"
        text = {"type": "string"}
        flags = {
            name: {"type": "boolean", "description": description} for name, description in _FLAGS.items()
        }
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Takes a snapshot of all machines of the neighborhood into one egg, lists the "
            "snapshots and says what is in one. Use it when the person wants to snapshot, copy or back up "
            "their machines, or asks which snapshots there are or how far one is.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": list(ACTIONS), "description": "What to do"},
                    "egg_path": {
                        **text,
                        "description": "Name or whole path of a snapshot; without it the newest",
                    },
                    "name": {**text, "description": "What to call the new snapshot"},
                    "max_twin_bytes": {"type": "integer", "description": "Larger twins stay behind"},
                    **flags,
                },
                "required": ["action"],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`; the head of the file describes the arguments."""
        action = str(kwargs.get("action") or "list_eggs").strip().lower().replace("-", "_")
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        egg = str(kwargs.get("egg_path") or "").strip()
        try:
            if action == "list_eggs":
                answer = _listed(request("neighborhood.snapshots")["snapshots"])
            elif action == "schedule":
                answer = _scheduled(request("neighborhood.schedule")["schedule"])
            elif action == "inspect":
                work = None if egg else request("neighborhood.status")["work"]
                answer = (
                    _so_far(work)
                    if work
                    else _looked_at(request("neighborhood.inspect", egg=egg)["snapshot"])
                )
            else:
                options = {key: kwargs[key] for key in _FLAGS if isinstance(kwargs.get(key), bool)}
                if kwargs.get("max_twin_bytes") is not None:
                    options["max_twin_bytes"] = int(kwargs["max_twin_bytes"])
                name = str(kwargs.get("name") or "").strip()
                done = request("neighborhood.snapshot", name=name, options=options)
                answer = _so_far(done["work"]) if "work" in done else _taken(done)
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        return json.dumps({"status": "ok", **answer}, ensure_ascii=False, default=str)


def _taken(done: dict[str, Any]) -> dict[str, Any]:
    lines = [str(done["message"])]
    lines += [f"- {one['path']}: {one['why']}" for one in done["failed"][:_MOST]]
    lines += [f"- left out, too large: {one['path']} ({one['why']})" for one in done["oversize"][:_MOST]]
    secrets = [one for one in done["left_out"] if one.get("id")]
    lines += [f"- left out, a likely secret: {one['path']} ({one['why']})" for one in secrets[:_MOST]]
    row = done["snapshot"]
    slush = {
        "name": row["name"],
        "path": row["path"],
        "restorable": row["restorable"],
        "missing": row["missing"],
    }
    return {"message": "\n".join(lines), "data_slush": slush}


def _so_far(work: dict[str, Any]) -> dict[str, Any]:
    """The state of work that goes on."""
    lines = [f"A {work['kind']} is under way; I tell you when it is done."]
    for one in work["machines"]:
        share = f", {100 * one['done'] // one['whole']} %" if one["whole"] else ""
        lines.append(f"- {one['name']}: {one['state']}{share if one['state'] == 'reading' else ''}")
    if work["phase"] == "drilling":
        lines.append("- all is read; it is tried whether it can be restored")
    if work["parts"]["whole"]:
        lines.append(f"- {work['parts']['done']} of {work['parts']['whole']} parts are hatched")
    return {"message": "\n".join(lines), "data_slush": {"work": work["id"], "phase": work["phase"]}}


def _listed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    if not rows:
        return {"message": 'There is no snapshot yet. "Snapshot my machines" takes one.', "data_slush": {}}
    lines = [
        f"{row['name']}: {_many(row['machines'], 'machine')}, {_many(row['twins'], 'twin')}, {_state(row)}"
        for row in rows
    ]
    text = "\n".join(f"- {line}" for line in lines[:_MOST])
    slush = {"snapshots": [row["name"] for row in rows], "restorable": [row["restorable"] for row in rows]}
    return {"message": f"Snapshots, the newest first:\n{text}", "data_slush": slush}


def _many(number: int, one: str) -> str:
    return f"{number} {one}{'' if number == 1 else 's'}"


def _scheduled(found: dict[str, Any] | None) -> dict[str, Any]:
    """The schedule; its owner alone sets it, where a command is typed."""
    if found is None:
        message = "No snapshots are scheduled, and none was taken now."
    else:
        zone = f" ({found['zone']})" if found["zone"] else ""
        message = f"Snapshots are taken by themselves: {found['rule']}{zone}; the next on {found['next'][:16].replace('T', ' ')} UTC."
        if found["outcome"]:
            message += f" They fail since {found['failed_since'][:10]}: {found['outcome']}"
    return {
        "message": f"{message}\nTo set the times: rappd neighborhood schedule daily 03:00",
        "data_slush": found or {},
    }


def _state(row: dict[str, Any]) -> str:
    drill = row.get("drill")
    if not row["there"]:
        return "its file is gone"
    if not drill:
        return "not tried yet"
    if not row["restorable"]:
        return f"cannot be restored: {drill['problem']}"
    absent = [*row["missing"], *row.get("left_behind", ())]
    lacks = f", without {', '.join(absent[:5])}" if absent else ""
    return f"restorable, tried {drill['at'][:10]}{lacks}"


def _looked_at(found: dict[str, Any]) -> dict[str, Any]:
    whole = "whole" if found["whole"] else "not whole"
    signer = found["signer_name"] or (f"the key {found['signer'][:16]}" if found["signer"] else "nobody")
    tried = (
        f"restorable, tried {found['drill']['at'][:10]}"
        if found["restorable"]
        else "not known to be restorable"
    )
    lines = [f"{found['name']}, {found['size']} bytes, {whole}, signed by {signer}; {tried}."]
    for machine in found["machines"]:
        named = ", ".join(_twin(one) for one in machine["twins"][:_MOST]) or "no twins"
        lines.append(f"- {machine['name'] or 'the machine it was taken on'}: {named}")
    lines += [f"- missing: {one}" for one in found["missing"][:_MOST]]
    slush = {"name": found["name"], "path": found["path"], "sha256": found["sha256"]}
    return {"message": "\n".join(lines), "data_slush": slush}


def _twin(one: dict[str, Any]) -> str:
    return str(one["name"]) if one["captured"] else f"{one['name']} (not in it: {one['reason']})"


if __name__ == "__main__":
    sys.stdout.write(NeighborhoodSnapshotAgent().perform(action=" ".join(sys.argv[1:])) + "\n")
