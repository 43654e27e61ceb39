"""Rules for what code declares that it needs: what waits for the owner's yes, and what this machine cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agents.contract.may_run import Allowed, Quarantined, Refused, Verdict
from agents.runtimes.python.sandbox.needs import Needs

MUST_DECLARE = "agents.must_declare"
"""The setting that lets nothing run that declares no needs, or cannot be held to them."""

CAME_IN = "agents folder"


@dataclass(frozen=True, slots=True)
class ScopeRules:
    """The rules in force. ``must_declare``: the setting.

    ``hidden`` names the paths among needs that are hidden from agents; ``unheld`` says why this machine cannot hold code
    to its needs, "" where it can. Both may block on the disk.
    """

    must_declare: bool = False
    hidden: Callable[[Needs], Sequence[str]] = lambda needs: ()
    unheld: Callable[[Needs | None], str] = lambda needs: ""

    def verdict(self, needs: Needs | None, otherwise: Allowed, is_allowed: bool) -> Verdict:
        """The verdict on code with these needs that may run ``otherwise``.

        ``is_allowed``: the owner said yes to exactly these needs of exactly these bytes.
        """
        if needs is None:
            if not self.must_declare or is_allowed:
                return otherwise
            return Quarantined(f"It does not declare what it needs ({MUST_DECLARE}).", CAME_IN)
        if self.must_declare and (why := self.unheld(needs)):
            return Refused(f"{why} ({MUST_DECLARE})")
        wanted = self.hidden(needs)
        if not wanted:
            return otherwise
        if not is_allowed:
            return Quarantined(f"It needs {', '.join(wanted)}, which is hidden from agents.", CAME_IN)
        return Allowed(otherwise.apart, otherwise.structural, private=True)


DECLARED_FREELY = ScopeRules()
"""The rules where no setting counts."""
