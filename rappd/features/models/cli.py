"""``rappd models``: the models that can be chosen, and the owner's yes to a server on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Any

import click

from envelopes.errors import ReportableError
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.completion_names import twin_names
from rappd.cli.console import arrow, command, dim, print_err, print_out, status_mark, strip_control, utf8
from rappd.cli.printer import Printer, json_option
from rappd.cli.progress import Progress, progress
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import RappdError, UsageProblemError
from rappd.features.models.connect_cli import connect, no_such_model
from rappd.features.operator.text import local_models, thinking
from rappd.features.twins.client import in_path
from twins.byte_sizes import format_bytes

_SECONDS = 900.0
"""Longer than the silence after which the daemon gives a download up."""
_WIDTH = 24
_SPEED_AFTER = 3.0


@click.group(cls=SuggestingGroup)
def models() -> None:
    """Show which model answers; choose, connect or download another."""


@models.command("list")
def list_(printer: Printer) -> None:
    """The model in use, those that can be chosen, and a server on this machine that waits for your yes.

    Beside a model stands what it was found not to do; below them, twins that have a model of their own.
    """
    daemon = ControlClient(Home.here())
    status, found = daemon.get("/operator/status"), daemon.do("models.list")
    own = [row for row in daemon.get("/twins")["twins"] if row.get("model")]
    twins = [{"twin": row["name"], "key": row["key"], "model": row["model"]} for row in own]
    local = status.get("local_models") or {}
    body = {"models": found["models"], "current": found["current"], "twins": twins, "local": local}
    printer.result(body, _show, status, body)


def _show(status: dict[str, Any], found: dict[str, Any]) -> None:
    print_out(f"Model  {strip_control(thinking(status))}")
    if not status["has_model"] and not (found["local"] or {}).get("offered"):
        print_out(f"  {arrow()} start Ollama, or {command('rappd models connect')}")
    if status.get("helped"):
        never = command("rappd config set models.help never")
        print_out(f"          {dim(f'helped by keyword matching; not to be: {never}')}")
    for model in found["models"] if status["has_model"] else ():
        current = status_mark("good") if model["id"] == found["current"] else " "
        print_out(f"  {current} {strip_control(str(model['id']))}{_limits(model.get('limits', ()))}")
    for row in found["twins"]:
        print_out(f"Twin  {strip_control(row['twin'])} answers with {strip_control(row['model'])}")
    local_models(status)


@models.command()
@click.argument("which", metavar="local|MODEL|auto")
@click.option(
    "--twin", default="", shell_complete=twin_names, help="For this twin alone; auto takes it back."
)
def use(which: str, twin: str, printer: Printer) -> None:
    """Use the model server found on this machine (`local`), or a MODEL of the server in use.

    It counts for everybody, but for conversations and twins with a model of their own.
    A server that you said yes to answers turns. To let it change agents and twins as well, name it:
    `rappd config set provider.url URL`.
    """
    daemon = ControlClient(Home.here())
    if twin:
        _use_for_twin(daemon, twin, which, printer)
        return
    if which == "local":
        server = str(daemon.do("models.use_local")["server"])
        printer.sentence({"server": server}, f"{server} answers from now on.")
        return
    try:
        chosen = daemon.do("models.set", model=which)
    except ResponseError as problem:
        listed = [str(model["id"]) for model in daemon.do("models.list")["models"]]
        if problem.code != "unknown_model" or not listed:
            raise
        raise no_such_model(which, listed) from problem
    printer.sentence({"model": chosen["model"]}, f"{chosen['model']} answers from now on.")


def _use_for_twin(daemon: ControlClient, twin: str, model: str, printer: Printer) -> None:
    if model == "local":
        raise UsageProblemError(
            "A server is chosen for everybody; a twin has a model of it.", do="rappd models list"
        )
    chosen = daemon.do("models.for_twin", twin=in_path(twin), model=model)
    body = {"twin": chosen["name"], "key": chosen["key"], "model": chosen["model"]}
    used = f"{chosen['model']} from now on" if chosen["model"] else "the usual model"
    printer.sentence(body, f"{chosen['name']} answers with {used}.")


def _limits(limits: Sequence[dict[str, str]]) -> str:
    return dim(f"  {strip_control('; '.join(one['text'] for one in limits))}") if limits else ""


@models.command()
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


models.add_command(connect)
