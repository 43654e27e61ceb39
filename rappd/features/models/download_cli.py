"""``rappd models download``: a model, fetched by Ollama, with a bar of its progress."""

from __future__ import annotations

import sys
import time
from contextlib import closing, suppress
from typing import Any

import click

from envelopes.errors import ReportableError
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_err, strip_control, utf8
from rappd.cli.printer import Printer, json_option
from rappd.cli.progress import Progress, progress
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import RappdError
from twins.byte_sizes import format_bytes

_SECONDS = 900.0
"""Longer than the silence after which the daemon gives a download up."""
_WIDTH = 24
_SPEED_AFTER = 3.0


@cli_command()
@click.argument("name", metavar="NAME")
@json_option("One JSON object when it has arrived.")
def download(name: str, printer: Printer) -> None:
    """Let Ollama download a model, such as llama3.2.

    It comes from where your Ollama gets its models. Ctrl-C stops it; what has arrived is kept for the next time.
    """
    daemon = ControlClient(Home.here(), timeout=_SECONDS)
    try:
        with progress() as shown:
            arrived = _followed(daemon, name, shown)
    except KeyboardInterrupt:
        with suppress(ReportableError):  # it may have ended by itself
            daemon.do("models.cancel_download", model=name)
        print_err("Stopped. What has arrived is kept for the next time.")
        raise
    model = arrived["model"]
    printer.sentence({"model": model}, f"{model} is here. Use it: rappd models use {model}")


def _followed(daemon: ControlClient, name: str, shown: Progress) -> dict[str, Any]:
    began = time.monotonic()
    first = None
    with closing(daemon.events("/models/download", {"model": name}, accept="text/event-stream")) as events:
        for event in events:
            if event["type"] == "error":
                raise ResponseError(event, int(event.get("status", 500)))
            if event["type"] == "done":
                return event
            if event["total"] and first is None:
                first, began = int(event["completed"]), time.monotonic()
            shown(_bar(event, time.monotonic() - began, first or 0))
    raise RappdError("The connection ended before the model was here.", do="rappd models list")


def _bar(event: dict[str, Any], seconds: float, first: int) -> str:
    """``llama3.2  ████░░░░  52 %  1.0 GB of 2.0 GB  40 s left``; Ollama's own word while no size is known."""
    name, done, total = strip_control(str(event["model"])), int(event["completed"]), int(event["total"])
    if not total:
        return f"{name}  {strip_control(str(event['status']))}"
    full, empty = ("█", "░") if utf8(sys.stderr) else ("#", ".")
    filled = _WIDTH * done // total
    left = ""
    if seconds > _SPEED_AFTER and done > first:
        left = f"  {seconds * (total - done) / (done - first):.0f} s left"
    share = f"{100 * done // total} %"
    return f"{name}  {full * filled}{empty * (_WIDTH - filled)}  {share}  {format_bytes(done)} of {format_bytes(total)}{left}"
