"""Twin looks after the twins of this machine: someone with a soul, memory and agents each, in one folder.

Say "make a twin called Rose", "who lives here?", "ask Rose how the garden is", "pack Rose", "set Rose aside".

Argument `action`, and with it what the action needs:

summon (new)            name, kind, text (its soul)        a new twin
list                                                       who lives here
overview (show)         rappid_uuid                        one twin
chat                    rappid_uuid, text                  ask it something
boot, stop              rappid_uuid                        a port of its own; stopped
update_identity (rename) rappid_uuid, name                 another name
update_soul (soul)      rappid_uuid, text, reason          without text it tells the soul
history                 rappid_uuid                        earlier souls
lineage                 rappid_uuid                        who was forked from whom
fork                    rappid_uuid, name                  a copy that goes its own way
lay_egg (pack)          rappid_uuid, egg_path              an egg of it
hatch                   egg_path or egg_url, expect_sha256 a twin out of an egg
inspect                 egg_path                           what is in an egg
eggs                                                       what was hatched here
checkpoint              rappid_uuid, reason                keeps it as it is now
checkpoints             rappid_uuid
rollback                rappid_uuid, text (which), confirm brings it back to a checkpoint, or the latest
archive                 rappid_uuid or filter, confirm, reason
unarchive, purge        rappid_uuid, confirm, reason
list_archived, list_purged

`rappid_uuid` takes a rappid, its beginning, or a twin's name. Answers are JSON, or text that begins with
"Error: ". It works for the owner of this machine only.
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
    "name": "@rappd/twin_agent",
    "version": "1.0.0",
    "display_name": "Twin",
    "description": "Mints, lists, asks, packs, hatches, forks and sets aside the twins of this machine.",
    "summary": "Manages the twins that live here.",
    "author": "rappd",
    "tags": ["twins", "eggs", "lifecycle"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

_STATES = {"awake": "running", "asleep": "stopped"}
_SYNONYMS = {
    "new": "summon",
    "create": "summon",
    "mint": "summon",
    "show": "overview",
    "rename": "update_identity",
    "soul": "update_soul",
    "pack": "lay_egg",
    "sleep": "stop",
    "wake": "boot",
    "ask": "chat",
    "talk": "chat",
}
_ALSO_SAID = ("new", "create", "rename", "pack", "ask")
"""Synonyms that are offered, too: words that people begin with."""
_ONE = frozenset(
    {"overview", "chat", "boot", "stop", "update_identity", "update_soul", "history", "fork", "lay_egg",
     "checkpoint", "checkpoints", "rollback", "unarchive", "purge"}
)  # fmt: skip
"""Actions on one twin, which must be named."""
_NAMES_ANOTHER = frozenset({"summon", "fork", "update_identity"})
_UNTOLD = ("key", "namesakes")
_TAKES_TEXT = frozenset({"chat", "update_soul"})
ACTIONS = (
    "summon", "list", "overview", "chat", "boot", "stop", "update_identity", "update_soul", "history",
    "lineage", "fork", "lay_egg", "hatch", "inspect", "eggs", "checkpoint", "checkpoints", "rollback",
    "archive", "unarchive", "purge", "list_archived", "list_purged",
)  # fmt: skip


class TwinAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Twin"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Looks after the twins that live on this machine: makes new ones, lists them, asks "
            "them something, starts and stops them, renames, forks, packs them into eggs, hatches "
            "eggs, keeps checkpoints and goes back to them, archives and purges. Use it when the person speaks "
            "of a twin, an egg, or who lives here.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": [*ACTIONS, *_ALSO_SAID], "description": "What to do"},
                    "rappid_uuid": {**text, "description": "Which twin: its name, or its rappid"},
                    "name": {**text, "description": "Name of the new twin, or the new name"},
                    "kind": {**text, "description": "personal, project, place, memorial, buddy or another"},
                    "text": {**text, "description": "What to ask the twin, or the soul it shall have"},
                    "egg_path": {**text, "description": "Whole path of an egg on this machine"},
                    "egg_url": {**text, "description": "Web address of an egg"},
                    "expect_sha256": {**text, "description": "SHA-256 that the fetched egg must have"},
                    "filter": {
                        "type": "object",
                        "description": "Which twins to archive: kind, name_prefix, name_regex, "
                        "stopped_for_days, exclude_kinds",
                    },
                    "confirm": {"type": "boolean", "description": "True only after the person said yes"},
                    "reason": {**text, "description": "Why, to be written down"},
                },
                "required": ["action"],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`; the head of the file describes the arguments."""
        texts = {key: value.strip() for key, value in kwargs.items() if isinstance(value, str)}
        action = texts.get("action", "list").lower().replace("-", "_") or "list"
        action = _SYNONYMS.get(action, action)
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        try:
            answer = _perform(request, action, _addressed(request, action, texts), texts, kwargs)
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        result = {"status": "ok", **{key: one for key, one in answer.items() if key not in _UNTOLD}}
        return json.dumps(result, ensure_ascii=False, default=str)


