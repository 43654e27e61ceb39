"""Descriptions of the agents that come with the program, as they were when it was built: no worker loads them for that."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import agents.library
from agents.contract.agent import Agent
from agents.contract.declared_needs import Declared
from agents.contract.may_run import SHIPPED
from agents.runtimes.python.pools.answers import read_description
from agents.runtimes.python.sandbox.needs import Needs

PATH = Path(agents.library.__path__[0]) / "descriptions.json"
"""The ``describe`` answer, the needs and an example for each agent of each file, by the SHA-256 of its bytes.

``make descriptions`` writes it.
"""


def description_of(rel: str, sha256: str) -> dict[str, Any] | None:
    """The description of a file of the program itself with that content; None for one that was changed since."""
    known = _known().get(sha256)
    return None if known is None else {**read_description(bytes(known)), "rel": rel}


def needs_of(sha256: str) -> Declared | None:
    """The needs that this file declares; None for one that was changed since: to read it anew takes 5 ms."""
    known = _known().get(sha256)
    return None if known is None else Declared(msgspec.json.decode(known, type=_Described).needs)


def example_of(agent: Agent) -> str | None:
    """A sentence that reaches an agent of the program itself; None for any other: to find one takes the offline provider."""
    known = _known().get(agent.sha256) if agent.origin == SHIPPED else None
    return None if known is None else msgspec.json.decode(known, type=_Described).examples.get(agent.name)


class _Described(msgspec.Struct):
    needs: Needs | None
    examples: dict[str, str]


@cache
def _known() -> dict[str, msgspec.Raw]:
    found: dict[str, msgspec.Raw] = msgspec.json.decode(PATH.read_bytes(), type=dict[str, msgspec.Raw])
    return found
