"""The roster of this home's neighborhood, and the way to each machine in it."""

from __future__ import annotations

import asyncio
import os
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from envelopes.errors import ReportableError
from neighborhoods.errors import BadMemberError, MemberError, MemberUnreachableError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.member_coordinates import read_coordinates
from neighborhoods.snapshot.member_transport import EggMaker, MemberProbe, MemberTransport, as_failure
from neighborhoods.snapshot.roster import Member, find_member, members
from neighborhoods.snapshot.snapshot_contents import PeerBlock
from neighborhoods.snapshot.token_uses import TokenUse, TokenUses, host_of, refusal
from neighborhoods.snapshot.transports.far_rappd import FarRappd
from neighborhoods.snapshot.transports.folder import FolderTransport
from neighborhoods.snapshot.transports.git_clone import repository_url
from neighborhoods.snapshot.transports.github import GithubTransport, GithubWrite
from neighborhoods.snapshot.transports.rappd import PeerSource, RappdTransport
from neighborhoods.snapshot.transports.ssh import SshTransport
from neighborhoods.snapshot.transports.ssh_connections import SSH_AGENT, SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.transport import peer_snapshots
from neighborhoods.transport.peer_client import PeerClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError
from rappd.features.snapshots.answers import MemberProbed, ProbeShown
from rappd.features.snapshots.member_eggs import egg_maker
from rappd.features.snapshots.progress import UnaskedToken
from rappd.federation.startup_state import Deferred
from rappd.settings.load import Settings

SendEgg = Callable[..., Awaitable[Mapping[str, Any]]]
"""Sends an egg to a peer, by its fingerprint: ``EggTransferOperations.send``."""


class PairedMachine:
    """A paired machine as its rappd gives it, over the connections of this one's."""

    def __init__(
        self,
        peers: PeerStore,
        peer_client: Deferred[PeerClient],
        send: SendEgg,
        name: str,
        fingerprint: str,
    ) -> None:
        """``name`` is for people."""
        self._peers, self._peer_client, self._send = peers, peer_client, send
        self._name, self._fingerprint = name, fingerprint

    async def answer(self, path: str) -> bytes:
        """The answer to a GET of ``path``. Raises ``MemberError``."""
        with self._as_member_errors():
            return await peer_snapshots.answer(*await self._reached(), path)

    async def stream(self, path: str) -> AsyncIterator[bytes]:
        """The answer to a GET of ``path``, in pieces. Raises ``MemberError``."""
        with self._as_member_errors():
            async for piece in peer_snapshots.stream(*await self._reached(), path):
                yield piece

    async def send_egg(self, egg: Path) -> bool:
        """Sends an egg there; true when it has arrived. Raises ``MemberError``."""
        with self._as_member_errors():
            found = await self._send(self._fingerprint, path=str(egg))
        return bool(found["state"] == "done")

    async def aclose(self) -> None:
        """Nothing is kept open."""

    async def _reached(self) -> tuple[PeerClient, Peer]:
        return await self._peer_client.ready(), self._peers.find(self._fingerprint)

    @contextmanager
    def _as_member_errors(self) -> Iterator[None]:
        try:
            yield
        except MemberError:
            raise
        except NotRunningError as error:
            raise MemberUnreachableError(
                f"{self._name} is read through rappd, which isn't running here.", do=error.do
            ) from error
        except ReportableError as error:
            raise MemberError(str(error), do=error.do) from error