def _addressed(request: Any, action: str, texts: dict[str, str]) -> str:
    """Finds the twin that is meant. Without a model, its name may stand where the text does."""
    twin = texts.get("rappid_uuid") or ("" if action in _NAMES_ANOTHER else texts.get("name", ""))
    if twin or action not in _ONE:
        return twin
    text = texts.get("text", "")
    names = [str(one["name"]) for one in request("twins.list")["twins"]] if text else []
    for name in sorted(names, key=len, reverse=True):
        found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        if found:
            texts["text"] = text[found.end() :].strip(" ,:")
            return name
    if text and action not in _TAKES_TEXT:
        return text
    raise ValueError(f"{action} needs rappid_uuid, the twin's name or rappid.")


def _perform(request: Any, action: str, twin: str, texts: dict[str, str], given: dict[str, Any]) -> Any:
    reason, confirm = texts.get("reason", ""), given.get("confirm") is True
    match action:
        case "summon":
            name, soul = texts.get("name", ""), texts.get("text", "")
            if not name or soul.endswith((" named", " called")):  # no model: the sentence around the name
                name, soul = name or _need(texts, "text"), ""
            return request("twins.new", name=name, kind=texts.get("kind", ""), text=soul)
        case "list":
            return _listed(request("twins.list"))
        case "overview":
            return _shown(request("twins.show", twin=twin))
        case "chat":
            return request("twins.chat", twin=twin, text=_need(texts, "text"))
        case "boot" | "stop":
            return request(f"twins.{action}", twin=twin)
        case "unarchive":
            return _moved(request("twins.unarchive", twin=twin), "unarchived", "Back, stopped")
        case "update_identity":
            return request("twins.rename", twin=twin, name=_need(texts, "name"))
        case "update_soul":
            if texts.get("text"):
                return request("twins.edit_soul", twin=twin, text=texts["text"], reason=reason)
            found = request("twins.soul", twin=twin)
            return {"message": found["soul"], **found}
        case "history":
            return {"history": request("twins.soul", twin=twin)["history"]}
        case "lineage":
            return _family(request("twins.lineage", twin=twin))
        case "fork":
            return request("twins.fork", twin=twin, name=texts.get("name", ""))
        case "lay_egg":
            packed = request("eggs.pack", twin=twin, into=texts.get("egg_path", ""))
            return {"message": packed["message"], "path": packed["packed"]["path"]}
        case "hatch":
            hatched = request("eggs.hatch", **_egg(texts))
            return {"message": hatched["message"], "receipt": hatched["hatched"]["receipt"]}
        case "inspect":
            return _looked_at(request("eggs.inspect", **_egg(texts)))
        case "eggs":
            return _in_a_row(request("eggs.receipts"), "hatchings", "Hatched here")
        case "checkpoint":
            return request("twins.checkpoint", twin=twin, note=reason or texts.get("text", ""))
        case "checkpoints":
            return _kept(request("twins.checkpoints", twin=twin))
        case "rollback":
            which = text if re.match(r"\d{4}-\d\d", text := texts.get("text", "")) else ""
            return _gone_back(request("twins.rollback", twin=twin, checkpoint=which, confirm=confirm))
        case "archive":
            chosen = {"twin": twin} if twin else {"filter": given.get("filter"), "confirm": confirm}
            return _moved(request("twins.archive", **chosen, reason=reason), "archived", "Set aside, whole")
        case "purge":
            found = request("twins.purge", twin=twin, confirm=confirm, reason=reason)
            if confirm:
                return _moved(found, "purged", "Deleted")
            ask = f'It would be deleted, with all it has. Nothing was done yet: "yes, purge {twin}" does it.'
            return {**found, "message": ask}
        case "list_archived":
            return _in_a_row(request("twins.archived"), "archived", "Set aside")
    return _in_a_row(request("twins.purged"), "purged", "Gone")


