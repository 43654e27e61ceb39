"""A neighborhood at github.com, as its owner uses it: https, a token, a branch, a pull request.

There is no internet where tests run. In the desk's namespace ``github.com`` is a machine of the same network with a
certificate of its own, which serves bare repositories by ``git http-backend`` and asks for the token as github.com does.
``gh``, which talks to an API that only github.com has, is a stand-in: a program in a system folder that checks its
arguments and answers with an address.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import git_host
from fixtures import member_homes as homes

from lan.network import Lan, Machine, require
from tests.neighborhoods.snapshot.test_github_transport import ROSE, git, publish

pytestmark = pytest.mark.timeout(900)

RAPPD = Path(sys.executable).with_name("rappd")
TOKEN = "token-of-the-test"
GH = """#!/bin/sh
printf '%s\\n' "$@" >{log}
[ "$1 $2 $3 $4" = "pr create --repo me/garden" ] && [ "$5 $7 $8" = "--head --base main" ] || exit 1
[ "$GH_TOKEN" = {token} ] || exit 1
echo https://github.com/me/garden/pull/1
"""
INSIDE = """
mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/ca.crt" /etc/ssl/certs/ca-certificates.crt
if [ -d "$0/sbin" ]; then mount --bind "$0/sbin" /usr/local/sbin; fi
exec "$@"
"""
"""A mount for one command of the desk alone: ``ip netns exec`` gives each a view of the files of its own."""


class Desk:
    """The desk, whose peers.json names the neighborhood me/garden."""

    def __init__(self, machine: Machine, folder: Path, hub: str) -> None:
        self.machine, self.folder, self.home = machine, folder, folder / "desk"
        self.home.mkdir(mode=0o700)
        (folder / "hosts").write_text(f"{hub} github.com\n127.0.0.1 localhost\n")
        entry = {"name": "garden", "github_neighborhood": "me/garden", "auth_token_env": "GARDEN_TOKEN"}
        entry["auth_url"] = "https://github.com/settings/tokens"
        (self.home / "peers.json").write_text(json.dumps({"peers": [entry]}))

    def has_gh(self) -> Path:
        """Installs the stand-in; returns the file in which it notes its arguments."""
        program = self.folder / "sbin/gh"
        program.parent.mkdir()
        program.write_text(GH.format(log=self.folder / "gh.log", token=TOKEN))
        program.chmod(0o755)
        return self.folder / "gh.log"

    def allows_the_token(self) -> None:
        assert self.rappd("neighborhood", "token", "GARDEN_TOKEN", "github.com").returncode == 0

    def rappd(self, *words: str | Path, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "RAPP_HOME": str(self.home), "RAPPD_NAME": "desk", "GARDEN_TOKEN": token}
        return self.machine.run(
            ["sh", "-c", INSIDE, self.folder, RAPPD, *words], env=environment, timeout=100
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    require()
    if shutil.which("openssl") is None or not git_host.BACKEND.exists():
        pytest.skip("needs openssl and git http-backend")
    key, certificate = tmp_path / "hub.key", tmp_path / "ca.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=github.com", "-addext", "subjectAltName=DNS:github.com", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    tree = tmp_path / "tree"
    homes.fill_twin(tree / "twins" / homes.TWIN)
    shutil.rmtree(tree / "twins" / homes.TWIN / ".git")
    rose = tmp_path / "rose"
    rose.mkdir()
    (rose / "soul.md").write_text("Rose\n")
    (rose / "rappid.json").write_text(json.dumps({"rappid": f"rappid:@me/rose:{ROSE}", "name": "rose"}))
    (tree / "members.json").write_text(json.dumps({"members": [{"rappid": f"rappid:@me/rose:{ROSE}"}]}))
    publish(tmp_path / "hub/me/garden.git", tree)
    publish(tmp_path / "hub/me/rose.git", rose)
    with Lan() as lan:
        machine, hub = lan.machine("desk"), lan.machine("hub")
        server = hub.start(
            [sys.executable, git_host.__file__, tmp_path / "hub", certificate, key, "443", TOKEN],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        yield Desk(machine, tmp_path, hub.address)


def test_neighborhood_at_github_is_read_with_a_token_and_restored_as_a_pull_request(desk: Desk) -> None:
    refused = desk.rappd("neighborhood", "probe", "garden")
    assert "rappd neighborhood token GARDEN_TOKEN github.com" in " ".join(refused.stdout.split())
    desk.allows_the_token()
    said = desk.rappd("neighborhood", "probe", "garden")
    assert "✓ garden: 2 twins," in said.stdout, said.stdout + said.stderr
    taken = desk.rappd("neighborhood", "snapshot", "--json")
    assert taken.returncode == 0, taken.stdout + taken.stderr
    egg = json.loads(taken.stdout.splitlines()[-1])["snapshot"]
    assert (egg["twins"], egg["restorable"]) == (2, True)
    assert TOKEN.encode() not in Path(egg["path"]).read_bytes()

    bare, tree = desk.folder / "hub/me/garden.git", desk.folder / "tree"
    shutil.rmtree(tree / "twins" / homes.TWIN)
    git("add", "--all", cwd=tree)
    git("commit", "-q", "-m", "lost", cwd=tree)
    git("push", "-q", bare, "HEAD:main", cwd=tree)
    before = git("rev-parse", "main", cwd=bare)
    refused = desk.rappd("neighborhood", "hatch", egg["name"], "--yes", "--json")
    assert (refused.returncode, "is only read" in refused.stdout) == (7, True), refused.stderr

    assert desk.rappd("config", "set", "neighborhood.github_write", "branch").returncode == 0
    log = desk.has_gh()
    done = desk.rappd("neighborhood", "hatch", egg["name"], "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proposed: https://github.com/me/garden/pull/1" in done.stdout
    branch = next(name for name in git("branch", cwd=bare).split() if name.startswith("rapp-"))
    assert branch in log.read_text().splitlines()
    assert TOKEN not in log.read_text(), "no program's arguments hold it"
    assert "gardener" in git("show", f"{branch}:twins/{homes.TWIN}/soul.md", cwd=bare)
    assert git("rev-parse", "main", cwd=bare) == before


def test_neighborhood_at_github_with_a_wrong_token_says_where_to_get_one(desk: Desk) -> None:
    desk.allows_the_token()
    said = desk.rappd("neighborhood", "probe", "garden", token="wrong")
    assert said.returncode == 7
    assert "✗ garden: garden does not open https://github.com/me/garden" in " ".join(said.stdout.split())
    assert "https://github.com/settings/tokens" in said.stdout
    assert "wrong" not in said.stdout + said.stderr
