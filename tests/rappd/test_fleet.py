"""``rappd fleet`` over real SSH servers, with the rappd of the far side, with a daemon here and without one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.ssh_server import SshServer

from tests.neighborhoods.snapshot.machines import Machine

RAPPD = Path(sys.executable).with_name("rappd")
Servers = dict[str, SshServer]


def serve(folder: Path, *twins: str) -> SshServer:
    """An SSH server whose home has these twins."""
    server = SshServer(folder)
    server.home.rmdir()
    machine = Machine(server.home, folder.name)
    for twin in twins:
        machine.twin(twin)
    server.start()
    return server


def install_rappd(server: SshServer, *, before: str = "") -> None:
    program = server.folder / "bin/rappd"
    program.write_text(f'#!/bin/sh\n{before}\nPATH=$PATH:/usr/bin:/bin exec {RAPPD} "$@"\n')
    program.chmod(0o755)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    """Pi and shed with a rappd, old without one."""
    made = {
        "pi": serve(tmp_path / "pi", 'it\'s "mine" $HOME', "gardener"),
        "shed": serve(tmp_path / "shed", "it's a twin"),
        "old": serve(tmp_path / "old", "it's there"),
    }
    install_rappd(made["pi"])
    install_rappd(made["shed"])
    yield made
    for server in made.values():
        server.stop()


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon], servers: Servers, tmp_path: Path) -> RunningDaemon:
    """A machine that knows them, and one that is gone, a stick and itself."""
    config = tmp_path / "ssh_config"
    config.write_text(
        "".join(
            f"Host {name}\n  HostName {server.address}\n  Port {server.port}\n  HostKeyAlias {name}\n"
            f"  UserKnownHostsFile {server.folder}/known\n  IdentityFile {server.folder}/user\n"
            for name, server in servers.items()
        )
        + "Host gone\n  HostName 127.0.0.1\n  Port 1\nHost *\n  IdentitiesOnly yes\n  User root\n"
        "  GlobalKnownHostsFile /dev/null\n"
    )
    for name, server in servers.items():
        (server.folder / "known").write_text(f"{name} {(server.folder / 'host.pub').read_text()}")
    daemon = make_daemon("desk", LLM_FAKE="1", RAPPD_NAME="desk", RAPPD_SSH_CONFIG=str(config))
    daemon.home.mkdir(mode=0o700)
    Machine(tmp_path / "stick", "stick").twin("it's on a stick")
    entries = [{"name": name, "ssh_host": name} for name in (*servers, "gone")]
    entries += [{"name": "stick", "folder": str(tmp_path / "stick")}, {"name": "me", "ssh_host": "localhost"}]
    (daemon.home / "peers.json").write_text(json.dumps({"peers": entries}))
    daemon.cli("twins", "new", "it's here")
    daemon.cli("twins", "new", "cook")
    return daemon


def archived_by(home: Path) -> dict[str, str]:
    found = [json.loads(path.read_text()) for path in home.glob("twins/.archive/*/archived.json")]
    return {one["name"]: one["archived_by"] for one in found}


def per_peer(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {row["peer"]: row for row in json.loads(done.stdout)["per_peer"]}


WORDS = ("fleet", "archive_estate", "--filter", "name_regex=^it's |$(touch ~/ran)`touch ~/ran`", "--json")


def test_archive_estate_dry_run_says_which_and_does_nothing(desk: RunningDaemon, servers: Servers) -> None:
    done = desk.cli(*WORDS)
    assert done.returncode == 7, done.stderr
    found = json.loads(done.stdout)
    assert {key: found[key] for key in ("ok", "action", "mode")} == {
        "ok": False, "action": "archive_estate", "mode": "dry-run",
    }  # fmt: skip
    rows = per_peer(done)
    assert list(rows) == ["self", "pi", "shed", "old", "gone", "stick"]
    assert [one["name"] for one in rows["pi"]["would_archive"]] == ['it\'s "mine" $HOME']
    for peer in ("self", "pi", "shed"):
        assert (rows[peer]["ok"], rows[peer]["archived_count"], rows[peer]["would_archive_count"]) == (
            True,
            0,
            1,
        )
    for peer, why in (("old", "has no rappd"), ("gone", "takes no SSH"), ("stick", "No rappd runs there")):
        assert rows[peer].keys() == {"peer", "ok", "error"}
        assert why in rows[peer]["error"]
    for home in (desk.home, *(server.home for server in servers.values())):
        assert archived_by(home) == {}
        assert not (home.parent / "ran").exists()  # the filter's words are no shell's


@pytest.mark.parametrize("running", [True, False])
def test_archive_estate_confirmed_archives_where_it_can(
    desk: RunningDaemon, servers: Servers, running: bool
) -> None:
    if running:
        desk.start()
    done = desk.cli(*WORDS, "--confirm", "--reason", 'season\'s "over"')
    assert done.returncode == 7, done.stderr
    rows = per_peer(done)
    for peer in ("self", "pi", "shed"):
        assert (rows[peer]["ok"], rows[peer]["archived_count"], rows[peer]["errors"]) == (True, 1, [])
        assert "would_archive" not in rows[peer]
    assert archived_by(desk.home) == {"it's here": "fleet:archive_estate"}
    assert archived_by(servers["pi"].home) == {'it\'s "mine" $HOME': "fleet:archive_estate"}
    assert archived_by(servers["shed"].home) == {"it's a twin": "fleet:archive_estate"}
    assert archived_by(servers["old"].home) == {}
    (record,) = servers["shed"].home.glob("twins/.archive/*/archived.json")
    assert json.loads(record.read_text())["archived_reason"] == 'season\'s "over"'
    again = per_peer(desk.cli(*WORDS, "--confirm"))
    assert [again[peer]["archived_count"] for peer in ("self", "pi", "shed")] == [0, 0, 0]


def test_archive_estate_machine_that_is_slow_or_lies_stops_no_other(
    desk: RunningDaemon, servers: Servers
) -> None:
    install_rappd(servers["pi"], before='case "$*" in *archive_estate*) sleep 60 ;; esac')
    lie = '{"ok": true, "per_peer": [{"ok": "yes", "archived": "all"}]}'
    install_rappd(servers["shed"], before=f"echo '{lie}'; exit 0")
    done = desk.cli(*WORDS, "--confirm", "--timeout", "5")
    assert done.returncode == 7
    rows = per_peer(done)
    assert rows["pi"] == {"peer": "pi", "ok": False, "error": "no answer within 5 s"}
    assert "another form" in rows["shed"]["error"]
    assert rows["self"]["archived_count"] == 1


def test_archive_estate_machine_that_is_this_one_is_not_asked_twice(
    desk: RunningDaemon, servers: Servers
) -> None:
    servers["shed"].stop()
    here = SshServer(servers["shed"].folder.with_name("again"))
    try:
        here._environment["RAPP_HOME"] = str(desk.home)
        here.start()
        install_rappd(here)
        config = Path(desk.environment["RAPPD_SSH_CONFIG"])
        known = here.folder / "known"
        known.write_text(f"again {(here.folder / 'host.pub').read_text()}")
        config.write_text(
            f"Host again\n  HostName {here.address}\n  Port {here.port}\n  HostKeyAlias again\n"
            f"  UserKnownHostsFile {known}\n  IdentityFile {here.folder}/user\n{config.read_text()}"
        )
        (desk.home / "peers.json").write_text('{"peers": [{"name": "again", "ssh_host": "again"}]}')
        rows = per_peer(desk.cli(*WORDS))
    finally:
        here.stop()
    assert "this machine itself" in rows["again"]["error"]
    assert rows["self"]["would_archive_count"] == 1


def test_archive_estate_wrong_or_missing_filter_asks_nobody(desk: RunningDaemon) -> None:
    for words in ([], ["--filter", "age=3"], ["--filter", "name_regex=("]):
        done = desk.cli("fleet", "archive_estate", *words, "--confirm", "--json")
        assert done.returncode == 2, words
        assert done.stdout == ""
    assert archived_by(desk.home) == {}


def test_fleet_agent_works_by_conversation_for_the_operator_alone(
    desk: RunningDaemon, servers: Servers
) -> None:
    desk.environment.pop("LLM_FAKE")
    desk.start()
    told = desk.cli("chat", "how are my machines?").stdout
    assert "pi: stopped, rappd" in told
    assert "gone is there, and takes no SSH connections." in told
    dry = desk.cli("chat", "archive estate name_prefix=it's").stdout
    assert "Nothing was done yet" in dry
    assert "failed" not in dry, "others did not answer; this machine and shed did"
    assert "shed: it's a twin" in dry
    everyday = desk.post("/chat", {"user_input": "archive estate name_prefix=it's confirm"}).json()
    assert "Fleet" not in json.dumps(everyday)
    assert archived_by(servers["shed"].home) == {}
    done = desk.cli("chat", "archive estate name_prefix=it's confirm").stdout
    assert "Set aside, whole:" in done
    assert archived_by(servers["shed"].home) == {"it's a twin": "fleet:archive_estate"}
    assert archived_by(desk.home) == {"it's here": "fleet:archive_estate"}


def test_status_tells_of_every_machine(desk: RunningDaemon, servers: Servers) -> None:
    desk.start()
    assert desk.cli("neighborhood", "snapshot", "--json").returncode == 7  # gone does not answer
    done = desk.cli("fleet", "status", "--json")
    assert done.returncode == 7
    rows = {row["name"]: row for row in json.loads(done.stdout)["fleet"]}
    assert list(rows) == ["desk", "pi", "shed", "old", "gone", "stick"]
    assert {name: row["health"] for name, row in rows.items()} == {
        "desk": "awake", "pi": "stopped", "shed": "stopped", "old": "no rappd", "gone": "", "stick": "no rappd",
    }  # fmt: skip
    assert {name: row["twins"] for name, row in rows.items()} == {
        "desk": 2, "pi": 2, "shed": 1, "old": 1, "gone": None, "stick": 1,
    }  # fmt: skip
    assert rows["pi"]["rappd_version"] == rows["desk"]["rappd_version"]
    assert rows["pi"]["free_bytes"] > 0
    held = {name for name, row in rows.items() if row["last_snapshot"]}
    assert held == {"desk", "pi", "shed", "old", "stick"}
    assert not rows["gone"]["reachable"]
    assert "takes no SSH" in rows["gone"]["detail"]
    shown = desk.cli("fleet", "status").stdout
    assert "IN SNAPSHOT OF" in shown
    assert re.search(r"^desk +running ", shown, re.MULTILINE)
    assert "✗ gone is there, and takes no SSH" in shown


def test_status_of_a_machine_whose_daemon_runs_is_awake(desk: RunningDaemon, servers: Servers) -> None:
    daemon = RunningDaemon(servers["pi"].home)
    daemon.start()
    try:
        rows = {row["name"]: row for row in json.loads(desk.cli("fleet", "status", "--json").stdout)["fleet"]}
    finally:
        daemon.stop()
    assert rows["pi"]["health"] == "awake"
