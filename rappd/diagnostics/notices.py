"""Checks the setting ``notify.command``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rappd.diagnostics.finding import CheckContext, Finding
from rappd.notices.command import arguments_of, obstacle_to


def check_notify_command(visit: CheckContext) -> Iterator[Finding]:
    """Nothing, where no command is set."""
    command = visit.settings.text("notify.command")
    if not command:
        return
    if (found := obstacle_to(command)) is not None:
        verdict: Literal["note", "bad"] = "note" if found.missing else "bad"
        yield Finding("Notices", verdict, f"notify.command cannot be run: {found.what}", found.do)
    else:
        yield Finding("Notices", "good", f"notify.command runs {arguments_of(command)[0]}")
