"""Edits of ``organism.yaml`` as text: an entry is added to a section or taken out, and every other line stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rappd.errors import ConflictError, NotFoundError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*[A-Za-z0-9_./-]|[A-Za-z_]")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def with_entry(text: str, section: str, entry: Mapping[str, Any]) -> str:
    """The text with an entry more, at the end of its section. Raises ``ConflictError`` for a name that is there."""
    found = _section(text, section)
    shown = {key: value for key, value in entry.items() if value not in ("", None, [], ())}
    if found is None:
        before = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{before}{section}:\n{_block(shown, 2)}"
    key, node = found
    if node.id != "sequence":  # the key alone
        return _inserted(text, key.end_mark.line, _block(shown, 2))
    if any(_name(one) == str(entry["name"]).casefold() for one in node.value):
        raise ConflictError(
            f"“{entry['name']}” is in organism.yaml already.", do="rappd organism remove takes it out"
        )
    if not node.flow_style:
        return _inserted(text, _last_line(node.value[-1]), _block(shown, node.start_mark.column))
    end = node.end_mark.index - 1
    last = node.value[-1].end_mark.index if node.value else end
    return (
        f"{text[:last]}, {_flow(shown)}{text[last:]}"
        if node.value
        else f"{text[:end].rstrip()}{_flow(shown)}{text[end:]}"
    )


def without_entry(text: str, section: str, name: str) -> str:
    """The text without the entry of that name. Raises ``NotFoundError``."""
    found = _section(text, section)
    entries = found[1].value if found is not None and found[1].id == "sequence" else []
    at = next((number for number, one in enumerate(entries) if _name(one) == name.casefold()), None)
    if found is None or at is None:
        raise NotFoundError(f"organism.yaml names no “{name[:80]}” in {section}.", do="rappd organism show")
    entry, node = entries[at], found[1]
    if not node.flow_style:
        lines = text.splitlines(keepends=True)
        first = entry.start_mark.line
        while not lines[first].lstrip().startswith("-"):  # which may stand above what it begins
            first -= 1
        del lines[first : _last_line(entry) + 1]
        return "".join(lines)
    if at + 1 < len(entries):
        return text[: entry.start_mark.index] + text[entries[at + 1].start_mark.index :]
    begin = entries[at - 1].end_mark.index if at else entry.start_mark.index
    return text[:begin] + text[entry.end_mark.index :]


def _section(text: str, section: str) -> tuple[Any, Any] | None:
    """The nodes of a section's key and value in a text that was read without faults."""
    from ruamel.yaml import YAML

    whole = YAML(pure=True).compose(text)
    pairs = whole.value if whole is not None else ()
    return next(((key, value) for key, value in pairs if key.value == section), None)


def _name(entry: Any) -> str:
    return next((value.value.casefold() for key, value in entry.value if key.value == "name"), "")


def _last_line(node: Any) -> int:
    """The line, counted from 0, on which an entry ends: a node without flow style has its end where the next begins."""
    if node.id == "scalar":
        end = node.end_mark
        return int(end.line if end.column else end.line - 1)
    if node.flow_style:
        return int(node.end_mark.line)
    parts = [part for pair in node.value for part in (pair if isinstance(pair, tuple) else (pair,))]
    return max(_last_line(part) for part in parts)


def _inserted(text: str, after: int, block: str) -> str:
    lines = text.splitlines(keepends=True)
    if not lines[after].endswith("\n"):
        lines[after] += "\n"
    lines.insert(after + 1, block)
    return "".join(lines)


def _block(entry: Mapping[str, Any], indent: int) -> str:
    lead = " " * indent
    lines = [f"{key}: {_flow(value)}" for key, value in entry.items()]
    return "".join(f"{lead}{'- ' if not number else '  '}{line}\n" for number, line in enumerate(lines))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_flow(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    text = str(value)
    plain = _PLAIN.fullmatch(text) is not None and text.casefold() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