def _family(found: dict[str, Any]) -> dict[str, Any]:
    rows = [f"{'  ' * one['depth']}{one['name']} ({one['state']})" for one in found["lineage"]]
    return {"message": "\n".join(rows) or "No twins live here yet.", **found}


def _looked_at(found: dict[str, Any]) -> dict[str, Any]:
    egg = found["egg"]
    whole = "whole" if egg["whole"] else "readable"
    signed = f"signed by {egg['signer'][:16]}" if egg["signer"] else "not signed"
    files = ", ".join(f"{number} {role}" for role, number in egg["roles"].items())
    message = (
        f"{egg['name']}, {egg['kind']} ({egg['schema']}), {egg['size']} bytes, {whole}, {signed}: {files}."
    )
    return {"message": message, **found}


def _listed(found: dict[str, Any]) -> dict[str, Any]:
    twins = found["twins"]
    if not twins:
        text = "No twins live here yet."
    else:
        who = "One twin lives here" if len(twins) == 1 else f"{len(twins)} twins live here"
        text = f"{who}: " + ", ".join(_in_words(one) for one in twins) + "."
    for one in found.get("unreadable", ()):
        text += f" {one['problem']}"
    return {"message": text, **found, "data_slush": {"twins": len(twins)}}


def _moved(found: dict[str, Any], done: str, what: str) -> dict[str, Any]:
    """Says which twins changed state; those that would, where nobody has confirmed yet."""
    moved = found.get(done) or []
    would = found.get(f"would_{done.removesuffix('d')}") or []
    named = ", ".join(str(one["name"]) for one in moved or would)
    if would and not moved:
        return {"message": f'It would be {named}. Nothing was done yet: "yes" does it.', **found}
    return {"message": f"{what}: {named or 'nobody'}.", **found}


def _in_a_row(found: dict[str, Any], key: str, what: str) -> dict[str, Any]:
    named = ", ".join(f"{one['name']} ({one['kind']})" for one in found[key])
    return {"message": f"{what}: {named or 'none'}.", **found}


def _kept(found: dict[str, Any]) -> dict[str, Any]:
    every = [f"{one['id']}{f' ({note})' if (note := one['note']) else ''}" for one in found["checkpoints"]]
    return {
        "message": f"{found['name']} can be brought back to: {', '.join(every) or 'nothing yet'}.",
        **found,
    }


def _gone_back(found: dict[str, Any]) -> dict[str, Any]:
    if found.get("mode") != "dry-run":
        return found
    files = f"{len(found['restored'])} files would be as they were, {len(found['removed'])} would go"
    yes = f'"yes, roll back {found["name"]}" does it.'
    at = found["checkpoint"]["at"]
    return {"message": f"{found['name']} as it was at {at}: {files}. Nothing changed yet: {yes}", **found}


def _in_words(twin: dict[str, Any]) -> str:
    state = (
        f"running on port {twin['port']}"
        if twin["state"] == "awake"
        else _STATES.get(twin["state"], twin["state"])
    )
    return f"{twin['name']} ({twin['kind']}, {state})"


def _shown(found: dict[str, Any]) -> dict[str, Any]:
    twin = found["twin"]
    message = f"{_in_words(twin)}, born {str(twin['born_at'])[:10]}, {twin['memories'] or 0} memories."
    return {"message": message, **found}


def _egg(texts: dict[str, str]) -> dict[str, str]:
    where = {"url": texts["egg_url"]} if texts.get("egg_url") else {"path": _need(texts, "egg_path")}
    return {**where, "expect_sha256": texts.get("expect_sha256", "")}


def _need(texts: dict[str, str], field: str) -> str:
    if not texts.get(field):
        raise ValueError(f"{field} is missing.")
    return texts[field]


if __name__ == "__main__":
    sys.stdout.write(TwinAgent().perform(action=" ".join(sys.argv[1:])) + "\n")
