"""``rappd start``: the screen a newcomer sees first."""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from agents.programs import programs
from envelopes.errors import ReportableError
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_status
from rappd.cli.printer import JSON, Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import ConflictError, RappdError
from rappd.features.operator.text import print_stopped, show
from rappd.settings.load import Settings
from rappd.settings.validation import refuse_unfit

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon


_WAIT_SECONDS = 120.0


@cli_command()
@click.option("--detach", is_flag=True, help="Run in the background.")
@JSON
@click.option("--quiet", is_flag=True, hidden=True)
def start(detach: bool, printer: Printer, quiet: bool) -> None:
    """Start this machine's brainstem."""
    home = Home.here()
    settings, first = _prepared(home)
    if detach:
        _detach(home)
        found = ControlClient(home).do("operator.status")
        printer.result({"daemon": found}, show, found, first, False)
        return
    from rappd.daemon import daemon_process, log
    from rappd.features.operator.status import describe

    news = _ForegroundNotices(quiet=quiet)
    log.start(home.log, show=news)
    if settings.on("http.open_surface") and not quiet:
        print_status(
            "note", "Every program on this machine may change agents (http.open_surface).", stream=sys.stderr
        )

    async def ready(daemon: Daemon) -> None:
        if not quiet:
            found = await describe(daemon, with_link=True)
            printer.result({"daemon": found}, show, found, first, True)
            news.begin()

    daemon_process.run(home, settings, on_ready=ready)
    if not quiet and not printer.for_scripts:
        print_stopped()


class _ForegroundNotices:
    """Notices for the terminal of an attached daemon: warnings and changes of agent files.

    Findings of the start are in its screen, and in the log.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._since: float | None = None
        self._quiet = quiet

    def begin(self) -> None:
        """From now on, agent files are news.

        (Records come later than they were made.)
        """
        self._since = time.time()

    def __call__(self, record: logging.LogRecord) -> None:
        about_agents = record.name == "agents"
        old = self._since is None or record.created < self._since
        if self._quiet or (about_agents and old):
            return
        text = record.getMessage().split("\n", 1)[0]
        if not about_agents:
            print_status("note", text, stream=sys.stderr)
        elif getattr(record, "kind", "") == "waits":
            print_status("note", text, "read it, then: rappd agents approve", stream=sys.stderr)
        elif record.levelno >= logging.WARNING:
            print_status("bad", text, "fix and save; it reloads by itself", stream=sys.stderr)
        else:
            print_status("good", text, stream=sys.stderr)


def start_detached(home: Home) -> None:
    """Starts the daemon in the background, and waits until it answers."""
    _prepared(home)
    _detach(home)


def _prepared(home: Home) -> tuple[Settings, bool]:
    """The settings to start with, and True for the first start of a home."""
    require_open_files()
    home.require_usable()
    settings = Settings.load(home)
    refuse_unfit(settings)
    first = not home.has_served()
    home.create()
    return settings, first


def _detach(home: Home) -> None:
    """Starts the daemon in a session of its own and waits until it answers."""
    client = ControlClient(home, timeout=_WAIT_SECONDS)
    if client.running():
        raise ConflictError("rappd already runs on this home.", do="rappd open")
    with os.fdopen(os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        position = log.seek(0, os.SEEK_END)
        process = programs.start(
            programs.python("-m", "rappd", "start", "--quiet", "--json"),
            environment={**os.environ, "RAPP_HOME": str(home.root)},  # settings are variables, too
            output=log,
            errors=log,
        )
    until = time.monotonic() + _WAIT_SECONDS
    with progress() as shown:
        while time.monotonic() < until:
            if (code := process.exit_code()) is not None:
                raise _why_it_ended(home, position, code)
            if client.running() and _ready(client):
                return
            shown("Starting…")
            time.sleep(0.03)
    raise RappdError("rappd started but does not answer.", do="rappd logs")


def _ready(client: ControlClient) -> bool:
    """True once it started, also when it says that something keeps it from being ready; the screen says what."""
    try:
        client.get("/readyz")
    except ResponseError as answer:
        return answer.as_json().get("status") == "not ready"
    except RappdError:
        return False
    return True


class _StartupFailedError(ReportableError):
    """The background process ended; it said why."""

    def __init__(self, refusal: dict[str, Any], exit_code: int) -> None:
        super().__init__(str(refusal["error"]), do=str(refusal.get("do", "")))
        self._code = str(refusal.get("code", "failed"))
        self._exit_code = exit_code

    @property
    def code(self) -> str:  # type: ignore[override]  # as the process told it
        return self._code

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # the process's own
        return self._exit_code


def _why_it_ended(home: Home, position: int, exit_code: int) -> ReportableError:
    """Returns the error that the background process ended with: its last line is an error object."""
    with home.log.open("rb") as log:
        log.seek(position)
        lines = log.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        try:
            ready = json.loads(line)
        except ValueError:
            continue
        if isinstance(ready, dict) and "error" in ready:
            return _StartupFailedError(ready, exit_code)
    return RappdError("rappd ended at once.", do="rappd logs")


LEAST = 128
"""A daemon with its listeners, store and one worker has some 40 files open; each connection adds one."""
_WANTED = 4096


def require_open_files() -> None:
    """Raises the soft limit where the hard one allows it. Raises ``ConflictError`` below ``LEAST``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    if soft != resource.RLIM_INFINITY and soft < LEAST:
        raise ConflictError(
            f"A program may open only {soft} files here, and rappd needs {LEAST} or more.",
            do="`ulimit -n 1024`, then `rappd start`",
        )
