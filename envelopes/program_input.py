"""Input of a foreign program beside the sentence: its instructions, its own tools, their results, settings for the model.

It reaches a turn in memory alone: the record keeps the names of the tools, and the results.
"""

from __future__ import annotations

import re
import uuid
from typing import Any

import msgspec

from envelopes.envelope import as_uuid

REQUIRED, NONE = "required", "none"

_CALL = re.compile(r"call_([0-9a-f]{32})([cr])(\d{1,3})")


class ToolResult(msgspec.Struct, frozen=True):
    """The result of one call of a program's own tool, under the id that the call had."""

    call: str
    content: str
    name: str = ""


class ProgramInput(msgspec.Struct, frozen=True, kw_only=True):
    """``tools`` are OpenAI definitions of the program's own tools. ``choice`` is "", NONE, REQUIRED or the name of one.

    ``system`` is said behind the soul. ``parameters`` go to the model server where it takes them (``temperature`` …).
    ``continues`` is the id of the turn whose calls were answered; the history ends with the results then. ``via`` names
    the machines that the request came through.
    """

    system: str = ""
    tools: tuple[dict[str, Any], ...] = ()
    choice: str = ""
    parameters: dict[str, Any] = {}
    continues: str = ""
    via: str = ""

    @property
    def demanded(self) -> bool:
        """True when the model has to call one of the program's tools."""
        return self.choice not in ("", NONE)


def call_id(turn: str, number: int, *, rounds: bool) -> str:
    """The id of a call that a program has to make. It names its turn, so that the result finds it, after a restart too.

    ``rounds``: agents were performed before it, which the program does not know of. At most 40 characters, as OpenAI's.
    """
    return f"call_{turn.replace('-', '').lower()}{'r' if rounds else 'c'}{number}"


def turn_of_call(found: object) -> str:
    """The id of the turn that made this call, "" for a call that no turn made."""
    match = _CALL.fullmatch(found) if isinstance(found, str) else None
    return "" if match is None else _dashed(match[1])


def has_rounds(call: object) -> bool:
    """True for a call before which agents were performed in its turn."""
    match = _CALL.fullmatch(call) if isinstance(call, str) else None
    return match is not None and match[2] == "r"


def following_turn(turn: str, attempt: int = 0) -> str:
    """The id of the turn that goes on with the results of ``turn``'s calls: always the same, so that a repeat is harmless."""
    digits = uuid.uuid5(uuid.UUID(turn), f"results {attempt}").hex
    return as_uuid(digits, "5")


def _dashed(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
