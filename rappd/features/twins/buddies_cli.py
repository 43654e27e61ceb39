"""``rappd twins feed``, ``pet``, ``explore`` and the rest: what one does with a buddy."""

from __future__ import annotations

import click

from rappd.cli.console import dim, print_json, print_out, status_mark, strip_control
from rappd.cli.names import twin_names
from rappd.errors import ConflictError
from rappd.features.twins.client import Answer, client, in_path

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_NAME = click.argument("name", shell_complete=twin_names)
_TEXT = click.argument("text", required=False, default="")


@click.command()
@_NAME
@_JSON
def feed(name: str, as_json: bool) -> int:
    """Feed a buddy. An egg hatches with its first food."""
    return _do(name, "feed", as_json)


@click.command()
@_NAME
@_JSON
def pet(name: str, as_json: bool) -> int:
    """Pet a buddy; its mood rises."""
    return _do(name, "pet", as_json)


@click.command()
@_NAME
@_JSON
def explore(name: str, as_json: bool) -> int:
    """Let a buddy look around this home."""
    return _do(name, "explore", as_json)


@click.command()
@_NAME
@_TEXT
@_JSON
def post(name: str, text: str, as_json: bool) -> int:
    """Let a buddy post. It takes energy, and TEXT stays on this machine."""
    return _do(name, "post", as_json, text)


@click.command()
@_NAME
@_TEXT
@_JSON
def comment(name: str, text: str, as_json: bool) -> int:
    """Let a buddy comment. It takes energy, and TEXT stays on this machine."""
    return _do(name, "comment", as_json, text)


@click.command()
@_NAME
@_JSON
def heartbeat(name: str, as_json: bool) -> int:
    """Let a buddy live one frame more."""
    return _do(name, "heartbeat", as_json)


@click.command()
@_NAME
@click.argument("text")
@click.option("--kind", default="", help="What kind of memory: fact, preference …")
@_JSON
def remember(name: str, text: str, kind: str, as_json: bool) -> int:
    """Give a buddy something to remember. It keeps the latest hundred."""
    return _do(name, "remember", as_json, text, kind)


@click.command()
@_NAME
@click.argument("words", required=False, default="")
@_JSON
def recall(name: str, words: str, as_json: bool) -> int:
    """Show what a buddy remembers, or the memories that have all the WORDS."""
    return _do(name, "recall", as_json, words)


@click.command()
@_NAME
@_JSON
def status(name: str, as_json: bool) -> int:
    """Show how a buddy is: stage, mood, energy, experience."""
    found = client().do("buddies.status", twin=in_path(name))
    return _tell(found, as_json)


BUDDY_VERBS = (feed, pet, explore, post, comment, heartbeat, remember, recall, status)


def _do(name: str, action: str, as_json: bool, text: str = "", kind: str = "") -> int:
    found = client().do("buddies.act", twin=in_path(name), action=action, text=text, kind=kind)
    return _tell(found, as_json)


def _tell(found: Answer, as_json: bool) -> int:
    """Says what came of it; returns the exit code: 9 when it was not in a state to do it."""
    buddy, done = found["buddy"], found["done"]
    if as_json:
        print_json({"twin": found})
        return 0 if done else ConflictError.exit_code
    print_out(f"{status_mark('good' if done else 'note')} {strip_control(found['message'])}")
    if buddy["stage"] != "egg":
        print_out(dim(f"  {buddy['stage']}, mood {buddy['mood']:g}, energy {buddy['energy']:g}, "
                f"experience {buddy['xp']:g}"))  # fmt: skip
    return 0 if done else ConflictError.exit_code