class NeighborhoodMembers:
    """Members by name."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        listing: Mapping[str, Any],
        source_of: Callable[[Member], PeerSource],
        lent: Mapping[str, str] | None = None,
    ) -> None:
        """``listing`` is the answer of ``GET /peers``; ``source_of`` asks a paired machine's rappd.

        ``lent`` are variables of the caller's environment, which count before those of this process.

        Raises ``BadPeersFileError``. Blocks on the disk.
        """
        own = listing["self"]
        self._name = str(own.get("name", ""))
        self._home, self._settings, self._source_of = home, settings, source_of
        paired = {
            name: value for name, value in (lent or {}).items() if "\0" not in value
        }  # no environment has it
        self._environment = ChainMap(paired, os.environ)
        self.members = members(
            listing["peers"],
            read_coordinates(home.root / "peers.json"),
            own_fingerprint=str(own.get("fingerprint", "")),
            own_names=(self._name,),
        )

    @cached_property
    def _make_egg(self) -> EggMaker:
        return egg_maker(self._home.root / "eggs" / ".outgoing_twins", self._home.identity(), self._name)

    @cached_property
    def _connections(self) -> SshConnections:
        config = self._settings.text("neighborhood.ssh_config")
        return SshConnections(
            self._home.root / ".ssh_control",
            config=Path(config).expanduser() if config else None,
            environment=self._environment,
        )

    def variables(self) -> list[str]:
        """The variables that reading the members looks at: of the SSH agent, and of tokens in ``peers.json``."""
        found = (one.coordinates.auth_token_env for one in self.members if one.coordinates)
        return [SSH_AGENT, *sorted(filter(None, set(found)))]

    def unasked_tokens(self, names: Sequence[str] = ()) -> list[UnaskedToken]:
        """The tokens that peers.json sends somewhere and that nobody has allowed yet, of these members."""
        asked = [(one.name, self._unasked_token(one)) for one in self.chosen(names)]
        return [
            {"member": name, "variable": use.variable, "host": use.host}
            for name, use in asked
            if use is not None
        ]

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

    def without_a_way(self) -> dict[str, str]:
        """The others that ``peers.json`` names with an address alone, each with why ``to_read`` leaves it out."""
        return {
            one.name: no_way(one)
            for one in self.members
            if one.coordinates and not (one.way or one.is_mine or one.is_self)
        }

    def way_to(self, block: PeerBlock) -> MemberTransport | None:
        """The way to a machine of an egg: as the roster has it, else as the egg says. None where there is none."""
        for member in self.members:
            if member.name == block.name:
                if member.way == "rappd" and member.whose != "mine":
                    return None  # a name alone sends nothing of this owner's to a friend
                return self.transport(member)
        host, user = block.row.get("ssh_host"), block.row.get("ssh_user")
        if isinstance(host, str) and host and isinstance(user, str):
            with suppress(BadMemberError):  # coordinates that cannot be used
                return self._by_ssh(block.name, SshDestination.parse(host, user))
        return None

    def chosen(self, names: Sequence[str] = ()) -> list[Member]:
        """The members of these names, all without any. Raises ``NoSuchMemberError``, ``BadMemberError``."""
        return [find_member(self.members, name) for name in names] if names else list(self.members)

    def transport(self, member: Member) -> MemberTransport | None:
        """The way to a member; None where there is none, or where it is this machine."""
        found = member.coordinates
        if member.is_self:
            return None
        if member.way == "rappd":
            return RappdTransport(member.name, self._source_of(member), make_egg=self._make_egg)
        if found is None:
            return None
        if member.way == "folder":
            return FolderTransport(member.name, Path(found.folder).expanduser())
        if member.way == "ssh" and found.ssh is not None:
            return self._by_ssh(member.name, found.ssh)
        if member.way == "github":
            unasked = self._unasked_token(member)
            variable = found.auth_token_env
            return GithubTransport(
                member.name,
                found.github_neighborhood,
                token="" if unasked else self._environment.get(variable, ""),
                auth_url=found.auth_url,
                write=cast("GithubWrite", self._settings.text("neighborhood.github_write")),
                refusal=refusal(member.name, unasked) if unasked else None,
            )
        return None

    def _unasked_token(self, member: Member) -> TokenUse | None:
        """The variable and host of a member's token that the operator has not allowed; None where nothing is to ask."""
        found = member.coordinates
        if found is None or found.trouble or member.way != "github":
            return None
        variable, host = found.auth_token_env, host_of(repository_url(found.github_neighborhood))
        if (
            not host
            or not self._environment.get(variable)
            or TokenUses(self._home.token_uses).is_allowed(variable, host)
        ):
            return None
        return TokenUse(variable, host)

    def far_rappd(self, member: Member) -> FarRappd | None:
        """The rappd of a member that has an SSH host; None where there is none, or where it is this machine."""
        found = member.coordinates
        if member.is_self or found is None or found.trouble or found.ssh is None:
            return None
        return FarRappd(member.name, found.ssh, self._connections, own_home=self._home.root)

    async def probe(self, names: Sequence[str] = ()) -> list[MemberProbed]:
        """Asks every member whether it can be read now."""
        chosen = self.chosen(names)
        probes = await asyncio.gather(*map(self._probe, chosen))
        return [{**one.as_json(), "probe": probe} for one, probe in zip(chosen, probes, strict=True)]

    async def _probe(self, member: Member) -> ProbeShown:
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
                row: ProbeShown = {**_row(found), "twins": len(read), "named": read}
                if any(twin.failure for twin in listed):
                    row["unread"] = [
                        {"name": twin.name, "reason": twin.failure} for twin in listed if twin.failure
                    ]
                return row
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


def _row(probe: MemberProbe) -> ProbeShown:
    return {
        "reachable": probe.reachable,
        "detail": probe.detail,
        "rappd_version": probe.rappd_version,
        "free_bytes": probe.free_bytes,
        "took_ms": probe.took_ms,
    }
