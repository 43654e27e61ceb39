"""The beginning of a new agent or listener: one file that already works."""

from __future__ import annotations

import keyword
import re
import unicodedata
from pathlib import Path
from string import Template

from agents.errors import AgentError

_TEMPLATES = Path(__file__).with_name("templates")
_AGENT, _LISTENER = (
    Template((_TEMPLATES / f"{kind}.py.txt").read_text("utf-8")) for kind in ("agent", "listener")
)
_LONGEST = 60  # models take 64 signs for a tool's name


def scaffold(name: str, description: str = "", *, listener: bool = False) -> tuple[str, str]:
    """(file name, source) of a new agent or listener called ``name``; every text is quoted, none becomes code.

    Accents are taken off letters, apostrophes left out, and other signs separate words. Raises ``mistyped`` when nothing is left,
    or what is left names the file that agents are made of.
    """
    words = _words(name, "listener" if listener else "agent")
    shown = "".join(word[:1].upper() + word[1:] for word in words)[:_LONGEST]
    if not words:
        raise AgentError(
            f'"{name[:40]}" has no letter from A to Z or digit to make a name of.',
            do="rappd agents new Weather",
            code="mistyped",
        )
    if shown[0].isdigit():
        shown = f"A{shown}"
    stem = "_".join(word.lower() for word in words)[:_LONGEST].rstrip("_")
    if stem == "basic" and not listener:
        raise AgentError(
            "basic_agent.py is what agents are made of.", do="choose another name", code="mistyped"
        )
    text = " ".join(description.split()) or f"{shown}: say here what it does and when to use it."
    if listener:
        stem = f"a{stem}" if stem[0].isdigit() else stem
        class_name = f"{shown}Payload" if keyword.iskeyword(shown) else shown
        source = _LISTENER.substitute(docstring=_quoted(text), class_name=class_name, stem=stem)
        return f"{stem}_listener.py", source
    source = _AGENT.substitute(
        docstring=_quoted(text),
        class_name=f"{shown}Agent",
        name=_quoted(shown),
        description=_quoted(text),
    )
    return f"{stem}_agent.py", source


def _words(name: str, kind: str) -> list[str]:
    letters = unicodedata.normalize("NFKD", name[:1000].replace("ß", "ss"))
    plain = "".join(sign for sign in letters if not (unicodedata.combining(sign) or sign in "'’"))
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", plain))
    if len(words) > 1 and words[-1].lower() == kind:
        words.pop()
    return words


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else " " for sign in escaped) + '"'
