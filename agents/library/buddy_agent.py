"""Buddy lets a twin of kind buddy eat, be petted, look around, remember, and say how it is.

Only a buddy has it. Say "feed yourself", "how are you?", "explore", "remember that Ada likes plums",
"what do you remember about Ada?".

Argument `action`: feed, pet, explore, post, comment, heartbeat, remember, recall or status (as without
it). `text`: what to remember, post or comment, or the words to recall by. `kind`: of the memory.

The answer is a sentence. The rules (what it costs, how it grows) are the daemon's, and so is the file
`.brainstem_data/buddy.json`: this file only asks.
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
    "name": "@rappd/buddy_agent",
    "version": "1.0.0",
    "display_name": "Buddy",
    "description": "Lets a buddy eat, be petted, look around, remember, and say how it is.",
    "summary": "Looks after a buddy: food, petting, how it is.",
    "author": "rappd",
    "tags": ["buddy", "cartridges"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

ACTIONS = ("feed", "pet", "explore", "post", "comment", "heartbeat", "remember", "recall", "status")
_SYNONYMS = {
    "eat": "feed",
    "food": "feed",
    "stroke": "pet",
    "cuddle": "pet",
    "look": "explore",
    "live": "heartbeat",
    "save": "remember",
    "feel": "status",
    "mood": "status",
}


class BuddyAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Buddy"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Feeds you, pets you, lets you explore, remember and recall, and tells how you are: "
            "stage, mood, energy and experience. You are a buddy: ask it before you say how you feel, and use "
            'it when the person says "how are you?", "how do you feel?", "are you hungry?", "are you tired?", '
            '"feed", "feed yourself", "eat something", "pet", "explore", or the like.',
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        **text,
                        "enum": list(ACTIONS),
                        "default": "status",
                        "description": "What to do; status tells how you are",
                    },
                    "text": {**text, "description": "What to remember, post or comment, or words to recall"},
                    "kind": {**text, "description": "Kind of the memory, such as fact or preference"},
                },
                "required": ["action"],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`; the head of the file describes the arguments."""
        texts = {key: value.strip() for key, value in kwargs.items() if isinstance(value, str)}
        action = texts.get("action", "").lower() or "status"
        action = _SYNONYMS.get(action, action)
        if action not in ACTIONS:
            return f"Error: there is no action {action[:40]!r}. There are: {', '.join(ACTIONS)}."
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only."
        try:
            answer = request(f"buddy.{action}", text=texts.get("text", ""), kind=texts.get("kind", ""))
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return f"Error: {problem}"
        return str(answer["message"])


if __name__ == "__main__":
    sys.stdout.write(BuddyAgent().perform(action=" ".join(sys.argv[1:])) + "\n")
