"""``rappd models connect``: a model server by its address, tried before anything is saved; asked for on a terminal."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from agents.providers.model_names import nearest
from agents.providers.urls import has_login
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import dim, print_err, print_out, print_status, status_mark, strip_control
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, RappdError, RefusedError, UsageProblemError

_TRY_SECONDS = 75.0
"""The daemon's own limits for a list of models, twice, and for one answer come before it."""
_MOST_ASKED = 5
_MOST_SHOWN = 20
_OPTIONS_DO = "rappd models connect --url URL, with --key-stdin where it needs a key, and --model NAME"
_KEY_REASONS = ("key_missing", "key_refused")
_ADDRESS_REASONS = (
    "bad_address", "refused", "unknown_host", "timeout", "no_tls", "broken", "wrong_path", "not_json", "not_openai",
    "redirect", "untrusted",
)  # fmt: skip


@cli_command()
@click.option("--url", default="", help="Address of the server, such as https://api.openai.com/v1.")
@click.option("--model", default="", help="Model to use; without it, the first that the server lists.")
@click.option("--key-stdin", is_flag=True, help="Read the key from standard input: a line.")
def connect(url: str, model: str, key_stdin: bool, printer: Printer) -> None:
    """Connect a model server: address, key and model are asked for, tried, then saved.

    For a server that speaks the way of OpenAI, here or elsewhere. Azure and GitHub Copilot are set up in the page, under
    Settings.
    """
    if has_login(url.strip()):
        raise UsageProblemError(
            "The address holds a name or a password, and addresses are shown.",
            do="write it without them; a key is asked for, or comes with --key-stdin",
        )
    asks = printer.asks and not key_stdin
    if not url and not asks:
        raise UsageProblemError("--url is missing, and there is no terminal to ask on.", do=_OPTIONS_DO)
    key = _key_from_stdin() if key_stdin else ""
    daemon = ControlClient(Home.here(), timeout=_TRY_SECONDS)
    if asks and not url:
        _tell_of_local(daemon.do("models.servers"))
    connecting = _Connecting(daemon, url.strip(), key, model.strip(), asks=asks)
    found = connecting.run()
    body = {"kind": "server", "url": connecting.url, "key": connecting.key, "model": connecting.model}
    daemon.do("models.use", **{name: text for name, text in body.items() if text or name != "key"})
    server = {"server": found["server"], "url": connecting.url, "model": connecting.model}
    printer.sentence(
        {**server, "models": found["models"], "seconds": found["seconds"]},
        f"{connecting.model} of {found['server']} answers from now on.",
    )


class _Connecting:
    """Address, key and model, until the server answers."""

    def __init__(self, daemon: ControlClient, url: str, key: str, model: str, *, asks: bool) -> None:
        self.url = url
        self.key = key
        self.model = model
        self._daemon = daemon
        self._asks = asks

    def run(self) -> dict[str, Any]:
        """The result of the trial that worked. Raises the reason of the last one that did not."""
        for _ in range(_MOST_ASKED):
            if not self.url:
                self.url = _ask("Address (like https://api.openai.com/v1)")
            found = self._tried()
            if found["works"]:
                return found if self._is_chosen(found) else self._tried_again()
            if not self._asks:
                _refuse(found)
            self._ask_again(found)
        raise RappdError("No server was connected.", do="rappd models connect", code="model_server")

    def _tried(self) -> dict[str, Any]:
        order = {"kind": "server", "url": self.url, "model": self.model, "key": self.key}
        if self._asks:
            print_err(dim("Asking it one question…"))
        return self._daemon.do("models.test", **{name: text for name, text in order.items() if text})

    def _ask_again(self, found: dict[str, Any]) -> None:
        """Shows why it did not work, and asks for what would help."""
        _show(found)
        reason, address = found["reason"], str(found["address"])
        if address:
            if click.confirm(f"Use {strip_control(address)}?", default=True, err=True):
                self.url = address
            else:
                self.url = ""
        elif reason in _KEY_REASONS:
            self.key = _ask("Key (not shown)", hidden=True)
        elif reason == "no_model" and found["models"]:
            self.model = _pick(list(found["models"]), str(found["models"][0]))
        elif reason in _ADDRESS_REASONS:
            self.url = ""
        else:
            _refuse(found, shown=True)

    def _is_chosen(self, found: dict[str, Any]) -> bool:
        """Shows what answered and lets the person pick another model; False when they did."""
        answered = str(found["model"])
        models = [str(model) for model in found["models"]]
        if not self._asks:
            self.model = answered
            return True
        seconds = f" in {found['seconds']:g} s" if found["seconds"] else ""
        print_out(
            f"{status_mark('good')} {strip_control(found['server'])} works: {strip_control(answered)} answered{seconds}."
        )
        picked = answered if self.model or len(models) < 2 else _pick(models, answered)
        self.model = picked
        return picked == answered

    def _tried_again(self) -> dict[str, Any]:
        found = self._tried()
        if not found["works"]:
            _refuse(found)
        return found


