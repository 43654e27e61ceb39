"""This home's snapshots and the machines in its roster, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from rappd.cli.console import interactive, strip_control
from rappd.cli.egg_options import verbs_here
from rappd.control_client import ControlClient
from rappd.daemon.home import Home, machine_name

if TYPE_CHECKING:
    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.member_transport import MemberTransport
    from rappd.operations.neighborhood_members import NeighborhoodMembers
    from rappd.operations.neighborhood_snapshots import NeighborhoodSnapshots


def snapshots_here(*, writes: bool = True) -> NeighborhoodSnapshots:
    """The operations on this home's snapshots. Without ``writes`` the home stays as it is."""
    from rappd.cli.standalone import workspace_of
    from rappd.operations.neighborhood_snapshots import NeighborhoodSnapshots
    from rappd.settings.load import Settings

    home = Home.here()
    eggs = verbs_here(writes=writes)
    settings, daemon = Settings.load(home), ControlClient(home)
    is_running = daemon.running()
    said = daemon.get("/operator/status") if is_running else {}  # it may have been started with another name
    return NeighborhoodSnapshots(
        home,
        workspace_of(home, settings),
        eggs,
        machine=said.get("name") or machine_name(home, settings.text("name")),
        url=f"http://127.0.0.1:{said.get('port') or settings.text('port')}",
        model=settings.text("provider.model"),
        is_running=is_running,
    )


def members_here() -> NeighborhoodMembers:
    """The roster of this home and the ways to its machines, whether a daemon runs or not."""
    from rappd.operations.neighborhood_members import NeighborhoodMembers
    from rappd.settings.load import Settings

    home = Home.here()
    daemon = ControlClient(home)
    if daemon.running():
        listing = daemon.get("/peers")
    else:
        from rappd.cli.peers_offline import peers_on_disk

        listing = peers_on_disk(home)
    return NeighborhoodMembers.of(home, Settings.load(home), listing)


def ask_for_tokens(here: NeighborhoodMembers, names: Sequence[str] = ()) -> None:
    """Asks the person at the terminal for each variable and host that was not allowed yet; without one, nothing."""
    if not interactive():
        return
    for member in here.chosen(names):
        use = here.unasked_token(member)
        if use is None:
            continue
        question = f"peers.json sends the value of {use.variable} to {use.host} for {strip_control(member.name)}. Allow it?"
        if click.confirm(question, default=False, err=True):
            here.token_uses.allow(use.variable, use.host)


def ways_here() -> Callable[[PeerBlock], MemberTransport | None]:
    """Finds the way to a machine of an egg: as the roster has it, else as the egg says. None where there is none."""
    here = members_here()
    ask_for_tokens(here)
    return here.way_to
