"""Service units and shell completion."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import BIN

from agents.programs import programs
from envelopes.errors import ReportableError
from rappd.cli.app import rappd
from rappd.daemon.home import Home
from rappd.daemon.service_unit import launchd_plist, systemd_unit
from rappd.features.operator.cli import open_in_browser

ODD = '/home/ann/a b $x %h "q" & <c>'
HARDENING = (
    "NoNewPrivileges=yes", "LockPersonality=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes", "UMask=0077",
    "SystemCallArchitectures=native", "KeyringMode=private",
    "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
    "SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap",
)  # fmt: skip


def _lines(unit: str, section: str) -> list[str]:
    return unit.split(f"[{section}]\n")[1].split("\n\n")[0].splitlines()


def test_the_unit_tells_readiness_and_is_hardened(idle: RunningDaemon) -> None:
    unit = idle.cli("service", "install", "--print").stdout
    service = _lines(unit, "Service")
    assert "Type=notify" in service
    assert f"ExecStart={BIN}/rappd start --quiet" in service
    assert f"Environment=RAPP_HOME={idle.home}" in service
    assert set(HARDENING) <= set(service)
    assert not any(line.startswith(("RestrictNamespaces", "Protect", "Private")) for line in service), (
        "these would keep workers from building namespaces of their own"
    )
    assert not idle.home.exists(), "printing installs nothing"


def test_odd_paths_are_quoted_for_systemd() -> None:
    unit = systemd_unit(Home(Path(ODD)))
    line = next(line for line in unit.splitlines() if line.startswith("Environment="))
    assert line == r'Environment="RAPP_HOME=/home/ann/a b $x %%h \"q\" & <c>"'


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("root", ["/home/ann/.rapp", "/home/ann/a b $x %h"])
def test_systemd_takes_the_unit(tmp_path: Path, root: str) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "rappd.service").write_text(systemd_unit(Home(Path(root))))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(tmp_path / "rappd.service")],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Failed to initialize manager" in done.stderr:
        pytest.skip("no manager can be started here")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_launchd_list_parses_with_odd_paths() -> None:
    found = plistlib.loads(launchd_plist(Home(Path(ODD))).encode())
    assert found["ProgramArguments"] == [f"{BIN}/rappd", "start", "--quiet"]
    assert found["EnvironmentVariables"] == {"RAPP_HOME": ODD}
    assert found["RunAtLoad"] is True
    assert found["Umask"] == 0o077


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """``rappd service`` in this process, with a home of its own and the ``systemctl`` that a test gives."""
    monkeypatch.setenv("RAPP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(programs, "_found", {})

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = CliRunner().invoke(rappd, ["service", *arguments])
        said = f"{done.exception}" if isinstance(done.exception, ReportableError) else done.stderr
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, said)

    return run


def test_without_systemd_the_unit_is_written_and_the_way_on_told(
    service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "find", lambda name: None)
    done = service("install")
    unit = tmp_path / "config" / "systemd" / "user" / "rappd.service"
    assert done.returncode == 0, done.stderr
    assert "Type=notify" in unit.read_text()
    assert "systemd is not here; the unit is written but not started" in done.stdout
    assert "start --detach" in done.stdout
    gone = json.loads(service("uninstall", "--json").stdout)["service"]
    assert gone["removed"] is True
    assert not unit.exists()
    assert service("uninstall").stdout.startswith("✓ No service is installed")


def test_a_systemd_that_refuses_is_told_in_its_words(service, tmp_path: Path) -> None:
    fake = tmp_path / "systemctl"
    fake.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    fake.chmod(0o755)
    programs._found["systemctl"] = str(fake)
    done = service("install")
    assert done.returncode == 1
    assert "systemctl refused: Failed to connect to bus" in done.stderr


def test_service_with_planted_systemctl_does_not_run_it(
    service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("systemctl", "loginctl"):
        planted = tmp_path / name
        planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    service("install")
    assert not (tmp_path / "ran").exists()
    subprocess.run(["sh", "-c", "systemctl"], check=True)
    assert (tmp_path / "ran").exists(), "the positive control"


def test_open_with_planted_browser_opener_does_not_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = tmp_path / "xdg-open"
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "_found", {})
    monkeypatch.setattr(programs, "SYSTEM_FOLDERS", ())
    open_in_browser("http://127.0.0.1:9/")
    assert f"xdg-open in {tmp_path} is not used: agents could replace it" in " ".join(
        capsys.readouterr().err.split()
    )
    assert not (tmp_path / "ran").exists()
    subprocess.run(["sh", "-c", "xdg-open"], check=True)
    assert (tmp_path / "ran").exists(), "the positive control"


def test_the_bash_completion_sources_cleanly_and_completes(idle: RunningDaemon, tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not here")
    script = tmp_path / "completion.bash"
    script.write_text(idle.cli("completion", "bash").stdout)
    asked = f"source {script} && complete -p rappd && COMP_WORDS=(rappd agents l) COMP_CWORD=2 && _rappd_completion rappd && echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "--norc", "-euc", asked],
        env={**idle.environment, "PATH": f"{BIN}:{idle.environment['PATH']}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines()[-1] == "list"


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_a_script_of_theirs(idle: RunningDaemon, tmp_path: Path, shell: str) -> None:
    done = idle.cli("completion", shell)
    assert done.returncode == 0
    assert "_RAPPD_COMPLETE" in done.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        assert subprocess.run([shell, "-n", str(tmp_path / "script")], check=False).returncode == 0


def test_completion_offers_every_verb(idle: RunningDaemon) -> None:
    asked = {"_RAPPD_COMPLETE": "bash_complete", "COMP_WORDS": "rappd ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "rappd"],
        env={**idle.environment, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    offered = {line.partition(",")[2] for line in done.stdout.splitlines()}
    assert {"start", "stop", "chat", "agents", "threads", "doctor", "config", "service"} <= offered
