"""``rappd agents approve``: what is quarantined, and letting it run. Works with the daemon down."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.tables import Table
from rappd.daemon.home import Home
from rappd.features.agents.text import agent_rows, file_in, file_of

if TYPE_CHECKING:
    from twins.trust.quarantine import QuarantineList
    from twins.trust.quarantined_files import QuarantinedFile
    from twins.workspace.workspace import Workspace


class _Whose(NamedTuple):
    """The workspace whose files are approved. ``key`` "" is the brainstem."""

    key: str
    name: str
    workspace: Workspace

    @property
    def option(self) -> str:
        """The option that selects this workspace."""
        from rappd.features.twins.text import handle

        return f" --twin {handle(self.name, self.key)}" if self.key else ""


@cli_command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--twin", default="", metavar="TWIN", help="Whose code; without it, the brainstem's.")
def approve(names: tuple[str, ...], twin: str, printer: Printer) -> None:
    """Let code run, exactly as it is now; without NAME, list what waits.

    NAME is an agent, or the file of an agent, service or sense, or .env. Of an agent that was not quarantined this
    version may change other agents from now on.
    """
    home = Home.here()
    if not names:
        _list(home, twin, printer)
        return
    whose = _whose(home, twin)
    approving = _approving(home, whose, names)
    done = [
        HomeClient(home).do(
            "agents.approve",
            twin=whose.key,
            filename=path,
            sha256=quarantined.sha256 if quarantined else "",
            waits=quarantined is not None,
        )
        for path, quarantined in approving
    ]
    printer.result({"agent": done[0], "approved": done}, _show_approved, done)


def _show_approved(done: list[dict[str, Any]]) -> None:
    for found in done:
        print_out(
            f"{status_mark('good' if found.get('status') == 'ok' else 'note')} {strip_control(found['message'])}"
        )


def _approving(home: Home, whose: _Whose, names: tuple[str, ...]) -> list[tuple[str, QuarantinedFile | None]]:
    """Each name's file, and how it is held if it is; all are found before the first is approved."""
    from twins.trust.quarantined_files import held_files, named

    waiting = held_files(_quarantine_of(home), whose.workspace)
    found = []
    for name in names:
        quarantined = named(waiting, name)
        found.append((quarantined.path if quarantined else _unheld(home, whose, name), quarantined))
    return found


def _unheld(home: Home, whose: _Whose, name: str) -> str:
    if file := file_in(whose.workspace.agents, name):
        return file
    return file_of(agent_rows(HomeClient(home), whose.key), name)


def _list(home: Home, twin: str, printer: Printer) -> None:
    from twins.trust.quarantined_files import held_files

    if twin:
        whose = _whose(home, twin)
        rows = [(whose, one) for one in held_files(_quarantine_of(home), whose.workspace)]
    else:
        rows = _everywhere(home)
    printer.result({"held": [{"twin": whose.key, **_row(one)} for whose, one in rows]}, _show_held, rows)


_HELD = Table(
    ("WHOSE", lambda row: row[0].name),
    ("FILE", lambda row: row[1].path),
    ("CAME IN", lambda row: row[1].origin),
    ("SINCE", lambda row: row[1].at[:10]),
    none=("Nothing waits for approval.", ""),
    shrink=2,
    whole=(1,),
)


def _show_held(rows: list[tuple[_Whose, QuarantinedFile]]) -> None:
    _HELD(rows)
    if rows:
        print_out()
    for option in dict.fromkeys(whose.option for whose, _ in rows):
        first = next((whose, one) for whose, one in rows if whose.option == option)
        print_out(f"Read {dim(tilde(first[1].file))}")
        print_out(f"  {arrow()} {command(f'rappd agents approve{option} {first[1].path}')}")


def _row(one: QuarantinedFile) -> dict[str, Any]:
    return {key: str(value) if isinstance(value, Path) else value for key, value in one._asdict().items()}


def _everywhere(home: Home) -> list[tuple[_Whose, QuarantinedFile]]:
    from twins.trust.quarantined_files import held_everywhere
    from twins.workspace.workspace import TwinLayout

    host = _whose(home, "")
    found = held_everywhere(_quarantine_of(home), host.workspace, TwinLayout(home.root))
    return [
        (_Whose(twin.key, twin.name, twin.workspace) if twin else host, one)
        for twin, files in found
        for one in files
    ]


def _whose(home: Home, twin: str) -> _Whose:
    from rappd.daemon.home import machine_name
    from rappd.settings.load import Settings, host_workspace
    from twins.workspace.listing import find
    from twins.workspace.workspace import TwinLayout

    if twin:
        found = find(TwinLayout(home.root), twin)
        return _Whose(found.key, found.name, found.workspace)
    home.create()
    settings = Settings.load(home)
    workspace = host_workspace(home, settings)
    workspace.create()
    return _Whose("", machine_name(home, settings.text("name")), workspace)


def _quarantine_of(home: Home) -> QuarantineList:
    from twins.trust.trust import Trust

    return Trust(home.root).quarantine
