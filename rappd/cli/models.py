"""``rappd models``: the models that can be chosen, and the owner's yes to a server on this machine."""

from __future__ import annotations

from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_json, print_out, status_mark, strip_control
from rappd.cli.models_connect import connect, no_such_model
from rappd.cli.models_download import download
from rappd.cli.start_screen import local_models, thinking
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(cls=SuggestingGroup)
def models() -> None:
    """See which model answers, choose, connect or download another."""


@models.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """The model in use, those that can be chosen, and a server on this machine that waits for your yes."""
    daemon = ControlClient(Home.here())
    status, found = daemon.get("/operator/status"), daemon.get("/models")
    if as_json:
        print_json({"models": found["models"], "current": found["current"], **_local(status)})
        return
    print_out(f"Thinking  {strip_control(thinking(status))}")
    for model in found["models"]:
        current = status_mark("good") if model["id"] == found["current"] else " "
        print_out(f"  {current} {strip_control(str(model['id']))}")
    local_models(status)


@models.command()
@click.argument("which", metavar="local|MODEL|auto")
@_JSON
def use(which: str, as_json: bool) -> None:
    """Use the model server found on this machine (`local`), or a MODEL of the server in use.

    A server that you said yes to answers turns. To let it change agents and twins as well, name it:
    `rappd config set provider.url URL`.
    """
    daemon = ControlClient(Home.here())
    if which == "local":
        server = str(daemon.post("/models/local", {})["server"])
        if as_json:
            print_json({"server": server})
        else:
            print_out(f"{status_mark('good')} {strip_control(server)} answers from now on.")
        return
    try:
        chosen = daemon.post("/models/set", {"model": which})
    except ResponseError as problem:
        listed = [str(model["id"]) for model in daemon.get("/models")["models"]]
        if problem.code != "unknown_model" or not listed:
            raise
        raise no_such_model(which, listed) from problem
    if as_json:
        print_json({"model": chosen["model"]})
    else:
        print_out(f"{status_mark('good')} {strip_control(str(chosen['model']))} answers from now on.")


models.add_command(connect)
models.add_command(download)


def _local(status: dict[str, Any]) -> dict[str, Any]:
    return {"local": status.get("local_models") or {}}
