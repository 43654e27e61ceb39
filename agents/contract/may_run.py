"""May this code run? The question that every loader asks of code, its answers, and where code is from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import EllipsisType
from typing import Protocol

import msgspec

from agents.runtimes.python.sandbox.needs import Needs

Origin = str
"""``SHIPPED``, ``YOURS``, or what ``origin_of`` makes of a connected source."""

SHIPPED: Origin = "shipped"
YOURS: Origin = "yours"
_SOURCE = "source "


def origin_of(source: str) -> Origin:
    """The origin of what comes from a connected source, by the source's name."""
    return _SOURCE + source


def is_known(origin: Origin) -> bool:
    """True for an origin that code can have here."""
    return origin in (SHIPPED, YOURS) or (origin.startswith(_SOURCE) and origin != _SOURCE)


class Allowed(msgspec.Struct, frozen=True):
    """Bytes that may run. ``structural``: they may ask for operations that change structure, in the operator's turn.

    ``apart``: the egg whose code they are; it never shares a worker process with other code. ``private``: with the hidden
    paths that their needs name, which the owner allowed.
    """

    apart: str = ""
    structural: bool = False
    private: bool = False


class Quarantined(msgspec.Struct, frozen=True):
    """Bytes that wait for the owner's approval. ``came_in``: what brought them."""

    why: str
    came_in: str = ""


class Refused(msgspec.Struct, frozen=True):
    """Bytes that do not run, whatever is approved."""

    why: str


Verdict = Allowed | Quarantined | Refused


class Trust(Protocol):
    """The rules for the code of one workspace. Everything blocks on the disk."""

    def look(self) -> Sequence[object]:
        """Reads the rules anew. Each of the returned objects is another one when its part of them changed; the first is the quarantine."""
        ...

    def may_run(
        self, origin: Origin, path: Path, sha256: str, needs: Needs | EllipsisType | None = ...
    ) -> Verdict:
        """The answer for the bytes of that hash at that path. A loader runs exactly the bytes that it hashed.

        ``needs``: what they declare; ``...`` for code that is neither an agent nor a listener.
        """
        ...
