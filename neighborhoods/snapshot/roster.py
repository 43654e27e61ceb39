"""The machines of the neighborhood, each once: paired ones, found ones, and those that ``peers.json`` names."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict

import msgspec

from neighborhoods.discovery.address_text import BadAddressError, is_loopback, split
from neighborhoods.discovery.interfaces import interfaces
from neighborhoods.errors import BadMemberError, NoSuchMemberError
from neighborhoods.snapshot.member_coordinates import MemberCoordinates

Way = Literal["ssh", "folder", "github", "rappd", ""]


class MemberView(TypedDict):
    name: str
    fingerprint: str
    address: str
    url: str
    paired: bool
    whose: str
    presence: str
    self: bool
    way: str
    ssh_user: str
    ssh_host: str
    folder: str
    github_neighborhood: str
    trouble: str


"""A machine of the roster: the ``way`` in which a snapshot reads it, and what ``peers.json`` says of it."""


class Member(msgspec.Struct, frozen=True):
    """One machine. ``way`` is how a snapshot reads it, "" when only its address is known."""

    name: str
    fingerprint: str = ""
    address: str = ""
    url: str = ""
    paired: bool = False
    whose: str = ""
    presence: str = ""
    is_self: bool = False
    coordinates: MemberCoordinates | None = None

    @property
    def way(self) -> Way:
        """The way that its coordinates name, else that of a paired machine: its own rappd."""
        return self._written_way or ("rappd" if self.paired and not self._trouble else "")

    @property
    def _trouble(self) -> str:
        return self.coordinates.trouble if self.coordinates is not None else ""

    @property
    def _written_way(self) -> Way:
        """SSH and folders come first: they need nothing of the machine's own daemon."""
        found = self.coordinates
        if found is not None and not found.trouble:
            if found.folder:
                return "folder"
            if found.ssh_host:
                return "ssh"
        if found is not None and found.github_neighborhood and not found.trouble:
            return "github"
        return ""

    @property
    def is_mine(self) -> bool:
        """True for a machine that a snapshot should hold: one of the same owner, or written down with a way to it."""
        found = self.coordinates
        return self.whose == "mine" or (found is not None and bool(found.trouble or self._written_way))

    def as_json(self) -> MemberView:
        """The row that screens and ``--json`` have."""
        found = self.coordinates
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "address": self.address,
            "url": self.url,
            "paired": self.paired,
            "whose": self.whose,
            "presence": self.presence,
            "self": self.is_self,
            "way": self.way,
            "ssh_user": found.ssh_user if found else "",
            "ssh_host": found.ssh_host if found else "",
            "folder": found.folder if found else "",
            "github_neighborhood": found.github_neighborhood if found else "",
            "trouble": found.trouble if found else "",
        }


def members(
    rows: Iterable[dict[str, Any]],
    written: Sequence[MemberCoordinates],
    *,
    own_fingerprint: str = "",
    own_names: Iterable[str] = (),
) -> list[Member]:
    """Joins the rows of ``GET /peers`` with the entries of ``peers.json``.

    The same fingerprint or the same address is one machine, and so is the same name, unless two fingerprints, or two
    entries with different hosts or folders, say otherwise. An entry with no more than an SSH host joins
    the machine whose address has that host, if it is the only one. ``own_names``: what this machine is called.
    """
    found = _each_once([_of_row(row) for row in rows])
    for entry in written:
        place = _place_of(entry, found)
        if place is None:
            found.append(
                Member(
                    entry.name or entry.address,
                    entry.fingerprint,
                    entry.address,
                    entry.url,
                    presence="written down",
                    coordinates=entry,
                )
            )
        else:
            known = found[place]
            found[place] = msgspec.structs.replace(
                known,
                coordinates=entry if _way_of(entry) or known.coordinates is None else known.coordinates,
                url=entry.url or known.url,
                name=known.name if known.paired else entry.name or known.name,
            )
    here = _own_hosts(own_names)
    marked = [
        msgspec.structs.replace(one, is_self=_is_self(one, own_fingerprint, here))
        for one in _each_once(found)
    ]
    return _told_apart(marked)


