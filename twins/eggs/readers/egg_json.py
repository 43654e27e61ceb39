"""JSON out of an egg: strict, and a damaged egg where it is not."""

from __future__ import annotations

from typing import Any

from envelopes.codecs.strict_json import strict_object
from twins.errors import BadEggError


def parse_object(octets: bytes, name: str, *, wide: bool = False) -> dict[str, Any]:
    """The one object that ``octets`` hold; ``name`` is what a person calls them. Raises ``BadEggError``."""
    try:
        return strict_object(octets, wide=wide)
    except ValueError as error:
        raise damaged(name, str(error)) from error


def damaged(name: str, why: str) -> BadEggError:
    """The error for JSON that cannot be taken; ``why`` is a clause."""
    return BadEggError(f"{name} is damaged ({why}); nothing was written.", do="Get it again.")
