"""The result of loading one agent file: its agents, and the failures."""

from __future__ import annotations

import inspect
import sys
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

from agents.basic_agent import BasicAgent
from agents.contract import manifest
from agents.contract.agent_contract import Description, check_metadata, safe_tool_name


@dataclass(slots=True, frozen=True)
class LoadFailure:
    """The reason why a file, or one class in it, gives no agent.

    ``line`` is where in the file it happened, as far as known. ``missing_module`` is the module that
    has to be installed, if that is all that is wrong.
    """

    file: str
    line: int | None
    reason: str
    class_name: str = ""
    missing_module: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The same as a plain object."""
        return asdict(self)


@dataclass(slots=True)
class LoadedFile:
    """One executed file.

    ``failure`` is set when the file itself failed; ``quarantined`` are classes that gave no agent although
    the file ran.
    """

    file: str
    module: ModuleType | None = None
    instances: list[Any] = field(default_factory=list)
    descriptions: list[Description] = field(default_factory=list)
    quarantined: list[LoadFailure] = field(default_factory=list)
    failure: LoadFailure | None = None

    def find(self, name: str, class_name: str = "") -> tuple[Any, Description] | None:
        """The agent of that name, and class if one is given; of several the last, as in load order."""
        for description, instance in zip(reversed(self.descriptions), reversed(self.instances), strict=True):
            if description.name == name and class_name in ("", description.class_name):
                return instance, description
        return None

    def forget(self) -> None:
        """Takes the file's module out of ``sys.modules``."""
        if self.module is not None:
            sys.modules.pop(self.module.__name__, None)


def describe(instance: Any, *, default_text: str = "", shown: Any = None) -> Description:
    """Describes ``instance`` as it describes itself; ``shown`` is its file's ``__manifest__``.

    Raises ``ContractError`` when its metadata cannot be offered to a model.
    """
    class_name = type(instance).__name__
    metadata = getattr(instance, "metadata", None)
    offered = metadata if isinstance(metadata, dict) else {}
    name = next(
        (
            found.strip()
            for found in (getattr(instance, "name", None), offered.get("name"))
            if isinstance(found, str) and found.strip() not in ("", BasicAgent.__name__)
        ),
        class_name,
    )
    parameters = check_metadata(class_name, metadata)
    context = getattr(type(instance), "system_context", None)
    declared = {**(shown if isinstance(shown, dict) else {}), **offered}
    return Description(
        name=name,
        tool_name=safe_tool_name(name),
        description=text_of(offered.get("description"))
        or text_of(declared.get("description"))
        or default_text,
        parameters=parameters,
        class_name=class_name,
        has_system_context=context is not None and context is not BasicAgent.system_context,
        idempotent=getattr(instance, "idempotent", None) is True or declared.get("idempotent") is True,
        one_worker=getattr(instance, "one_worker", None) is True or declared.get("one_worker") is True,
        task_only=getattr(instance, "task_only", None) is True or declared.get("task_only") is True,
        manifest=manifest.essentials(shown),
    )


def text_of(value: Any) -> str:
    return inspect.cleandoc(value).strip() if isinstance(value, str) else ""
