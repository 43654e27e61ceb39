"""The class that agent files derive from (RAPP v1 §5).

One class answers for all published bases: it describes itself to a model, and it wakes up with a
context. An agent works without calling ``super().__init__``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.runtimes.python.worker.invoke import invoke
from agents.slosh.invocation import context_of
from agents.slosh.slush import slush_out

_MISSING = object()


class BasicAgent:
    """A single-file agent: ``name``, ``metadata`` (``description``, ``parameters``) and ``perform``.

    Settings a class or an instance may have: ``slosh_filter {include|exclude: [layer]}``,
    ``slosh_preferences {suppress, prioritize: [layer]}``, ``slosh_privacy {disabled, redact,
    obfuscate: [dot.path]}``. ``last_data_slush`` is what the latest ``execute`` handed on.
    """

    slosh_filter: Mapping[str, Any] | None = None
    slosh_preferences: Mapping[str, Any] | None = None
    slosh_privacy: Mapping[str, Any] | None = None
    last_data_slush: Any = None

    def __init__(self, name: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        """Without arguments, a name and metadata that the subclass has set already stay."""
        if name is not None:
            self.name = name
        elif getattr(self, "name", None) is None:
            self.name = "BasicAgent"
        if metadata is not None:
            self.metadata = metadata
        elif getattr(self, "metadata", None) is None:
            self.metadata = {}

    def perform(self, **kwargs: Any) -> str:
        """Do what the agent is for. The keywords are the schema's properties; returns text."""
        return "Not implemented."

    def system_context(self) -> str | None:
        """Text for the model's system prompt on every turn, or None."""
        return None

    def to_tool(self) -> dict[str, Any]:
        """The agent as a chat-completions tool: ``{type, function: {name, description, parameters}}``."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.metadata.get("description") or "",
                "parameters": self.metadata.get("parameters") or {"type": "object", "properties": {}},
            },
        }

    @staticmethod
    def artifact_path(filename: str) -> str:
        """A path for a new file for the user: its last name part in ``~/.brainstem/artifacts``."""
        name = os.path.basename(str(filename).replace("\\", "/").replace("\0", ""))  # noqa: PTH119  # text, not a path
        folder = Path.home() / ".brainstem" / "artifacts"
        with suppress(OSError):  # opening the file says better what is wrong
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder / ("artifact" if name in ("", ".", "..") else name))

    def execute(self, **kwargs: Any) -> Any:
        """Perform with a context; returns what perform returned.

        ``_slosh_filter``, ``_slosh_preferences`` and ``upstream_slush`` are taken out of the keywords;
        ``_context`` is added for a perform that names it. A direct ``perform`` sloshes nothing.
        """
        return invoke(self, kwargs).value

    @property
    def context(self) -> Any:
        """The context of the running call (``agents.slosh.context.Context``), per invocation.

        An agent that assigns ``self.context`` itself keeps what it assigned.
        """
        own = self.__dict__.get("_own_context", _MISSING)
        return context_of(self) if own is _MISSING else own

    @context.setter
    def context(self, value: Any) -> None:
        self.__dict__["_own_context"] = value

    @context.deleter
    def context(self) -> None:
        self.__dict__.pop("_own_context", None)

    def get_signal(self, path: str, default: Any = None) -> Any:
        """The value at a dot path of the context, ``"temporal.fiscal"``; ``default`` where there is none."""
        found: Any = self.context
        for part in path.split("."):
            if isinstance(found, Mapping) and part in found:
                found = found[part]
            elif isinstance(found, (list, tuple)) and part.isdecimal() and int(part) < len(found):
                found = found[int(part)]
            else:
                return default
        return found

    def slush_out(
        self,
        agent_name: str | None = None,
        confidence: Any = None,
        signals: Mapping[str, Any] | None = None,
        **extra: Any,
    ) -> dict[str, Any]:
        """A ``data_slush`` for the next agent: who, when, how sure, ``signals`` and ``extra``."""
        context = self.context
        layers = context if isinstance(context, Mapping) else {}
        return slush_out(layers, agent_name or self.name, confidence, signals, extra)
