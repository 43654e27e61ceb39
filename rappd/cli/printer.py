"""The two printers of commands, chosen by ``--json``: words for people, JSON objects for scripts.

A command hands its result to the printer, with the words for it or the function that prints them; each step of a
long command is an event. Errors are raised, and ``rappd.cli.app`` prints them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from rappd.cli.console import (
    arrow,
    command,
    confirmed,
    interactive,
    print_json,
    print_out,
    print_status,
    status_mark,
    strip_control,
    wrapped,
)
from rappd.errors import ConfirmationNeededError

Row = Mapping[str, Any]
Words = Callable[..., object]
_Command = TypeVar("_Command", bound=Callable[..., Any])


class Printer:
    """Prints for people."""

    for_scripts = False

    def result(self, body: Row, words: Words, *shown: Any) -> None:
        """Prints what was found or done: ``words`` prints ``shown``, without it all of ``body``."""
        words(*(shown or (body,)))

    def sentence(self, body: Row, text: str, *, then: str = "") -> None:
        """Prints what was done as one sentence of our own and foreign words, and the command that may come ``then``."""
        self.result(body, show_sentence, text, then)

    def done(self, body: Row, what: str, do: str = "") -> None:
        """Prints what was done, and what may be done next, broken at words."""
        self.result(body, print_status, "good", what, do)

    def event(self, body: Row, words: Words | None = None, *shown: Any) -> None:
        """Prints a step of a command that goes on, where there are ``words`` for it."""
        if words is not None:
            words(*shown)

    def note(self, words: Words, *shown: Any) -> None:
        """Prints what a result does not hold, for people alone."""
        words(*shown)

    @property
    def asks(self) -> bool:
        """True when there is a person to ask."""
        return interactive()

    def confirm(self, question: str, undone: str, *, do: str = "Add --yes.") -> bool:
        """The answer of a person. Raises ``ConfirmationNeededError`` that says ``undone`` where nobody can be asked."""
        if not self.asks:
            raise ConfirmationNeededError(undone, do=do)
        return confirmed(question)


class JsonPrinter(Printer):
    """Prints results as JSON, events as a line each; asks nobody."""

    for_scripts = True
    asks = False

    def result(self, body: Row, words: Words, *shown: Any) -> None:
        print_json(body)

    def event(self, body: Row, words: Words | None = None, *shown: Any) -> None:
        click.echo(json.dumps(body))
        sys.stdout.flush()

    def note(self, words: Words, *shown: Any) -> None:
        pass


def json_option(about: str = "One JSON object.") -> Callable[[_Command], _Command]:
    """The option ``--json``, which gives a command its ``printer``."""
    return click.option(
        "--json",
        "printer",
        is_flag=True,
        callback=lambda _, __, chosen: JsonPrinter() if chosen else Printer(),
        help=about,
    )


JSON = json_option()


def show_sentence(text: str, then: str = "") -> None:
    """✓ and a sentence; below it the command that may come ``then``."""
    print_out(f"{status_mark('good')} {wrapped(strip_control(text), 2)}")
    if then:
        print_out(f"  {arrow()} {command(then)}")
