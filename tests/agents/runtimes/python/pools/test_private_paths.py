"""Files of an account that are hidden from agents, tried in each kind of sandbox."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from fixtures import warm_zygote

from agents.runtimes.python.pools.pool import WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.sandbox import private_paths, ssh_key_warning
from agents.runtimes.python.sandbox.private_paths import PrivatePaths, private_in_home
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE, NONE
from tests.agents.runtimes.python.pools.trial_home import ROOM, Home

_SECRET = """
    .ssh/id_ed25519 .gnupg/private-keys-v1.d/key .aws/credentials .azure/token .kube/config .docker/config.json
    .config/gh/hosts.yml .config/hub .config/gcloud/credentials.db .config/rclone/rclone.conf .git-credentials
    .config/git/credentials .netrc .pypirc .npmrc .pgpass .my.cnf .vault-token .terraform.d/credentials.tfrc.json
    .cargo/credentials.toml .gem/credentials .m2/settings.xml .gradle/gradle.properties .password-store/mail.gpg
    .local/share/keyrings/login.keyring .mozilla/firefox/x.default/logins.json .config/google-chrome/Default/Cookies
    .config/chromium/Default/Cookies .config/BraveSoftware/Brave-Browser/Cookies snap/firefox/common/.mozilla/logins.json
    .var/app/org.mozilla.firefox/logins.json .claude/.credentials.json .claude.json .codex/auth.json .bash_history
    .python_history .zsh_history .Xauthority .config/Signal/key .cache/huggingface/token .cache/mozilla/page .thunderbird/prefs.js
"""
_PLAIN = """
    .gitconfig .bashrc .config/matplotlib/matplotlibrc .config/git/config .config/pip/pip.conf .config/fontconfig/fonts.conf
    .cache/pip/wheel .cache/huggingface/hub/model .cargo/bin/tool .local/bin/tool .local/share/fonts/font.ttf .fonts/font.ttf
    .nltk_data/words .pyenv/version .nvm/nvm.sh Documents/letter.txt notes.txt
"""
_CLOSED = ".unknown-token .unknown/token .config/unknown/token .local/share/unknown/secret .config/made-yesterday.json"
SECRET, PLAIN, CLOSED_BY_MODE = _SECRET.split(), _PLAIN.split(), _CLOSED.split()


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """A home folder with everything in it."""
    home = tmp_path / "account"
    for name in (*SECRET, *PLAIN, *CLOSED_BY_MODE):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"inside {name}")
    for name in CLOSED_BY_MODE:
        (home / name).chmod(0o600)
    for folder in (".cache", ".config", ".local", ".local/share"):
        (home / folder).chmod(0o700)
    return home


def test_look_that_failed_is_made_again(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = PrivatePaths([str(account)], (), system=False)
    with monkeypatch.context() as patched, pytest.raises(PermissionError):
        patched.setattr(private_paths, "private_in_home", Mock(side_effect=PermissionError("not now")))
        paths.refresh()
    paths.refresh()
    assert str(account / ".ssh") in paths.hidden


def test_names_and_modes_decide(account: Path) -> None:
    hidden = set(private_in_home(str(account)))
    inside = {
        name
        for name in (*SECRET, *PLAIN, *CLOSED_BY_MODE)
        if {str(path) for path in (account / name, *(account / name).parents)} & hidden
    }
    assert inside == {*SECRET, *CLOSED_BY_MODE}


def test_links_hide_what_they_lead_to(account: Path) -> None:
    elsewhere = account.parent / "dotfiles"
    (elsewhere / "ssh").mkdir(parents=True)
    (account / ".ssh" / "id_ed25519").unlink()
    (account / ".ssh").rmdir()
    (account / ".ssh").symlink_to(elsewhere / "ssh")
    (account / ".aws2").symlink_to("/")
    hidden = set(private_in_home(str(account)))
    assert str(elsewhere / "ssh") in hidden
    (account / ".netrc").unlink()
    (account / ".netrc").symlink_to(account)  # hiding all of the home would hide the agents' own folder
    found = PrivatePaths([str(account)], [], system=False)
    found.refresh()
    assert str(account) not in found.hidden


@pytest.mark.parametrize(
    ("allowed", "opened", "shown"),
    [
        ("~/.ssh", {".ssh"}, set()),
        (".ssh/", {".ssh"}, set()),
        ("{home}/.config/gh", {".config/gh"}, set()),
        ("~/.config", {".config/gh", ".config/chromium", ".config/unknown/token"}, set()),
        ("~/.ssh/known_hosts", set(), {".ssh/known_hosts"}),
        (" ", set(), set()),
    ],
)
def test_setting_opens_paths(account: Path, allowed: str, opened: set[str], shown: set[str]) -> None:
    usual = PrivatePaths([str(account)], [], system=False)
    usual.refresh()
    found = PrivatePaths([str(account)], [allowed.format(home=account)], system=False)
    found.refresh()
    gone = {os.path.relpath(path, account) for path in set(usual.hidden) - set(found.hidden)}
    assert opened <= gone
    assert bool(opened) == bool(gone)
    assert {os.path.relpath(path, account) for path in found.shown} == shown
    everything = PrivatePaths([str(account)], ["*"], system=True)
    everything.refresh()
    assert everything.hidden == ()


@pytest.mark.parametrize(
    ("kind", "may_read", "running", "can"),
    [
        (MOUNT_NAMESPACE, [], True, False), (MOUNT_NAMESPACE, ["~/.ssh"], False, True), (MOUNT_NAMESPACE, ["*"], False, True),
        (MOUNT_NAMESPACE, ["{home}/.ssh/id_ed25519"], False, True), (MOUNT_NAMESPACE, ["~/.aws", "~/.sshx"], False, False),
        (LANDLOCK, [], False, False), (LANDLOCK, [], True, True), (NONE, [], False, True),
    ],
)  # fmt: skip
def test_warning_of_ssh_keys(
    account: Path, monkeypatch: pytest.MonkeyPatch, kind: str, may_read: list[str], running: bool, can: bool
) -> None:
    monkeypatch.setattr(ssh_key_warning, "_SOCKETS", (f"{account}/no-*",))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: (_ for _ in ()).throw(KeyError(uid)))
    environment = {"HOME": str(account)} | ({"SSH_AUTH_SOCK": str(account / "notes.txt")} if running else {})
    allowed = [one.format(home=account) for one in may_read]
    assert ssh_key_warning.can_use_ssh_keys(kind, allowed, environment) is can


linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux shuts workers in")


@pytest.fixture(params=[MOUNT_NAMESPACE, LANDLOCK])
async def shut_in(
    request: pytest.FixtureRequest, account: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[WorkerSupervisor]:
    monkeypatch.setenv("HOME", str(account))
    made = WorkerSupervisor(
        preload=(ROOM,),
        sandbox=request.param,
        may_read=("~/.aws", "~/.ssh/known_hosts"),
        launch=warm_zygote.launch,
    )
    (account / ".ssh" / "known_hosts").write_text("inside .ssh/known_hosts")
    await made.start()
    assert made.sandbox_report()["kind"] == request.param
    yield made
    await made.close()


READ = """
answer = {}
for name in NAMES:
    try:
        answer[name] = open(f"HOME/{name}").read()
    except OSError as problem:
        answer[name] = type(problem).__name__
