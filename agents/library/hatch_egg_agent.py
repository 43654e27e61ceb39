"""HatchEgg brings to life what lies in an egg: a twin, agents, a rapplication, a whole brainstem.

Say "hatch /home/ada/rose.egg", or give a web address. Argument `egg_path`: a whole path, or http(s)://…
(which `egg_url` takes, too); `dry_run` true only tells what would happen; `expect_sha256`, the SHA-256 that
the egg must have. `take_back`: the receipt of a hatching that is to be undone, or "latest"; files that changed
since then keep it from that.

The egg is checked, planned, staged and moved into place, whole or not at all; what is yours stays. Code
that nobody trusted signed is quarantined until you approve it. An unknown kind of egg is refused whole, with
the family of those that are known. It works for the owner of this machine only.
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
    "name": "@rappd/hatch_egg_agent",
    "version": "1.0.0",
    "display_name": "HatchEgg",
    "description": "Hatches an egg from a file or a web address: checked, planned, whole or not at all.",
    "summary": "Hatches an egg from a file or a web address.",
    "author": "rappd",
    "tags": ["eggs", "twins"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

_ROWS = ("create", "replace", "keep", "quarantine", "refuse")


class HatchEggAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "HatchEgg"
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Hatches an egg on this machine: brings out the twin, agents, rapplication or "
            "brainstem that lies in it. Use it when the person gives the path or web address of an .egg file "
            "to hatch or to open.",
            "parameters": {
                "type": "object",
                "properties": {
                    "egg_path": {
                        "type": "string",
                        "description": "Whole path of the egg, or its web address",
                    },
                    "egg_url": {"type": "string", "description": "Web address of the egg"},
                    "dry_run": {"type": "boolean", "description": "Only tell what would happen"},
                    "take_back": {
                        "type": "string",
                        "description": 'Receipt of a hatching to undo, or "latest"; then no egg is needed',
                    },
                },
                "required": [],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Hatches an egg, or takes a hatching back; the head of the file describes the arguments."""
        path = str(kwargs.get("egg_path") or kwargs.get("egg_url") or "").strip()
        undone = str(kwargs.get("take_back") or "").strip()
        if not path and not undone:
            return "egg_path is required (local file or URL)"
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        where = {"url": path} if path.startswith(("http://", "https://")) else {"path": path}
        expected = str(kwargs.get("expect_sha256") or "")
        dry = kwargs.get("dry_run") is True
        try:
            if undone and not path:
                return _taken_back(request, undone)
            if dry:
                return _plan(request("eggs.plan", **where, expect_sha256=expected)["plan"])
            return str(request("eggs.hatch", **where, expect_sha256=expected)["message"])
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"


def _taken_back(request: Any, receipt: str) -> str:
    if receipt.casefold() in ("latest", "last"):
        rows = [one for one in request("eggs.receipts")["hatchings"] if not one["rolled_back_at"]]
        if not rows:
            return "Nothing was hatched here that could be taken back."
        receipt = rows[0]["id"]
    done = request("eggs.rollback", receipt=receipt)
    if "message" in done:
        return str(done["message"])
    rolled_back = done["rolled_back"]
    if rolled_back["already"]:
        return f"{rolled_back['name']} was taken back before."
    return f"{rolled_back['name']} is taken back: {len(rolled_back['restored'])} files restored, {len(rolled_back['removed'])} removed."


def _plan(plan: dict[str, Any]) -> str:
    egg = plan["egg"]
    rows = [f"{row}: {plan[row]['count']}" for row in _ROWS]
    return f"{egg['name']}, {egg['kind']} ({egg['schema']}). {', '.join(rows)}. Nothing was written."


if __name__ == "__main__":
    sys.stdout.write(HatchEggAgent().perform(egg_path=" ".join(sys.argv[1:])) + "\n")
