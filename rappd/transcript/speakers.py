"""Names for people in place of the ids of a record: "you", this machine, a twin, "pi"."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from envelopes.default_user import DEFAULT_USER_GUID

_ID = re.compile(r"(.+?)(?:-[0-9a-f]{8})?_([0-9a-f]{16})")
_HOST = "brainstem"


class Speakers(msgspec.Struct, frozen=True):
    """``machine`` is this one's name and ``node`` its fingerprint; ``peers`` are names by fingerprint."""

    machine: str
    node: str
    peers: Mapping[str, str]

    def name(self, id: str) -> str:
        """The name of a sender or recipient; an id that nobody here knows stays as it is."""
        if id == DEFAULT_USER_GUID:
            return "you"
        found = _ID.fullmatch(id)
        if found is None:
            return id
        name, key = found.groups()
        if self.node.startswith(key):
            return self.machine if name == _HOST else name
        peer = next((self.peers[one] for one in self.peers if one.startswith(key)), None)
        if peer is None:
            return f"{name}_{key[:4]}"
        return peer if name == _HOST else f"{name} on {peer}"
