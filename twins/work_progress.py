"""Progress of long work on eggs, phase by phase, and its cancelling."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, get_ident

from twins.errors import TwinConflictError, TwinError

Progress = Callable[[str, int, int], None]
"""``(phase, done, whole)``; ``done`` grows up to ``whole``. What it raises stops the work, and nothing was touched."""

CHECK, STAGE, SAVE, SYNC, MOVE = "check", "stage", "save", "sync", "move"
LOOK, PACK, MERGE = "look", "pack", "merge"
"""Phases. ``sync``, ``move`` and ``merge`` count files, all others bytes."""

_CANCELLED, _DECIDED = "cancelled", "decided"


class WorkCancelledError(TwinError):
    """The owner of the work cancelled it before anything was touched."""

    code = "cancelled"
    status = 409
    exit_code = 130

    def __init__(self) -> None:
        super().__init__("Cancelled; nothing was written.")


class TooLateToCancelError(TwinConflictError):
    """The work is past the point where it can be cancelled."""

    code = "too_late"

    def __init__(self, receipt: str) -> None:
        super().__init__(
            "Too late to cancel: its files are being moved into place.",
            do=f"Undo it: rappd egg rollback {receipt}",
        )


class Cancellation:
    """A request to stop, and the moment after which none counts. Safe for threads and signal handlers."""

    def __init__(self) -> None:
        self._fate: dict[str, str] = {}  # setdefault is one step; a signal handler cannot wait for a lock
        self.receipt = ""

    def cancel(self) -> None:
        """Stops the work at its next check. Raises ``TooLateToCancelError`` once it is decided."""
        if self._fate.setdefault("is", _CANCELLED) != _CANCELLED:
            raise TooLateToCancelError(self.receipt)

    def check(self) -> None:
        """Raises ``WorkCancelledError`` when the work is cancelled."""
        if self._fate.get("is") == _CANCELLED:
            raise WorkCancelledError

    def decide(self, receipt: str) -> None:
        """From here on it is too late. Raises ``WorkCancelledError`` when it is cancelled already."""
        self.receipt = receipt
        if self._fate.setdefault("is", _DECIDED) == _CANCELLED:
            raise WorkCancelledError

    def watching(self, progress: Progress | None) -> Progress:
        """``progress`` that checks each time."""

        def told(phase: str, done: int, whole: int) -> None:
            self.check()
            if progress is not None:
                progress(phase, done, whole)

        return told


class PhaseCounter:
    """Counts one phase. Any thread adds to it; the thread that began it tells."""

    def __init__(self, progress: Progress | None, phase: str, whole: int) -> None:
        self._progress = progress
        self._phase = phase
        self._whole = whole
        self._thread = get_ident()
        self._lock = Lock()
        self._done = 0

    def add(self, amount: int) -> None:
        """So much more is done."""
        with self._lock:
            self._done += amount
        if get_ident() == self._thread:
            self.tell()

    def tell(self) -> None:
        """Tells how far it is."""
        if self._progress is not None:
            self._progress(self._phase, min(self._done, self._whole), self._whole)

    def finish(self) -> None:
        """The phase is over, whatever was counted."""
        self._done = self._whole
        self.tell()
