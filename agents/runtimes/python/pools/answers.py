"""Forms of the answers of workers, which agent code can write as it likes: what has another form is refused.

Each reader takes the JSON of an answer and raises ValueError, TypeError or RecursionError for what it is not.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import orjson

from agents.contract.agent_contract import ContractError, check_metadata
from agents.contract.manifest import essentials
from agents.runtimes.python.sandbox.needs import Use, checked_uses
from agents.runtimes.python.worker.service_files import ServiceReply
from envelopes.codecs.strict_json import MAX_DEPTH, levels
from envelopes.payloads.core import check_core
from envelopes.payloads.form import MOST_STATE_BYTES, BadFormError, PayloadForm, check_form
from envelopes.payloads.schemas import json_schema, tool_text

T = TypeVar("T")

MOST_BYTES = 4 << 20  # of a description, of texts for the prompt, of a report
_SLUSH_BYTES = 1 << 20
_PARTS = 20_000  # objects and lists in one value: 60 MB of empty lists hold the event loop for half a minute
_PAYLOADS = 1_000
_LINE = re.compile(r"[\r\n\0]")


class EmittedPayload(msgspec.Struct, omit_defaults=True):
    """A payload of a listener's handler: a value with its root, or text as the handler wrote it. ``core``: of rappd's own."""

    root: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")
    text: str | None = None
    core: bool = False


class PerformAnswer(msgspec.Struct):
    """The outcome of one ``perform``: its text, and what the next agent gets."""

    result: str
    data_slush: msgspec.Raw = msgspec.Raw(b"null")
    payloads: list[EmittedPayload] = []
    state: msgspec.Raw = msgspec.Raw(b"null")
    uses: list[Use] = []

    def slush(self) -> dict[str, Any] | None:
        """The checked ``data_slush``. Raises ValueError or TypeError."""
        found = _plain_value(bytes(self.data_slush), _SLUSH_BYTES)
        if found is not None and not isinstance(found, dict):
            raise TypeError("data_slush is no object")
        return found


class FailureAnswer(msgspec.Struct):
    """A reason why a file, or a class of it, gives no agent."""

    reason: str
    line: int | None = None
    class_name: str = ""
    missing_module: str | None = None


class AgentAnswer(msgspec.Struct):
    """One agent as its file describes it."""

    name: str
    tool_name: str
    description: str
    parameters: msgspec.Raw
    class_name: str
    has_system_context: bool = False
    idempotent: bool = False
    one_worker: bool = False
    task_only: bool = False
    manifest: msgspec.Raw = msgspec.Raw(b"{}")
    listener: PayloadForm | None = None


class FileAnswer(msgspec.Struct):
    """One described file."""

    rel: str
    agents: list[AgentAnswer]
    quarantined: list[FailureAnswer] = []
    failure: FailureAnswer | None = None
    waits: bool = False
    seconds: float = 0.0


class DescribeAnswer(msgspec.Struct):
    """Described files, in the order in which they were asked for."""

    files: list[FileAnswer]


class TextsAnswer(msgspec.Struct):
    """Files that were described apart, each as JSON text."""

    files: list[str]


class TestAnswer(msgspec.Struct):
    """One contract test's outcome."""

    test: str
    passed: bool
    message: str = ""
    required: bool = True
    skipped: bool = False


class TestsAnswer(msgspec.Struct):
    """The outcome of all contract tests."""

    passed: bool
    tests: list[TestAnswer]


class ServiceAnswer(msgspec.Struct):
    """A service's reply; ``body`` is base64."""

    status: int
    headers: dict[str, str]
    body: str
    uses: list[Use] = []


Performed = tuple[str, dict[str, Any] | None, list[EmittedPayload], dict[str, Any] | None, list[Use]]


def read_performed(answer: bytes) -> Performed:
    """The text of a ``perform``, its slush, the payloads of a listener, its state, None for one that has none, and its uses."""
    found = _performed(answer)
    if len(found.payloads) > _PAYLOADS:
        raise ValueError(f"{len(found.payloads)} payloads")
    for one in found.payloads:
        _plain_value(bytes(one.data), MOST_BYTES)
    state = _plain_value(bytes(found.state), MOST_STATE_BYTES)
    if state is not None and not isinstance(state, dict):
        raise TypeError("the state is no object")
    return found.result, found.slush(), found.payloads, state, checked_uses(found.uses) if found.uses else []


def read_contexts(answer: bytes) -> dict[str, str | None]:
    """The texts for the prompt, by agent."""
    return _bounded(_contexts, answer)


