"""Screens of the terminal for newcomers: whole help lists in groups, changed settings first, ids that commands take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fixtures.free_ports import free_port
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Terminal

from rappd.cli.app import rappd
from rappd.cli.command_parameters import cli_command
from rappd.cli.commands import COMMANDS, GROUPS
from rappd.control_client import ControlClient
from rappd.features.eggs import cli_options as egg_options


def groups_below(
    command: click.Command, path: str = "rappd"
) -> Iterator[tuple[str, click.Group, click.Context]]:
    if not isinstance(command, click.Group):
        return
    context = click.Context(command, info_name=path, max_content_width=80)
    yield path, command, context
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from groups_below(found, f"{path} {name}")


def test_every_command_stands_in_one_of_six_groups() -> None:
    assert len(GROUPS) == 6
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


def test_no_help_list_is_cut() -> None:
    cut = [
        line
        for _, command, context in groups_below(rappd)
        for line in command.get_help(context).splitlines()
        if line.endswith("...") and not line.startswith("Usage:")
    ]
    assert cut == []


def test_config_shows_changed_settings_first_and_cuts_nothing(tmp_path: Path) -> None:
    home = RunningDaemon(tmp_path / "home", PORT="7199")
    address = f"https://{'long.' * 20}example.org/v1"
    home.cli("config", "set", "provider.url", address)
    lines = home.cli("config", "show").stdout.splitlines()
    assert lines[0] == "Changed"
    changed = lines[: lines.index("Defaults")]
    assert any(line.split() == ["port", "7199", "environment"] for line in changed)
    assert any(address in line for line in changed)
    defaults = lines[lines.index("Defaults") :]
    assert not any(line.startswith(("port ", "provider.url")) for line in defaults)
    assert not any(line.endswith("default") for line in defaults)


def test_egg_commands_take_the_id_that_arrived_prints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "81aa-1", "path": "/eggs/a.egg"}, {"id": "81ab-2", "path": "/eggs/b.egg"}]
    monkeypatch.setattr(ControlClient, "do", lambda *_, **__: {"arrived": rows})

    def converted(text: str) -> Path:
        taken: list[Path] = []

        @cli_command()
        def plan(file: egg_options.File) -> None:
            taken.append(file)

        plan.main([text], standalone_mode=False)
        return taken[0]

    assert converted("81aa") == Path("/eggs/a.egg")
    assert converted("81a") == Path("81a"), "shorter than what is printed"
    assert converted("81aa-9") == Path("81aa-9")
    assert converted("Gardener.egg") == Path("Gardener.egg")
    Path("81aa").touch()
    assert converted("81aa") == Path("81aa"), "a file of that name is the file"


def test_interrupted_pair_says_that_the_code_is_void(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1", RAPPD_TETHER_PORT=str(free_port())).start()
    try:
        terminal = Terminal(daemon, "pair", columns=120)
        terminal.read_until(lambda seen: "Camera does not help?" in seen.words)
        terminal.send(signal.SIGINT)
        ended = terminal.to_end()
        assert "The code is void; no phone joined" in ended.text
        assert ended.code == 130
        assert daemon.get("/devices/window", control=True).json()["state"] not in (
            "open",
            "compare",
            "waiting",
        )
    finally:
        daemon.stop()