"""


@linux
async def test_worker_reads_plain_files_and_no_private_ones(
    shut_in: WorkerSupervisor, home: Home, account: Path
) -> None:
    pool = shut_in.pool("a", home.plan())
    names = (*SECRET, *PLAIN, *CLOSED_BY_MODE, ".ssh/known_hosts")
    code = READ.replace("HOME", str(account)).replace("NAMES", repr(names))
    found = await pool.request("run", {"code": code}, timeout=100)
    read = {name for name, text in found.items() if text == f"inside {name}"}
    assert read == {*PLAIN, ".aws/credentials", ".ssh/known_hosts"}
    assert set(found.values()) <= {f"inside {name}" for name in read} | {
        "FileNotFoundError",
        "PermissionError",
    }
    for name in (
        "mv {0}/.cache/huggingface {0}/.cache/x; cat {0}/.cache/x/token",
        "ln {0}/.netrc n; cat n",
        "cat /proc/1/root{0}/.netrc",
    ):
        told = await pool.request("shell", {"command": name.format(account)}, timeout=100)
        assert "inside" not in told["out"]


@linux
async def test_refused_read_names_the_setting(shut_in: WorkerSupervisor, home: Home, account: Path) -> None:
    pool = shut_in.pool("a", home.plan())
    for name in (".ssh/id_ed25519", ".netrc", ".config/gh/hosts.yml"):
        with pytest.raises(Exception, match=r"hidden from agents; the setting agents\.may_read opens it"):
            await pool.request("read", {"path": str(account / name)}, timeout=30)
    with pytest.raises(Exception, match="No such file") as missing:
        await pool.request("read", {"path": str(account / "absent")}, timeout=30)
    assert "may_read" not in str(missing.value)


@linux
async def test_sockets_of_key_programs(monkeypatch: pytest.MonkeyPatch, home: Home, tmp_path: Path) -> None:
    """The agent that the daemon's own environment names, wherever it listens; and sockets without a file."""
    path = tmp_path / "agent.sock"
    monkeypatch.setenv("SSH_AUTH_SOCK", str(path))
    with socket.socket(socket.AF_UNIX) as agent, socket.socket(socket.AF_UNIX) as screen:
        agent.bind(str(path))
        agent.listen()
        screen.bind(f"\0rappd-test-{os.getpid()}")
        screen.listen()
        answers = {}
        for kind in (MOUNT_NAMESPACE, NONE):
            supervisor = WorkerSupervisor(preload=(ROOM,), sandbox=kind)
            await supervisor.start()
            pool: WorkerPool = supervisor.pool("a", home.plan())
            code = f"""
def connects(address):
    try:
        socket.socket(socket.AF_UNIX).connect(address)
        return True
    except OSError:
        return False
own = socket.socket(socket.AF_UNIX)
own.bind("\\0rappd-own-" + str(os.getpid()))
own.listen()
answer = [connects({str(path)!r}), connects("\\0rappd-test-{os.getpid()}"), connects(own.getsockname())]
"""
            answers[kind] = await pool.request("run", {"code": code}, timeout=100)
            await supervisor.close()
    assert answers == {MOUNT_NAMESPACE: [False, False, True], NONE: [True, True, True]}
