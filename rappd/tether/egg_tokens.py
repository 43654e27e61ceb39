"""Tokens by which a phone's HTTP requests for eggs are told to be that phone's: short-lived, and good once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

import jwt

from rappd.daemon.rate_limit import RateLimit
from rappd.tether.devices import Device
from rappd.tether.errors import BadEggTokenError

SECONDS = 900
_ALGORITHM = "HS256"
_AUDIENCE = "rappd-tether-eggs"
_CLAIMS = ["aud", "sub", "jti", "iat", "exp", "ver"]
_LONGEST = 2048


class EggTokens:
    """Mints and redeems. The key ends with the process, and every token with it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._spent: dict[str, float] = {}
        self._minted = RateLimit(30, 60)

    def mint(self, device: Device) -> str:
        """A token for one request of a device. Raises ``RateLimitedError``."""
        self._minted.take(device.id)
        now = int(self._clock())
        claims = {
            "aud": _AUDIENCE, "sub": device.id, "jti": secrets.token_urlsafe(16), "iat": now, "exp": now + SECONDS,
            "ver": device.version,
        }  # fmt: skip
        return jwt.encode(claims, self._key, algorithm=_ALGORITHM)

    def redeem(self, text: str, device_of: Callable[[str], Device | None]) -> Device:
        """The device whose token this is; it is good no more. Raises ``BadEggTokenError``, whatever is wrong."""
        now = self._clock()
        try:
            if len(text) > _LONGEST:
                raise BadEggTokenError
            claims = jwt.decode(
                text,
                self._key,
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                options={"require": _CLAIMS, "verify_exp": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, ValueError):
            raise BadEggTokenError from None
        id, version, jti, expires = (claims[name] for name in ("sub", "ver", "jti", "exp"))
        device = device_of(id) if isinstance(id, str) else None
        if device is None or version != device.version or not isinstance(jti, str) or jti in self._spent:
            raise BadEggTokenError
        if type(expires) is not int or not now < expires <= now + SECONDS:
            raise BadEggTokenError
        self._spent = {one: until for one, until in self._spent.items() if until > now} | {jti: expires}
        return device
