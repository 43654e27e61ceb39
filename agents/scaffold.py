"""The beginning of a new agent: one file that already works."""

from __future__ import annotations

import re

_TEMPLATE = """\
{docstring}

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    from basic_agent import BasicAgent


class {class_name}(BasicAgent):
    def __init__(self):
        self.name = {name}
        self.metadata = {{
            "name": self.name,
            "description": {description},
            "parameters": {{
                "type": "object",
                "properties": {{"text": {{"type": "string", "description": "What to work on"}}}},
                "required": [],
            }},
        }}
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs):
        text = kwargs.get("text", "")
        return f"{{self.name}} was asked: {{text}}"
"""


def scaffold(name: str, description: str = "") -> tuple[str, str]:
    """(file name, source) of a new agent called ``name``; every text is quoted, none becomes code."""
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name))
    if words and words[-1].lower() == "agent":
        words.pop()
    words = words or ["New"]
    shown = "".join(word[:1].upper() + word[1:] for word in words)
    if shown[0].isdigit():
        shown = f"A{shown}"
    stem = "_".join(word.lower() for word in words)
    text = " ".join(description.split()) or f"{shown}: say here what it does and when to use it."
    source = _TEMPLATE.format(
        docstring=_quoted(text),
        class_name=f"{shown}Agent",
        name=_quoted(shown),
        description=_quoted(text),
    )
    return f"{stem}_agent.py", source


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else " " for sign in escaped) + '"'
