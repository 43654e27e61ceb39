"""The contract tests of one agent file, for its author. They run the agent: only inside a worker."""

from __future__ import annotations

import ast
import os
import runpy
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from agents.contract.agent_contract import safe_tool_name
from agents.contract.file_discovery import LISTENER_SUFFIX
from agents.contract.loading import agent_classes, execute
from agents.contract.manifest import faults, find_manifest, missing_fields
from agents.contract.syntax import syntax_tree
from agents.runtimes.python.worker.invoke import invoke
from agents.storage.text_file import shown_python
from envelopes.payloads.form import check

SCRIPT_SECONDS = 15.0
_SECRET_NAMES = ('API_KEY = "sk-', 'password = "', 'token = "', 'secret = "', 'api_key = "')
SECRETS = (*_SECRET_NAMES, *(name.replace('"', "'") for name in _SECRET_NAMES))


@dataclass(slots=True, frozen=True)
class TestOutcome:
    """The outcome of one test. What only a registry wants is not ``required`` and fails nobody.

    ``skipped``: not tested, since a test before it failed; no fault of its own.
    """

    test: str
    passed: bool
    message: str = ""
    required: bool = True
    skipped: bool = False


def run(path: Path, agents_dir: Path, shown_as: str = "") -> dict[str, Any]:
    """``{passed, tests: [{test, passed, message, required, skipped}]}``: ten tests in a fixed order.

    ``shown_as`` is the name that the file is going to have, where it lies under another one: a listener is named by it.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        tests = [
            TestOutcome("instantiation", False, f"{path.name} cannot be read: {error.strerror or error}")
        ]
    else:
        if path.name.endswith(LISTENER_SUFFIX):
            of_code = _listener_tests(path, content, agents_dir, shown_as or path.name)
        else:
            of_code = _class_tests(path, content, agents_dir)
        tests = [*_manifest_tests(content), *of_code, *_text_tests(content)]
    passed = all(verdict.passed or not verdict.required for verdict in tests)
    return {"passed": passed, "tests": [asdict(verdict) for verdict in tests]}


def _manifest_tests(content: bytes) -> Iterator[TestOutcome]:
    manifest = find_manifest(content)
    if manifest is None:
        yield TestOutcome("has_manifest", False, "No __manifest__; only a registry needs one", required=False)
        yield TestOutcome("manifest_fields", False, "Skipped — no manifest", required=False, skipped=True)
        yield TestOutcome("name_format", False, "Skipped — no manifest", required=False, skipped=True)
        return
    yield TestOutcome("has_manifest", True, required=False)
    missing, wrong = missing_fields(manifest), faults(manifest)
    fault_text = "; ".join([*([f"missing: {', '.join(missing)}"] if missing else []), *wrong])
    yield TestOutcome("manifest_fields", not fault_text, fault_text, required=False)
    name = str(manifest.get("name", ""))
    publisher, _, slug = name.partition("/")
    fits = publisher.startswith("@") and slug.isidentifier() and slug == slug.lower()
    yield TestOutcome(
        "name_format", fits, "" if fits else f"{name!r} is not @publisher/snake_case", required=False
    )


def _listener_tests(path: Path, content: bytes, agents_dir: Path, shown_as: str) -> Iterator[TestOutcome]:
    """A listener is declared, described, and answers the example of its payload."""
    from agents.contract.loading import load_agent_file
    from envelopes.payloads.form import PayloadForm
    from envelopes.payloads.schemas import example

    loaded = load_agent_file(path, shown_as=shown_as, source=content, folder=agents_dir)
    wrong = [*loaded.quarantined, *filter(None, [loaded.failure])]
    faults = "; ".join(f"{f'line {one.line}: ' if one.line else ''}{one.reason}" for one in wrong)
    yield TestOutcome("declares_listener", not wrong, faults)
    for instance, description in zip(loaded.instances, loaded.descriptions, strict=True):
        form = msgspec.convert(description.listener, PayloadForm)
        try:
            answer = instance.answer(check(form, example(form)))
        except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
            yield TestOutcome("answers_its_example", False, f"{form.name} raised {_described(error)}")
        else:
            yield TestOutcome("answers_its_example", True, f"{form.name}: {answer['result'][:200]}")
    loaded.forget()


def _class_tests(path: Path, content: bytes, agents_dir: Path) -> Iterator[TestOutcome]:
    module, failure = execute(path, path.name, content, agents_dir)
    instance: Any = None
    if module is None or failure is not None:
        line = f" line {failure.line}" if failure and failure.line else ""
        fault = f"{path.name}{line}: {failure.reason if failure else 'it does not load'}"
        yield TestOutcome("has_basic_agent", False, fault)
        yield TestOutcome("instantiation", False, "Skipped — the file does not load", skipped=True)
    else:
        offered = agent_classes(module)
        classes = [cls for cls in offered if any(base.__name__ == "BasicAgent" for base in cls.__mro__)]
        fault = "" if classes else "No class here derives from BasicAgent"
        yield TestOutcome("has_basic_agent", bool(classes), fault)
        if classes:
            instance, verdict = _instantiated(min(classes, key=lambda cls: cls.__name__))
            yield verdict
        else:
            yield TestOutcome("instantiation", False, "Skipped — no agent class", skipped=True)
    yield _name_test(instance)
    yield _perform_test(instance)
    if module is None or failure is not None:
        fault = "Skipped — the file does not load"
        yield TestOutcome("standalone_execution", False, fault, required=False, skipped=True)
    else:
        yield _script_test(path)


def _instantiated(cls: type) -> tuple[Any, TestOutcome]:
    try:
        return cls(), TestOutcome("instantiation", True, cls.__name__)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return None, TestOutcome("instantiation", False, f"{cls.__name__}() raised {_described(error)}")


def _name_test(instance: Any) -> TestOutcome:
    test = "runtime_name_is_tool_safe"
    if instance is None:
        return TestOutcome(test, False, "Skipped — no instance", skipped=True)
    name, metadata = getattr(instance, "name", None), getattr(instance, "metadata", None)
    if not isinstance(name, str) or not name:
        return TestOutcome(test, False, f"name is {name!r}")
    if safe_tool_name(name) != name:
        return TestOutcome(test, False, f"{name!r} is offered to models as {safe_tool_name(name)}")
    known_as = metadata.get("name") if isinstance(metadata, dict) else None
    return TestOutcome(
        test, known_as == name, "" if known_as == name else f"metadata says {known_as!r}, not {name!r}"
    )


def _perform_test(instance: Any) -> TestOutcome:
    test = "perform_returns_str"
    if instance is None:
        return TestOutcome(test, False, "Skipped — no instance", skipped=True)
    try:
        value = invoke(instance, {}).value
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        return TestOutcome(test, False, f"perform() raised {_described(error)}")
    is_text = isinstance(value, str)
    return TestOutcome(test, is_text, "" if is_text else f"perform() returned {type(value).__name__}")


def _script_test(path: Path) -> TestOutcome:
    """Runs the file as a script in a process of its own, the daemon's names importable."""
    test = "standalone_execution"
    try:
        child = os.fork()
    except OSError as error:
        return TestOutcome(test, False, f"no process could be started: {error.strerror}", required=False)
    if child == 0:
        _run_script(path)
    status = _wait(child)
    if status is None:
        return TestOutcome(test, False, f"still running after {SCRIPT_SECONDS:g} s", required=False)
    code = os.waitstatus_to_exitcode(status)
    return TestOutcome(
        test, code == 0, "" if code == 0 else f"as a script it ended with {code}", required=False
    )


def _run_script(path: Path) -> None:
    code = 1
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nowhere, standard)
        runpy.run_path(str(path), run_name="__main__")
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    finally:
        os._exit(code)


def _wait(child: int) -> int | None:
    """The exit status of the child, or None after it had to be killed."""
    end = time.monotonic() + SCRIPT_SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _text_tests(content: bytes) -> Iterator[TestOutcome]:
    try:
        documented = bool((ast.get_docstring(syntax_tree(content)) or "").strip())
    except (SyntaxError, ValueError, RecursionError):
        yield TestOutcome("has_docstring", False, "Skipped — the file does not load", skipped=True)
    else:
        yield TestOutcome("has_docstring", documented, "" if documented else "The file has no docstring")
    text = shown_python(content)
    lines = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if any(secret in line for secret in SECRETS)
    ]
    fault = f"line {lines[0]} holds a likely password; move it to .env" if lines else ""
    yield TestOutcome("no_hardcoded_secrets", not lines, fault)


def _described(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
