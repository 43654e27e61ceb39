"""Codes of authenticators (RFC 6238): which access a code stands for, each code once, and guessers are sent away."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from neighborhoods.errors import NeighborhoodError

STEP_SECONDS = 30
DIGITS = 6
WINDOW = 1
"""Steps that a clock may be early or late."""
WRONG_CODES = 5
BAN_SECONDS = 900.0
_MOST_GUESSERS = 10_000
_NOBODY = b"\0" * 20


class WrongCodeError(NeighborhoodError):
    """No access of that name has this code now; the same words where there is no such name."""

    code = "wrong_code"
    status = 401
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("That name and code do not belong together now.", do="Wait for the next code.")


class CodeBanError(NeighborhoodError):
    """Too many wrong codes came from that address."""

    code = "code_ban"
    status = 429
    exit_code = 5

    def __init__(self, seconds: float) -> None:
        super().__init__("Too many wrong codes.", do=f"Wait {int(seconds // 60) + 1} minutes.")


class Accepted(NamedTuple):
    """The access whose code was right, and the step that it may not use again."""

    jti: str
    step: int


def code_at(secret: bytes, step: int) -> str:
    """The code of a step: HOTP (RFC 4226) with SHA-1 over the number of half minutes since 1970."""
    digest = hmac.new(secret, step.to_bytes(8, "big"), hashlib.sha1).digest()
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def accepted(secrets: Mapping[str, bytes], used: Mapping[str, int], code: str, now: float) -> Accepted | None:
    """The access among ``secrets`` (by its id) that ``code`` is of; None for none. Takes the same time for each.

    ``used`` is the last step that each used: that one and those before it count no more.
    """
    present = int(now) // STEP_SECONDS
    right = None
    for jti, secret in secrets.items() or (("", _NOBODY),):
        for step in range(present - WINDOW, present + WINDOW + 1):
            same = hmac.compare_digest(code_at(secret, step).encode(), code.encode(errors="replace"))
            if same and jti and step > used.get(jti, -1):
                right = Accepted(jti, step)
    return right


class Guessers:
    """Counts wrong codes: five ban a name at an address; five for several names ban the address for every name.

    A ban is of an address, so that nobody can lock out a caller from another one.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, list[tuple[float, str]]] = OrderedDict()

    def check(self, name: str, address: str, now: float) -> None:
        """Raises ``CodeBanError`` while the name at that address, or the address, is banned."""
        wrong = self._lately(address, now)
        own = [at for at, tried in wrong if tried == name]
        for times, applies in (
            (own, True),
            ([at for at, _ in wrong], len({tried for _, tried in wrong}) > 1),
        ):
            if applies and len(times) >= WRONG_CODES:
                raise CodeBanError(times[-WRONG_CODES] + BAN_SECONDS - now)

    def wrong(self, name: str, address: str, now: float) -> None:
        """Counts a wrong code."""
        self._wrong[address] = [*self._lately(address, now), (now, name)][-4 * WRONG_CODES :]
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MOST_GUESSERS:
            self._wrong.popitem(last=False)

    def right(self, name: str, address: str) -> None:
        """Forgets the wrong codes of a name at an address that had the right one; those of others stay."""
        if address in self._wrong:
            self._wrong[address] = [one for one in self._wrong[address] if one[1] != name]

    def _lately(self, address: str, now: float) -> list[tuple[float, str]]:
        return [one for one in self._wrong.get(address, ()) if now - one[0] < BAN_SECONDS]
