"""Stand-ins for published modules that have no counterpart here: they import, and refuse when used."""

from __future__ import annotations

from typing import Any, NoReturn

from agents.errors import AgentError

ABSENT = {
    "utils.agent_manager": "agents are added and removed by their owner, with `rappd agents`",
    "utils.bond": "eggs are packed and hatched by their owner, with `rappd egg`",
    "utils.copilot_studio_api": "this machine has no connection to Copilot Studio",
    "utils.index_card": "no index cards are kept here",
}
"""Module to the reason that an agent, and through it a person, is told."""


class UnavailableModuleError(AgentError):
    """An agent used something that this machine does not have."""

    code = "unavailable"
    status = 501


def placeholder(module: str, name: str) -> Any:
    """A class for ``from module import name``. Calling it, or anything in it, raises ``UnavailableModuleError``.

    Names that look like errors give an error class, so that ``except`` clauses work.
    """
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if name.endswith(("Error", "Exception")):
        return type(name, (UnavailableModuleError,), {"__module__": module})
    return _Refusing(name, (), {"__module__": module})


class _Refusing(type):
    """Its classes can be imported, named and derived from, but neither called nor looked into."""

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise UnavailableModuleError(f"{cls.__module__}.{cls.__qualname__} is not available: {_reason(cls)}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Refusing(f"{cls.__qualname__}.{name}", (), {"__module__": cls.__module__})


def _reason(cls: type) -> str:
    modules = (base.__module__ for base in cls.__mro__)
    return next((ABSENT[module] for module in modules if module in ABSENT), "it is not part of this machine")
