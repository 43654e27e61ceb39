"""The documents say what is so: their commands run, their links lead somewhere, their tables are complete."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import click
import pyotp
import pytest
from fixtures.free_ports import free_port
from fixtures.running_daemon import REPO

from rappd.cli.app import rappd
from rappd.settings.registry import BY_NAME

DOCS = REPO / "docs"
MADE = ("errors.md", "settings.md", "routes.md", "cli.md", "states.md")
PAGES = [*sorted(REPO.glob("*.md")), *sorted(DOCS.glob("*.md"))]
FOR_PEOPLE = [REPO / "README.md", DOCS / "tutorial.md", DOCS / "listeners.md", DOCS / "how-to.md"]
NEVER = re.compile(r"\b(?:node|tenant|envelope|token|handshake|certificate|endpoint)s?\b", re.IGNORECASE)
NOT_RUN = ("make start", "make test")
BY_HAND = "by-hand"
"""Marks what the tests leave to people: it needs another machine, an account, or the service manager."""

_FENCE = re.compile(r"^```(\S*)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, its mark (of Python the file that it is the text of), its text."""

    language: str
    mark: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _FENCE.findall(page.read_text())]


def named(page: Path) -> str:
    return str(page.relative_to(REPO))


# The commands.


class Reader:
    """A reader who types what a page says, in a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.ports = {port: str(free_port()) for port in ("7071", "7171", "7443")}
        self.agents = folder / ".rapp" / "brainstem" / "agents"
        self._folder = folder
        self._log = folder / ".rapp" / "rappd.log"
        self._kept = folder / "environment.json"
        self._cwd = folder / "clone"
        self._cwd.mkdir()
        self._secret = ""
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PORT": self.ports["7071"],
            "RAPPD_NAME": "desk",
            "RAPPD_LOCAL_MODELS": "off",
            "RAPPD_NEARBY": "off",
            "RAPPD_PEERS_ADDRESS": "127.0.0.1",
            "RAPPD_PEERS_PORT": self.ports["7443"],
            "GH_CONFIG_DIR": str(folder / "no-gh"),
        }

    def types(self, text: str) -> str:
        """Runs one block; what it exports counts for the next. Returns what was printed."""
        lines = [line for line in text.splitlines() if line.strip() not in NOT_RUN]
        keep = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"
        if "--code 123456" in text:
            lines = [line.replace("123456", pyotp.TOTP(self._secret).now()) for line in lines]
        script = "\n".join([*lines, f"{sys.executable} -c {keep!r} {self._kept}"])
        before, news = self._files(), self._news()
        done = subprocess.run(
            ["sh", "-e", "-c", self.here(script)],
            env=self._environment,
            cwd=self._cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{text}\nended with {done.returncode}: {done.stdout}"
        self._environment = json.loads(self._kept.read_text())
        if secret := re.search(r"secret=([A-Z2-7]+)", done.stdout):
            self._secret = secret[1]
        if self._files() != before and "/brainstem/agents/" in text:
            self._wait_for_news(news)
        return done.stdout

    def saves(self, name: str, text: str) -> None:
        """Saves an agent file, and takes the moment that its being live takes."""
        news = self._news()
        (self.agents / name).write_text(text)
        self._wait_for_news(news)

    def here(self, text: str) -> str:
        """The text with ports that are free here."""
        return re.sub("7[01]71|7443", lambda found: self.ports[found[0]], text)

    def leaves(self) -> None:
        for home in self._folder.glob(".rapp*"):
            environment = {**self._environment, "RAPP_HOME": str(home)}
            stop = [sys.executable, "-m", "rappd", "stop"]
            subprocess.run(stop, env=environment, capture_output=True, check=False)

    def _files(self) -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in self.agents.glob("*.py")}

    def _news(self) -> int:
        return len(re.findall(r" agents: ", self._log.read_text())) if self._log.exists() else 0

    def _wait_for_news(self, seen: int) -> None:
        until = time.monotonic() + 100
        while self._news() <= seen:
            assert time.monotonic() < until, "the saved file was not noticed"
            time.sleep(0.02)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.leaves()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", FOR_PEOPLE, ids=named)
def test_what_a_page_tells_to_type_works_and_prints_what_it_says(reader: Reader, page: Path) -> None:
    printed = ""
    for block in [found for found in blocks(page) if found.mark != BY_HAND]:
        if block.language == "sh":
            printed = reader.types(block.text)
        elif block.language == "python":
            reader.saves(block.mark, block.text)
        elif block.language == "text":
            rest = iter(printed.splitlines())
            for line in filter(str.strip, reader.here(block.text).splitlines()):
                assert any(says(line, told) for told in rest), f"not printed: {line}\nbut:\n{printed}"


def says(line: str, told: str) -> bool:
    """True when a line of the page stands for a printed one: "…" is anything, spaces are as many as there are."""
    parts = (r"\s+".join(map(re.escape, part.split())) for part in line.split("…"))
    return re.fullmatch(r"\s*.*\s*".join(parts), told.strip()) is not None


def test_nothing_but_the_two_make_commands_is_left_out() -> None:
    lines = [
        line.strip() for page in FOR_PEOPLE for block in blocks(page) for line in block.text.splitlines()
    ]
    assert {line for line in lines if line.startswith("make ")} == set(NOT_RUN)


# What the pages name.


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, heading = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_relative_to(REPO), target
        assert there.exists(), target
        if heading:
            assert heading in headings(there), target


def headings(page: Path) -> set[str]:
    lines = [line.lstrip("#").strip() for line in page.read_text().splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", line).lower().replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_verb_and_setting_that_a_page_names_exists(page: Path) -> None:
    for first, second in verbs_named(page):
        found = rappd.get_command(click.Context(rappd), first)
        assert found is not None, f"rappd {first}"
        if isinstance(found, click.Group) and second:
            assert second in found.list_commands(click.Context(found)), f"rappd {first} {second}"
    for name in re.findall(r"rappd config set ([a-z_.]+)", code_of(page)):
        assert name in BY_NAME, name


def verbs_named(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"\brappd ([a-z]+)(?: ([a-z_]+))?", code_of(page))


def code_of(page: Path) -> str:
    text = page.read_text()
    shell = [block.text for block in blocks(page) if block.language == "sh"]
    return "\n".join([*shell, *re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))])


@pytest.mark.parametrize("page", FOR_PEOPLE, ids=named)
def test_people_read_no_engineers_words(page: Path) -> None:
    text = re.sub(r"`[^`\n]+`|\]\([^)]*\)", "", _FENCE.sub("", page.read_text()))
    assert NEVER.findall(text) == []


def test_the_architecture_page_says_what_each_package_is_for() -> None:
    table = dict(
        re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    )
    packages = {
        named(file.parent)
        for floor in ("envelopes", "agents", "twins", "neighborhoods", "rappd")
        for file in (REPO / floor).rglob("__init__.py")
    }
    unsaid = {
        package
        for package in packages - table.keys()
        if f"`{Path(package).name}/`" not in table.get(str(Path(package).parent), "")
    }
    assert not unsaid
    assert all((REPO / package).is_dir() for package in table)


def test_every_test_that_the_threat_model_names_exists() -> None:
    named_tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / "threat-model.md").read_text())
    assert len(named_tests) > 40
    for file, name in named_tests:
        assert name in functions_in(REPO / file), f"{file}::{name}"


@cache
def functions_in(path: Path) -> frozenset[str]:
    assert path.exists(), path
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(
        found.name for found in ast.walk(ast.parse(path.read_text())) if isinstance(found, functions)
    )


# What mirrors the code.


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference pages as the code gives them now."""
    folder = tmp_path_factory.mktemp("made")
    command = [sys.executable, str(DOCS / "make_reference.py"), str(folder)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", MADE)
def test_reference_pages_mirror_the_code(made: Path, name: str) -> None:
    assert (DOCS / name).read_text() == (made / name).read_text(), "run: python docs/make_reference.py"


def test_commands_in_the_search_of_the_page_mirror_the_code(made: Path) -> None:
    kept = REPO / "rappd/web/components/search/commands.json"
    assert kept.read_text() == (made / "commands.json").read_text(), "run: python docs/make_reference.py"


@pytest.mark.parametrize(
    "kept",
    [
        "rappd/web/lib/operations.js",
        "rappd/features/operation_paths.py",
        "rappd/listeners/route_paths.py",
    ],
)
def test_what_is_written_of_operations_and_routes_mirrors_them(made: Path, kept: str) -> None:
    of_the_table = (made / Path(kept).name).read_text()
    assert (REPO / kept).read_text() == of_the_table, "run: python docs/make_reference.py"


@pytest.mark.parametrize("words", ["rappd", "rappd agents", "rappd threads export"])
def test_the_command_line_page_is_what_help_prints(words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *words.split(), "--help"],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"```text\n{done.stdout.rstrip()}\n```" in (DOCS / "cli.md").read_text()


def test_the_picture_has_the_pages_colours() -> None:
    picture = (DOCS / "picture.svg").read_text()
    ElementTree.fromstring(picture)
    tokens = (REPO / "rappd" / "web" / "css" / "tokens.css").read_text()
    assert colours(picture) <= colours(tokens)


def colours(text: str) -> set[str]:
    return set(re.findall(r"#[0-9a-f]{6}", text.lower()))
