"""Timer reminds a person at a time, and has things asked at set times; it lists, moves and cancels what was set.

Say "remind me tomorrow at 9 to call mum", "every weekday at seven tell me the weather", "what did I ask you to remind
me of?", "cancel the one about mum", "move it to ten", "snooze", "quiet hours from 22 to 7", in English or German.

Arguments: `text`, the person's sentence as it was said, is enough. Or `action` (add, list, cancel, move, snooze,
pause, resume, quiet), with `what` and `when` in words ("tomorrow at 9", "in 20 minutes", "every weekday at 7") for
add, `when` for move and snooze, and `which`, words of the timer that is meant. `kind` is remind, or ask for what the
brainstem shall do then. The answer is a sentence that says what was set, and when it comes; or that nothing was set,
and why.
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
    "name": "@rappd/timer_agent",
    "version": "1.0.0",
    "display_name": "Timer",
    "description": "Reminds at a time, and has things asked at set times.",
    "summary": "Sets timers: reminders, and questions at set times.",
    "author": "rappd",
    "tags": ["timer", "reminder", "schedule"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

ACTIONS = ("add", "list", "cancel", "move", "snooze", "pause", "resume", "quiet")


class TimerAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Timer"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Reminds the person at a time, has something done later or again and again, and lists, moves, "
            "pauses, cancels or snoozes what was set. Use it whenever the person wants something later or repeatedly: "
            '"remind me tomorrow at 9 to call mum", "every weekday at seven tell me the weather", "what did I ask you to '
            'remind me of?", "cancel the one about mum", "move it to ten". Nothing else reminds.',
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": list(ACTIONS), "description": "What to do; add sets one"},
                    "what": {**text, "description": "What to be reminded of, or what to do then"},
                    "when": {
                        **text,
                        "description": "The time in words, as the person said it: tomorrow at 9, in 20 minutes, "
                        "every weekday at 7",
                    },
                    "kind": {
                        **text,
                        "enum": ["remind", "ask"],
                        "description": "ask where something is to be done or answered then",
                    },
                    "which": {**text, "description": "Words of the timer to change; all for every one"},
                    "text": {**text, "description": "The person's whole sentence, in place of the rest"},
                },
                "required": [],
            },
        }
        super().__init__(self.name, self.metadata)

    def perform(self, **kwargs: Any) -> str:
        """Performs `action`, or what `text` asks for; the head of the file describes the arguments."""
        try:
            from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
        except ImportError:
            return "Error: this works inside a brainstem only; nothing was set."
        named = ("action", "what", "when", "kind", "which", "text")
        texts = {key: kwargs[key].strip() for key in named if isinstance(kwargs.get(key), str)}
        try:
            return str(request("timers.ask", **{key: value for key, value in texts.items() if value})["said"])
        except Exception as problem:  # noqa: BLE001 - whatever the daemon answers is told, in its words
            return str(
                problem
            )  # it says that nothing was set; "Error:" would make a fault of a slip of the tongue


if __name__ == "__main__":
    sys.stdout.write(TimerAgent().perform(text=" ".join(sys.argv[1:])) + "\n")
