"""``rappd threads``: what was said. Works with the daemon down: it reads the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from rappd.cli.screen import ago, dim, mark, note, print_json, say, table
from rappd.home import Home

if TYPE_CHECKING:
    from rappd.store.records import Event, ThreadRow


@click.group()
def threads() -> None:
    """What was said: list, show, export, verify."""


@threads.command("list")
@click.option("--limit", default=30, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def list_(limit: int, as_json: bool) -> None:
    """Conversations, the latest first."""
    from rappd.store.reading import Reader
    from rappd.transcript.rows import thread_row

    with Reader(Home.here().database) as reader:
        found = reader.threads(limit)
    if as_json:
        print_json({"threads": [thread_row(thread) for thread in found]})
        return
    if not found:
        say("Nothing was said yet.")
        return
    now = time.time()
    rows = [
        [thread.id[:8], thread.title, str(thread.count), ago(now - thread.updated / 1e6)] for thread in found
    ]
    table(["THREAD", "BEGINS WITH", "RECORDS", "LAST"], rows, shrink=1)


@threads.command()
@click.argument("thread")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(thread: str, as_json: bool) -> None:
    """One conversation; THREAD may be its first characters."""
    from rappd.transcript.rows import event_row, thread_row

    found, events = _thread(thread)
    if as_json:
        print_json({"thread": thread_row(found), "events": [event_row(event) for event in events]})
        return
    say(f"{found.id}  {dim(found.workspace)}")
    for event in events:
        envelope = orjson.loads(event.body)
        data = envelope["data"]
        at = time.strftime("%H:%M:%S", time.localtime(event.at / 1e6))
        if "agent" in data and envelope["verb"] == "HELP":
            arguments = orjson.dumps(data.get("args", {})).decode()
            say(dim(f"  {at}  {data['agent']} {arguments}"))
        elif envelope["verb"] == "HELP":
            say(f"  {at}  you   {data.get('user_input', '')}")
        elif "result" in data:
            say(dim(f"  {at}    {str(data['result'])[:200]}"))
        elif envelope["verb"] == "DONE":
            say(f"  {at}        {data.get('response', '')}")
        else:
            say(f"  {at}  {mark('bad')} {data.get('msg', '')}")


def _thread(prefix: str) -> tuple[ThreadRow, list[Event]]:
    from rappd.store.reading import Reader

    with Reader(Home.here().database) as reader:
        found = reader.find_thread(prefix)
        return found, reader.thread_events(found.id)


@threads.command()
@click.argument("thread")
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else stdout.")
def export(thread: str, form: str, output: Path | None) -> None:
    """One conversation as JSONL or Markdown."""
    from rappd.transcript.jsonl import export_jsonl
    from rappd.transcript.markdown import export_markdown
    from twins.workspace import write_atomically

    found, events = _thread(thread)
    content = (
        export_markdown(found, events).encode() if form == "markdown" else b"".join(export_jsonl(events))
    )
    if output is None:
        sys.stdout.buffer.write(content)
        return
    write_atomically(output, content)
    note(f"{mark('good', sys.stderr)} {output}")


@threads.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def verify(as_json: bool) -> int:
    """Check that no record was changed, removed or put in."""
    from rappd.store.verify import verify as check

    report = check(Home.here().database)
    if as_json:
        problems = [str(problem) for problem in report.problems]
        print_json({"verify": {"events": report.events, "threads": report.threads, "problems": problems}})
    elif report.problems:
        for problem in report.problems[:20]:
            say(f"{mark('bad')} {problem}")
        say(f"{len(report.problems)} problems in {report.events} records.")
    else:
        say(f"{mark('good')} {report.events} records in {report.threads} threads, all as they were written.")
    return 1 if report.problems else 0
