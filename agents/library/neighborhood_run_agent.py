"""NeighborhoodRun brings a snapshot of the neighborhood back: where it came from, or as a simulation on this machine.

Say "plan the restore of home-2026-11-21", "restore home-2026-11-21 as a simulation". Argument `action`, and
`egg_path`, a snapshot's name or whole path (without it the newest):

inspect     its machines and twins
plan        what bringing it back would do, here and elsewhere; writes nothing
hatch       brings it back. What is there stays, unless a flag says otherwise. Where other machines would be
            written to, the plan is shown first: `confirm` true, or `approved` with its digest, is the yes to it
list_eggs   every snapshot

Flags of plan and hatch: `target` (`in-place`, or `local-simulate`, which touches no other machine and puts
their twins into simulated/), `overwrite_agents`, `overwrite_core`, `overwrite_data`, `overwrite_global_state`,
`overwrite_twins`, `overwrite_peer_twins`, `restore_archived`; all false by default.

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
    "name": "@rappd/neighborhood_run_agent",
    "version": "1.0.0",
    "display_name": "NeighborhoodRun",
    "description": "Plans and restores snapshots of the neighborhood, in place or as a simulation.",
    "summary": "Restores a snapshot of your machines.",
    "author": "rappd",
    "tags": ["neighborhood", "eggs", "restore"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

ACTIONS = ("inspect", "plan", "hatch", "list_eggs")
TARGETS = ("in-place", "local-simulate")
_FLAGS = {
    "overwrite_agents": "Replace the brainstem's agents and services",
    "overwrite_core": "Replace the brainstem's soul",
    "overwrite_data": "Replace the brainstem's memory",
    "overwrite_global_state": "Replace the kept files of the home",
    "overwrite_twins": "Replace files of twins of this machine",
    "overwrite_peer_twins": "Replace twins of other machines",
    "restore_archived": "Archived twins, too; they stay archived",
}
_CATEGORIES = {
    "twins": "files of twins",
    "agents": "agents",
    "core": "soul and kernel",
    "data": "memory",
    "global_state": "files of the home",
    "peer_twins": "twins of other machines",
}
_MOST = 20


class NeighborhoodRunAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "NeighborhoodRun"
        text = {"type": "string"}
        flags = {
            name: {"type": "boolean", "description": description} for name, description in _FLAGS.items()
        }
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Brings a snapshot of the neighborhood back, in place or as a simulation on this "
            "machine, after a plan. Use it when the person wants to restore a snapshot, plan a restore, or "
            "simulate one.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": list(ACTIONS), "description": "What to do"},
                    "egg_path": {
                        **text,
                        "description": "Name or whole path of a snapshot; without it the newest",
                    },
                    "target": {**text, "enum": list(TARGETS), "description": "in-place by default"},
                    **flags,
                    "approved": {**text, "description": "Digest of the plan that the person said yes to"},
                    "confirm": {
                        "type": "boolean",
                        "description": "True only after the person saw the plan and said yes",
                    },
                },
                "required": ["action"],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`; the head of the file describes the arguments."""
        action = str(kwargs.get("action") or "list_eggs").strip().lower().replace("-", "_")
        target = str(kwargs.get("target") or TARGETS[0]).strip().lower().replace("_", "-")
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        if target not in TARGETS:
            return f"Error: there is no target {target[:40]!r}. There are: {', '.join(TARGETS)}."
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        egg = str(kwargs.get("egg_path") or "").strip()
        options = {"target": target, **{key: True for key in _FLAGS if kwargs.get(key) is True}}
        try:
            answer = _perform(request, action, egg, options, kwargs)
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        return json.dumps({"status": "ok", **answer}, ensure_ascii=False, default=str)


