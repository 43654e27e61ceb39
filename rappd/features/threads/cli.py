"""``rappd threads``: what was said. All but renaming and searching works with the daemon down: it reads the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Option
from rappd.cli.completion_names import thread_names
from rappd.cli.console import dim, print_err, print_out, status_mark, strip_control, terminal_width, wrapped
from rappd.cli.formatting import ago
from rappd.cli.printer import Printer
from rappd.cli.tables import Table, beginning
from rappd.daemon.home import Home
from rappd.features.threads.anchors_cli import accept, verify, witness
from twins.byte_sizes import format_bytes

if TYPE_CHECKING:
    from rappd.store.records import Event, ThreadRow
    from rappd.transcript.speakers import Speakers
    from rappd.transcript.turns import PictureRow

_MOST_FOUND = 20
Format = Annotated[Literal["jsonl", "markdown"], Option("--format", show_default=True)]


@click.group(cls=SuggestingGroup)
def threads() -> None:
    """Conversations: list, search, show, tree, rename, export, verify, witness, accept."""


@threads.command("list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=30, show_default=True, help="How many.")
def list_(limit: int, printer: Printer) -> None:
    """Conversations, the latest first."""
    from rappd.features.conversations.conversations import titled
    from rappd.store.conversation_table import titles_query
    from rappd.store.reader import Reader
    from rappd.transcript.thread_rows import thread_row

    with Reader(Home.here().database) as reader:
        titles = dict(reader.rows(*titles_query()))
        found = [titled(thread, titles) for thread in reader.threads(limit)]
    printer.result({"threads": [thread_row(thread) for thread in found]}, _THREADS, found)


_THREADS = Table(
    ("THREAD", lambda thread: thread.id[:8]),
    ("BEGINS WITH", lambda thread: thread.title),
    ("RECORDS", lambda thread: thread.count),
    ("LAST", lambda thread: ago(time.time() - thread.updated / 1e6)),
    none=("No conversation is recorded here.", ""),
    shrink=1,
    prose=True,
    whole=(0,),
)


@threads.command()
@click.argument("thread", shell_complete=thread_names)
def show(thread: str, printer: Printer) -> None:
    """One conversation; THREAD may be its first characters."""
    from rappd.transcript.thread_rows import event_row, thread_row

    found, events = _thread(thread)
    rows = [
        {**event_row(event), **({"pictures": pictures} if (pictures := _pictures(event)) else {})}
        for event in events
    ]
    printer.result({"thread": thread_row(found), "events": rows}, _show, found, events)


def _show(found: ThreadRow, events: list[Event]) -> None:
    print_out(f"{found.id}  {dim(found.workspace)}")
    day = ""
    for event in events:
        moment = time.localtime(event.at / 1e6)
        today = time.strftime("%d %b %Y", moment).lstrip("0")
        if today != day:
            day = today
            print_out(dim(day))
        _show_event(event, time.strftime("%H:%M:%S", moment), found.workspace, found.caller == "session")


def _show_event(event: Event, at: str, workspace: str, named: bool) -> None:
    import orjson

    from rappd.transcript.exchanges import note_in_words, payload_text
    from rappd.transcript.thread_rows import envelope_row

    row = envelope_row(orjson.loads(event.body))
    data = row["data"]
    who = strip_control(str((named and data.get("by")) or "you")) if "user_input" in data else workspace
    lead = f"{at}  {who[:12]:<12}  "
    match row["verb"]:
        case "HELP" if "agent" in data:
            arguments = payload_text(data) or " ".join(
                f"{key}={value}" for key, value in data.get("args", {}).items()
            )
            text = beginning(
                strip_control(f"{data['agent']} {arguments}".strip()), terminal_width() - len(lead)
            )
            print_out(dim(f"{lead}{text}"))
        case "HELP" if "user_input" not in data:
            return
        case "NOTE":
            text = strip_control(note_in_words(data))
            print_out(dim(f"{lead}{wrapped(text, len(lead))}"))
        case "HELP":
            print_out(f"{lead}{wrapped(strip_control(str(data['user_input'])), len(lead))}")
            for one in _pictures(event):
                shown = f"[picture: {', '.join(filter(None, (one['name'], format_bytes(one['bytes']))))}]"
                print_out(dim(f"{' ' * len(lead)}{wrapped(strip_control(shown), len(lead))}"))
        case "DONE" if "result" in data or payload_text(data):
            result = " ".join(strip_control(payload_text(data) or str(data["result"])).split())
            print_out(dim(f"{' ' * len(lead)}{beginning(result, terminal_width() - len(lead))}"))
        case "DONE":
            print_out(f"{lead}{wrapped(strip_control(str(data.get('response', ''))), len(lead))}")
        case _:
            text = wrapped(strip_control(str(data.get("msg", ""))), len(lead) + 2)
            print_out(f"{lead}{status_mark('bad')} {text}")


def _pictures(event: Event) -> list[PictureRow]:
    import orjson

    from envelopes.codecs.pictures import recorded
    from rappd.transcript.turns import picture_rows

    return picture_rows(recorded(orjson.loads(event.body)))


@threads.command()
@click.argument("thread", shell_complete=thread_names)
def tree(thread: str, printer: Printer) -> None:
    """A conversation as steps inside one another: what led to its answers, and the threads below it."""
    from rappd.transcript.thread_tree import MOST_EVENTS
    from rappd.transcript.thread_tree import tree as of

    threads, events = _tree(thread, MOST_EVENTS)
    found = of(threads, events)
    printer.result({"tree": found}, _show_tree, threads[0], found)


def _show_tree(root: ThreadRow, found: dict[str, Any]) -> None:
    print_out(beginning(f"{root.id[:8]}  {strip_control(root.title)}", terminal_width()))
    for step in found["steps"]:
        _show_step(step, 1, root.names)


def _show_step(step: dict[str, Any], depth: int, above: list[str]) -> None:
    lead = "  " * depth
    if step["path"] != above:
        print_out(dim(beginning(f"{lead}{_rendered(step['path'])}", terminal_width())))
    took = "" if step["seconds"] is None else f"{step['seconds']:.1f} s  "
    what = " ".join(filter(None, (step["name"], step["asked"])))
    line = beginning(strip_control(f"{took}{what}"), terminal_width() - len(lead))
    print_out(f"{lead}{line}" if step["kind"] == "turn" else dim(f"{lead}{line}"))
    for one in step["steps"]:
        _show_step(one, depth + 1, step["path"])
    for todo in step.get("plan", ()):
        mark = {"open": "☐", "came": "☑"}.get(todo["state"], "☒")
        row = strip_control(f"{mark} {todo['text']} ({todo['state']})")
        print_out(f"{lead}  {beginning(row, terminal_width() - len(lead) - 2)}")
    if step["state"] == "open":
        print_out(f"{lead}  {status_mark('note')} no answer")
    elif step["answered"]:
        mark = f"{status_mark('bad')} " if step["state"] == "failed" else ""
        width = terminal_width() - len(lead) - 4
        print_out(f"{lead}  {mark}{beginning(strip_control(step['answered']), width)}")


def _rendered(path: list[str]) -> str:
    return ".".join([path[0][:8], *path[1:]])


def _tree(prefix: str, most: int | None = None) -> tuple[list[ThreadRow], list[Event]]:
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        found = reader.tree(prefix)
        events: list[Event] = []
        for one in found:
            left = None if most is None else most - len(events)
            events += reader.thread_events(one.id, first=left) if left != 0 else []
    return found, events


def _thread(prefix: str) -> tuple[ThreadRow, list[Event]]:
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        found = reader.find_thread(prefix)
        return found, reader.thread_events(found.id)


@threads.command()
@click.argument("thread", shell_complete=thread_names)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else stdout.")
def export(thread: str, *, form: Format = "jsonl", output: Path | None, printer: Printer) -> None:
    """One conversation as JSONL or Markdown, with the threads below it."""
    threads, events = _tree(thread)
    write_export(threads[0], events, form, output, printer)


def write_export(
    found: ThreadRow, events: list[Event], form: str, output: Path | None, printer: Printer, **more: str
) -> None:
    """Writes a conversation to a file or to stdout; for scripts as one object that has ``more`` fields."""
    from agents.storage.atomic_write import write_atomically
    from rappd.transcript.jsonl import export_jsonl
    from rappd.transcript.markdown import export_markdown
    from rappd.transcript.thread_tree import in_order

    if form == "markdown":
        content = export_markdown(found, in_order(events), _speakers()).encode()
    else:
        content = b"".join(export_jsonl(events))
    if output is not None:
        write_atomically(output.absolute(), content)
    where = {"content": content.decode()} if output is None else {"file": str(output.absolute())}
    body = {"export": {"thread": found.id, **more, "format": form, **where}}
    printer.result(body, _show_exported, content, output)


def _show_exported(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        print_err(f"{status_mark('good', sys.stderr)} {output}")


def _speakers() -> Speakers:
    from rappd.daemon.home import machine_name
    from rappd.settings.load import Settings
    from rappd.store.peer_table import NAMES
    from rappd.store.reader import Reader
    from rappd.transcript.speakers import Speakers

    home = Home.here()
    with Reader(home.database) as reader:
        peers = dict(reader.rows(NAMES))
    node = home.identity().fingerprint if home.has_identity() else ""
    return Speakers(machine_name(home, Settings.load(home).text("name")), node, peers)


@threads.command()
@click.argument("thread", shell_complete=thread_names)
def rename(thread: str, title: tuple[str, ...], printer: Printer) -> None:
    """Give a conversation of yours another TITLE; without one, the words that it began with."""
    from rappd.control_client import ControlClient
    from rappd.store.reader import Reader

    home = Home.here()
    with Reader(home.database) as reader:
        found = reader.find_thread(thread)
    renamed = ControlClient(home).do(
        "conversations.rename", thread=found.id, title=" ".join(title), user_guid=found.caller
    )["conversation"]
    printer.sentence({"conversation": renamed}, renamed["title"])


@threads.command()
@click.argument("words", nargs=-1, required=True)
def search(words: tuple[str, ...], printer: Printer) -> None:
    """Conversations of yours in which something with all WORDS was said, the latest first."""
    from rappd.control_client import ControlClient

    client, below = ControlClient(Home.here()), None
    found: list[dict[str, Any]] = []
    while True:
        answer = client.do("conversations.search", words=" ".join(words), below=below or None)
        found += answer["found"]
        below = answer["next"]
        if not below or len(found) >= _MOST_FOUND:
            break
    printer.result({"found": found}, _show_found, found, answer["words"])


def _show_found(found: list[dict[str, Any]], words: list[str]) -> None:
    from rappd.transcript.excerpts import excerpt as narrowed

    if not found:
        print_out("Nothing was found.")
    for one in found:
        print_out(f"{one['conversation']['id'][:8]}  {strip_control(one['conversation']['title'])}")
        for excerpt in one["excerpts"]:
            lead = f"{'':10}{'you' if excerpt['yours'] else 'they':<6}"
            room = terminal_width() - len(lead)
            text = strip_control(excerpt["text"])
            shown = narrowed(text, words, room - 4) if len(text) > room else text
            print_out(dim(f"{lead}{beginning(shown, room)}"))


threads.add_command(verify)
threads.add_command(witness)
threads.add_command(accept)
