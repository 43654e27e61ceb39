"""Maps names that agent files import to modules; each is made when first imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import agents
from agents.compat.data_dir import use_data_dir
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
    """Metaclass of classes that can be imported, named and derived from, but neither called nor looked into."""

    def __call__(cls, *_: Any, **__: Any) -> NoReturn:
        raise UnavailableModuleError(f"{cls.__module__}.{cls.__qualname__} is not available: {_reason(cls)}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Refusing(f"{cls.__qualname__}.{name}", (), {"__module__": cls.__module__})


def _reason(cls: type) -> str:
    modules = (base.__module__ for base in cls.__mro__)
    return next((ABSENT[module] for module in modules if module in ABSENT), "it is not part of this machine")


_BASE = "agents.basic_agent"
_STORAGE = "agents.compat.storage"

SAME_AS = {
    "agents.chain": "agents.chains.chain",
    "agents.graph": "agents.chains.graph",
    "basic_agent": _BASE,
    "openrappter.agents": "agents",
    "openrappter.agents.basic_agent": _BASE,
    "skills.basic_agent": _BASE,
    "local_storage": _STORAGE,
    "utils.azure_file_storage": _STORAGE,
    "utils.dynamics_storage": _STORAGE,
    "utils.environment": "agents.compat.environment",
    "utils.host": "agents.compat.host",
    "utils.llm": "agents.compat.llm",
    "utils.local_file_storage": _STORAGE,
    "utils.local_storage": _STORAGE,
    "utils.result": "agents.compat.result",
    "utils.storage_factory": _STORAGE,
    "xmlable": "agents.listener",
}
"""Imported name to the module that it is: one BasicAgent, one storage, however it is reached."""

PACKAGES = frozenset({"openrappter", "skills", "utils"})


def install_shims(
    *, workspace: Path | None, agents_dir: Path, data_dir: Path, neighbours: bool = True
) -> None:
    """Makes every name above importable in this process, for agents of one workspace.

    Neighbours import as ``agents.x`` and as ``x``, after the daemon's own; ``utils`` goes on to the
    ``utils`` folder of the workspace; without ``neighbours``, none of both. Calling it again moves everything
    to the other workspace.
    """
    use_data_dir(data_dir)
    beside = [agents_dir, *([workspace] if workspace else [])]
    finder = next((entry for entry in sys.meta_path if isinstance(entry, _ShimFinder)), None)
    if finder is None:
        finder = _ShimFinder()
        sys.meta_path.insert(0, finder)
    else:
        for place_of_paths in (agents.__path__, sys.path):
            if finder.neighbours in place_of_paths:
                place_of_paths.remove(finder.neighbours)
    finder.neighbours = str(agents_dir)
    finder.utils = [str(folder / "utils") for folder in beside] if neighbours else []
    if neighbours:
        agents.__path__.append(finder.neighbours)
        sys.path.append(finder.neighbours)
    if not hasattr(agents, "BasicAgent"):
        agents.BasicAgent = importlib.import_module(_BASE).BasicAgent  # type: ignore[attr-defined]  # only here


class _ShimFinder(MetaPathFinder):
    """Answers for the shim names alone, before anything on the path can."""

    neighbours = ""
    utils: Sequence[str] = ()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in SAME_AS:
            return spec_from_loader(fullname, _SameAs(SAME_AS[fullname]))
        if fullname in PACKAGES:
            spec = ModuleSpec(fullname, _Empty(), is_package=True)
            spec.submodule_search_locations = list(self.utils) if fullname == "utils" else []
            return spec
        if fullname in ABSENT:
            return spec_from_loader(fullname, _Placeholders())
        return None


class _SameAs(Loader):
    def __init__(self, real: str) -> None:
        self._real = real

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._real)


class _Empty(Loader):
    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "Made by the daemon; only what agent files import from it is here."


class _Placeholders(Loader):
    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        module.__doc__ = f"Not part of this machine: {ABSENT[name]}."
        module.__getattr__ = lambda wanted: placeholder(name, wanted)  # type: ignore[method-assign]  # PEP 562
