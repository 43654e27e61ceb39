"""Pairing of a phone: the code that is shown, the phone that proved it, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rappd.tether.devices import DeviceRow, Kind, WindowState
from rappd.tether.errors import TetherUnavailableError, WindowClosedError
from rappd.tether.pairing_window import PairingWindow


class AskingPhone(Protocol):
    """The connection of a phone that proved the code; ``source`` is the network that it comes from."""

    source: str

    def answer(self, same: bool) -> None:
        """The operator compared the digits."""
        ...

    def expire(self) -> None:
        """The window closed before both sides agreed."""
        ...


class Pairing:
    """At most one code at a time, and at most one phone that asks. All calls come from the event loop.

    ``links`` returns the state of an open window, with the ways by which phones reach it; ``over`` is called when its time has passed.
    """

    def __init__(self, links: Callable[[PairingWindow], WindowState], over: Callable[[], None]) -> None:
        self.window: PairingWindow | None = None
        self._links, self._over = links, over
        self._asking: _Asking | None = None
        self._outcome: WindowState | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """True while a phone can still pair."""
        return self.window is not None and self.window.open

    def open(self, window: PairingWindow) -> None:
        """Shows its code."""
        self.cancel()
        self.window = window
        self._timer = asyncio.get_running_loop().call_later(window.seconds, self._expire)

    def cancel(self) -> None:
        """Takes the code back, and forgets how the one before ended."""
        if self._asking is not None:
            self._asking.phone.expire()
        if self._timer is not None:
            self._timer.cancel()
        self.window, self._asking, self._outcome, self._timer = None, None, None, None

    def state(self) -> WindowState:
        """The state for the operator's screen: links, the digits to compare, or how it ended."""
        window, asking = self.window, self._asking
        if window is None:
            return {"state": "closed"}
        if self._outcome:
            return {**self._outcome, "id": window.id}
        if asking is not None:
            return {
                "state": "waiting" if asking.answered else "compare",
                "id": window.id,
                "digits": asking.digits,
                "name": asking.name,
                "remaining": window.remaining,
            }
        if not window.open:
            return {"state": "expired", "id": window.id}
        return self._links(window)

    def link(self) -> str:
        """The text of the QR code. Raises ``WindowClosedError``."""
        links = self.state().get("links")
        if not links:
            raise WindowClosedError
        return str(links[0])

    def answer(self, id: str, same: bool, kind: Kind = "guest") -> None:
        """The operator compared the digits, and says whose phone it is. Raises ``WindowClosedError`` when nobody asks."""
        if self._asking is None or self.window is None or id != self.window.id:
            raise WindowClosedError
        self.window.kind = kind
        self._asking.answered = same
        self._asking.phone.answer(same)
        if not same:
            self._outcome = {"state": "differs"}

    def visited(self) -> None:
        """A browser opened the page."""
        if self.window is not None:
            self.window.visited = True

    def ask(self, phone: AskingPhone, digits: str, name: str) -> None:
        """A phone proved the code: the operator compares the digits. A second one is sent away."""
        if self._asking is not None or self.window is None or not self.window.open:
            phone.expire()
            return
        self._asking = _Asking(phone, digits, self.window.name or name)

    def use(self) -> PairingWindow:
        """Both sides agree: the window, which is used up. Raises ``TetherUnavailableError`` where there is none."""
        if self.window is None:
            raise TetherUnavailableError("No QR code is shown.", do="rappd pair")
        self.window.used = True
        return self.window

    def paired(self, device: DeviceRow) -> None:
        """The phone is registered as that device."""
        self._asking, self._outcome = None, {"state": "paired", "device": device}

    def failed(self, phone: AskingPhone, reason: str) -> None:
        """A phone's connection ended before it was paired. Bad proofs burn the code, as does one "No"."""
        if reason == "bad_proof" and self.window is not None:
            self.window.bad_proofs[phone.source] += 1
        if self._asking is None or self._asking.phone is not phone:
            return
        self._asking = None
        if reason in ("differs", "refused"):
            self._outcome = {"state": "differs"}
            if self.window is not None:
                self.window.used = True

    def _expire(self) -> None:
        if self.window is not None:
            self.window.close()
        if self._asking is not None:
            self._asking.phone.expire()
        self._over()


@dataclass(slots=True)
class _Asking:
    """A phone that proved the code; ``answered`` is True once the operator said that the digits are the same."""

    phone: AskingPhone
    digits: str
    name: str
    answered: bool = False
