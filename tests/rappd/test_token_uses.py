"""A variable with a token goes to no host before the operator allowed exactly that: real command, real git, real socket."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures import prefork
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Seen, Terminal

from neighborhoods.errors import BadMemberError
from neighborhoods.snapshot.token_uses import TokenUses, host_of
from twins.errors import BadFileError

SECRET = "sk-of-the-owner"


class Thief:
    """A host that a copied peers.json names; counts who comes."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.visits = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.visits += 1
            connection.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def thief() -> Iterator[Thief]:
    made = Thief()
    yield made
    made.close()


def _asks(seen: Seen) -> bool:
    return "Allow it?" in " ".join(seen.text.split())  # how long the address is decides where its line ends


@pytest.fixture
def run(thief: Thief, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    url = f"https://{thief.host}/me/garden.git"
    entry = {"name": "garden", "github_neighborhood": url, "auth_token_env": "OPENAI_API_KEY"}
    (home / "peers.json").write_text(json.dumps({"peers": [entry]}))

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        known = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8", "RAPP_HOME": str(home)}
        known |= {"SSL_CERT_FILE": str(prefork.NO_AUTHORITY), "OPENAI_API_KEY": SECRET, **environment}
        return prefork.run(["neighborhood", *arguments], known, "", 100)

    return run


def test_copied_peers_file_sends_no_variable_before_the_operators_yes(
    run: Callable[..., subprocess.CompletedProcess[str]], thief: Thief
) -> None:
    for words in (("probe", "garden"), ("snapshot", "--only", "garden")):
        refused = run(*words)
        said = " ".join((refused.stdout + refused.stderr).split())
        assert refused.returncode != 0
        assert (
            f"sends the value of OPENAI_API_KEY to {thief.host} for garden; you have not allowed that" in said
        )
        assert f"rappd neighborhood token OPENAI_API_KEY {thief.host}" in said
        assert SECRET not in said
    assert run("token", "OTHER_KEY", thief.host).returncode == 0
    assert run("token", "OPENAI_API_KEY", "github.com").returncode == 0
    assert run("probe", "garden").returncode != 0
    assert thief.visits == 0, "a yes is for one variable and one host"
    assert run("token", "OPENAI_API_KEY", thief.host).returncode == 0
    run("probe", "garden")
    assert thief.visits > 0
    listed = json.loads(run("token", "--json").stdout)["allowed"]
    assert {(one["variable"], one["host"]) for one in listed} == {
        ("OPENAI_API_KEY", "github.com"), ("OPENAI_API_KEY", thief.host), ("OTHER_KEY", thief.host),
    }  # fmt: skip
    assert run("token", "OPENAI_API_KEY", thief.host, "--remove").returncode == 0
    before = thief.visits
    run("probe", "garden")
    assert thief.visits == before


@pytest.mark.parametrize("runs", [False, True], ids=["no daemon", "a daemon without the variable"])
def test_person_at_the_terminal_is_asked_once(
    make_daemon: Callable[..., RunningDaemon], thief: Thief, runs: bool
) -> None:
    daemon = make_daemon()
    daemon.home.mkdir(mode=0o700, exist_ok=True)
    url = f"https://{thief.host}/me/garden.git"
    entry = {"name": "garden", "github_neighborhood": url, "auth_token_env": "GARDEN_TOKEN"}
    (daemon.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    if runs:
        daemon.start()
    for answer, visited in (("n\n", False), ("y\n", True)):
        screen = Terminal(daemon, "neighborhood", "probe", "garden", GARDEN_TOKEN=SECRET)
        screen.read_until(_asks)
        screen.type(answer)
        screen.to_end()
        assert (thief.visits > 0) is visited
    screen = Terminal(daemon, "neighborhood", "probe", "garden", GARDEN_TOKEN=SECRET)
    assert not _asks(screen.to_end())


def test_yes_is_for_one_pair_and_a_damaged_list_allows_nothing(tmp_path: Path) -> None:
    uses = TokenUses(tmp_path / "token_uses.json")
    uses.allow("GARDEN_TOKEN", "GitHub.com")
    assert uses.is_allowed("GARDEN_TOKEN", "github.com")
    for pair in (
        ("GARDEN_TOKEN", "github.com:8443"),
        ("GARDEN_TOKEN2", "github.com"),
        ("GARDEN_TOKEN", "evil.org"),
    ):
        assert not uses.is_allowed(*pair)
    for variable, host in (
        ("path", "github.com"),
        ("A B", "github.com"),
        ("A", "x/y"),
        ("A", "-x"),
        ("A", "me@x"),
    ):
        with pytest.raises(BadMemberError):
            uses.allow(variable, host)
    (tmp_path / "token_uses.json").write_text("{}")
    with pytest.raises(BadFileError):
        TokenUses(tmp_path / "token_uses.json").is_allowed("GARDEN_TOKEN", "github.com")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://github.com/me/x", "github.com"), ("https://GitHub.com:443/me/x", "github.com:443"),
        ("https://[::1]:8443/x", "[::1]:8443"), ("file:///srv/x", ""),
    ],
)  # fmt: skip
def test_host_of_a_repository(url: str, host: str) -> None:
    assert host_of(url) == host
