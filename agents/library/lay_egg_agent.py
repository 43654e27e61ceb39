"""LayEgg packs what lives here into an egg, a file that hatches elsewhere.

Say "pack Rose into an egg", or "pack this brainstem". Arguments: `twin`, a twin's name or rappid (without it,
the brainstem itself); `form` for another published shape than the usual one; `item`, one agent's file or
one rapplication; `egg_path`, where to (else among this home's eggs); `exclude_memory`.

Keys, tokens and `.env` never travel, nor does quarantined code, and a likely secret in a file stops the
packing. It works for the owner of this machine only.
"""

from __future__ import annotations

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
    "name": "@rappd/lay_egg_agent",
    "version": "1.0.0",
    "display_name": "LayEgg",
    "description": "Packs a twin, an agent, a rapplication or the brainstem into an egg.",
    "summary": "Packs a twin, an agent or this brainstem into an egg.",
    "author": "rappd",
    "tags": ["eggs", "twins"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

_OF_ONE = ("agent", "rapplication", "rapp1-rapplication")
FORMS = ("agent", "twin", "brainstem", "organism", "rapplication", "rapp1-organism", "rapp1-rapplication")


class LayEggAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "LayEgg"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Packs a twin, an agent, a rapplication or this brainstem into an egg file, to export "
            "or carry it to another machine. Use it when the person wants to pack, export or carry one.",
            "parameters": {
                "type": "object",
                "properties": {
                    "twin": {**text, "description": "Its name; leave it out for the brainstem itself"},
                    "form": {**text, "enum": list(FORMS), "description": "Another shape than the usual one"},
                    "item": {**text, "description": "One agent's file name, or a rapplication's id"},
                    "egg_path": {**text, "description": "Whole path of the egg to write"},
                    "exclude_memory": {"type": "boolean", "description": "Leave memories behind"},
                },
                "required": [],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Packs an egg; the head of the file describes the arguments."""
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        texts = {key: value.strip() for key, value in kwargs.items() if isinstance(value, str)}
        twin, form, item = (
            texts.get("twin") or texts.get("name", ""),
            texts.get("form", ""),
            texts.get("item", ""),
        )
        try:
            if not twin and item and form not in _OF_ONE and _lives_here(request, item):
                twin, item = item, ""
            if not twin and not item and form == "twin":
                return "Error: which twin shall be packed? Its name is needed."
            done = request(
                "eggs.pack",
                twin=twin,
                form=form,
                item=item,
                into=texts.get("egg_path", ""),
                exclude_memory=kwargs.get("exclude_memory") is True,
            )
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        left = done["packed"]["left_out"]
        return str(done["message"]) + "".join(f"\nleft out: {one['path']} {one['why']}" for one in left[:20])


def _lives_here(request: Any, name: str) -> bool:
    """True when a twin is called so: somebody's name is not a file's."""
    return any(one["name"].casefold() == name.casefold() for one in request("twins.list")["twins"])


if __name__ == "__main__":
    sys.stdout.write(LayEggAgent().perform(name=" ".join(sys.argv[1:])) + "\n")
