"""An agent file in LisPy becomes an agent like any other."""

from __future__ import annotations

from typing import Any

import orjson

from agents.contract.agent_contract import ContractError
from agents.contract.file_discovery import CARTRIDGE
from agents.contract.loaded_file import LoadedFile, LoadFailure, describe
from agents.runtimes.lispy.agent import LIMITS, BadLispyAgentError, LispyAgent
from agents.runtimes.lispy.errors import NO_AGENT, BadImageError, BadValueError
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.value_codec import from_wire
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
        return Machine.thaw(image, ceiling=LIMITS)
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
        source, limits=LIMITS, profile=str(document.get("dialect") or usual), inputs=(), bindings=kept | given
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
