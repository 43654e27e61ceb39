"""``rappd neighborhood members`` and ``probe``, and restoring through the rappd of the far side: real sshd, real command."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.full_disk import fillable_disk
from fixtures.running_daemon import RunningDaemon
from fixtures.ssh_server import SshServer

from envelopes.identity.keys import IdentityKey
from neighborhoods.errors import MemberError
from neighborhoods.snapshot.member_transport import AGENTS
from neighborhoods.snapshot.transports.far_rappd import FarRappd
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from rappd.features.snapshots.member_eggs import egg_maker
from tests.neighborhoods.snapshot.test_github_transport import publish
from twins.trust.signers import Signers

RAPPD = Path(sys.executable).with_name("rappd")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def pi(tmp_path: Path) -> Iterator[SshServer]:
    with SshServer(tmp_path / "pi") as server:
        homes.fill_home(server.home)
        yield server


@pytest.fixture
def run(pi: SshServer, tmp_path: Path) -> Run:
    home = tmp_path / "desk"
    home.mkdir()
    entries = [
        {"name": "pi", "ssh_host": pi.address},
        {"name": "gone", "ssh_host": f"{pi.address}:1"},
        {"name": "me", "ssh_host": "localhost"},
    ]
    # 127.0.0.1 is this machine itself; the host of an alias is another one to it.
    entries[0]["ssh_host"] = "pi"
    pi.config.write_text(
        f"Host pi\n  HostName {pi.address}\n  HostKeyAlias {pi.address}\n{pi.config.read_text()}"
    )
    (home / "peers.json").write_text(json.dumps({"peers": entries}))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "RAPP_HOME": str(home),
            "RAPPD_SSH_CONFIG": str(pi.config),
            "XDG_RUNTIME_DIR": str(pi.control),  # for sockets: the home's own path is too long
        }
        return subprocess.run(
            [RAPPD, "neighborhood", *arguments], env=environment, capture_output=True, text=True, timeout=100
        )

    return run


BOOKS = """import pathlib, time
from agents.basic_agent import BasicAgent

class BooksAgent(BasicAgent):
    def __init__(self):
        super().__init__(name="Books", metadata={"name": "Books", "description": "Keeps two books.",
            "parameters": {"type": "object", "properties": {}}})

    def perform(self, **kwargs):
        data = pathlib.Path(__file__).parents[1] / ".brainstem_data"
        data.mkdir(exist_ok=True)
        left, right = data / "left", data / "right"
        number = str(int(left.read_text()) + 1 if left.exists() else 1)
        left.write_text(number)
        time.sleep(5 if number == "2" else 0)
        right.write_text(number)
        return number
