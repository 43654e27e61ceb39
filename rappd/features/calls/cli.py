"""``rappd call``: asks another machine, a twin of it, or one of its agents; or several machines at once."""

from __future__ import annotations

import json
import math
import sys
from difflib import get_close_matches
from typing import Any
from urllib.parse import urlsplit

import click

from envelopes.errors import ReportableError
from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import peer_names
from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_err,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
)
from rappd.cli.formatting import count, took
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import cells
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import (
    ConfirmationNeededError,
    FailedAnswerError,
    NotFoundError,
    NotReadyError,
    UsageProblemError,
)

Row = dict[str, Any]

_SPARE_SECONDS = 60.0
_THREAD_DIGITS = (4, 8, 13)
_REFUSED = (401, 403)
_MOST_DIGITS = 9


class CallFailedError(ReportableError):
    """The other machine, or what it asked, said no; or it could not be done there."""

    def __init__(self, row: Row, own: str) -> None:
        self._row = row
        self._answered = answered = int(row.get("status") or 500)
        what = str(row.get("error") or "It failed, and did not say why.")
        do = str(row.get("do") or "")
        peer = row["peer"]
        if answered in _REFUSED:
            what, do = f"{peer} refused this call.", f"its owner can allow it: `rappd peers show {own}`"
        super().__init__(what, do=do or f"`rappd threads show {row['thread'][:8]}` has the record")

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # from the other machine's status
        return 5 if self._answered in _REFUSED else 4 if self._answered == 404 else 1

    @property
    def code(self) -> str:  # type: ignore[override]  # the other machine's own slug
        return str(self._row.get("code") or "failed")

    def as_json(self) -> Row:
        """The answer of the other machine, whole."""
        kept = {key: self._row[key] for key in ("id", "peer", "thread", "seconds")}
        return {**kept, "said": self._row.get("error", ""), **super().as_json()}


class NoSuchAgentError(NotFoundError):
    """The other machine shares no agent of that name; it does not say whether it has one."""

    code = "no_agent"


@cli_command()
@click.argument("target", metavar="PEER[/TWIN][:AGENT]", shell_complete=peer_names)
@click.option("--args", "given", default="", metavar="JSON", help="Arguments for AGENT, a JSON object.")
@click.option(
    "--wait", type=click.FloatRange(0.1, 3600), default=30.0, show_default=True, help="Seconds to wait."
)
@click.option("--yes", is_flag=True, help="Send over plain http without asking.")
@click.option(
    "--first",
    "many",
    flag_value="first",
    help="Ask PEER,PEER, @NEIGHBORHOOD or all; the first answer counts.",
)
@click.option(
    "--all", "many", flag_value="all", help="Ask PEER,PEER, @NEIGHBORHOOD or all; every answer within --wait."
)
def call(
    target: str, text: tuple[str, ...], given: str, wait: float, yes: bool, many: str | None, printer: Printer
) -> int:
    """Ask another machine. Away, it gets the call later; an answer is never lost, nor asked for twice.

    pi is its brainstem, pi/gardener a twin there, pi:Clock one agent.
    """
    if (
        many and not text and " " in target.strip() and not target.startswith("@")
    ):  # a sentence alone: it is for everybody
        target, text = "all", (target,)
    where, agent = (target, "") if "://" in target else target.partition(":")[::2]
    peer, twin = (where, "") if "://" in where else where.partition("/")[::2]
    if given and not agent:
        raise UsageProblemError("--args are for one agent.", do=f"rappd call {where}:AGENT --args '{{…}}'")
    body = {
        "peer": peer,
        "twin": twin,
        "agent": agent,
        "text": _sentence(text, agent),
        "wait": wait,
        **({"args": _arguments(given)} if given else {}),
    }
    if many:
        return call_many(many, peer, body, printer)
    daemon = ControlClient(Home.here(), timeout=wait + _SPARE_SECONDS)
    if not yes and _is_unprotected(daemon, peer) and not _unprotected_is_fine(peer, printer):
        print_err("Nothing was sent.")
        return ConfirmationNeededError.exit_code
    with progress(f"Asking {peer}…"):
        row = daemon.do("calls.ask", **body)["call"]
    if row["state"] == "failed":
        raise _failed(daemon, row, agent if not twin else "")
    if row["state"] == "done" and agent and (failure := _failure_in(row.get("result"))):
        raise FailedAnswerError(failure, do=f"rappd threads show {_beginning(row['thread'])}", call=row)
    printer.result({"call": row}, _answer if row["state"] == "done" else _later, row)
    return 0 if row["state"] == "done" else NotReadyError.exit_code


def _is_unprotected(daemon: ControlClient, peer: str) -> bool:
    """True for a published brainstem or A2A agent that speaks plain HTTP; a trusted machine's name comes first."""
    wanted, rows = peer.lower().rstrip("/"), daemon.do("peers.list")["peers"]
    if any(row["paired"] and row["name"] == wanted for row in rows):
        return False
    return any(
        wanted in (row["name"].lower(), row["address"].lower().rstrip("/"), urlsplit(row["address"]).hostname)
        for row in rows
        if row["legacy"] and row["address"].startswith("http://")
    )


def _unprotected_is_fine(peer: str, printer: Printer) -> bool:
    return printer.confirm(
        f"{strip_control(peer)} speaks plain http: others on the way can read what is said. Send?",
        f"{peer} speaks plain http: others can read what is said. Nothing was sent.",
    )


