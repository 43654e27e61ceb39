"""Names for shell completion: commands, settings, agents, twins, peers and threads of this home.

Each function has the shape that ``shell_complete`` of click asks for. They start nothing, make no home, and
give no name where one cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps

import click
from click.shell_completion import CompletionItem

from envelopes.errors import ReportableError
from rappd.cli.console import strip_control
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError

_SECONDS = 2.0
_MOST_THREADS = 50
_LONGEST_HELP = 60
_PLAIN = re.compile(r"[\w.@:/-]+")  # what a shell takes as one word

Items = list[CompletionItem]
Completer = Callable[[click.Context, click.Parameter, str], Items]


def _names(read: Callable[[], Iterable[tuple[str, str]]]) -> Completer:
    """A completer from a function that returns pairs of a name and its line of help."""

    @wraps(read)
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
        try:
            found = sorted(set(read()))
        except (ReportableError, OSError, ValueError):
            return []
        folded = incomplete.casefold()
        return [
            CompletionItem(name, help=" ".join(strip_control(description).split())[:_LONGEST_HELP] or None)
            for name, description in found
            if name.casefold().startswith(folded) and _PLAIN.fullmatch(name)
        ]

    return complete


def command_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Commands, and the subcommands of the one that is typed."""
    from rappd.cli.app import rappd

    command: click.Command = rappd
    for word in context.params.get(parameter.name or "") or ():
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            return []
        command = found
    known = command.list_commands(context) if isinstance(command, click.Group) else []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


@_names
def setting_names() -> Iterable[tuple[str, str]]:
    """Settings by their dotted names."""
    from rappd.settings.registry import SETTINGS

    return [(setting.name, setting.help) for setting in SETTINGS]


@_names
def agent_names() -> Iterable[tuple[str, str]]:
    """Agents of a running daemon; while none runs, the files of yours."""
    home = Home.here()
    try:
        files = ControlClient(home, timeout=_SECONDS).do("agents.list")["files"]
    except NotRunningError:
        from agents.contract.file_discovery import AGENT_SUFFIXES
        from agents.storage.safe_fs import SafeTree
        from rappd.settings.load import Settings, host_workspace

        folder = host_workspace(home, Settings.load(home)).agents
        found = SafeTree(folder).files((), lambda path: path.endswith(AGENT_SUFFIXES), lambda _: True)
        return [(path, "") for path, _ in found]
    return [(card["name"], "") for file in files for card in file["cards"] if card["name"]]


@_names
def twin_names() -> Iterable[tuple[str, str]]:
    """Twins, active ones and archived ones; the beginning of a rappid for a name that is not one word."""
    from rappd.features.twins.text import handle
    from twins.workspace.listing import scan
    from twins.workspace.workspace import TwinLayout

    places = TwinLayout(Home.here().root)
    found = [*scan(places).twins, *scan(places, archived=True).twins]
    return [(handle(twin.name, twin.key), twin.name) for twin in found]


@_names
def peer_names() -> Iterable[tuple[str, str]]:
    """Paired machines and published brainstems, as a running daemon knows them."""
    rows = ControlClient(Home.here(), timeout=_SECONDS).do("peers.list")["peers"]
    return [(row["name"], row.get("presence", "")) for row in rows if row["paired"] or row.get("legacy")]


@_names
def thread_names() -> Iterable[tuple[str, str]]:
    """The latest conversations by the beginning of their ids."""
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        return [(thread.id[:8], thread.title) for thread in reader.threads(_MOST_THREADS)]


@_names
def session_names() -> Iterable[tuple[str, str]]:
    """Sessions with phones by the beginning of their ids."""
    from rappd.sessions.recorded_sessions import OPENED, SESSION_CALLER, session_rows
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        opened = reader.last_notes(SESSION_CALLER, OPENED)
        rows = session_rows(reader.threads_by(SESSION_CALLER), opened)
    return [(row.id[:8], f"{row.count} events") for row in rows]
