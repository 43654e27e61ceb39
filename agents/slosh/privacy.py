"""Withholds parts of a context from an agent: layers switched off, values removed or made unreadable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from agents.slosh.filters import texts
from agents.slosh.layer_names import published

Path = tuple[str, ...]


class Privacy:
    """``{disabled, redact: [dot.path], obfuscate: [dot.path]}`` of one agent.

    A path starts with a layer's name (either spelling). In a list, a number names one item and
    anything else goes for every item.
    """

    __slots__ = ("_obfuscate", "_redact", "disabled")

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.disabled = bool(settings.get("disabled"))
        self._redact = list(_paths(settings.get("redact")))
        self._obfuscate = list(_paths(settings.get("obfuscate")))

    def removed(self) -> Iterable[str]:
        """The layers that are redacted whole."""
        return [path[0] for path in self._redact if len(path) == 1]

    def applied(self, name: str, value: Any) -> Any:
        """``value`` of the layer ``name`` as the agent may see it; a copy where anything changes."""
        redact = [path[1:] for path in self._redact if path[0] == name and len(path) > 1]
        obfuscate = [path[1:] for path in self._obfuscate if path[0] == name]
        if not redact and not obfuscate:
            return value
        if () in obfuscate:
            return obfuscated(value)
        value = deepcopy(value)
        for path in redact:
            _change(value, path, remove=True)
        for path in obfuscate:
            _change(value, path, remove=False)
        return value


def privacy_of(settings: Any) -> Privacy | None:
    """The privacy that an agent's ``slosh_privacy`` asks for, or None."""
    return Privacy(settings) if settings and isinstance(settings, Mapping) else None


def obfuscated(value: Any) -> str:
    """The same text for the same value, from which the value cannot be read."""
    from hashlib import sha256  # few agents ask for it, and it loads OpenSSL

    text = str(value).encode("utf-8", "surrogatepass")
    return f"[obfuscated:{sha256(text).hexdigest()[:8]}]"


def _paths(value: Any) -> Iterable[Path]:
    for text in texts(value):
        first, *rest = text.split(".")
        yield published(first), *rest


def _change(holder: Any, path: Path, *, remove: bool) -> None:
    name, rest = path[0], path[1:]
    if isinstance(holder, list):
        index = int(name) if name.isascii() and name.isdigit() else None
        if index is None:
            for item in holder:
                _change(item, path, remove=remove)
            return
        if index >= len(holder):
            return
        key: Any = index
    elif isinstance(holder, dict) and name in holder:
        key = name
    else:
        return
    if rest:
        _change(holder[key], rest, remove=remove)
    elif remove:
        del holder[key]
    else:
        holder[key] = obfuscated(holder[key])
