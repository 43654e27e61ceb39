"""One layer of a context."""

from __future__ import annotations

from typing import Any


class Layer(dict[str, Any]):
    """A dict whose keys also read as attributes: ``layer["fiscal"]`` is ``layer.fiscal``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this layer has no {name!r}") from None
