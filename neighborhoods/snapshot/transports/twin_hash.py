"""The hash that names a twin's folder, checked before it becomes part of a path."""

from __future__ import annotations

from neighborhoods.errors import BadMemberError
from twins.errors import HostileEggError
from twins.fs.untrusted_names import safe_component


def require_twin_hash(twin: str) -> None:
    """Raises ``BadMemberError`` for text that names no folder, or one that is reserved."""
    try:
        safe_component(twin)
    except HostileEggError:
        twin = "."
    if twin.startswith((".", "-")):
        raise BadMemberError("That hash names no twin's folder.", do="Look at the list of twins.")
