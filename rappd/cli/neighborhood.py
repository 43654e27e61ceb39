"""``rappd neighborhood``: your machines together; the commands are gathered in."""

from __future__ import annotations

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.neighborhood_members import members, probe, send, token
from rappd.cli.neighborhood_restore import hatch, plan
from rappd.cli.neighborhood_schedule import schedule
from rappd.cli.neighborhood_snapshot import diff, drill, snapshot, snapshots
from rappd.features.neighborhoods.cli import create, invite, join, leave, list_, pack, publish, show


@click.group(cls=SuggestingGroup)
def neighborhood() -> None:
    """Back up all your machines into one file and bring them back; share places with others."""


for command in (members, probe, token, snapshot, snapshots, schedule, drill, diff, plan, hatch, send):
    neighborhood.add_command(command)
for command in (list_, create, show, invite, join, leave, publish, pack):
    neighborhood.add_command(command)
