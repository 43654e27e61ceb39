"""``rappd demo``: three machines on this one, one of them killed, nothing lost."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import command, dim, print_out, status_mark
from rappd.cli.printer import Printer
from rappd.cli.progress import progress


@cli_command()
def demo(printer: Printer) -> None:
    """Watch three machines meet, help, and lose nothing.

    They run on this machine for some seconds, in a temporary folder, and touch nothing of yours.
    """
    from rappd.demo.interrupts import Interrupts
    from rappd.demo.scenario import tell

    with Interrupts() as interrupts, progress() as shown:

        def told(what: str, detail: str) -> None:
            shown.clear()
            text = f"{status_mark('good')} {what}{dim(f'  {detail}') if detail else ''}"
            printer.note(print_out, text)
            shown("…")

        with interrupts.held():  # one that was made must be known, or nobody removes it
            made = tempfile.TemporaryDirectory(prefix="rappd-demo-")
        with made as folder, interrupts.until_here():
            shown("Three machines are starting…", at_once=True)
            counted = tell(Path(folder), told, interrupts)
    text = f"\nThe same on your own machines: {command('rappd peers list')}"
    printer.result({"demo": counted}, print_out, text)