def _perform(
    request: Any, action: str, egg: str, options: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    if action == "list_eggs":
        return _listed(request("neighborhood.snapshots")["snapshots"])
    if action == "inspect":
        return _looked_at(request("neighborhood.inspect", egg=egg)["snapshot"])
    if action == "plan":
        plan = request("neighborhood.plan", egg=egg, options=options)["plan"]
        return _planned(plan, "Nothing was written.")
    done = request(
        "neighborhood.hatch",
        egg=egg,
        options=options,
        approved=str(given.get("approved") or ""),
        confirm=given.get("confirm") is True,
    )
    if done.get("needs_yes"):
        yes = f'"yes, restore {done["plan"]["egg"]["name"]}" does it'
        return _planned(done["plan"], f"Other machines would be written to, so nothing was yet: {yes}.")
    if "work" in done:
        return _so_far(done["work"])
    restored = done["hatched"]
    lines = [str(done["message"]), *_rows(restored)]
    lines += [f"- failed: {one}" for one in restored["failed"][:_MOST]]
    if any(one.get("quarantined") for one in restored["local"]):
        lines.append(
            "- code from a machine that you do not trust waits for your approval: rappd agents approve"
        )
    slush = {"receipts": restored["receipts"], "failed": restored["failed"], "partial": restored["partial"]}
    return {"message": "\n".join(lines), "data_slush": slush}


def _planned(plan: dict[str, Any], end: str) -> dict[str, Any]:
    where = "as a simulation on this machine" if plan["target"] == "local-simulate" else "in place"
    signer = {"self": "this machine", "trusted": plan["seal"]["signer_name"]}.get(plan["seal"]["standing"])
    signed = (
        f"signed by {signer}" if signer else "not signed by anybody you trust: its code would wait for you"
    )
    lines = [f"{plan['egg']['name']}, {where}, {signed}:", *_rows(plan)]
    if plan["boot"]:
        lines.append(f"- {len(plan['boot'])} twins that were running would be started")
    if plan["left_archived"]:
        lines.append(f"- {plan['left_archived']} archived twins stay in the egg")
    lines += [f"- problem: {one}" for one in plan["problems"][:_MOST]]
    slush = {"egg": plan["egg"]["name"], "digest": plan["digest"], "problems": plan["problems"]}
    return {"message": "\n".join([*lines, end]), "data_slush": slush}


def _rows(plan: dict[str, Any]) -> list[str]:
    """Counts by category, then each other machine."""
    lines = []
    for name, label in _CATEGORIES.items():
        counts = plan["categories"][name]
        if any(counts.values()):
            summary = f"{counts['created']} new, {counts['overwritten']} replaced, {counts['skipped']} stay"
            lines.append(f"- {label}: {summary}")
    for peer in plan["peers"]:
        steps = [f"{step['name']} ({step['action']})" for step in peer["twins"][:_MOST]]
        summary = peer.get("problem") or ", ".join(steps) or "nothing"
        lines.append(f"- {peer['name']}: {summary}")
    return lines


def _so_far(work: dict[str, Any]) -> dict[str, Any]:
    done, whole = work["parts"]["done"], work["parts"]["whole"]
    far = f" {done} of {whole} parts are hatched." if whole else ""
    message = f"The {work['kind']} is under way;{far} I tell you when it is done."
    return {"message": message, "data_slush": {"work": work["id"], "phase": work["phase"]}}


def _listed(rows: list[dict[str, Any]]) -> dict[str, Any]:
    named = "\n".join(
        f"- {row['name']}: {'restorable' if row['restorable'] else 'not known to be restorable'}"
        for row in rows[:_MOST]
    )
    message = f"Snapshots, the newest first:\n{named}" if rows else "There is no snapshot yet."
    return {"message": message, "data_slush": {"snapshots": [row["name"] for row in rows]}}


def _looked_at(found: dict[str, Any]) -> dict[str, Any]:
    lines = [f"{found['name']}, {found['size']} bytes, {'whole' if found['whole'] else 'not whole'}:"]
    for machine in found["machines"]:
        named = ", ".join(str(one["name"]) for one in machine["twins"][:_MOST] if one["captured"])
        lines.append(f"- {machine['name'] or 'the machine it was taken on'}: {named or 'no twins'}")
    lines += [f"- missing: {one}" for one in found["missing"][:_MOST]]
    return {"message": "\n".join(lines), "data_slush": {"name": found["name"], "path": found["path"]}}


if __name__ == "__main__":
    sys.stdout.write(NeighborhoodRunAgent().perform(action=" ".join(sys.argv[1:])) + "\n")
