"""The ``_x_*`` keys that have a meaning here, and what each must look like. All others travel untouched."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envelopes.envelope import (
    CAP,
    COST_USD,
    DEADLINE,
    PATH,
    SIG,
    THREAD,
    TRACEPARENT,
    TTL,
    USAGE_TOKENS,
    is_uuid,
)
from envelopes.errors import MalformedError

PREFIX = "_x_"
LONGEST_WAIT = 3600
"""Seconds: the largest ``_x_deadline``."""
LONGEST_PATH = 16
SHOWN = 60
"""Characters of a foreign key that a message repeats."""

_TRACE = r"(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_TRACEPARENT = re.compile(rf"00-{_TRACE}|(?!00|ff)[0-9a-f]{{2}}-{_TRACE}(?:-[!-~]{{1,200}})?")
_MACHINE = re.compile(r"[0-9a-f]{16}")
_HEX64 = re.compile(r"[0-9a-f]{64}")
_HEX128 = re.compile(r"[0-9a-f]{128}")


def check_extensions(extensions: Mapping[str, Any]) -> None:
    """Raises ``MalformedError`` for a key that does not start with ``_x_``, or a known one of another shape."""
    for key, value in extensions.items():
        if not key.startswith(PREFIX):
            raise MalformedError(
                f"The envelope has an unknown key '{shown(key)}'.", do="Extensions start with _x_.", key=key
            )
        known = _KNOWN.get(key)
        if known is not None and not known[0](value):
            raise MalformedError(
                f"'{key}' is not {known[1]}.", do="Send it like that, or leave it out.", key=key
            )


def is_signature(value: object) -> bool:
    """True when ``value`` has the shape of a ``_x_sig``, in its one spelling (lower-case hex)."""
    return (
        isinstance(value, dict)
        and value.keys() == {"alg", "kid", "key", "t", "s"}
        and value["alg"] == "Ed25519"
        and _is_hex(_HEX64, value["kid"])
        and _is_hex(_HEX64, value["key"])
        and _is_hex(_HEX128, value["s"])
        and type(value["t"]) is int
        and 0 <= value["t"] < 1 << 53
    )


def shown(key: str) -> str:
    """A key that somebody else chose, as a message may repeat it."""
    cut = key if len(key) <= SHOWN else f"{key[:SHOWN]}…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def _is_hex(form: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0  # type: ignore[arg-type, operator]


def _is_wait(value: object) -> bool:
    return type(value) in (int, float) and 0 < value <= LONGEST_WAIT  # type: ignore[operator]


def _is_path(value: object) -> bool:
    return isinstance(value, list) and len(value) <= LONGEST_PATH and all(_is_hex(_MACHINE, v) for v in value)


def _is_traceparent(value: object) -> bool:
    return isinstance(value, str) and _TRACEPARENT.fullmatch(value) is not None


def _is_capability(value: object) -> bool:
    chain: Iterable[object] = value if isinstance(value, list) else (value,)
    return value != [] and all(isinstance(one, str) and one for one in chain)


_AMOUNT = (_is_amount, "a number from 0 on")
_KNOWN: dict[str, tuple[Callable[[object], bool], str]] = {
    THREAD: (is_uuid, "a UUID"),
    DEADLINE: (_is_wait, f"a number of seconds, above 0 and at most {LONGEST_WAIT}"),
    TTL: (_is_amount, "a number of seconds from 0 on"),
    PATH: (_is_path, f"a list of at most {LONGEST_PATH} machines in 16 hex digits each"),
    TRACEPARENT: (_is_traceparent, "a W3C traceparent"),
    SIG: (is_signature, "a signature {alg, kid, key, t, s}"),
    CAP: (_is_capability, "a token or a list of tokens"),
    USAGE_TOKENS: _AMOUNT,
    COST_USD: _AMOUNT,
}