def _tell_of_local(servers: dict[str, Any]) -> None:
    """A line for each model server of this machine that needs no address."""
    for one in servers["local"]["servers"]:
        if one["models"] and not one["agent"] and one["server"] != servers["local"]["accepted"]:
            name = "A model server" if one["name"] == "local model" else one["name"]
            print_status("note", f"{name} answers here, at {one['where']}.", "rappd models use local")


def _pick(models: list[str], usual: str) -> str:
    """Asks for one of the models, by its number or its name."""
    for number, model in enumerate(models[:_MOST_SHOWN], 1):
        print_out(f"  {number:>2}  {strip_control(model)}")
    if len(models) > _MOST_SHOWN:
        print_out(f"      and {len(models) - _MOST_SHOWN} more, by name")
    while True:
        typed = _ask("Model, number or name", default=usual)
        if typed.isascii() and typed.isdecimal() and 0 < int(typed[:6]) <= len(models):
            return models[int(typed) - 1]
        if typed in models:
            return typed
        problem = no_such_model(typed, models)
        print_status("bad", str(problem), problem.do, stream=sys.stderr)


def no_such_model(model: str, models: list[str]) -> NotFoundError:
    """The error for a model that is not there, with those that are called nearly so."""
    return NotFoundError(
        f'No model is called "{strip_control(model)[:80]}".', do=nearest(model, models, "rappd models list")
    )


def _show(found: dict[str, Any]) -> None:
    print_status("bad", _problem_text(found), str(found["do"]), stream=sys.stderr)


def _refuse(found: dict[str, Any], *, shown: bool = False) -> NoReturn:
    if shown:
        raise RappdError("Nothing was saved.", do="rappd models connect", code="model_server")
    address = f"rappd models connect --url {found['address']}" if found["address"] else ""
    error: RappdError = RappdError(_problem_text(found), do=address or str(found["do"]), code="model_server")
    if found["reason"] == "bad_address":
        error = UsageProblemError(_problem_text(found), do=str(found["do"]))
    elif found["reason"] in (*_KEY_REASONS, "agent"):
        error = RefusedError(_problem_text(found), do=str(found["do"]))
    raise error


def _problem_text(found: dict[str, Any]) -> str:
    words = f" It said: “{found['said']}”" if found["said"] else ""
    return f"{found['text']}{words}"


def _ask(question: str, *, default: str | None = None, hidden: bool = False) -> str:
    answer: str = click.prompt(question, default=default, hide_input=hidden, err=True)
    return answer.strip()


def _key_from_stdin() -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt("Key (not shown)", hide_input=True, err=True)
        return typed.strip()
    key = sys.stdin.readline().strip()
    if not key:
        raise UsageProblemError(
            "No key came on standard input.", do="rappd models connect --url URL --key-stdin < FILE"
        )
    return key
