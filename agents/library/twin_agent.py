"""Twin looks after the twins of this machine: someone with a soul, memory and agents each, in one folder.

Say "make a twin called Rose", "who lives here?", "ask Rose how the garden is", "pack Rose", "set Rose aside".

Argument `action`, and with it what the action needs:

summon (new)            name, kind, text (its soul)        a new twin
list                                                       who lives here
overview (show)         rappid_uuid                        one twin
chat                    rappid_uuid, text                  ask it something
boot, stop              rappid_uuid                        a port of its own, or sleep
update_identity (rename) rappid_uuid, name                 another name
update_soul (soul)      rappid_uuid, text, reason          without text it tells the soul
history                 rappid_uuid                        earlier souls
lineage                 rappid_uuid                        who was forked from whom
fork                    rappid_uuid, name                  a copy that goes its own way
lay_egg (pack)          rappid_uuid                        an egg of it
hatch                   egg_path or egg_url, expect_sha256 a twin out of an egg
inspect                 egg_path                           what is in an egg
eggs                                                       what was hatched here
archive                 rappid_uuid or filter, confirm, reason
unarchive, purge        rappid_uuid, confirm, reason
list_archived, list_purged

`rappid_uuid` takes a rappid, its beginning, or a twin's name. Answers are JSON, or text that begins with
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
    "name": "@rappd/twin_agent",
    "version": "1.0.0",
    "display_name": "Twin",
    "description": "Mints, lists, asks, packs, hatches, forks and sets aside the twins of this machine.",
    "author": "rappd",
    "tags": ["twins", "eggs", "lifecycle"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
}

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
_ONE = frozenset(
    {"overview", "chat", "boot", "stop", "update_identity", "update_soul", "history", "fork", "lay_egg",
     "unarchive", "purge"}
)  # fmt: skip
ACTIONS = (
    "summon", "list", "overview", "chat", "boot", "stop", "update_identity", "update_soul", "history",
    "lineage", "fork", "lay_egg", "hatch", "inspect", "eggs", "archive", "unarchive", "purge",
    "list_archived", "list_purged",
)  # fmt: skip


class TwinAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Twin"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Looks after the twins that live on this machine: makes new ones, lists them, asks "
            "them something, wakes them and lets them sleep, renames, forks, packs them into eggs, hatches "
            "eggs, archives and purges. Use it when the person speaks of a twin, an egg, or who lives here.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": list(ACTIONS), "description": "What to do"},
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
        """See the head of the file."""
        said = {key: value.strip() for key, value in kwargs.items() if isinstance(value, str)}
        action = said.get("action", "list").lower().replace("-", "_") or "list"
        action = _SYNONYMS.get(action, action)
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        twin = said.get("rappid_uuid") or (
            said.get("name", "") if action not in ("fork", "update_identity") else ""
        )
        if action in _ONE and not twin:
            return f"Error: {action} needs rappid_uuid, the twin's name or rappid."
        try:
            answer = _perform(action, twin, said, kwargs)
        except _Missing as problem:
            return f"Error: {problem}"
        except Exception as problem:  # noqa: BLE001 - whatever the house answers is told, in its words
            return f"Error: {problem}"
        return json.dumps(answer, ensure_ascii=False, default=str)


class _Missing(Exception):
    """An argument that the action needs is not there."""


def _perform(action: str, twin: str, said: dict[str, str], given: dict[str, Any]) -> Any:
    from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there

    reason, confirm = said.get("reason", ""), given.get("confirm") is True
    match action:
        case "summon":
            return request(
                "twins.new", name=_need(said, "name"), kind=said.get("kind", ""), text=said.get("text", "")
            )
        case "list":
            found = request("twins.list")
            return {"status": "ok", **found, "data_slush": {"twins": len(found["twins"])}}
        case "overview":
            return request("twins.show", twin=twin)
        case "chat":
            return request("twins.chat", twin=twin, text=_need(said, "text"))
        case "boot" | "stop" | "unarchive":
            return request(f"twins.{action}", twin=twin)
        case "update_identity":
            return request("twins.rename", twin=twin, name=_need(said, "name"))
        case "update_soul":
            if said.get("text"):
                return request("twins.edit_soul", twin=twin, text=said["text"], reason=reason)
            return request("twins.soul", twin=twin)
        case "history":
            return {"history": request("twins.soul", twin=twin)["history"]}
        case "lineage":
            return request("twins.lineage", twin=twin)
        case "fork":
            return request("twins.fork", twin=twin, name=said.get("name", ""))
        case "lay_egg":
            return request("eggs.pack", twin=twin)
        case "hatch":
            return _hatch(request, said)
        case "inspect":
            return request("eggs.inspect", path=_need(said, "egg_path"))
        case "eggs":
            return request("eggs.receipts")
        case "archive":
            if twin:
                return request("twins.archive", twin=twin, reason=reason)
            return request("twins.archive", filter=given.get("filter"), confirm=confirm, reason=reason)
        case "purge":
            return request("twins.purge", twin=twin, confirm=confirm, reason=reason)
        case "list_archived":
            return request("twins.archived")
    return request("twins.purged")


def _hatch(request: Any, said: dict[str, str]) -> Any:
    if said.get("egg_url"):
        expected = said.get("expect_sha256", "")
        return request("eggs.hatch", url=said["egg_url"], expect_sha256=expected)
    return request("eggs.hatch", path=_need(said, "egg_path"))


def _need(said: dict[str, str], field: str) -> str:
    if not said.get(field):
        raise _Missing(f"{field} is missing.")
    return said[field]


if __name__ == "__main__":
    sys.stdout.write(TwinAgent().perform(action=" ".join(sys.argv[1:])) + "\n")
