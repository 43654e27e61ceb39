"""The screen after a start: the first one, the short later one, and the way here over SSH."""

from __future__ import annotations

import os
from typing import Any

import click

from rappd.cli.console import (
    command,
    dim,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
)
from rappd.cli.formatting import NOT_AS_ROOT, count, phones, tilde
from rappd.cli.tables import cells, middle

_VALUES = 12  # the column where values begin
_VALUE_WIDTH = 23
_NOTICES = 3
NO_MODEL = "none (keyword matching)"


def show(found: dict[str, Any], first: bool, attached: bool) -> None:
    """Shows the state ``found`` of a running daemon; ``attached``: it ends with this terminal."""

    if first:
        _first_screen(found, attached=attached)
    else:
        _later_line(found)
        warn_of_root(found)
    show_problems(found)
    waiting_files(found)
    notices(found)
    if found["unavailable"]:
        faulty = int(found["unavailable"])
        files = f"{count(faulty, 'agent file')} {'has a fault' if faulty == 1 else 'have faults'}"
        print_out(f"{status_mark('note')} {files}: {command('rappd agents list')}")
    local_models(found)
    _over_ssh(int(found["port"]), attached=attached)
    if not attached:
        print_out(dim("Stop it: ") + command("rappd stop"))


def print_stopped() -> None:
    """Says that the daemon ended properly: after ``rappd stop``, and after Ctrl-C."""
    print_out(f"{status_mark('good')} Stopped. What was answered is kept.")


def warn_of_root(found: dict[str, Any]) -> None:
    """Says that rappd runs as root, if so, and the way not to."""
    if found.get("sandbox", {}).get("root"):
        print_status("note", "rappd runs as root, and agents have root's files.", NOT_AS_ROOT)


def waiting_files(found: dict[str, Any]) -> None:
    """Says how many files the owner has not approved yet, if any."""
    if waiting := int(found["waiting"]):
        verb = "waits" if waiting == 1 else "wait"
        print_out(
            f"{status_mark('note')} {count(waiting, 'file')} {verb} for your approval: "
            f"{command('rappd agents approve')}"
        )


def notices(found: dict[str, Any]) -> None:
    """Shows the latest news that wait for the owner, a line each."""
    waiting = found["notices"]
    for line in waiting[:_NOTICES]:
        print_out(f"{status_mark('note')} {strip_control(line)}")
    if len(waiting) > _NOTICES:
        print_out(f"  {len(waiting) - _NOTICES} more: {command('rappd notices list')}")


def show_problems(found: dict[str, Any]) -> None:
    """Says why rappd is not ready, and that the event log does not match its anchor, if so."""
    for problem in found["problems"]:
        print_status("bad", f"Not ready: {problem['what']}.", problem["do"])
    if problems := found["anchor"]["problems"]:
        print_status(
            "bad",
            f"The event log does not match its anchor: {problems[0]}. {command('rappd threads verify')}",
        )


def _first_screen(found: dict[str, Any], *, attached: bool) -> None:
    no_model = not found["has_model"]
    thinks = thinking(found)
    offered = (found.get("local_models") or {}).get("offered")  # `local_models` says what to do about it
    hint = command("rappd models connect") if no_model and not offered else ""
    ready = f"{found['agents']} ready"
    width = max(_VALUE_WIDTH, cells(thinks), cells(ready))
    print_out(f"{status_mark('good')} {found['node']} is running")
    print_out()
    _row("Talk", found["url"], f" or: {command('rappd chat')}", 0)
    _row("Model", thinks, hint, width)
    drop = "drop files into "
    folder = middle(tilde(found["agents_path"]), terminal_width() - _VALUES - len(drop))
    _row("Agents", ready, f"{drop}{folder}", width)
    _row("Machines", *_machines(found["machines"]), width)
    _row("Phones", *_phones(found["phones"]), width)
    _row("Data", tilde(found["home"]), "private", width)
    print_out()
    warn_of_root(found)
    if attached:
        print_out(f"Ctrl-C stops it. In the background: {command('rappd start --detach')}")


def _later_line(found: dict[str, Any]) -> None:
    """One line; the least needed words go from a narrow one."""
    line = f"{status_mark('good')} {found['name']} is running  {found['url']}"
    peers = found["machines"]["peers"]
    thinks = found["provider"] if found["has_model"] else "no model"
    parts = [thinks, count(found["agents"], "agent"), *([count(peers, "peer")] if peers else [])]
    for more in parts:
        if cells(f"{line}  {more}") > terminal_width():
            break
        line = f"{line}  {more}"
    print_out(line)


def _row(label: str, value: str, hint: str, width: int) -> None:
    """One row of the start screen; a hint that does not fit stands below its value."""
    line = f"  {label:<{_VALUES - 2}}{value}"
    if not hint:
        print_out(line)
        return
    gap = " " * (max(0, width - cells(value)) + 2)
    if cells(f"{line}{gap}{hint}") <= terminal_width():
        print_out(f"{line}{gap}{hint}")
    else:
        print_out(line)
        print_out(f"{' ' * _VALUES}{hint.lstrip()}")


def listener_status(machines: dict[str, Any]) -> str:
    """ "announced nearby, :7443", or that the listener for machines is closed."""
    if not machines["port"]:
        return "not listening"
    return f"{'announced nearby' if machines['announced'] else 'not announced'}, :{machines['port']}"


def _machines(machines: dict[str, Any]) -> tuple[str, str]:
    closed = command("rappd config set peers.listen on")
    return listener_status(machines), "strangers may only say hello" if machines["port"] else closed


def _phones(found: dict[str, Any]) -> tuple[str, str]:
    known = command("rappd devices list" if found["registered"] else "rappd pair")
    return phones(found["registered"], found["connected"]), known


def thinking(found: dict[str, Any]) -> str:
    """ "none (keyword matching)", or who thinks with which model."""
    return f"{found['provider']}, {found['model']}" if found["has_model"] else NO_MODEL


def local_models(found: dict[str, Any]) -> None:
    """A line for the model server on this machine that waits for a yes, one for each that is an agent's."""
    local = found.get("local_models") or {}
    if offered := local.get("offered"):
        server = f"{offered['where']} ({strip_control(offered['name'])}, {strip_control(offered['model'])})"
        print_status("note", f"A model server answers at {server}.", "rappd models use local")
    for server in local.get("refused", ()):
        print_status("bad", f"{server} is an agent's process; it is not used.", "rappd doctor")


def _over_ssh(port: int, *, attached: bool) -> None:
    way = way_over_ssh(port)
    if not way:
        return
    print_out("You are here over SSH; the link opens on your own machine after:")
    print_out(f"  {click.style(way, fg='cyan')}")
    if attached:
        print_out(f"It stops when SSH closes; to keep it: {command('rappd service install')}")


def way_over_ssh(port: int) -> str:
    """The ``ssh -L`` line that brings the page to the machine this person sits at; "" when it is this one."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return ""
    _, _, host, ssh_port = connection
    other = "" if ssh_port == "22" else f" -p {ssh_port}"
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "you"
    return f"ssh -L {port}:127.0.0.1:{port}{other} {user}@{host}"
