"""The roster of this home's neighborhood, and the way to each machine in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from agents.runtime import programs
from neighborhoods.errors import BadMemberError
from neighborhoods.snapshot.contents import PeerBlock
from neighborhoods.snapshot.member_coordinates import read_coordinates
from neighborhoods.snapshot.member_failures import as_failure
from neighborhoods.snapshot.member_transport import EggMaker, MemberProbe, MemberTransport
from neighborhoods.snapshot.peer_capture import SnapshotPeer
from neighborhoods.snapshot.roster import Member, find_member, members
from neighborhoods.snapshot.token_uses import TokenUse, TokenUses, host_of, refusal
from neighborhoods.snapshot.transports.far_rappd import FarRappd
from neighborhoods.snapshot.transports.folder import FolderTransport
from neighborhoods.snapshot.transports.git_clone import repository_url
from neighborhoods.snapshot.transports.github import GithubTransport, GithubWrite
from neighborhoods.snapshot.transports.rappd import PeerSource, RappdTransport
from neighborhoods.snapshot.transports.ssh import SshTransport
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from rappd.daemon.home import Home, machine_name
from rappd.features.snapshots.member_eggs import egg_maker
from rappd.settings.load import Settings


class NeighborhoodMembers:
    """Members by name. ``listing`` is the answer of ``GET /peers``."""

    def __init__(
        self,
        home: Home,
        listing: Mapping[str, Any],
        *,
        ssh_config: str = "",
        github_write: GithubWrite = "off",
        make_egg: EggMaker | None = None,
        source_of: Callable[[Member], PeerSource] | None = None,
    ) -> None:
        """``source_of`` asks a paired machine's rappd. Raises ``BadPeersFileError``."""
        own = listing["self"]
        self._github_write = github_write
        self._home, self._make_egg, self._source_of = home, make_egg, source_of
        config = Path(ssh_config).expanduser() if ssh_config else None
        self.token_uses = TokenUses(home.token_uses)
        self._connections = SshConnections(home.root / ".ssh_control", config=config)
        self.roster = members(
            listing["peers"],
            read_coordinates(home.root / "peers.json"),
            own_fingerprint=str(own.get("fingerprint", "")),
            own_names=(str(own.get("name", "")),),
        )

    @classmethod
    def of(cls, home: Home, settings: Settings, listing: Mapping[str, Any]) -> NeighborhoodMembers:
        """The members as the settings have them. Raises ``BadPeersFileError``. Blocks on the disk."""
        name = machine_name(home, settings.text("name"))

        def make_egg(archive: Path, twin: str, *, archived: bool = False, is_signed: bool = True) -> Path:
            scratch = home.root / "eggs" / ".outgoing_twins"
            make = egg_maker(scratch, home.identity(), name)  # only then a key is made
            return make(archive, twin, archived=archived, is_signed=is_signed)

        def source_of(member: Member) -> PeerSource:
            from rappd.member_source import (
                DaemonPeerSource,  # aiohttp takes long to load: only for who needs it
            )

            return DaemonPeerSource(home, member.name, member.fingerprint)

        return cls(
            home,
            listing,
            ssh_config=settings.text("neighborhood.ssh_config"),
            github_write=cast("GithubWrite", settings.text("neighborhood.github_write")),
            make_egg=make_egg,
            source_of=source_of,
        )

    def to_read(self, names: Sequence[str] = ()) -> list[SnapshotPeer]:
        """The other machines that a snapshot holds: all of the owner's; with ``names``, those, readable or not."""
        found = []
        for member in self.chosen(names):
            transport = self.transport(member)
            if member.is_self or (not names and not member.is_mine):
                continue
            row = member.as_json()
            found.append(
                SnapshotPeer(
                    member.name,
                    transport,
                    url=row["url"],
                    ssh_user=row["ssh_user"],
                    ssh_host=row["ssh_host"],
                    no_way=no_way(member),
                )
            )
        return found

    def without_a_way(self) -> list[Member]:
        """The others that ``peers.json`` names with an address alone: ``to_read`` leaves them out."""
        return [one for one in self.roster if one.coordinates and not (one.way or one.is_mine or one.is_self)]

    def way_to(self, block: PeerBlock) -> MemberTransport | None:
        """The way to a machine of an egg: as the roster has it, else as the egg says. None where there is none."""
        for member in self.roster:
            if member.name == block.name:
                if member.way == "rappd" and member.whose != "mine":
                    return None  # a name alone sends nothing of this owner's to a friend
                return self.transport(member)
        host, user = block.row.get("ssh_host"), block.row.get("ssh_user")
        if isinstance(host, str) and host and isinstance(user, str):
            return self.by_ssh(block.name, host, user)
        return None

    def chosen(self, names: Sequence[str] = ()) -> list[Member]:
        """The members of these names, all without any. Raises ``NoSuchMemberError``, ``BadMemberError``."""
        return [find_member(self.roster, name) for name in names] if names else list(self.roster)

    def transport(self, member: Member) -> MemberTransport | None:
        """The way to a member; None where there is none, or where it is this machine."""
        found = member.coordinates
        if member.is_self:
            return None
        if member.way == "rappd" and self._source_of is not None:
            return RappdTransport(member.name, self._source_of(member), make_egg=self._make_egg)
        if found is None:
            return None
        if member.way == "folder":
            return FolderTransport(member.name, Path(found.folder).expanduser())
        if member.way == "ssh" and found.ssh is not None:
            return self._by_ssh(member.name, found.ssh)
        if member.way == "github":
            unasked = self.unasked_token(member)
            variable = found.auth_token_env
            return GithubTransport(
                member.name,
                found.github_neighborhood,
                token="" if unasked else programs.from_owner(variable).get(variable, ""),
                auth_url=found.auth_url,
                write=self._github_write,
                refusal=refusal(member.name, unasked) if unasked else None,
            )
        return None

    def unasked_token(self, member: Member) -> TokenUse | None:
        """The variable and host of a member's token that the operator has not allowed; None where nothing is to ask."""
        found = member.coordinates
        if found is None or found.trouble or member.way != "github":
            return None
        variable, host = found.auth_token_env, host_of(repository_url(found.github_neighborhood))
        if not host or not programs.from_owner(variable) or self.token_uses.is_allowed(variable, host):
            return None
        return TokenUse(variable, host)

    def far_rappd(self, member: Member) -> FarRappd | None:
        """The rappd of a member that has an SSH host; None where there is none, or where it is this machine."""
        found = member.coordinates
        if member.is_self or found is None or found.trouble or found.ssh is None:
            return None
        return FarRappd(member.name, found.ssh, self._connections, own_home=self._home.root)

    def by_ssh(self, name: str, host: str, user: str) -> MemberTransport | None:
        """The way by coordinates that an egg carries; None when they cannot be used."""
        try:
            return self._by_ssh(name, SshDestination.parse(host, user))
        except BadMemberError:
            return None

    async def probe(self, names: Sequence[str] = ()) -> dict[str, Any]:
        """Asks every member whether it can be read now: ``{"members": [row with "probe"]}``."""
        chosen = self.chosen(names)
        probes = await asyncio.gather(*map(self._probe, chosen))
        return {
            "members": [{**one.as_json(), "probe": probe} for one, probe in zip(chosen, probes, strict=True)]
        }

    async def _probe(self, member: Member) -> dict[str, Any]:
        if member.is_self:
            return _row(MemberProbe(True, "this machine itself; its own part of a snapshot holds it"))
        transport = self.transport(member)
        if transport is None:
            return _row(MemberProbe(False, no_way(member)))
        try:
            found = await transport.probe()
            if found.reachable:
                listed = (await transport.list()).twins
                read = [twin.name for twin in listed if not twin.failure]
                unread = [{"name": twin.name, "reason": twin.failure} for twin in listed if twin.failure]
                row = {**_row(found), "twins": len(read), "named": read}
                return row | ({"unread": unread} if unread else {})
        except Exception as error:  # noqa: BLE001 - logged there; the other members are asked all the same
            return _row(MemberProbe(False, as_failure(member.name, error).with_advice()))
        finally:
            await transport.aclose()
        return _row(found)

    def _by_ssh(self, name: str, destination: SshDestination) -> SshTransport:
        return SshTransport(
            name, destination, self._connections, make_egg=self._make_egg, own_home=self._home.root
        )


def no_way(member: Member) -> str:
    """Says why a member without a transport has none."""
    if member.coordinates is not None and member.coordinates.trouble:
        return f"peers.json: {member.coordinates.trouble}"
    return "no way to read it: add ssh_host to its entry in peers.json"


def _row(probe: MemberProbe) -> dict[str, Any]:
    return {
        "reachable": probe.reachable,
        "detail": probe.detail,
        "rappd_version": probe.rappd_version,
        "free_bytes": probe.free_bytes,
        "took_ms": probe.took_ms,
    }
