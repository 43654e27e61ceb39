"""``rappd models``: the models that can be chosen, and the owner's yes to a server on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.completion_names import twin_names
from rappd.cli.console import command, dim, print_out, status_mark, strip_control
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.models.connect_cli import connect, no_such_model
from rappd.features.models.download_cli import download
from rappd.features.operator.text import local_models, thinking
from rappd.features.twins.client import in_path


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


models.add_command(connect)
models.add_command(download)
