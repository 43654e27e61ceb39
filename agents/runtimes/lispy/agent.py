"""An agent file in LisPy, or a cartridge, becomes an agent that stands beside those written in Python.

The program defines ``agent-name``, ``agent-description``, ``agent-parameters`` and the procedure
``<agent-name>-run``, which is given a map of context and a map of arguments.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

from agents.basic_agent import BasicAgent
from agents.contract.agent_contract import ContractError
from agents.contract.file_discovery import CARTRIDGE
from agents.contract.loaded_file import LoadedFile, LoadFailure, describe
from agents.errors import AgentError
from agents.runtimes.lispy.conversion import from_plain, to_plain
from agents.runtimes.lispy.errors import NO_AGENT, BadImageError, BadValueError, LispyError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine, Outcome
from agents.runtimes.lispy.value_codec import from_wire
from agents.slosh.layer_names import ALIASES, LAYER_NAMES
from agents.storage.text_file import NotUtf8Error, decode

_TYPE = "lispy-cartridge"
_SCHEMA = "rappd-lispy/1.0"


def load_lispy(loaded: LoadedFile, content: bytes) -> None:
    """Makes the one agent that a ``.lispy`` file or a cartridge holds; why there is none is left in ``loaded``."""
    try:
        agent = _agent_of(content) if loaded.file.endswith(CARTRIDGE) else LispyAgent(decode(content).text)
        loaded.descriptions.append(describe(agent))
        loaded.instances.append(agent)
    except NotUtf8Error as error:
        loaded.failure = LoadFailure(loaded.file, error.line, f"it {error}")
    except BadLispyAgentError as error:
        loaded.failure = LoadFailure(loaded.file, error.line, str(error))
    except ContractError as error:
        loaded.quarantined.append(LoadFailure(loaded.file, None, str(error), "LispyAgent"))


def _agent_of(content: bytes) -> LispyAgent:
    """The agent that a cartridge gives, by the same names as a ``.lispy`` file. Raises ``BadLispyAgentError``."""
    document = _document(content)
    source = _entry(document)
    try:
        return LispyAgent(source, machine=_machine(document, source))
    except BadLispyAgentError as error:
        raise BadLispyAgentError(f"{NO_AGENT}: {error}", line=error.line) from error
    except (BadImageError, BadValueError) as error:
        raise BadLispyAgentError(f"it is a cartridge that cannot be read: {error}") from error


def _machine(document: dict[str, Any], source: str) -> Machine:
    image = _object(document, "continuation").get("image")
    if image is not None:
        return Machine.thaw(image, ceiling=_LIMITS)
    echoes = document.get("echoes")
    kept = dict(_object(document, "env"))
    kept |= {
        name: from_wire(wire) for name, wire in _object(document, "env_wire").items() if name not in kept
    }
    usual = "core" if document.get("schema") == _SCHEMA else "rappterbook"
    given = {
        "prev-result": None,
        "echo-frame": 1,
        "agent-id": str(_object(document, "_meta").get("agent_id") or "agent"),
        "prior-echo": echoes[-1] if isinstance(echoes, list) and echoes else None,
    }
    return Machine(
        source,
        limits=_LIMITS,
        profile=str(document.get("dialect") or usual),
        inputs=(),
        bindings=kept | given,
    )


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadLispyAgentError(f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or _object(document, "_meta").get("type") != _TYPE:
        raise BadLispyAgentError("it is no cartridge")
    return document


def _entry(document: dict[str, Any]) -> str:
    programs = _object(document, "programs")
    entry = document.get("entry") or ("main" if "main" in programs else "")
    if not entry and len(programs) == 1:
        entry = next(iter(programs))
    source = programs.get(entry) if isinstance(entry, str) else None
    if not isinstance(source, str):
        raise BadLispyAgentError(f"{NO_AGENT}: it names no program to run")
    return source


def _object(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}


_LIMITS = Limits(max_steps=5_000_000)
"""For reading the file, and for each call anew: a few seconds."""

_PROFILE = "rappterbook"

_CONTEXT = (*LAYER_NAMES, *ALIASES, "upstream_slush")


class BadLispyAgentError(AgentError):
    """A file that gives no agent; ``line`` is where, as far as known."""

    code = "bad_lispy_agent"
    status = 400

    def __init__(self, reason: str, *, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class LispyAgent(BasicAgent):
    """``name``, ``metadata`` and ``perform`` of a LisPy program. What it defines stays from call to call.

    Its context is a map of those layers (``agents.slosh``) whose names are in its text as strings.
    """

    def __init__(self, source: str, *, limits: Limits = _LIMITS, machine: Machine | None = None) -> None:
        """Runs the program once, on a ``machine`` of its own if it brings one. Raises ``BadLispyAgentError``."""
        self._machine = machine or Machine(source, limits=limits, profile=_PROFILE)
        outcome = self._machine.run()
        if outcome.fault is not None:
            raise _why_not(outcome.fault)
        if not outcome.ok:
            raise BadLispyAgentError("it waits for input before it defines anything")
        name = self._text("agent-name")
        self._procedure = self._procedure_for(name)
        self._layers = [layer for layer in _CONTEXT if f'"{layer}"' in source]
        metadata = {
            "name": name,
            "description": self._text("agent-description"),
            "parameters": self._parameters(),
        }
        super().__init__(name, metadata)

    def perform(self, **kwargs: Any) -> Any:
        """The result of ``<name>-run``: text as it is, maps and lists as such; its output, if it gives nil.

        Raises ``lispy_failed``, and ``BadValueError`` for arguments that are no JSON.
        """
        context = self.context
        layers = {layer: _as_json(context[layer]) for layer in self._layers if layer in context}
        self._machine.call(self._procedure, from_plain(layers), from_plain(kwargs))
        outcome = self._machine.run()
        if outcome.fault is not None:
            raise AgentError(f"{self.name}: {outcome.fault.message}", code="lispy_failed")
        return _given(outcome)

    def _text(self, name: str) -> str:
        value = self._lookup(name)
        if not isinstance(value, str) or not value.strip():
            raise BadLispyAgentError(f"it does not define {name} as text")
        return str(value).strip()

    def _lookup(self, name: str) -> Any:
        try:
            return self._machine.lookup(name)
        except KeyError:
            return None

    def _procedure_for(self, name: str) -> str:
        """``<name>-run``, with the name as it is or as names are written in LisPy."""
        usual = "-".join(name.lower().replace("_", " ").split())
        for candidate in (f"{name}-run", f"{usual}-run"):
            if self._lookup(candidate) is not None:
                return candidate
        raise BadLispyAgentError(f"it does not define the procedure {usual}-run")

    def _parameters(self) -> dict[str, Any]:
        """``agent-parameters`` as a schema: one as a map or JSON text, its properties alone, or their names.

        A list holds ``name`` or ``(name type description)`` for each parameter.
        """
        try:
            plain = to_plain(self._lookup("agent-parameters"))
            if isinstance(plain, str):
                plain = json.loads(plain)
        except (BadValueError, ValueError, RecursionError) as error:
            raise BadLispyAgentError(f"its agent-parameters are no schema: {error}") from error
        if plain is None:
            return {"type": "object", "properties": {}}
        if isinstance(plain, dict):
            is_schema = plain.get("type") == "object" or isinstance(plain.get("properties"), dict)
            return {"type": "object", "properties": {}} | (plain if is_schema else {"properties": plain})
        if isinstance(plain, list):
            return {"type": "object", "properties": dict(map(_property, plain))}
        raise BadLispyAgentError("its agent-parameters are no schema")


def _why_not(fault: LispyError) -> BadLispyAgentError:
    if fault.line is not None:  # the message starts with the place
        return BadLispyAgentError(fault.message.split(": ", 1)[1], line=fault.line)
    return BadLispyAgentError(fault.message)


def _property(written: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(written, str):
        return written, {"type": "string"}
    if not isinstance(written, list) or not 1 <= len(written) <= 3 or not all(map(_is_text, written)):
        raise BadLispyAgentError("a parameter must be a name, or (name type description)")
    name, kind, *about = (*written, "string") if len(written) == 1 else written
    return name, {"type": kind} | ({"description": about[0]} if about else {})


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _as_json(value: Any) -> Any:
    """A context layer without what JSON does not have."""
    return json.loads(json.dumps(value, default=str))


def _given(outcome: Outcome) -> Any:
    if outcome.value is None:
        return outcome.stdout
    try:
        return to_plain(outcome.value)
    except BadValueError:
        return outcome.shown()
