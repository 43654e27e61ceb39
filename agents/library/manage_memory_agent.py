"""ManageMemory keeps what a person wants remembered: a fact, a preference, an insight or a task.

Say "remember that the boiler is serviced in May". The memory goes to the user's own store when the
call carries a valid `user_guid`, otherwise to the shared one, and the reply says which. ContextMemory
reads it back. Of a twin, the reply says in which twin's memory it lies.

Arguments: `memory_type` (fact, preference, insight, task), `content`, and optionally `importance`
(1 to 5), `tags` and `user_guid`. The answer is one sentence.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from datetime import datetime
from pathlib import Path
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
    "name": "@rappd/manage_memory_agent",
    "version": "1.0.0",
    "display_name": "ManageMemory",
    "description": "Stores facts, preferences, insights and tasks for later conversations.",
    "summary": "Remembers a fact, a wish or a task.",
    "author": "rappd",
    "tags": ["memory", "remember", "storage"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

_GUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"


class ManageMemoryAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "ManageMemory"
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Remembers something for later conversations. Use it when the user asks to "
            "remember, save or note something, or states a lasting fact or preference.",
            "parameters": {
                "type": "object",
                "properties": {
                    "memory_type": {
                        "type": "string",
                        "enum": ["fact", "preference", "insight", "task"],
                        "description": "What kind of memory this is.",
                    },
                    "content": {"type": "string", "description": "What to remember, as one full sentence."},
                    "importance": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 5,
                        "description": "From 1 (trivial) to 5 (vital).",
                    },
                    "tags": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "Words to file it under.",
                    },
                    "user_guid": {
                        "type": "string",
                        "description": "Whose memory; leave out for the shared one.",
                    },
                },
                "required": ["memory_type", "content"],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        content = str(kwargs.get("content") or "").strip()
        if not content:
            return "Error: No content provided for memory storage."
        kind = str(kwargs.get("memory_type") or "fact").strip()
        storage, user = _open(kwargs.get("user_guid"))
        now = datetime.now()
        memory = {
            "conversation_id": user or "current",
            "session_id": "current",
            "message": content,
            "mood": "neutral",
            "theme": kind,
            "date": now.strftime("%Y-%m-%d"),
            "time": now.strftime("%H:%M:%S"),
        }
        for extra in ("importance", "tags"):
            if kwargs.get(extra):
                memory[extra] = kwargs[extra]
        key = str(uuid.uuid4())
        try:
            stored = _add(storage, key, memory)
        except (OSError, ValueError) as error:
            return f"Error: The memory could not be stored: {error}"
        if stored is False:
            return "Error: The memory could not be stored. Look whether the disk is full."
        twin = _twin()
        where = f"in {twin}'s memory" if twin else "" if user else "in shared memory"
        where = " ".join(filter(None, (where, f"for user {user}" if user else "")))
        return f'Successfully stored {kind} memory {where}: "{content}"'


def _add(storage: Any, key: str, memory: dict[str, Any]) -> Any:
    def put(memories: Any) -> dict[str, Any]:
        kept: dict[str, Any] = memories if isinstance(memories, dict) else {}
        kept[key] = memory
        return kept

    if hasattr(storage, "update_json"):
        return storage.update_json(put)
    return storage.write_json(put(storage.read_json()))  # published brainstems without an atomic update


def _open(user_guid: Any) -> tuple[Any, str | None]:
    """The storage manager set to the user's memory, and the user; None means the shared memory.

    Only a well-formed GUID names a user: anything else would become a path on some brainstems.
    """
    user = user_guid if isinstance(user_guid, str) and re.fullmatch(_GUID, user_guid) else None
    try:
        from utils.azure_file_storage import AzureFileStorageManager  # type: ignore[import-not-found]  # a shim

        storage = AzureFileStorageManager()
    except ImportError:
        storage = _Files()
    if storage.set_memory_context(user) is False:
        user = None
    return storage, user


def _twin() -> str:
    """The name of the twin whose workspace this is, "" in a brainstem and wherever nothing tells."""
    try:
        found = json.loads(Path("rappid.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return ""
    if not isinstance(found, dict) or found.get("kind") == "brainstem-instance":
        return ""
    return " ".join(str(found.get("name") or "").split())[:60]


class _Files:
    """The same two files, in `.brainstem_data` beside the agents folder, where no storage is offered."""

    _one_at_a_time = threading.Lock()

    def set_memory_context(self, user: str | None) -> bool:
        data = Path(__file__).resolve().parent.parent / ".brainstem_data"
        shared = data / "shared_memories" / "memory.json"
        self.path = data / "memory" / user / "user_memory.json" if user else shared
        return True

    def read_json(self) -> Any:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def update_json(self, mutate: Any) -> None:
        with self._one_at_a_time:
            text = json.dumps(mutate(self.read_json()), ensure_ascii=False, indent=2)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
            part.write_text(text, encoding="utf-8")
            part.replace(self.path)


if __name__ == "__main__":
    sys.stdout.write(ManageMemoryAgent().perform(memory_type="fact", content=" ".join(sys.argv[1:])) + "\n")
