"""Names that clash, hide each other and move between scopes mean the same in the singleton as before."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import agents.library
from agents.contract.loading import load_agent_file

NAMES = st.sampled_from(["alpha", "beta", "SOUL", "json", "list", "_p", "__d__"])

# Each part calls itself and puts what happened into `seen`; {0}, {1}, … are names, {v} a value of the file.
PARTS = [
    "{0} = '{v}'\ndef {1}({2}='p'):\n    {3} = 'l'\n    return [{0}, {2}, {3}]\nsee({1})",
    "{0} = '{v}'\n{1} = lambda {2}='p': ({0}, {2})\nsee({1})",
    "{0} = ['{v}']\nsee(lambda: [{1} for {1} in {0}] + [{2} for {1} in {0} for {2} in {1} if {2}])",
    "{0} = ['{v}']\nclass {1}:\n    {2} = {0}\n    {0} = {0} + ['c']\n    def {3}(self):\n        return {0}\n"
    "see(lambda: [{1}.{0}, {1}.{2}, {1}().{3}()])",
    "{0} = 1\ndef {1}():\n    global {0}, {2}\n    {0} = {0} + 1\n    {2} = '{v}'\n    return {0}\n"
    "see({1})\nsee(lambda: ({0}, {2}))",
    "def {0}({1}='p'):\n    {2} = '{v}'\n    def {3}():\n        nonlocal {2}\n        {2} += '!'\n"
    "        return {1}\n    return [{3}(), {2}]\nsee({0})",
    "try:\n    raise ValueError('{v}')\nexcept ValueError as {0}:\n    {1} = str({0})\nsee(lambda: {1})\nsee(lambda: {0})",
    "def {0}({1}):\n    match {1}:\n        case {{'k': {2}, **{3}}}:\n            return [{2}, {3}]\n"
    "        case [{2}, *{3}]:\n            return [{3}, {2}]\nsee(lambda: {0}({{'k': '{v}', 'z': 1}}))\nsee(lambda: {0}([1, '{v}']))",
    "{0} = '{v}'\nsee(lambda: [({1} := {0}), {1}])\nif ({2} := {0}):\n    pass\nsee(lambda: {2})",
    "for {0} in ['{v}']:\n    {1} = {0}\nelse:\n    {2} = 'e'\nsee(lambda: [{0}, {1}, {2}])",
    "from os.path import join as {0}\nsee(lambda: {0}('{v}', 'x'))",
    "import json as {0}, math\n{1} = math.pi\nsee(lambda: [{0}.dumps({1})])",
    "def {0}():\n    from json import dumps as {1}\n    return {1}(['{v}'])\nsee({0})",
    "{0} = '{v}'\ndef {1}({2}):\n    return lambda: {2}\nsee(lambda: f'{{plain({0})!r:>12}} {{plain({1}({0})())}}')",
    "def {0}({1}):\n    return lambda *a: [{1}(), *a]\n{2} = '{v}'\n@{0}\ndef {3}({1}='d'):\n    return {1} + {2}\nsee({3})",
    "{0} = '{v}'\nclass {1}({0}.__class__):\n    class {2}:\n        {3} = {0}\n    {4} = [{0} for _ in 'ab']\n"
    "see(lambda: [{1}.{2}.{3}, {1}.{4}])",
    "{0}: str = '{v}'\n{0} += '+'\ndel {1}\nsee(lambda: {0})",
    "def {0}(*{1}, {2}='k', **{3}):\n    return [{1}, {2}, {3}]\nsee(lambda: {0}(1, {2}='{v}', extra=2))",
    "async def {0}({1}='p'):\n    return [{1} async for {1} in {2}()]\n{2} = '{v}'\nsee(lambda: {0}.__code__.co_argcount)",
    "with __import__('contextlib').nullcontext('{v}') as {0}:\n    {1} = {0}\nsee(lambda: [{0}, {1}])",
]

HEAD = """\
from agents.basic_agent import BasicAgent

