"""Sessions as eggs on the command line: pack one, open one to replay it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from rappd.cli.console import command, dim, print_out, print_status, strip_control
from rappd.cli.formatting import count, tilde
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError
from rappd.features.eggs.cli_options import egg_at, secrets_listed, whole
from rappd.features.eggs.cli_progress import followed

_SHOWN = 8


def pack_session(session: str, into: Path | str | None, printer: Printer, **how: Any) -> None:
    """Packs a session, "" or ``current`` for the newest, and says where it lies. ``how``: options of ``eggs.pack``."""
    given = {"form": "session", "item": "" if session == "current" else session, "into": whole(into), **how}
    with secrets_listed(printer):
        found = followed("eggs.pack", "Packing the session", printer, **given)
    printer.result(found, _show_packed, found["packed"])


def _show_packed(done: dict[str, Any]) -> None:
    from rappd.features.eggs.text import show_file_packed

    show_file_packed(done["name"], done, "signed", count(done["events"], "event"))
    print_out(f"  {tilde(done['signature'])} {dim('is its signature')}")
    opens = f"rappd sessions open {shlex.quote(done['path'])}"
    print_out(f"  To replay it: {command(opens)}")


def taken_in(daemon: ControlClient, file: Path) -> dict[str, Any]:
    """Has the daemon check a session egg and keep a copy for a day; the answer tells what is in it."""
    found: dict[str, Any] = daemon.do("replays.open", path=str(egg_at(file).absolute()))["egg"]
    return found


def open_egg(file: Path, printer: Printer, *, browser: bool) -> None:
    """Checks a session egg and says what is in it, and where it can be replayed."""
    daemon = ControlClient(Home.here())
    try:
        egg = taken_in(daemon, file)
        egg["url"] = f"{daemon.post('/operator/key')['url']}&go=chat/replay/{egg['id']}"
    except NotRunningError:  # what is in it can be told all the same
        from rappd.sessions.session_replay import described
        from twins.eggs.readers.sessions import read_session

        egg = dict(described(read_session(egg_at(file))))
    printer.result({"egg": egg}, _show_opened, file, egg, browser)


def _show_opened(file: Path, egg: dict[str, Any], browser: bool) -> None:
    print_out(f"{strip_control(egg['title'])}, {count(egg['events'], 'event')}")
    people = [f"{strip_control(one['name'])} ({one['role']})" for one in egg["participants"][:_SHOWN]]
    if people:
        print_out(f"  with {', '.join(people)}")
    print_status(
        *(
            ("good", "Page and transcript are what their hashes say.")
            if egg["pinned"]
            else ("note", f"Unpinned: {strip_control(egg['unpinned'])}")
        )
    )
    if egg["parent_rappid"]:
        print_out(f"  branched after event {egg['branch_at_event']} of {strip_control(egg['parent_rappid'])}")
    if "url" not in egg:
        print_status("note", "rappd isn't running here, so that nothing is replayed.", command("rappd start"))
        return
    print_out(f"  Replay    {egg['url']}")
    goes_on = f"rappd sessions branch {shlex.quote(str(file))}"
    print_out(f"  Go on     {command(goes_on)}")
    if browser:
        from rappd.features.operator.cli import open_in_browser

        sys.stdout.flush()
        open_in_browser(egg["url"])
