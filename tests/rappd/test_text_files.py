"""Souls, variables, workflows and agents as editors of several systems save them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.brainstem.prompt import Soul
from agents.contract.loading import load_agent_file
from twins.errors import BadFileError
from twins.workspace import workspace_env
from twins.workspace.agent_files import check_syntax

MARK = b"\xef\xbb\xbf"
SOURCE = agent_source("Rose", 'return "Ros\u00e9"')


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (MARK + "You are Ros\u00e9.\r\nBrief.".encode(), "You are Ros\u00e9.\nBrief."),
        ("You are Ros\u00e9.\n".encode("utf-16"), "You are Ros\u00e9.\n"),
        (b"You are Ros\xe9.", "You are Ros\ufffd."),
    ],
)
def test_a_soul_is_used_as_well_as_it_can_be_read(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "soul.md").write_bytes(content)
    assert asyncio.run(Soul(tmp_path / "soul.md").text()) == text


def test_doctor_names_souls_and_agents_in_another_encoding(
    make_daemon: type[RunningDaemon],
) -> None:
    home = make_daemon("texts", LLM_FAKE="1")
    workspace = home.home / "brainstem"
    (workspace / "agents").mkdir(parents=True)
    home.home.chmod(0o700)
    (workspace / "soul.md").write_bytes(b"# Soul\nYou are Ros\xe9.\n")
    (workspace / ".env").write_bytes("KEY=1\n".encode("utf-16"))
    (workspace / "agents" / "rose_agent.py").write_bytes(SOURCE.encode("utf-16"))
    (workspace / "agents" / "good_agent.py").write_bytes(MARK + SOURCE.replace("\n", "\r\n").encode())
    said = " ".join(home.cli("doctor").stdout.split())
    assert "soul.md is not UTF-8 in line 2; it may be Latin-1 or Windows-1252" in said
    assert ".env is text in UTF-16, not UTF-8; none of it is used" in said
    assert "rose_agent.py is text in UTF-16, not UTF-8" in said
    assert "good_agent.py" not in said


@pytest.mark.parametrize(
    "content",
    [
        MARK + SOURCE.replace("\n", "\r\n").encode(),
        SOURCE.replace("\n", "\r").encode(),
        b"# -*- coding: latin-1 -*-\n" + SOURCE.encode("latin-1"),
    ],
)
def test_agents_are_loaded_whatever_editor_saved_them(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rose_agent.py").write_bytes(content)
    loaded = load_agent_file(tmp_path / "rose_agent.py")
    assert loaded.failure is None
    assert loaded.instances[0].perform() == "Ros\u00e9"


@pytest.mark.parametrize(
    ("content", "reason", "line"),
    [
        (SOURCE.encode("utf-16"), "it is text in UTF-16, not UTF-8", None),
        (b"x = 1\n" + b"y = 'caf\xe9'\n", "it is not UTF-8 in line 2; it may be Latin-1 or Windows-1252", 2),
        (b"# coding: koi8-q\n", "unknown encoding: koi8-q", None),
    ],
)
def test_the_encoding_of_an_agent_is_named(
    tmp_path: Path, content: bytes, reason: str, line: int | None
) -> None:
    (tmp_path / "rose_agent.py").write_bytes(content)
    failure = load_agent_file(tmp_path / "rose_agent.py").failure
    assert failure is not None
    assert (failure.reason, failure.line) == (reason, line)
    with pytest.raises(BadFileError, match=reason.removeprefix("it ")):
        check_syntax("rose_agent.py", content)


def test_an_agent_in_its_own_encoding_is_shown_as_it_reads(make_daemon: type[RunningDaemon]) -> None:
    daemon = make_daemon("shown", LLM_FAKE="1")
    folder = daemon.home / "brainstem" / "agents"
    folder.mkdir(parents=True)
    daemon.home.chmod(0o700)
    (folder / "rose_agent.py").write_bytes(b"# -*- coding: latin-1 -*-\n" + SOURCE.encode("latin-1"))
    daemon.start()
    assert "Ros\u00e9" in daemon.get("/agents/source/rose_agent.py", control=True).json()["source"]


def test_variables_with_a_mark_are_taken_and_others_named() -> None:
    assert workspace_env.parse(workspace_env.decode(MARK + b"A=1\r\nB=2\r\n")).accepted == {
        "A": "1",
        "B": "2",
    }
    with pytest.raises(BadFileError, match=r"\.env is not UTF-8 in line 2"):
        workspace_env.decode(b"A=1\nB=caf\xe9\n")
