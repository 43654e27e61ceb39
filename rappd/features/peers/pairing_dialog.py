"""The pairing dialog of both owners: peer, four words, two questions, result."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from envelopes.errors import ReportableError
from rappd.cli.console import (
    command,
    interactive,
    plain,
    print_err,
    print_out,
    status_mark,
    strip_control,
    wrapped,
)
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.features.peers.text import called

Row = dict[str, Any]

_LIVE = ("asking", "words", "waiting")
_LOOK_SECONDS = 1.0
_PAUSE = 0.3
_EXITS = {"expired": 8}


class PairingFailedError(ReportableError):
    """A pairing ended without trust."""

    def __init__(self, row: Row) -> None:
        super().__init__(str(row.get("trouble") or "Nothing was paired."), do=str(row.get("do", "")))
        self.state = str(row["state"])

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # of how it ended
        return _EXITS.get(self.state, 5)

    @property
    def code(self) -> str:  # type: ignore[override]  # how it ended
        return f"pairing_{self.state}"


class _PromptInterruptedError(Exception):
    """While somebody was being asked, the pairing went on without the answer."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row


class PairingDialog:
    """One pairing from its beginning to its end; Ctrl-C stops it in the daemon, too."""

    def __init__(self, daemon: ControlClient, own: str, printer: Printer) -> None:
        self._daemon = daemon
        self._own = own
        self._printer = printer
        self._shown_state = ""
        self._words: list[str] = []
        self._attempt = ""
        self._stopped = "Stopped"

    def follow(self, begin: Callable[[], Row], whose: str | None) -> None:
        """Until it is paired. Raises ``NotPairedError``."""
        try:
            with progress("Looking for it…"):
                row = self._look(begin())
            self._printer.note(self._introduce, row)
            row = self._to_the_end(row, whose)
        except (KeyboardInterrupt, click.Abort):
            self._stop()
            raise
        if row["state"] != "paired":
            raise PairingFailedError(row)
        self._printer.note(lambda: show_ended(row, *self._peer_here(row)))

    def _to_the_end(self, row: Row, whose: str | None) -> Row:
        while row["state"] in _LIVE:
            if row["state"] != "words":
                row = self._waited(row)
                continue
            try:
                row = self._confirmed(row, whose)
            except _PromptInterruptedError as over:
                row = over.row
        return row

    def _introduce(self, row: Row) -> None:
        if row["state"] not in _LIVE:
            return
        who = strip_control(row["peer"])
        if row.get("code") and row["role"] == "answers":
            self._stopped = "The code is void"
            print_err("On the other machine type:")
            print_err("  " + command(f"rappd peers pair {self._own} --code {row['code']}"))
            print_err("The code is good for ten minutes and for one machine. Ctrl-C stops it.")
        elif row.get("code"):
            print_err(f"Trying the code that {who} shows…")
        elif row["role"] == "answers":
            print_err(f"{who} ({row['address'].rpartition(':')[0].strip('[]')}) wants to pair.")
        elif row["state"] != "waiting":
            print_err(f"On {who} type: {command(f'rappd peers pair {self._own}')}")

    def _confirmed(self, row: Row, whose: str | None) -> Row:
        """The owner's word on the words."""
        if row["words"] != self._words:
            self._printer.note(print_err, f"\n  {'  '.join(row['words'])}\n")
        self._words = row["words"]
        who = strip_control(row["peer"])
        same = self._asked(
            f"Do the words on {who} match? [y/N] ",
            {"": False, "n": False, "no": False, "y": True, "yes": True},
        )
        body: Row = {"same": same}
        if same:
            body["whose"] = whose or self._asked(whose_question(who), _WHOSE)
        try:
            return self._look(self._daemon.do("pairings.confirm", attempt=self._attempt, **body)["pairing"])
        except ReportableError:
            row = self._now()
            if row["state"] in _LIVE:
                raise
            return row

    def _waited(self, row: Row) -> Row:
        known = row["state"]
        with progress() as shown:
            while row["state"] == known:
                shown(_waiting(row))
                time.sleep(_PAUSE)
                row = self._now()
        return self._look(row)

    def _now(self) -> Row:
        found: Row = self._daemon.do("pairings.show", attempt=self._attempt)["pairing"]
        return found

    def _look(self, row: Row) -> Row:
        """Takes notice of a row; as JSON each state is told once."""
        self._attempt = row["attempt"] or self._attempt
        if row["state"] != self._shown_state:
            self._printer.event({"pairing": row})
        self._shown_state = row["state"]
        return row

    def _asked(self, question: str, answers: dict[str, Any]) -> Any:
        """The answer, typed; meanwhile the daemon is asked whether the pairing goes on. Raises ``_PromptInterruptedError``."""
        while True:
            sys.stderr.write(f"{plain(wrapped(question.rstrip(), 0, stream=sys.stderr), sys.stderr)} ")
            sys.stderr.flush()
            while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
                row = self._now()
                if row["state"] not in _LIVE or row["words"] != self._words:
                    print_err()
                    raise _PromptInterruptedError(self._look(row))
            line = os.read(sys.stdin.fileno(), 4096)  # past Python's buffer, which select knows nothing of
            if not line:
                raise click.Abort
            word = line.decode("utf-8", "replace").strip().lower()
            if word in answers:
                return answers[word]

    def _peer_here(self, row: Row) -> tuple[str, str]:
        """(name, whose) of the new peer here: another peer may have had the name that it calls itself."""
        for peer in self._daemon.do("peers.list")["peers"]:
            if peer["paired"] and peer["short"] == row["short"] and peer["called"] == row["peer"]:
                return str(peer["name"]), str(peer["whose"])
        return str(row["peer"]), ""

    def _stop(self) -> None:
        if not self._attempt:
            return
        with suppress(ReportableError):  # it may be over
            row = self._daemon.do("pairings.stop", attempt=self._attempt)["pairing"]
            ended = (
                "It is paired already."
                if row["state"] == "paired"
                else f"{self._stopped}; nothing was paired."
            )
            self._printer.note(print_err, f"\n{ended}")


def show_ended(row: Row, name: str, whose: str) -> None:
    """A pairing that ended well."""
    typed = called(name, row.get("short", ""))
    print_out(f"{status_mark('good')} Paired. Undo: {command(f'rappd peers revoke {typed}')}")
    if whose == "mine":
        print_out(f"  Run code in its eggs without asking: {command(f'rappd egg signers --trust {typed}')}")


def typed_at_once(question: str) -> str:
    """Mine or friend, from somebody at a terminal."""
    if not interactive():
        return "friend"
    while True:
        shown = wrapped(question.rstrip(), 0, stream=sys.stderr)
        word = click.prompt(shown, prompt_suffix=" ", err=True, default="", show_default=False)
        if found := _WHOSE.get(word.strip().lower()):
            return found


def whose_question(who: str) -> str:
    """The question that decides what a machine may do here."""
    return f"Is {who} [m]ine (may use all approved agents) or a [f]riend's (may only send you eggs)? "


_WHOSE = {"mine": "mine", "m": "mine", "friend": "friend", "f": "friend"}


def _waiting(row: Row) -> str:
    left = int(row["seconds_left"])
    clock = f"{left // 60}:{left % 60:02d} left"
    who = strip_control(row["peer"])
    if row.get("code"):
        return f"Waiting for the code to be typed, {clock}…"
    if row["state"] == "asking":
        return f"Asking {who}, {clock}…"
    return f"Waiting for the yes on {who}, {clock}…"