def _failed(daemon: ControlClient, row: Row, agent: str) -> ReportableError:
    own = str(daemon.do("peers.list")["self"]["name"])
    if agent and row.get("status") in _REFUSED:
        agents = daemon.do("peers.show", peer=row["peer"])["peer"]["agents_here"]
        names = [str(one.get("name", "")) for one in agents]
        if names and agent.casefold() not in [name.casefold() for name in names]:
            near = get_close_matches(agent, names, 1)
            do = (
                f"did you mean `rappd call {row['peer']}:{near[0]}`?"
                if near
                else f"rappd peers show {row['peer']}"
            )
            return NoSuchAgentError(f'{row["peer"]} has no agent "{agent[:60]}" for this machine.', do=do)
    return CallFailedError(row, own)


def _answer(row: Row) -> None:
    print_out(_result(row))
    sys.stdout.flush()
    cost = f" for {_dollars(row['cost_usd'])}" if "cost_usd" in row else ""
    print_err(
        dim(f"  done on {row['peer']} in {took(row['seconds'])}{cost}, thread {_beginning(row['thread'])}")
    )


def _failure_in(result: Any) -> str:
    from agents.contract.readable_results import failure_of

    return failure_of(result if isinstance(result, str) else json.dumps(result, default=str))


def _dollars(cost: float) -> str:
    """Two digits that matter: 0.0031 USD."""
    digits = 2 if cost >= 1 or not cost else 1 - math.floor(math.log10(cost))
    return f"{cost:.{min(digits, _MOST_DIGITS)}f} USD"


def _later(row: Row) -> None:
    """In one line where it fits: what became of it, and where to look."""
    if row["state"] == "queued":
        why = str(row.get("why") or f"{row['peer']} is away.").rstrip(".")
        what = f"Queued: {why}. Goes by itself."
    else:
        what = f"Accepted: {row['peer']} works on it still. The answer comes by itself."
    then = f"{arrow()} {command('rappd threads show ' + _beginning(row['thread']))}"
    line = f"{status_mark('note')} {strip_control(what)}"
    if cells(f"{line} {then}") <= terminal_width():
        print_out(f"{line} {then}")
    else:
        print_out(line)
        print_out(f"  {then}")


def _beginning(thread: str) -> str:
    """As much of a thread's id as names it alone."""
    from rappd.errors import RappdError
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        for digits in _THREAD_DIGITS:
            try:
                reader.find_thread(thread[:digits])
            except RappdError:
                continue
            return thread[:digits]
    return thread


def _sentence(words: tuple[str, ...], agent: str) -> str:
    sentence = " ".join(words).strip()
    if not sentence and not agent and not sys.stdin.isatty():
        sentence = sys.stdin.read().strip()
    return sentence


def _arguments(text: str) -> Row:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageProblemError(
            f"--args is no JSON: {error}.", do="""Like this: --args '{"city": "Rome"}'."""
        ) from None
    if not isinstance(found, dict):
        raise UsageProblemError("--args is no JSON object.", do="""Like this: --args '{"city": "Rome"}'.""")
    return found


_LATER = ("away", "late")
_WORDS = {"stopped": "stopped, another was faster", "late": "no answer in time, stopped"}


def call_many(which: str, peers: str, body: Row, printer: Printer) -> int:
    """Asks them, and shows what came: of ``first`` the winner, of ``all`` everyone. The exit code."""
    names = [one for one in (name.strip() for name in peers.split(",")) if one]
    asked = {**body, "which": which, "peers": "all" if names in ([], ["all"]) else names}
    daemon = ControlClient(Home.here(), timeout=body["wait"] + _SPARE_SECONDS)
    with progress(f"Asking {'every peer' if asked['peers'] == 'all' else ', '.join(names)}…"):
        found = daemon.do("calls.broadcast", **asked)
    calls = found["calls"]
    printer.result(found, _winner if which == "first" else _everyone)
    return _exit_code(which, calls)


def _winner(found: Row) -> None:
    won = next((row for row in found["calls"] if row["peer"] == found["winner"]), None)
    if won is None:
        for row in found["calls"]:
            print_status("bad", f"{row['peer']}: {_trouble(row)}")
        return
    print_out(_result(won))
    others = count(len(found["calls"]) - 1, "other")
    print_err(dim(f"  done on {won['peer']} in {took(won['seconds'])}, {others} asked"))


def _everyone(found: Row) -> None:
    for row in found["calls"]:
        if row["state"] == "done":
            print_out(f"{status_mark('good')} {row['peer']}  {dim(took(row['seconds']))}")
            for text in _result(row).splitlines():
                print_out(f"  {text}")
        else:
            print_status("note" if row["state"] in _LATER else "bad", f"{row['peer']}: {_trouble(row)}")


def _trouble(row: Row) -> str:
    return _WORDS.get(row["state"]) or strip_control(str(row.get("error") or "it failed")).rstrip(".")


def _result(row: Row) -> str:
    result = row.get("result")
    return strip_control(
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2)
    )


def _exit_code(which: str, calls: list[Row]) -> int:
    done = [row["state"] == "done" for row in calls]
    if all(done) or (which == "first" and any(done)):
        return 0
    if any(done):
        return 7
    return NotReadyError.exit_code if all(row["state"] in _LATER for row in calls) else 1
