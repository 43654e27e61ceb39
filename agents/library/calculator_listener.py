"""Works out two decimal numbers, exactly: a listener, the second form of an agent.

Say "calculate 0.1 + 0.2" to a model, or send `{"a": "0.1", "operation": "add", "b": "0.2"}`. The answer is a
payload of its own, `result`. It needs no network and no key.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, InvalidOperation
from typing import Literal

from agents.listener import listener

__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/calculator_listener",
    "version": "1.0.0",
    "display_name": "Calculator",
    "description": "Adds, subtracts, multiplies and divides two decimal numbers.",
    "summary": "Works out two numbers.",
    "author": "rappd",
    "tags": ["calculator", "listener"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": [],
    "idempotent": True,
    "needs": {},
}

_EXACT = Context(prec=60)
"""Digits of a result: 0.1 + 0.2 is 0.3, and no request fills the memory."""


@listener(category="calculator", description="Adds, subtracts, multiplies or divides two decimal numbers.")
@dataclass
class Calculate:
    """A sum of two numbers."""

    a: Decimal
    """The first number."""
    operation: Literal["add", "subtract", "multiply", "divide"]
    """The way to work them out."""
    b: Decimal
    """The second number."""


@dataclass
class Result:
    """The answer."""

    value: Decimal


def calculate(payload: Calculate) -> Result | str:
    """The result of a sum, or why there is none."""
    try:
        match payload.operation:
            case "add":
                value = _EXACT.add(payload.a, payload.b)
            case "subtract":
                value = _EXACT.subtract(payload.a, payload.b)
            case "multiply":
                value = _EXACT.multiply(payload.a, payload.b)
            case "divide":
                value = _EXACT.divide(payload.a, payload.b)
    except DivisionByZero:
        return "Error: nothing can be divided by zero."
    except InvalidOperation:
        return "Error: that has no result."
    return Result(value)
