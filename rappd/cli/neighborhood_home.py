"""This home's snapshots and the machines in its roster, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rappd.cli.egg_options import verbs_here
from rappd.control_client import ControlClient
from rappd.daemon.home import Home, machine_name

if TYPE_CHECKING:
    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.member_transport import MemberTransport
    from neighborhoods.snapshot.peer_capture import SnapshotPeer
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


def peers_here(names: Sequence[str] = ()) -> list[SnapshotPeer]:
    """The machines of the roster; with ``names``, only those."""
    return []


def transport_to(block: PeerBlock) -> MemberTransport | None:
    """The way to a machine of an egg; None when the roster does not know it."""
    return None
