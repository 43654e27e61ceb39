"""Only ``agents/programs/programs.py`` starts programs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.running_daemon import REPO

LAYERS = ("envelopes", "agents", "twins", "neighborhoods", "rappd")
EXEMPT = {
    "agents/programs/programs.py": "the module that starts programs",
    "agents/runtimes/python/worker/worker_main.py": "runs in workers and looks for Popen objects of agents; starts nothing",
}
IN_WORKERS = ("agents/library/", "agents/rapps/")
"""Agents: they run in workers, in their sandbox."""

MODULES = {"subprocess", "pty", "webbrowser", "popen2", "commands", "pexpect"}
ATTRIBUTES = {
    "os": ("exec", "spawn", "posix_spawn", "system", "popen", "startfile"),
    "shutil": ("which",),
    "asyncio": ("create_subprocess", "subprocess"),
    "click": ("launch", "edit", "echo_via_pager"),
    "uuid": ("getnode", "uuid1"),
    "ctypes.util": ("find_library",),
    "platform": ("processor", "platform", "uname"),
}
METHODS = ("subprocess_exec", "subprocess_shell", "create_subprocess_exec", "create_subprocess_shell")


def starts(source: str) -> Iterator[str]:
    """Each place that starts a program, or may."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (
                f"{node.lineno}: import {one.name}" for one in node.names if _forbids_module(one.name)
            )
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if _forbids_module(node.module or ""):
                yield f"{node.lineno}: from {node.module} import"
            for one in node.names:
                if _forbids(node.module or "", one.name):
                    yield f"{node.lineno}: from {node.module} import {one.name}"
        elif isinstance(node, ast.Attribute) and _is_forbidden_call(node):
            yield f"{node.lineno}: {_dotted(node.value)}.{node.attr}"


def _is_forbidden_call(node: ast.Attribute) -> bool:
    return node.attr in METHODS or _forbids(_dotted(node.value), node.attr)


def _forbids_module(name: str) -> bool:
    return name.split(".")[0] in MODULES or name.startswith("asyncio.subprocess")


def _forbids(module: str, name: str) -> bool:
    return name.startswith(ATTRIBUTES.get(module, ("\0",)))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _sources() -> list[Path]:
    return [path for layer in LAYERS for path in sorted((REPO / layer).rglob("*.py"))]


def test_no_other_module_starts_programs() -> None:
    found = {}
    for path in _sources():
        name = str(path.relative_to(REPO))
        if name in EXEMPT or name.startswith(IN_WORKERS):
            continue
        if places := list(starts(path.read_text())):
            found[name] = places
    assert found == {}


def test_exemptions_are_still_needed() -> None:
    assert all(list(starts((REPO / name).read_text())) for name in EXEMPT)


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess", "import subprocess as s", "from subprocess import run", "import pty", "import webbrowser",
        "import os\nos.execv('a', [])", "import os\nos.spawnlp(0, 'a')", "import os\nos.posix_spawn('a', [], {})",
        "from os import execvpe", "import os\nos.system('a')", "import os\nos.popen('a')",
        "import asyncio\nasyncio.create_subprocess_exec('a')", "import asyncio\nasyncio.subprocess.PIPE",
        "from asyncio import create_subprocess_shell", "import shutil\nshutil.which('a')", "from shutil import which",
        "loop.subprocess_exec(None)", "import click\nclick.launch('a')", "import asyncio.subprocess",
        "import ctypes.util\nctypes.util.find_library('c')",
    ],
)  # fmt: skip
def test_each_way_to_start_a_program_is_seen(source: str) -> None:
    assert list(starts(source))


def test_every_python_is_started_by_the_safe_command() -> None:
    """No module writes ``[sys.executable, …]`` or chooses a working directory for what it starts."""
    found = {}
    for path in _sources():
        name = str(path.relative_to(REPO))
        if name == "agents/programs/programs.py" or name.startswith(IN_WORKERS):
            continue
        if places := list(_unsafe_starts(path.read_text())):
            found[name] = places
    assert list(found) == ["agents/packages/install_packages.py"], "there a person is told what to type"


def _unsafe_starts(source: str) -> Iterator[int]:
    if "sys.executable" not in source and "programs." not in source:
        return  # to parse them all takes seconds
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List) and node.elts and _dotted(node.elts[0]) == "sys.executable":
            yield node.lineno
        elif isinstance(node, ast.Call) and _dotted(node.func).startswith("programs."):
            yield from (node.lineno for one in node.keywords if one.arg == "directory")
