"""``rappd models``: the models that can be chosen, and the owner's yes to a server on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import command, dim, print_json, print_out, status_mark, strip_control
from rappd.cli.names import twin_names
from rappd.cli.start_screen import local_models, thinking
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.models.connect_cli import connect, no_such_model
from rappd.features.models.download_cli import download
from rappd.features.twins.client import in_path

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(cls=SuggestingGroup)
def models() -> None:
    """See which model answers, choose, connect or download another."""


@models.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """The model in use, those that can be chosen, and a server on this machine that waits for your yes.

    Beside a model stands what it was found not to do; below them, twins that have a model of their own.
    """
    daemon = ControlClient(Home.here())
    status, found = daemon.get("/operator/status"), daemon.do("models.list")
    own = [row for row in daemon.get("/twins")["twins"] if row.get("model")]
    if as_json:
        twins = [{"twin": row["name"], "key": row["key"], "model": row["model"]} for row in own]
        print_json({"models": found["models"], "current": found["current"], "twins": twins, **_local(status)})
        return
    print_out(f"Model  {strip_control(thinking(status))}")
    if status.get("helped"):
        never = command("rappd config set models.help never")
        print_out(f"          {dim(f'helped by keyword matching; not to be: {never}')}")
    for model in found["models"] if status["has_model"] else ():
        current = status_mark("good") if model["id"] == found["current"] else " "
        print_out(f"  {current} {strip_control(str(model['id']))}{_limits(model.get('limits', ()))}")
    for row in own:
        print_out(f"Twin  {strip_control(row['name'])} answers with {strip_control(row['model'])}")
    local_models(status)


@models.command()
@click.argument("which", metavar="local|MODEL|auto")
@click.option(
    "--twin", default="", shell_complete=twin_names, help="For this twin alone; auto takes it back."
)
@_JSON
def use(which: str, twin: str, as_json: bool) -> None:
    """Use the model server found on this machine (`local`), or a MODEL of the server in use.

    It counts for everybody, but for conversations and twins with a model of their own.
    A server that you said yes to answers turns. To let it change agents and twins as well, name it:
    `rappd config set provider.url URL`.
    """
    daemon = ControlClient(Home.here())
    if twin:
        _use_for_twin(daemon, twin, which, as_json)
        return
    if which == "local":
        server = str(daemon.do("models.use_local")["server"])
        if as_json:
            print_json({"server": server})
        else:
            print_out(f"{status_mark('good')} {strip_control(server)} answers from now on.")
        return
    try:
        chosen = daemon.do("models.set", model=which)
    except ResponseError as problem:
        listed = [str(model["id"]) for model in daemon.do("models.list")["models"]]
        if problem.code != "unknown_model" or not listed:
            raise
        raise no_such_model(which, listed) from problem
    if as_json:
        print_json({"model": chosen["model"]})
    else:
        print_out(f"{status_mark('good')} {strip_control(str(chosen['model']))} answers from now on.")


def _use_for_twin(daemon: ControlClient, twin: str, model: str, as_json: bool) -> None:
    if model == "local":
        raise UsageProblemError(
            "A server is chosen for everybody; a twin has a model of it.", do="rappd models list"
        )
    chosen = daemon.do("models.for_twin", twin=in_path(twin), model=model)
    if as_json:
        print_json({"twin": chosen["name"], "key": chosen["key"], "model": chosen["model"]})
        return
    name, model = strip_control(chosen["name"]), strip_control(chosen["model"])
    told = f"{name} answers with {model} from now on." if model else f"{name} answers with the usual model."
    print_out(f"{status_mark('good')} {told}")


def _limits(limits: Sequence[dict[str, str]]) -> str:
    return dim(f"  {strip_control('; '.join(one['text'] for one in limits))}") if limits else ""


models.add_command(connect)
models.add_command(download)


def _local(status: dict[str, Any]) -> dict[str, Any]:
    return {"local": status.get("local_models") or {}}
