"""This home's snapshots and the machines in its roster, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from rappd.cli.egg_options import verbs_here
from rappd.control_client import ControlClient
from rappd.daemon.home import Home, machine_name

if TYPE_CHECKING:
    from pathlib import Path

    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.member_transport import MemberTransport
    from neighborhoods.snapshot.peer_capture import SnapshotPeer
    from neighborhoods.snapshot.roster import Member
    from neighborhoods.snapshot.transports.github import GithubWrite
    from neighborhoods.snapshot.transports.rappd import PeerSource
    from rappd.operations.neighborhood_members import NeighborhoodMembers
    from rappd.operations.neighborhood_snapshots import NeighborhoodSnapshots


def snapshots_here(*, writes: bool = True) -> NeighborhoodSnapshots:
    """The operations on this home's snapshots. Without ``writes`` the home stays as it is."""
    from rappd.cli.standalone import workspace_of
    from rappd.operations.neighborhood_snapshots import NeighborhoodSnapshots
    from rappd.settings.load import Settings

    home = Home.here()
    eggs = verbs_here(writes=writes)
    settings = Settings.load(home)
    return NeighborhoodSnapshots(
        home,
        workspace_of(home, settings),
        eggs,
        machine=machine_name(home, settings.text("name")),
        url=f"http://127.0.0.1:{settings.text('port')}",
        model=settings.text("provider.model"),
        is_running=ControlClient(home).running(),
    )


def members_here() -> NeighborhoodMembers:
    """The roster of this home and the ways to its machines, whether a daemon runs or not."""
    from rappd.operations.member_eggs import egg_maker
    from rappd.operations.neighborhood_members import NeighborhoodMembers
    from rappd.settings.load import Settings

    home = Home.here()
    daemon = ControlClient(home)
    if daemon.running():
        listing = daemon.get("/peers")
    else:
        from rappd.cli.peers_offline import peers_on_disk

        listing = peers_on_disk(home)
    settings = Settings.load(home)
    name = machine_name(home, settings.text("name"))

    def make_egg(archive: Path, twin: str) -> Path:  # only then a key is made
        return egg_maker(home.root / "eggs" / ".outgoing_twins", home.identity(), name)(archive, twin)

    def source_of(member: Member) -> PeerSource:
        from rappd.member_source import DaemonPeerSource

        return DaemonPeerSource(home, member.name, member.fingerprint)

    return NeighborhoodMembers(
        home,
        listing,
        ssh_config=settings.text("neighborhood.ssh_config"),
        github_write=cast("GithubWrite", settings.text("neighborhood.github_write")),
        make_egg=make_egg,
        source_of=source_of,
    )


def peers_here(names: Sequence[str] = ()) -> list[SnapshotPeer]:
    """The other machines of the roster that a snapshot can read; with ``names``, those, readable or not."""
    from neighborhoods.snapshot.peer_capture import SnapshotPeer

    here = members_here()
    found = []
    for member in here.chosen(names):
        transport = here.transport(member)
        if member.is_self or (not names and not member.is_mine):
            continue
        row = member.as_json()
        found.append(
            SnapshotPeer(
                member.name, transport, url=row["url"], ssh_user=row["ssh_user"], ssh_host=row["ssh_host"]
            )
        )
    return found


def ways_here() -> Callable[[PeerBlock], MemberTransport | None]:
    """Finds the way to a machine of an egg: as the roster has it, else as the egg says. None where there is none."""
    here = members_here()

    def transport_to(block: PeerBlock) -> MemberTransport | None:
        for member in here.roster:
            if member.name == block.name:
                if member.way == "rappd" and member.whose != "mine":
                    return None  # a name alone sends nothing of this owner's to a friend
                return here.transport(member)
        host, user = block.row.get("ssh_host"), block.row.get("ssh_user")
        if isinstance(host, str) and host and isinstance(user, str):
            return here.by_ssh(block.name, host, user)
        return None

    return transport_to
