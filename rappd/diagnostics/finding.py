"""One finding of a check, and what all checks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import NotRunningError, RappdError, StoreError, UsageProblemError
from rappd.settings.load import Settings

_ANSWER_SECONDS = 5.0


@dataclass(slots=True, frozen=True)
class Finding:
    """One row: what was looked at, the verdict, what is so, and what to do about it."""

    about: str
    verdict: Literal["good", "note", "bad"]
    what: str
    do: str = ""

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {"about": self.about, "verdict": self.verdict, "what": self.what, "do": self.do}


class CheckContext:
    """The facts that checks share: the home, its settings, and what a daemon says if one answers."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.trouble: UsageProblemError | None = None
        try:
            self.settings = Settings.load(home)
        except UsageProblemError as problem:
            self.settings, self.trouble = Settings.without_files(), problem
        self.running = ControlClient(home).running()
        self.health: dict[str, Any] = {}
        self.status: dict[str, Any] = {}
        self.peers: dict[str, Any] = {}
        self.programs: dict[str, Any] = {}
        self.silence = ""
        self.of_record = False
        """True where the daemon is silent because of its record, which a check of its own looks at."""
        if self.running:
            try:
                daemon = ControlClient(home, timeout=_ANSWER_SECONDS)
                self.health, self.status = daemon.get("/health"), daemon.get("/operator/status")
                self.peers = daemon.do("peers.list")
                self.programs = daemon.do("programs.list")
            except NotRunningError:
                self.running = False
            except (ResponseError, RappdError) as problem:
                self.silence = str(problem).rstrip(".")
                self.of_record = problem.code == StoreError.code
