"""Calls that a model asks for, joined from pieces whatever of id, index and name they carry or lack.

Rules, in this order:

1. Named pieces with different indexes belong to different calls, also when they carry one id.
2. A piece with the id of a call continues it.
3. A piece without a name continues the call of its index, else the last one: what begins a call has a name, and
   servers that make a new id for every piece exist. A complete call with an id of its own is not continued by
   another id.
4. A piece with a name begins a call, unless the call that it would continue has none yet, or has the same name and
   arguments that are not complete (servers that repeat the name in every piece).
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

MOST_CALLS = 64
"""Calls of one answer that are kept; no model of the field asks for more than some ten at once."""
_MOST_ARGUMENTS = 1 << 20
"""Characters of the arguments of one answer's calls together."""


class CallPieces(msgspec.Struct):
    """One call as far as its pieces came: ``arguments`` is JSON text, unparsed."""

    id: str = ""
    index: int | None = None
    name: str = ""
    pieces: list[str] = msgspec.field(default_factory=list)

    @property
    def arguments(self) -> str:
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    @property
    def complete(self) -> bool:
        """True when the arguments are one JSON object."""
        text = self.arguments.rstrip()
        if not text.endswith("}"):
            return False
        try:
            return isinstance(orjson.loads(text), dict)
        except orjson.JSONDecodeError:
            return False


class CallJoiner:
    """Collects the calls of one answer. ``left_out`` counts those beyond ``MOST_CALLS``."""

    def __init__(self) -> None:
        self.calls: list[CallPieces] = []
        self.left_out = 0
        self._size = 0

    def take(self, piece: dict[str, Any]) -> None:
        """One entry of ``tool_calls``, or an old ``function_call`` as such an entry."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        id, name = _text(piece.get("id")), _text(function.get("name"))
        index, arguments = _index(piece.get("index")), function.get("arguments")
        whole = isinstance(arguments, (dict, list))
        text = orjson.dumps(arguments).decode() if whole else _text(arguments)
        call = self._continued(id, index, name, text)
        if call is None:
            if len(self.calls) >= MOST_CALLS:
                self.left_out += bool(name)
                return
            call = CallPieces(id, index)
            self.calls.append(call)
        call.id = call.id or id
        if name and name != call.name:
            call.name += name
        self._add(call, text, whole=whole)

    def _add(self, call: CallPieces, text: str, *, whole: bool) -> None:
        if whole and call.arguments == text:
            return  # an object that comes with every piece
        text = text[: max(0, _MOST_ARGUMENTS - self._size)]
        if text:
            call.pieces.append(text)
            self._size += len(text)

    def _continued(self, id: str, index: int | None, name: str, arguments: str) -> CallPieces | None:
        if not self.calls:
            return None
        call = self._candidate(id, index, name)
        if call is None or (id and id == call.id):
            return call
        if not name:
            return None if id and call.id and call.complete else call
        if not call.name:
            return call
        if id and call.id:  # another id and a name: another call, though some servers number all of them 0
            return None
        if index is None and name != call.name:
            return None
        return None if call.complete and (arguments or index is None) else call

    def _candidate(self, id: str, index: int | None, name: str) -> CallPieces | None:
        """The call that a piece with this id and index would continue."""
        last = self.calls[-1]
        if index is not None:
            found = next((one for one in reversed(self.calls) if one.index == index), None)
            # Servers that count pieces instead of calls: what has no name of its own goes on with an open call.
            goes_on = not name and id in ("", last.id) and bool(last.name) and not last.complete
            return last if found is None and goes_on else found
        if id:
            return next((one for one in reversed(self.calls) if one.id == id), last)
        return last


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
