"""The neighborhoods that this machine's owner joined, and the agents published in them. Never travels.

``memberships.json`` in the home; only the owner's own acts write it. A roster that came with a file counts when
the owner joins by that file; one that changes later, or is hatched, admits nobody.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from threading import Lock

import msgspec
from msgspec.structs import replace

from agents.storage.atomic_write import write_atomically
from envelopes.envelope import HELP
from envelopes.identity.capabilities import capability
from neighborhoods.errors import BadNeighborhoodError, NoSuchNeighborhoodError
from twins.errors import BadFileError
from twins.workspace.identity_file import read_regular

FILE = "memberships.json"
_SCHEMA = "rappd-memberships/1.0"
_MAX_BYTES = 4 << 20
_MOST_LEFT = 100
"""Neighborhoods that were left, the latest ones, whose members are told."""
_TENANT = "brainstem"


class Scope(StrEnum):
    """The callers that an agent is published to. Each holds the ones before it; machines of the same owner may call everything."""

    PERSONAL = "personal"
    NEIGHBORHOOD = "neighborhood"
    """Paired members of the neighborhood that it is published in."""
    PUBLIC = "public"
    """Every paired machine, and strangers read its name; they may not call it."""


class Membership(msgspec.Struct, frozen=True):
    """One neighborhood of the owner.

    ``admitted``: keys of machines that are its members as far as the owner said so. ``joined``: of those that said so
    themselves, or were there when the owner joined.
    """

    rappid: str
    name: str
    joined_at: str
    admitted: tuple[str, ...] = ()
    published: dict[str, Scope] = {}
    joined: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True):
    schema: str
    memberships: dict[str, Membership]
    left: dict[str, tuple[str, ...]] = {}
    """By the rappid of a neighborhood that was left: the keys of members that do not know it yet."""


class Memberships:
    """All of them, by the neighborhood's key. Changes are on the disk before they count; safe for threads."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._lock = Lock()
        self._all: dict[str, Membership] = {}
        self._left: dict[str, tuple[str, ...]] = {}
        self._capabilities: dict[str, tuple[str, ...]] = {}
        self.trouble = ""
        """The reason why the file could not be read: then nothing is published."""
        self.reload()

    def reload(self) -> None:
        """Reads the file again. A damaged one publishes nothing, and says so in ``trouble``."""
        self.trouble = ""
        found = _File(_SCHEMA, {})
        try:
            octets = read_regular(self._path, _MAX_BYTES)
            if octets is not None:
                found = msgspec.json.decode(octets, type=_File)
        except (BadFileError, msgspec.DecodeError, msgspec.ValidationError) as error:
            self.trouble = f"{FILE} is damaged: {error}"
        self._left = found.left
        self._enter(found.memberships)

    def all(self) -> dict[str, Membership]:
        """Every membership by key."""
        return dict(self._all)

    def get(self, key: str) -> Membership | None:
        """The membership in one neighborhood."""
        return self._all.get(key)

    def join(self, key: str, membership: Membership) -> None:
        """Notes that the owner joined; what was admitted or published before stays."""
        with self._lock:
            before = self._all.get(key)
            if before is not None:
                admitted = tuple(dict.fromkeys((*before.admitted, *membership.admitted)))
                joined = tuple(dict.fromkeys((*before.joined, *membership.joined)))
                membership = replace(before, name=membership.name, admitted=admitted, joined=joined)
            left = {rappid: keys for rappid, keys in self._left.items() if rappid != membership.rappid}
            self._save({**self._all, key: membership}, left)

    def admit(self, key: str, fingerprint: str) -> None:
        """Counts a machine among the members, for what is published in the neighborhood. ``NoSuchNeighborhoodError``."""
        with self._lock:
            now = self._joined(key)
            admitted = tuple(dict.fromkeys((*now.admitted, fingerprint)))
            self._save({**self._all, key: replace(now, admitted=admitted)})

    def note_joined(self, key: str, fingerprint: str) -> bool:
        """Notes that a machine said that it is a member, which admits it to nothing; False when it said so before."""
        with self._lock:
            now = self._joined(key)
            if fingerprint in now.joined:
                return False
            self._save({**self._all, key: replace(now, joined=(*now.joined, fingerprint))})
            return True

    def note_left(self, key: str, fingerprint: str) -> bool:
        """Ends what a machine may call as a member, for it said that it left; False when it was none here."""
        with self._lock:
            now = self._joined(key)
            if fingerprint not in (*now.admitted, *now.joined):
                return False
            admitted = tuple(one for one in now.admitted if one != fingerprint)
            joined = tuple(one for one in now.joined if one != fingerprint)
            self._save({**self._all, key: replace(now, admitted=admitted, joined=joined)})
            return True

    def left_untold(self, fingerprint: str) -> list[str]:
        """The rappids of neighborhoods that the owner left, as far as that member does not know it yet."""
        return sorted(rappid for rappid, keys in self._left.items() if fingerprint in keys)

    def told_left(self, fingerprint: str, rappids: Collection[str]) -> None:
        """Notes that a member was told that the owner left these."""
        with self._lock:
            left = {
                rappid: tuple(one for one in keys if rappid not in rappids or one != fingerprint)
                for rappid, keys in self._left.items()
            }
            self._save(self._all, {rappid: keys for rappid, keys in left.items() if keys})

    def shared_with(self, fingerprint: str) -> list[str]:
        """The rappids of the neighborhoods that a machine is a member of, as far as the owner said so."""
        return sorted(one.rappid for one in self._all.values() if fingerprint in one.admitted)

    def publish(self, key: str, agent: str, scope: Scope) -> None:
        """Publishes an agent by its name; ``personal`` takes it back. Raises ``BadCapabilityError`` for no name."""
        capability(HELP, _TENANT, agent)
        with self._lock:
            now = self._joined(key)
            published = {name: one for name, one in now.published.items() if name != agent}
            if scope is not Scope.PERSONAL:
                published[agent] = scope
            self._save({**self._all, key: replace(now, published=published)})

    def leave(self, key: str) -> None:
        """Ends a membership, and all that was published in it, at once. Its members are told by and by."""
        with self._lock:
            now = self._joined(key)
            left = {**self._left, now.rappid: tuple(dict.fromkeys((*now.admitted, *now.joined)))}
            kept = list(left.items())[-_MOST_LEFT:]
            self._save({one: kept for one, kept in self._all.items() if one != key}, dict(kept))

    def capabilities(self, fingerprint: str) -> tuple[str, ...]:
        """The capabilities of a paired machine by what is published, beside its own scopes."""
        found = self._capabilities.get(fingerprint)
        return self._capabilities.get("", ()) if found is None else found

    def public(self) -> list[str]:
        """The names of the agents that strangers may read of, sorted."""
        return sorted(
            {
                name
                for one in self._all.values()
                for name, scope in one.published.items()
                if scope is Scope.PUBLIC
            }
        )

    def _joined(self, key: str) -> Membership:
        found = self._all.get(key)
        if found is None:
            raise NoSuchNeighborhoodError("You are no member of it.", do="rappd neighborhood join FILE")
        return found

    def _save(
        self, memberships: dict[str, Membership], left: dict[str, tuple[str, ...]] | None = None
    ) -> None:
        left = self._left if left is None else left
        if self.trouble:
            raise BadNeighborhoodError(f"{self.trouble} Nothing was changed.", do=f"Look at {self._path}.")
        octets = msgspec.json.encode(_File(_SCHEMA, memberships, left))
        write_atomically(self._path, msgspec.json.format(octets, indent=2))
        self._left = left
        self._enter(memberships)

    def _enter(self, memberships: dict[str, Membership]) -> None:
        """Works out who may do what; "" stands for every paired machine that no neighborhood admitted."""
        everybody = {
            name
            for one in memberships.values()
            for name, scope in one.published.items()
            if scope is Scope.PUBLIC
        }
        known = {fingerprint for one in memberships.values() for fingerprint in one.admitted}
        allowed = {"": everybody}
        for fingerprint in known:
            allowed[fingerprint] = everybody | {
                name for one in memberships.values() if fingerprint in one.admitted for name in one.published
            }
        self._all = memberships
        self._capabilities = {
            fingerprint: tuple(capability(HELP, _TENANT, name) for name in sorted(names))
            for fingerprint, names in allowed.items()
        }
