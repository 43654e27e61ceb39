"""``rappd demo``: three machines on this one, one of them killed, nothing lost."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

from rappd.cli.progress import progress
from rappd.cli.screen import command, dim, mark, print_json, say


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def demo(as_json: bool) -> None:
    """Watch three machines meet, help, and lose nothing.

    They run on this machine for some seconds, in a temporary folder, and touch nothing of yours.
    """
    from rappd.demo.story import tell

    with _ends_well(), progress() as line, tempfile.TemporaryDirectory(prefix="rappd-demo-") as folder:

        def told(what: str, detail: str) -> None:
            line.clear()
            if not as_json:
                say(f"{mark('good')} {what}{dim(f'  {detail}') if detail else ''}")
            line("…")

        line("Three machines are starting…", at_once=True)
        counted = tell(Path(folder), told)
    if as_json:
        print_json({"demo": counted})
        return
    say()
    say(f"The same on your own machines: {command('rappd peers list')}")


@contextmanager
def _ends_well() -> Iterator[None]:
    """To be told to end, or to lose the terminal, is like Ctrl-C: three daemons must not stay behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
