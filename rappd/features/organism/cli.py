"""``rappd organism``: what exists here: init, check, show, graph, add, remove, reload."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from envelopes.codecs import privileged_xml
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_json, print_out, print_status, strip_control
from rappd.cli.formatting import count
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import JSON, Printer
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, NotRunningError, UsageProblemError
from rappd.organism.organism_in_force import FILE, read_file

_KIND = click.argument("kind", metavar="KIND", type=click.Choice(["listener", "agent", "gateway", "timer"]))


@click.group(cls=SuggestingGroup)
def organism() -> None:
    """Say in one file, organism.yaml, what exists here: listeners, agents, gateways, timers.

    Without the file, all that is installed is offered.
    """


@organism.command()
def init(printer: Printer) -> None:
    """Write an organism.yaml that names all that is offered now."""
    found = HomeClient(Home.here()).do("organism.init")
    count = len(found["listeners"])
    printer.done(found, f"{FILE} names {count} agents and listeners.", strip_control(found["path"]))


@organism.command()
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
def check(file: Path | None, printer: Printer) -> None:
    """Say what is wrong with FILE, by line and column; without FILE, with the one of this home.

    While rappd runs, this names the entries of the home's file, too, that give nothing yet.
    """
    path = file or Home.here().root / FILE
    if not path.is_file():
        raise NotFoundError(f"There is no {strip_control(str(path))}.", do="rappd organism init")
    text, found = read_file(path)
    faults, notes = (
        [{"line": one.line, "column": one.column, "text": one.text} for one in several]
        for several in (found.faults, found.notes)
    )
    not_ready: list[dict[str, Any]] = []
    if file is None and not faults:
        with suppress(NotRunningError):
            not_ready = ControlClient(Home.here()).do("organism.check", text=text).get("not_ready", [])
    printer.result({"faults": faults, "notes": notes, "not_ready": not_ready}, _show_check)
    if faults:
        raise UsageProblemError(
            f"{path.name} has {count(len(faults), 'fault')}.",
            do="Mend them; it is read by itself.",
            code="bad_organism",
        )


@organism.command()
def show(printer: Printer) -> None:
    """Show what the file names, and what is here besides."""
    printer.result(HomeClient(Home.here(), reads=True).do("organism.show"), _show)


@organism.command()
@_KIND
@click.argument("name")
@click.option("--file", default="", metavar="FILE", help="A listener's file, in the agents folder.")
@click.option("--prompt", default="", metavar="FILE", help="An agent's prompt, such as prompts/clerk.md.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="A tool of an agent; repeatable.")
@click.option("--fingerprint", default="", metavar="HEX", help="The key of a gateway's machine.")
@click.option("--url", "remote_url", default="", metavar="URL", help="A gateway's address, for people.")
@click.option("--when", default="", metavar="WHEN", help="The times of a timer, in words.")
@click.option("--ask", default="", metavar="TEXT", help="What a timer asks the brainstem.")
@click.option("--remind", default="", metavar="TEXT", help="What a timer reminds you of.")
@JSON
def add(kind: str, name: str, printer: Printer, **given: Any) -> None:
    """Name one more KIND (listener, agent, gateway, timer) in the file; comments stay."""
    given["tools"] = list(given["tools"])
    found = HomeClient(Home.here()).do("organism.add", kind=kind, name=name, **given)
    entry = next(one for one in found[f"{kind}s"] if one["name"] == name)
    why, do = _why_idle(kind, entry)
    first = len(found.get("listeners", ())) + len(found.get("agents", ())) == 1
    if kind in ("listener", "agent") and first and (rest := len(found["not_named"])):
        why += f" It is the first of its list: {count(rest, 'other')} installed here {'is' if rest == 1 else 'are'} not offered any more."
        do = do or "rappd organism show"
    printer.done(found, f"{FILE} names the {kind} {strip_control(name)}.{why}", strip_control(do))


def _why_idle(kind: str, entry: dict[str, Any]) -> tuple[str, str]:
    """The reason why an entry gives nothing yet, after a space, and what to do; empty texts for one that is ready."""
    state = str(entry.get("state", "ready"))
    if state == "ready" or kind == "timer":  # its row is set a moment later
        return "", ""
    if kind == "gateway":
        return (" Another key is paired." if state == "another key" else f" It is {state}."), entry["do"]
    do = {
        "not installed": "rappd agents list",
        "quarantined": f"rappd agents show {entry['name']}",
        "without its prompt": f"Write {entry.get('prompt')} in the folder of {FILE}.",
    }
    return f" It is {state}.", do.get(state, "rappd organism show")


@organism.command()
@_KIND
def remove(kind: str, name: str, printer: Printer) -> None:
    """Take the KIND (listener, agent, gateway, timer) called NAME out of the file; what is installed stays installed."""
    found = HomeClient(Home.here()).do("organism.remove", kind=kind, name=name)
    printer.done(found, f"{FILE} names the {kind} {strip_control(name)} no more.")


@organism.command()
def reload(printer: Printer) -> None:
    """Read the file now; with faults, the version before stays in force."""
    printer.done(HomeClient(Home.here()).do("organism.reload"), f"{FILE} is in force.")


@organism.command()
@click.option(
    "--format",
    "kind",
    type=click.Choice(["json", "mermaid", "dot"]),
    default="mermaid",
    help="A text that Mermaid or Graphviz draws, or JSON.",
)
def graph(kind: str, printer: Printer) -> None:
    """Show what exists here and who called whom in the last hour."""
    found = HomeClient(Home.here(), reads=True).do("organism.graph", format=kind)
    printer.result(found, *((print_json, found) if kind == "json" else (print_out, found["text"].rstrip())))


@organism.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--send", is_flag=True, help="Send it to the daemon, and print its answer.")
def sign(file: Path, send: bool) -> None:
    """Sign the request in FILE (- for stdin) with this machine's key, and print the message.

    It is good once, within five minutes, at the control socket alone. docs/wire.md lists the requests.
    """
    home = Home.here()
    content = sys.stdin.buffer.read() if str(file) == "-" else _content(file)
    message = privileged_xml.sign(content, home.identity())
    if not send:
        print_out(message.decode().rstrip())
        return
    answer = HomeClient(home).raw("organism.privileged", message)
    print_out(strip_control(answer.decode()))
    if b"<error>" in answer:
        click.get_current_context().exit(1)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{strip_control(str(file))} cannot be read: {error.strerror}.", do="Name another file."
        ) from error


def _show_check(found: dict[str, Any]) -> None:
    for one in found["faults"]:
        print_status("bad", f"line {one['line']}, column {one['column']}: {strip_control(one['text'])}")
    for one in found["notes"]:
        print_status("note", f"line {one['line']}, column {one['column']}: {strip_control(one['text'])}")
    for one in found["not_ready"]:
        why, do = _why_idle(one["kind"], one)
        print_status("note", f"{one['kind']} {strip_control(one['name'])}:{why}", strip_control(do))
    if not found["faults"]:
        wrong = "Everything else in it is there." if found["not_ready"] else "Nothing is wrong with it."
        print_status("good", wrong)


def _show(found: dict[str, Any]) -> None:
    if not found["is_there"]:
        print_out(
            "There is no organism.yaml: all that is installed is offered. Make one: rappd organism init"
        )
        return
    for one in found["faults"]:
        place = f"line {one['line']}, column {one['column']}"
        print_status("bad", f"{place}: {strip_control(one['text'])}", "the version before is in force")
    rows = [
        (
            section.removesuffix("s"),
            strip_control(one["name"]),
            strip_control(one.get("state", one.get("when", ""))),
        )
        for section in ("listeners", "agents", "gateways", "timers")
        for one in found.get(section, ())
    ]
    if rows:
        table(("KIND", "NAME", "STATE"), rows, shrink=1)
    elif not found["faults"]:
        print_out("organism.yaml names nothing yet.")
    for one in found["gateways"]:
        if one["do"]:
            print_status("note", f"{strip_control(one['name'])}: {one['state']}", strip_control(one["do"]))
    if found["not_named"]:
        print_out(f"Not in organism.yaml, so not offered: {strip_control(', '.join(found['not_named']))}")