def reader_of_descriptions(number: int) -> Callable[[bytes], dict[str, Any]]:
    """A reader of ``number`` described files: ``{files: [{rel, agents, quarantined, failure, waits, seconds}]}``."""

    def read(answer: bytes) -> dict[str, Any]:
        files = _bounded(_described, answer).files
        if len(files) != number:
            raise ValueError(f"{len(files)} files are described, not {number}")
        return {"files": [_file(one) for one in files]}

    return read


def reader_of_texts(number: int) -> Callable[[bytes], list[dict[str, Any] | None]]:
    """A reader of ``number`` files that were described apart: each alone may have a wrong form, and is None then."""

    def read(answer: bytes) -> list[dict[str, Any] | None]:
        texts = _texts(answer).files
        if len(texts) != number:
            raise ValueError(f"{len(texts)} files are described, not {number}")
        return [_described_file(text) for text in texts]

    return read


def read_description(answer: bytes) -> dict[str, Any]:
    """The description of a file: ``{rel, agents, quarantined, failure, waits, seconds}``."""
    return _file(_bounded(_described_alone, answer))


def _described_file(text: str) -> dict[str, Any] | None:
    try:
        return read_description(text.encode())
    except (ValueError, TypeError, RecursionError):
        return None


def read_tests(answer: bytes) -> dict[str, Any]:
    """The outcome of contract tests: ``{passed, tests: [{test, passed, message, required}]}``."""
    found: dict[str, Any] = msgspec.to_builtins(_bounded(_tests, answer))
    return found


def read_service_reply(answer: bytes) -> tuple[ServiceReply, list[Use]]:
    """The reply of a service, with a status that can be sent, and its uses; which headers are is for the listener to say."""
    found = _served(answer)
    if not 100 <= found.status <= 599:
        raise ValueError(f"{found.status} is no HTTP status")
    if any(map(_LINE.search, found.headers.values())):
        raise ValueError("a header with a line break")
    body = base64.b64decode(found.body, validate=True)
    return ServiceReply(found.status, found.headers, body), checked_uses(found.uses)


_performed = msgspec.json.Decoder(PerformAnswer).decode
_contexts = msgspec.json.Decoder(dict[str, str | None]).decode
_described = msgspec.json.Decoder(DescribeAnswer).decode
_described_alone = msgspec.json.Decoder(FileAnswer).decode
_texts = msgspec.json.Decoder(TextsAnswer).decode
_tests = msgspec.json.Decoder(TestsAnswer).decode
_served = msgspec.json.Decoder(ServiceAnswer).decode


def _bounded(decode: Callable[[bytes], T], answer: bytes) -> T:
    if len(answer) > MOST_BYTES or _parts(answer) > _PARTS:
        raise ValueError("it is too large")
    return decode(answer)


def _parts(value: bytes) -> int:
    return value.count(b"[") + value.count(b"{")


def _plain_value(value: bytes, most: int) -> Any:
    """A value that can be written as JSON again, in every place where it goes."""
    if value == b"null":
        return None
    if len(value) > most or _parts(value) > _PARTS:
        raise ValueError("it is too large")
    found = orjson.loads(value)
    if any(depth > MAX_DEPTH for depth, _ in enumerate(levels(found), 1)):
        raise ValueError("it is nested too deep")
    return found


def _file(found: FileAnswer) -> dict[str, Any]:
    return {
        "rel": found.rel,
        "agents": [_agent(one) for one in found.agents],
        "quarantined": [msgspec.to_builtins(one) for one in found.quarantined],
        "failure": msgspec.to_builtins(found.failure),
        "waits": found.waits,
        "seconds": found.seconds,
    }


def _agent(found: AgentAnswer) -> dict[str, Any]:
    parameters = _plain_value(bytes(found.parameters), MOST_BYTES)
    try:
        checked = check_metadata(found.class_name, {"parameters": parameters})
    except ContractError as error:
        raise ValueError(str(error)) from error
    if not found.name.strip():
        raise ValueError("an agent without a name")
    manifest = _plain_value(bytes(found.manifest), MOST_BYTES)
    if found.listener is not None:
        try:
            check_form(found.listener)
            check_core(found.listener)
        except BadFormError as error:
            raise ValueError(str(error)) from error
        if found.listener.name != found.name:
            raise ValueError("a listener of two names")
        checked = json_schema(found.listener)
    return {
        "name": found.name,
        "tool_name": found.tool_name,
        "description": found.description if found.listener is None else tool_text(found.listener),
        "parameters": checked,
        "class_name": found.class_name,
        "has_system_context": found.has_system_context,
        "idempotent": found.idempotent,
        "one_worker": found.one_worker,
        "task_only": found.task_only,
        "manifest": essentials(manifest),
        "listener": found.listener,
    }
