"""Tokens that model rounds used, and their cost at the prices the owner set."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from agents.providers.provider import Completion

_MILLION = 1_000_000
_DIGITS = 12  # after the point, of dollars: less than a thousandth of one token of the cheapest model
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$")


class BadPriceError(ValueError):
    """A text that is no price."""


class Prices(msgspec.Struct, frozen=True):
    """USD for a million tokens, by model; ``""`` is any model that is not named."""

    read: dict[str, float]
    written: dict[str, float]

    @classmethod
    def of(cls, read: str, written: str) -> Prices:
        """From two settings; one that cannot be read counts as not set."""
        return cls(_lenient(read), _lenient(written))

    def cost(self, completion: Completion) -> float | None:
        """Dollars; None unless both prices of that model are known."""
        read, written = _of(self.read, completion.model), _of(self.written, completion.model)
        if read is None or written is None:
            return None
        return (completion.input_tokens * read + completion.output_tokens * written) / _MILLION


def price_list(text: str) -> dict[str, float]:
    """``0.5`` for every model, ``MODEL=0.5`` for one, by commas. Raises ``BadPriceError``."""
    found: dict[str, float] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        model, _, amount = (part.strip() for part in item.rpartition("="))
        try:
            price = float(amount)
        except ValueError:
            raise BadPriceError(amount) from None
        if not (math.isfinite(price) and price >= 0):
            raise BadPriceError(amount)
        found[model] = price
    return found


class Usage(msgspec.Struct):
    """A sum over completions. ``cost_usd`` counts only while every round with tokens had a price."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    unpriced: bool = False

    def add(self, completion: Completion) -> None:
        """One more round; one without tokens, as without a model, adds nothing."""
        if not (completion.input_tokens or completion.output_tokens):
            return
        self.input_tokens += completion.input_tokens
        self.output_tokens += completion.output_tokens
        if completion.cost_usd is None:
            self.unpriced = True
        else:
            self.cost_usd += completion.cost_usd

    def include(self, other: Usage) -> None:
        """Another sum into this one."""
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost_usd += other.cost_usd
        self.unpriced |= other.unpriced

    def stated(self) -> dict[str, Any]:
        """The fields that are reported: none where no tokens were counted, no cost where a price is missing."""
        if not (self.input_tokens or self.output_tokens):
            return {}
        told: dict[str, Any] = {
            "tokens": self.input_tokens + self.output_tokens,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
        return told if self.unpriced else {**told, "cost_usd": round(self.cost_usd, _DIGITS)}


def _lenient(text: str) -> dict[str, float]:
    try:
        return price_list(text)
    except BadPriceError:
        return {}


def _of(prices: dict[str, float], model: str) -> float | None:
    """A model's price; a dated release goes by the name without its date."""
    for name in (model, _DATED.sub("", model), ""):
        if name in prices:
            return prices[name]
    return None
