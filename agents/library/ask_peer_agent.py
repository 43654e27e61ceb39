"""AskPeer asks another machine that is paired with this one: its brainstem, a twin there, or one of its agents.

Say "ask pi how warm it is", "list the peers", "let desk's Clock tell the time".

Argument `action`: `ask` (the default) with `peer` and `text`, and perhaps `agent` with `arguments`, or
`twin`; `list` tells the machines, who of them is here, and their agents. A machine that is away gets the
question when it comes back; the answer then stands in the record of this conversation.
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
    "name": "@rappd/ask_peer_agent",
    "version": "1.0.0",
    "display_name": "AskPeer",
    "description": "Asks another machine that is paired with this one, or tells which there are.",
    "summary": "Asks another of your machines.",
    "author": "rappd",
    "tags": ["peers", "machines"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}


class AskPeerAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "AskPeer"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Asks another machine of the person, called a peer, to do or answer something, or lists "
            "which machines there are. Use it when the person names a peer or wants something done elsewhere.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": ["ask", "list"], "description": "ask, or list the machines"},
                    "peer": {**text, "description": "The machine's name"},
                    "text": {**text, "description": "What to ask it, as a whole sentence"},
                    "agent": {**text, "description": "One of its agents, to call that alone"},
                    "arguments": {"type": "object", "description": "Arguments for that agent"},
                    "twin": {**text, "description": "A twin there to ask, rather than the machine itself"},
                },
                "required": [],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Asks a machine, or lists the machines; the head of the file describes the arguments."""
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        texts = {key: value.strip() for key, value in kwargs.items() if isinstance(value, str)}
        given = kwargs.get("arguments")
        try:
            if texts.get("action") == "list" or not texts.get("peer"):
                return _told(request("peers.list")["peers"])
            done = request(
                "peers.ask",
                peer=texts["peer"],
                text=texts.get("text", ""),
                agent=texts.get("agent", ""),
                arguments=given if isinstance(given, dict) else {},
                twin=texts.get("twin", ""),
            )
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        result = done["result"]
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _told(peers: list[dict[str, Any]]) -> str:
    if not peers:
        return "No machine is paired with this one. Pair one: rappd peers pair NAME"
    lines = []
    for peer in peers:
        agents = ", ".join(peer["agents"]) or "no agents known"
        lines.append(f"{peer['name']}: {peer['presence']}; {agents}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(AskPeerAgent().perform(text=" ".join(sys.argv[1:])) + "\n")
