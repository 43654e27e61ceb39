"""Commands run in a folder whose files have the names of modules: none of them is imported.

A program that rappd starts has two protections: ``-I``, and the working directory ``/``. The first is tried by
what happens, with ``PYTHONPATH`` besides; the second by what the kernel says of the processes. The command
itself has one, ``rappd.__main__``. ``rappd.py`` is no trap for ``python -m rappd``, which is Python's to find.
``test_cli_demo.py`` plays the demonstration in such a folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.programs import programs
from agents.runtimes.python.pools.started_processes import children
from tests.rappd.cli.module_traps import MODULE, SCRIPT, TRAPS, Traps


def _all_commands(command: list[str], home: RunningDaemon, folder: Path, marker: Path, **more: str) -> None:
    def run(*words: str) -> str:
        done = subprocess.run(
            [*command, *words], env={**home.environment, **more}, cwd=folder, capture_output=True, text=True,
            check=False, timeout=600,
        )  # fmt: skip
        assert not marker.exists(), f"{words} ran {marker.read_text()}"
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    home.drop("pump_agent.py", agent_source("Pump", 'return "pumping"'))
    home.home.chmod(0o700)
    run("agents", "list")
    run("start", "--detach")
    try:
        assert "(no model)" in run("chat", "what can you do?")
        assert run("agents", "run", "Pump") == "pumping\n"
        run("twins", "new", "Rose")
        run("twins", "archive", "--filter", "name_regex=^Ro", "--yes")
        run("egg", "pack", "-o", str(folder / "desk.egg"))
        run("egg", "inspect", str(folder / "desk.egg"))
        run("doctor")
        daemon = int((home.home / "rappd.pid").read_text().split()[0])
        [zygote] = children(daemon)
        for process in (daemon, zygote):
            assert Path(f"/proc/{process}/cwd").readlink() == Path("/")
            assert b"-I" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    finally:
        run("stop")


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["script", "module"])
def test_no_command_imports_from_the_current_folder(
    make_daemon: Callable[..., RunningDaemon], traps: Traps, command: list[str]
) -> None:
    folder, marker = traps
    if command is MODULE:
        (folder / "rappd.py").unlink()
    _all_commands(command, make_daemon(), folder, marker)


def test_pythonpath_brings_no_trap_into_what_rappd_starts(
    make_daemon: Callable[..., RunningDaemon], traps: Traps
) -> None:
    """Neither an empty part, nor ``.``, nor the folder by its name."""
    folder, marker = traps
    (folder / "rappd.py").unlink()
    _all_commands(SCRIPT, make_daemon(), folder, marker, PYTHONPATH=f":.:{folder}")


def test_python_of_programs_imports_nothing_from_its_folder(traps: Traps) -> None:
    folder, marker = traps
    imports = f"import {', '.join((*TRAPS, 'rappd'))}"
    done = programs.run(
        programs.python("-c", imports), directory=folder, environment={"PYTHONPATH": str(folder)}
    )
    assert (done.code, marker.exists()) == (0, False), done.errors


def test_programs_start_in_the_root_folder(tmp_path: Path) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        done = programs.run(programs.python("-c", "import os; print(os.getcwd())"))
    finally:
        os.chdir(before)
    assert done.text == "/\n"


def test_rappd_in_its_own_folder_is_still_found(make_daemon: Callable[..., RunningDaemon]) -> None:
    project = Path(__file__).parents[3]
    for command in (SCRIPT, MODULE):
        done = subprocess.run(
            [*command, "config", "path"],
            env=make_daemon().environment,
            cwd=project,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0