def find_member(known_members: Sequence[Member], name: str) -> Member:
    """The member of that name, or whose fingerprint begins so. Raises ``NoSuchMemberError``, ``BadMemberError``."""
    named = [one for one in known_members if one.name.casefold() == name.casefold()]
    if not named and len(name) >= 4:
        named = [one for one in known_members if one.fingerprint.startswith(name.lower())]
    if not named:
        known = ", ".join(one.name for one in known_members[:8])
        raise NoSuchMemberError(
            f"No member “{name}”.", do=f"There are: {known}." if known else "Add machines to peers.json."
        )
    if len(named) > 1:
        raise BadMemberError(f"“{name}” is more than one member.", do="Type more of it.")
    return named[0]


def _of_row(row: dict[str, Any]) -> Member:
    address = str(row.get("address", ""))
    return Member(
        str(row.get("name") or address),
        str(row.get("fingerprint", "")),
        _bare(address),
        address if "://" in address else "",
        bool(row.get("paired")),
        str(row.get("whose", "")),
        str(row.get("presence", "")),
    )


def _bare(address: str) -> str:
    return address.partition("://")[2].rstrip("/") if "://" in address else address


def _place_of(entry: MemberCoordinates, found: Sequence[Member]) -> int | None:
    for place, one in enumerate(found):
        if entry.fingerprint and one.fingerprint:
            if entry.fingerprint == one.fingerprint:
                return place
        elif entry.address and one.address == entry.address:
            return place
    for place, one in enumerate(found):
        apart = (entry.fingerprint and one.fingerprint) or _reached_otherwise(entry, one)
        if entry.name and one.name.casefold() == entry.name.casefold() and not apart:
            return place
    if not entry.ssh_host or entry.address or entry.fingerprint:
        return None
    there = [place for place, one in enumerate(found) if _host(one.address) == entry.ssh_host.casefold()]
    return there[0] if len(there) == 1 else None


def _way_of(entry: MemberCoordinates) -> tuple[str, ...]:
    """The coordinates that files are read by; empty when it has none."""
    found = (entry.ssh_host, entry.folder, entry.github_neighborhood)
    return found if any(found) else ()


def _reached_otherwise(entry: MemberCoordinates, one: Member) -> bool:
    """True when an earlier entry of that name leads to other files: two machines, of which none may be lost."""
    known = _way_of(one.coordinates) if one.coordinates is not None else ()
    return bool(known) and bool(_way_of(entry)) and known != _way_of(entry)


def _each_once(found: Sequence[Member]) -> list[Member]:
    """Paired ones win over found ones of the same key; several sightings of one key are one."""
    kept: dict[str, Member] = {}
    for one in sorted(found, key=lambda member: not member.paired):
        key = one.fingerprint or f"{one.name}\0{one.address}"
        before = kept.setdefault(key, one)
        if before.coordinates is None and one.coordinates is not None:
            kept[key] = msgspec.structs.replace(before, coordinates=one.coordinates)
    return list(kept.values())


def _told_apart(found: Sequence[Member]) -> list[Member]:
    named: list[Member] = []
    used_names: set[str] = set()
    for one in found:
        name, number = one.name, 2
        if name.casefold() in used_names and one.fingerprint:
            name = f"{one.name}_{one.fingerprint[:4]}"
        while name.casefold() in used_names:
            name, number = f"{one.name}_{number}", number + 1
        used_names.add(name.casefold())
        named.append(msgspec.structs.replace(one, name=name))
    return named


def _is_self(member: Member, own_fingerprint: str, here: frozenset[str]) -> bool:
    if own_fingerprint and member.fingerprint:
        return member.fingerprint == own_fingerprint
    found = member.coordinates
    if found is None or not found.ssh_host or found.trouble:
        return False
    destination = found.ssh
    # A port of one's own leads to another machine behind this one, or to a container.
    if destination is None or destination.port:
        return False
    return destination.host.casefold() in here or is_loopback(destination.host)


def _own_hosts(names: Iterable[str]) -> frozenset[str]:
    host = socket.gethostname().casefold()
    addresses = [address for one in interfaces() for address in one.addresses]
    own = {"localhost", host, host.split(".")[0], f"{host.split('.')[0]}.local", *addresses}
    return frozenset({*own, "127.0.0.1", "::1", *(name.casefold() for name in names if name)})


def _host(address: str) -> str:
    try:
        host, _ = split(address, 0)
    except BadAddressError:
        return ""
    return "" if is_loopback(host) else host.casefold()
