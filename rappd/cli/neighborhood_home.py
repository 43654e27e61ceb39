"""This home's snapshots and the machines in its roster, whether a daemon runs or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from rappd.cli.console import interactive, strip_control
from rappd.cli.home_client import HomeClient
from rappd.control_client import ControlClient
from rappd.daemon.home import Home, machine_name
from rappd.errors import NotRunningError

if TYPE_CHECKING:
    from neighborhoods.snapshot.contents import PeerBlock
    from neighborhoods.snapshot.member_transport import MemberTransport
    from rappd.features.eggs.home_eggs import HomeEggs
    from rappd.features.snapshots.home_snapshots import NeighborhoodSnapshots
    from rappd.features.snapshots.members import NeighborhoodMembers


def snapshots_here(*, writes: bool = True) -> NeighborhoodSnapshots:
    """The operations on this home's snapshots. Without ``writes`` the home stays as it is."""
    from rappd.features.snapshots.home_snapshots import NeighborhoodSnapshots
    from rappd.settings.load import Settings, host_workspace

    home = Home.here()
    eggs = _eggs_here(writes=writes)
    settings = Settings.load(home)
    try:
        said = ControlClient(home).get("/operator/status")  # it may have been started with another name
    except NotRunningError:
        said = {}
    return NeighborhoodSnapshots(
        home,
        host_workspace(home, settings),
        eggs,
        machine=said.get("name") or machine_name(home, settings.text("name")),
        url=f"http://127.0.0.1:{said.get('port') or settings.text('port')}",
        model=settings.text("provider.model"),
        is_running=bool(said),
    )


def _eggs_here(*, writes: bool = True) -> HomeEggs:
    """This home's eggs. Without ``writes`` not even a key is made."""
    from envelopes.identity.keys import IdentityKey
    from rappd.features.eggs.home_eggs import HomeEggs
    from rappd.settings.load import Settings, host_workspace

    home = Home.here()
    if writes:
        home.create()
    settings = Settings.load(home)
    key = home.identity() if writes or home.has_identity() else IdentityKey.generate()
    return HomeEggs(
        home, host_workspace(home, settings), key, machine=machine_name(home, settings.text("name"))
    )


def members_here() -> NeighborhoodMembers:
    """The roster of this home and the ways to its machines, whether a daemon runs or not."""
    from rappd.features.snapshots.members import NeighborhoodMembers
    from rappd.settings.load import Settings

    home = Home.here()
    return NeighborhoodMembers.of(home, Settings.load(home), HomeClient(home, reads=True).do("peers.list"))


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
