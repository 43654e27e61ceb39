"""This home's estate and neighborhoods, whether a daemon runs or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rappd.daemon.home import Home, machine_name
from rappd.features.eggs.cli_options import verbs_here

if TYPE_CHECKING:
    from rappd.features.estate.operations import EstateOperations
    from rappd.features.neighborhoods.places import PlaceOperations


def estate_here(*, writes: bool = True) -> EstateOperations:
    """The operations on this home's estate, whether a daemon runs or not."""
    from rappd.features.estate.operations import EstateOperations
    from rappd.settings.load import Settings, host_workspace

    home = Home.here()
    if writes:
        home.create()
    settings = Settings.load(home)
    return EstateOperations(
        home,
        host_workspace(home, settings),
        machine=machine_name(home, settings.text("name")),
        github=settings.text("estate.github"),
        private_pointer=settings.text("estate.private"),
    )


def places_here(*, writes: bool = True) -> PlaceOperations:
    """The operations on this home's neighborhoods, whether a daemon runs or not."""
    from neighborhoods.places.memberships import Memberships
    from rappd.features.neighborhoods.places import PlaceOperations
    from rappd.settings.load import Settings, host_workspace

    home = Home.here()
    settings = Settings.load(home)
    return PlaceOperations(
        home,
        host_workspace(home, settings),
        verbs_here(writes=writes),
        estate_here(writes=writes),
        Memberships(home.root),
        identity=home.identity,
        machine=machine_name(home, settings.text("name")),
    )