"""


@contextmanager
def there(pi: SshServer) -> Iterator[RunningDaemon]:
    """The daemon of the far machine."""
    daemon = RunningDaemon(pi.home, RAPPD_NAME="pi", LLM_FAKE="1").start()
    try:
        yield daemon
    finally:
        daemon.stop()


def install_rappd(pi: SshServer) -> None:
    program = pi.folder / "bin/rappd"
    program.write_text(f'#!/bin/sh\nPATH=$PATH:/usr/bin:/bin exec {RAPPD} "$@"\n')
    program.chmod(0o755)


def test_members_lists_each_machine_and_its_way(run: Run) -> None:
    rows = {row["name"]: row for row in json.loads(run("members", "--json").stdout)["members"]}
    assert (rows["pi"]["way"], rows["pi"]["self"]) == ("ssh", False)
    assert rows["me"]["self"]
    assert "SSH" in run("members").stdout


def test_probe_one_machine_away_ends_partly_done(run: Run) -> None:
    done = run("probe")
    assert done.returncode == 7
    assert "✓ pi: 2 twins" in done.stdout
    assert "✗ gone: gone is there, and takes no SSH connections." in done.stdout
    assert run("probe", "pi").returncode == 0
    unknown = run("probe", "attic")
    assert (unknown.returncode, "No member “attic”" in unknown.stderr) == (4, True)


def test_machine_that_cannot_be_asked_is_named_once_and_with_its_reason(tmp_path: Path) -> None:
    entries = [
        {"name": "nix", "ssh_host": "nowhere.invalid"},
        {"name": "bad", "ssh_host": "-oProxyCommand=x"},
    ]
    (tmp_path / "peers.json").write_text(json.dumps({"peers": entries}))
    tmp_path.chmod(0o700)

    def rappd(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "RAPP_HOME": str(tmp_path)}
        return subprocess.run(
            [RAPPD, "neighborhood", *words], env=environment, capture_output=True, text=True, timeout=120
        )

    assert "✗ nix: no machine is called nowhere.invalid." in rappd("probe", "nix").stdout
    done = rappd("snapshot", "--no-drill")
    assert done.returncode == 7
    assert "✗ bad: peers.json: “-oProxyCommand=x” is no host that SSH can be asked for." in done.stdout


def test_probe_names_the_repository_that_cannot_be_cloned(tmp_path: Path) -> None:
    tree, desk = tmp_path / "tree", RunningDaemon(tmp_path / "desk")
    homes.fill_twin(tree / "twins" / homes.TWIN)
    shutil.rmtree(tree / "twins" / homes.TWIN / ".git")
    iris = {"name": "iris", "rappid": f"rappid:@me/iris:{'1' * 64}"}
    (tree / "members.json").write_text(json.dumps([iris]))
    publish(tmp_path / "hub/me/garden.git", tree)
    entry = {"name": "garden", "github_neighborhood": f"file://{tmp_path}/hub/me/garden.git"}
    desk.home.mkdir(mode=0o700)
    (desk.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    done = desk.cli("neighborhood", "probe")
    first, second = done.stdout.splitlines()[:2]
    assert done.returncode == 7
    assert first.startswith("✓ garden: 1 twin, ")
    assert second.startswith("  ✗ iris cannot be read: garden does not open")
    [row] = json.loads(desk.cli("neighborhood", "probe", "--json").stdout)["members"]
    [unread] = row["probe"]["unread"]
    assert (unread["name"], row["probe"]["twins"]) == ("iris", 1)
    assert f"{tmp_path}/hub/me/iris.git" in unread["reason"]


async def test_probe_machine_that_is_this_one_is_refused(pi: SshServer) -> None:
    found = await pi.transport(own_home=pi.home).probe()
    assert not found.reachable
    assert found.detail == "pi is this machine itself. Take it out of peers.json."


async def test_rappd_of_this_machine_itself_is_not_run(pi: SshServer) -> None:
    program = pi.folder / "bin/rappd"
    program.write_text('#!/bin/sh\nmkdir "$RAPP_HOME/ran" && echo {}\n')
    program.chmod(0o755)
    way = SshDestination.parse(pi.address), SshConnections(pi.control, config=pi.config)
    with pytest.raises(MemberError) as raised:
        await FarRappd("pi", *way, own_home=pi.home).run(["twins", "list"], "its twins could not be listed")
    assert raised.value.with_advice() == "pi is this machine itself. Correct peers.json."
    assert not (pi.home / "ran").exists()
    assert (await FarRappd("pi", *way).run(["twins", "list"], "")).code == 0, "positive control"
    assert (pi.home / "ran").exists()


@pytest.mark.needs_root
async def test_copy_of_this_machine_is_another_one(pi: SshServer, tmp_path: Path) -> None:
    """A cloned card: the same machine id, and homes of one inode number."""
    with fillable_disk(pi.home.parent, name=pi.home.name), fillable_disk(tmp_path) as own:
        homes.fill_home(pi.home)
        assert own.root.stat().st_ino == pi.home.stat().st_ino
        found = await pi.transport(own_home=own.root).probe()
        assert found.reachable, found.detail
        assert list(own.root.iterdir()) == [], "nothing is left of what was written to tell them apart"


def test_snapshot_reads_a_twin_between_two_of_its_calls(pi: SshServer, run: Run, tmp_path: Path) -> None:
    install_rappd(pi)
    with there(pi) as daemon:
        twin = daemon.post("/twins", {"name": "Rose"}, control=True).json()["key"]
        data = pi.home / "twins" / twin / ".brainstem_data"
        (pi.home / "twins" / twin / "agents" / "books_agent.py").write_text(BOOKS)
        ask = {"agent": "Books"}
        assert daemon.post(f"/twins/{twin}/agents/run", ask, control=True).status == 200
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(daemon.post, f"/twins/{twin}/agents/run", ask, control=True)
            daemon.wait_for(lambda: (data / "left").read_text() == "2")
            done = run("snapshot", "--no-drill", "--out", str(tmp_path / "all.egg"))
            assert asked.result().status == 200
    assert done.returncode == 7, done.stderr  # one machine is gone
    with zipfile.ZipFile(tmp_path / "all.egg") as egg:
        (member,) = [name for name in egg.namelist() if name.endswith(f"{twin}.tar.gz")]
        with tarfile.open(fileobj=io.BytesIO(egg.read(member))) as files:
            read = {
                name: files.extractfile(f"{twin}/.brainstem_data/{name}").read()  # type: ignore[union-attr]
                for name in ("left", "right")
            }
    assert read == {"left": b"2", "right": b"2"}


async def test_write_twin_machine_with_rappd_hatches_there(pi: SshServer, tmp_path: Path) -> None:
    install_rappd(pi)
    transport = pi.transport(make_egg=egg_maker(tmp_path / "eggs", IdentityKey.generate(), "desk"))
    packed = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "t.tar.gz", homes.TWIN)
    twin = pi.home / "twins" / homes.TWIN
    shutil.rmtree(twin)
    done = await transport.write_twin(homes.TWIN, packed)
    assert done.created > 5
    assert (twin / "soul.md").read_bytes() == b"You are a gardener.\n"
    assert list(twin.glob("HATCH_RECEIPT.json"))  # its own plan and receipt
    assert "water_agent.py" in (pi.home / "held.json").read_text()  # nobody trusts this signer there
    again = await transport.write_twin(homes.TWIN, packed)
    assert again.skipped == 1
    assert list((tmp_path / "eggs").iterdir()) == []
    assert [left for left in pi.home.iterdir() if left.name.startswith(".member")] == []


async def test_write_agents_machine_with_rappd_quarantines_what_nobody_there_trusts(
    pi: SshServer, tmp_path: Path
) -> None:
    install_rappd(pi)
    key = IdentityKey.generate()
    transport = pi.transport(make_egg=egg_maker(tmp_path / "eggs", key, "desk"))
    packed = await homes.archive(transport.read_agents(), tmp_path / "agents.tar.gz", AGENTS)
    agents, held = pi.home / "brainstem" / "agents", pi.home / "held.json"
    Signers(pi.home / "signers.json").trust(key.fingerprint, "desk")
    (agents / "news_listener.py").unlink()
    done = await transport.write_agents(packed)
    assert (done.created, done.skipped) == (1, 1)
    assert (agents / "news_listener.py").read_bytes() == b"news\n"
    assert not held.exists() or "news_listener.py" not in held.read_text()
    (agents / "clock_agent.py").unlink()
    done = await transport.write_agents(packed, is_trusted=False)
    assert done.detail == "1 file waits for approval there"
    assert "clock_agent.py" in held.read_text()
    twin = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "t.tar.gz", homes.TWIN)
    shutil.rmtree(pi.home / "twins" / homes.TWIN)
    await transport.write_twin(homes.TWIN, twin, is_trusted=False)
    assert "water_agent.py" in held.read_text()


async def test_write_twin_refused_there_says_why(pi: SshServer, tmp_path: Path) -> None:
    install_rappd(pi)
    maker = egg_maker(tmp_path / "eggs", IdentityKey.generate(), "desk")
    transport = pi.transport(make_egg=maker)
    packed = await homes.archive(transport.read_twin(homes.TWIN), tmp_path / "t.tar.gz", homes.TWIN)

    def broken(archive: Path, twin: str, *, archived: bool = False, is_signed: bool = True) -> Path:
        egg = maker(archive, twin)
        egg.write_bytes(egg.read_bytes()[:-200])
        return egg

    shutil.rmtree(pi.home / "twins" / homes.TWIN)
    with pytest.raises(MemberError, match="pi did not hatch it: "):
        await pi.transport(make_egg=broken).write_twin(homes.TWIN, packed)
    assert not (pi.home / "twins" / homes.TWIN).exists()
