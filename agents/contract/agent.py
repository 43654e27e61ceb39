"""Agents and their files as the daemon lists them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import orjson

from agents.contract.agent_contract import Description
from agents.contract.file_discovery import AgentFile
from agents.contract.may_run import SHIPPED, Allowed, Origin, Quarantined, Verdict
from agents.providers.provider import Tool
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines, Needs
from agents.storage.safe_fs import SafeTree
from envelopes.payloads.form import PayloadForm

Key = tuple[str, str]
"""(origin, path relative to the origin's folder): what a file goes by."""

RUN_FILES = frozenset({"SwarmFactory"})
"""Shipped agents that execute files of the workspace in their own process."""

STRUCTURAL = frozenset({"LearnNew", "SwarmFactory", "Twin", "HatchEgg", "LayEgg", "Fleet"})

REACHING = frozenset({"AskPeer"})
"""Agents that speak to other machines for the person."""

TIMING = frozenset({"Timer"})
"""Agents that set timers for the person who speaks."""


def is_structural(name: str) -> bool:
    """True when an agent of that name changes agents or twins, and so is offered to its operator only."""
    return name in STRUCTURAL or name.startswith("Neighborhood")


def needs_trust(name: str) -> bool:
    """True when an agent of that name may make requests of the daemon, and so shares no process with others."""
    return is_structural(name) or name in REACHING or name in TIMING


class Folder(msgspec.Struct, frozen=True):
    """A place agents come from. Later folders win over earlier ones that claim the same name.

    ``files``: the tree that the folder is read in; None for the program's own.
    """

    origin: Origin
    path: Path
    only: frozenset[str] | None = None  # file names that count; None takes all
    but: frozenset[str] = frozenset()  # file names that do not
    files: SafeTree | None = None


class Failure(msgspec.Struct, frozen=True):
    """The reason why a file, or a class in it, is quarantined."""

    reason: str
    line: int | None = None
    class_name: str = ""
    clash: bool = False
    """True where its name is taken by another one."""


@dataclass(slots=True)
class Agent:
    """One agent as the daemon knows it. ``tool_name`` is its name in a form that every model takes."""

    name: str
    tool_name: str
    description: str
    parameters: dict[str, Any]
    file: AgentFile
    origin: Origin
    sha256: str
    kept: str
    class_name: str = ""
    has_context: bool = False
    idempotent: bool = False
    one_worker: bool = False
    task_only: bool = False
    """A call takes so long that a program must be able to fetch its result later."""
    trusted: bool = False
    shadowed_by: str = ""
    clashes: bool = False
    """True while a listener waits for its name, which another one of its origin has."""
    summary: str = ""
    """A line for people; "" where its file has none beside the description for models."""
    listener: PayloadForm | None = None
    """The form of its payload, where it is a listener."""
    needs: Needs | None = None
    """The needs that its file declares; None for one that declares nothing."""
    private: bool = False
    """True where the owner allowed the hidden paths that its needs name."""
    imported: tuple[str, ...] = ()
    """The modules of its workspace that it may read, where it declares its needs."""
    own_name: str = ""
    """The name of a listener in its file, where its owner gave it another one; a worker knows it by this."""
    prompt: str = ""
    """The file with its prompt below the home, where a model drives it."""
    code_origin: str = ""
    """Files of different ``code_origin`` never share a worker process; "" stands for ``origin``."""
    of_the_program: bool = field(init=False, compare=False)
    """True when a call of it runs nothing but files of the program itself."""
    confines: Confines = field(init=False, repr=False, compare=False)
    """The bounds of the workers that run it."""
    reference: orjson.Fragment = field(init=False, repr=False, compare=False)
    """Everything a worker needs to load this very version, as JSON: every call sends it."""

    def __post_init__(self) -> None:
        self.of_the_program = self.origin == SHIPPED and self.name not in RUN_FILES
        own = () if self.origin == SHIPPED else tuple(filter(None, (str(self.file.path), self.kept)))
        self.confines = UNCONFINED
        if self.needs is not None:
            self.confines = Confines(self.needs, self.private, own, self.imported)
        version = {
            "rel": self.file.rel,
            "path": str(self.file.path),
            "source_path": self.kept,
            "stamp": list(self.file.stamp),
            "sha256": self.sha256,
        }
        self.reference = orjson.Fragment(orjson.dumps(version))

    def described(self) -> Description:
        """The part of it that its file declares."""
        return Description(self.name, self.tool_name, self.description, self.parameters, self.class_name)

    def tool(self) -> Tool:
        """The OpenAI tool definition."""
        return {
            "type": "function",
            "function": {
                "name": self.tool_name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }


QUARANTINED_CODE = "quarantined code"
"""``FileState.lacks`` of a file that imports code which waits for approval."""


class FileState(msgspec.Struct):
    """One agent file: the agents of its last good version, and what is wrong with it now."""

    file: AgentFile
    origin: Origin
    agents: list[Agent] = msgspec.field(default_factory=list)
    failures: list[Failure] = msgspec.field(default_factory=list)
    good_since: float = 0.0
    lacks: str = (
        ""  # a module that it could not import; it may come, or be approved, without this file changing
    )
    verdict: Verdict = Allowed()
    needs: Needs | None = None
    """The needs that its text declares."""
    sha256: str = ""

    @property
    def able(self) -> list[Agent]:
        """The file's agents but for listeners whose names are taken."""
        return [agent for agent in self.agents if not agent.clashes]

    @property
    def is_quarantined(self) -> bool:
        """True when it came from elsewhere and waits for the owner's approval."""
        return isinstance(self.verdict, Quarantined)

    @property
    def waits(self) -> bool:
        """True when an approval is missing, its own or that of code that it imports, and nothing is wrong with it."""
        return self.is_quarantined or (self.lacks == QUARANTINED_CODE and not self.agents)


class Change(msgspec.Struct, frozen=True):
    """A finding of a refresh: agents that became ready, a file that failed, that waits for approval, or that went."""

    kind: Literal["ready", "failed", "waits", "gone"]
    file: str
    agents: tuple[str, ...] = ()
    failure: Failure | None = None
    good_since: float = 0.0