seen_so_far = []


def plain(value):  # functions and classes have other names in a singleton, on purpose
    if isinstance(value, (str, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, ([].__class__, tuple)):
        return [plain(item) for item in value]
    return type(value).__name__ if isinstance(value, BaseException) else "something"


def see(call):
    try:
        value = call()
    except Exception as error:
        value = error
    seen_so_far.append(plain(value))


"""
TAIL = """

class {name}Agent(BasicAgent):
    def __init__(self):
        super().__init__("{name}", {{"name": "{name}", "description": "d"}})

    def perform(self, **kwargs):
        return repr(seen_so_far)
"""

PART = st.tuples(st.sampled_from(PARTS), st.lists(NAMES, min_size=5, max_size=5))

IMPORTED_TWICE = [
    ("from os.path import join as {0}\nsee(lambda: {0}('{v}', 'x'))", ["beta"] * 5),
    ("import json as {0}\nsee(lambda: {0}.dumps([]))", ["beta"] * 5),
]


def source(name: str, parts: list[tuple[str, list[str]]]) -> str:
    done = []
    for number, (part, names) in enumerate(parts):
        text = part.format(*names, v=f"{name}{number}")
        # a part whose names get in each other's way ends there, the same in both forms
        done.append(
            "try:\n"
            + "".join(f"    {line}\n" for line in text.splitlines())
            + "except Exception as oops:\n    see(lambda: type(oops))\n"
        )
    return HEAD + "\n" + "\n".join(done) + TAIL.format(name=name)


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[ModuleType]:
    path = tmp_path / "agents" / "swarm_factory_agent.py"
    path.parent.mkdir()
    shutil.copy(Path(agents.library.__path__[0]) / path.name, path)
    loaded = load_agent_file(path)
    assert loaded.module is not None
    yield loaded.module
    loaded.forget()


@pytest.mark.timeout(1200)  # a fork of the whole test process for each example
@settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
@given(
    one=st.lists(PART, min_size=1, max_size=4), two=st.lists(PART, min_size=1, max_size=4), bare=st.booleans()
)
@example(one=[(PARTS[0], ["beta"] * 5)], two=IMPORTED_TWICE, bare=True)
def test_a_singleton_sees_what_its_files_saw(
    factory: ModuleType,
    tmp_path: Path,
    one: list[tuple[str, list[str]]],
    two: list[tuple[str, list[str]]],
    bare: bool,
) -> None:
    assume(not any(_unbinds_a_builtin(part, names) for part, names in [*one, *two]))
    folder = tmp_path / "shop"
    folder.mkdir(exist_ok=True)
    alone = {}
    for name, parts in (("One", one), ("Two", two)):
        text = source(name, parts)
        if bare:  # the same statements at the top level itself
            text = (
                HEAD
                + "\n".join(p.format(*n, v=f"{name}{i}") for i, (p, n) in enumerate(parts))
                + TAIL.format(name=name)
            )
        (folder / f"{name.lower()}_agent.py").write_text(text)
        loaded = load_agent_file(folder / f"{name.lower()}_agent.py")
        loaded.forget()
        assume(loaded.failure is None)
        alone[name] = _performed(loaded, name)
    text = factory._Singleton("Both", "shop", factory._read(folder, set())).text()
    loaded = load_agent_file(folder / "both_agent.py", source=text.encode())
    loaded.forget()
    assert loaded.failure is None, loaded.failure
    both = loaded.instances[0]
    for name, expected in alone.items():
        assert both.perform(agent=name) == expected


def _unbinds_a_builtin(part: str, names: list[str]) -> bool:
    """`del list`, or the end of `except … as list`, gives the builtin back: the one thing that is not kept."""
    return ("as {0}:" in part and names[0] == "list") or ("del {1}" in part and names[1] == "list")


def _performed(loaded: Any, name: str) -> str:
    found = loaded.find(name)
    assert found is not None, loaded
    text: str = found[0].perform()
    return text
