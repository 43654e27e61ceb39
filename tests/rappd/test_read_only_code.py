"""Agents cannot write what decides which code runs: attacks from inside a real agent, in each sandbox mode.

Everything that is attacked lies in throwaway folders: the home folder, the virtual environment and the
interpreter below it are copies. Of the real machine only unused names in /etc and /var/spool are tried.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from fixtures.ordinary_account import NOBODY, PROJECT
from fixtures.sandboxed_daemon import (
    LANDLOCK,
    MODES,
    NAMESPACE_AS_USER,
    NO_SANDBOX,
    SandboxedDaemon,
    sandboxed_daemon_in,
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another account")

NAME = f"python{sys.version_info.major}.{sys.version_info.minor}"
SKIPPED = shutil.ignore_patterns(
    "test", "tests", "site-packages", "idlelib", "tkinter", "config-*", "__pycache__"
)
CODE_FOLDERS = ("agents", "services", "organs", "senses", "workflows", "rapps", "utils", ".remote_agents")
CODE_FILES = ("soul.md", ".env", ".repos.json")

NUMBERS = itertools.count()  # an agent for each probe: another file of one name is another version
ATTEMPT = """
import json, os, subprocess
def attempt(action):
    try:
        action()
        return "done"
    except OSError as problem:
        return type(problem).__name__
def write(path):
    with open(path, "a") as file:
        file.write("# planted")
def write_inherited():
    "Writes to each file that was open for writing when this worker began with its call."
    refusal = PermissionError("no file is open for writing")
    for number in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{number}")
            if os.path.isabs(name) and os.path.isfile(name):
                os.write(int(number), b"# planted")
                return
        except OSError as problem:
            refusal = problem
    raise refusal
def run_from_memory(command):
    number = os.memfd_create("script", 0)
    os.write(number, f"#!/bin/sh\\nset -e\\n{command}\\n".encode())
    shell(f"sh /proc/{os.getpid()}/fd/{number}")
def shell(command):
    said = subprocess.run(command, shell=True, capture_output=True, text=True)
    if said.returncode:
        raise OSError(said.stderr)
"""


class AttackedDaemon(SandboxedDaemon):
    """A daemon of a copied interpreter, whose home folder and environment may be damaged."""

    def start(self) -> AttackedDaemon:
        self.folder = self.home.parent
        assert self._python is not None
        self.base, self.environment_folder = _copied_interpreter(self._python, self.folder)
        for name in (".config", ".local", "Documents", ".ssh"):
            (self.folder / name).mkdir()
        (self.folder / ".bashrc").write_text("# here\n")
        self.account = NOBODY if self.mode == NAMESPACE_AS_USER else 0
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, self.account, self.account, follow_symlinks=False)
        self.process = subprocess.Popen(
            [self.environment_folder / "bin" / "python", "-m", "rappd", "start", "--quiet"],
            env=self.environment, cwd="/", user=self.account, group=self.account, extra_groups=[],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.wait_for(self.is_ready, what="the daemon to be ready")
        return self

    @property
    def workspace(self) -> Path:
        return self.home / "brainstem"

    def drop(self, filename: str, source: str) -> None:
        super().drop(filename, source)
        os.chown(self.agents / filename, self.account, self.account)

    def attempts(self, *actions: str) -> dict[str, str]:
        """The outcome of each action, a Python expression in which ``write`` and ``shell`` are known."""
        listed = ", ".join(f"{action!r}: attempt(lambda: {action})" for action in actions)
        answer = self.run_code(f"{ATTEMPT}\nreturn json.dumps({{{listed}}})", f"Probe{next(NUMBERS)}")
        assert answer["ok"], f"{answer}\n{self.log[-3000:]}"
        found: dict[str, str] = json.loads(answer["result"])
        return found

    def refuses(self, *actions: str) -> None:
        found = self.attempts(*actions)
        assert "done" not in found.values(), found

    def allows(self, *actions: str) -> None:
        found = self.attempts(*actions)
        assert set(found.values()) == {"done"}, found


def attacked_daemon(mode: str, python: Path, **environment: str) -> Iterator[AttackedDaemon]:
    with sandboxed_daemon_in(mode, LLM_FAKE="1", **environment) as made:
        daemon = AttackedDaemon(made.home, mode, python, LLM_FAKE="1", **environment)
        try:
            yield daemon.start()
        finally:
            daemon.stop()


@pytest.fixture(scope="module", params=MODES)
def attacked(request: pytest.FixtureRequest, nobody_python: Path) -> Iterator[AttackedDaemon]:
    """A running daemon in each mode."""
    yield from attacked_daemon(request.param, nobody_python)


def test_workspace_code_cannot_be_written(attacked: AttackedDaemon) -> None:
    attacked.allows("write('.brainstem_data/own')", "os.makedirs('.brainstem_data/a/b')")
    attacked.refuses(
        *(f"write({f'{folder}/planted_agent.py'!r})" for folder in CODE_FOLDERS),
        *(f"write({name!r})" for name in CODE_FILES),
    )
    assert not list(attacked.workspace.rglob("planted_agent.py"))
    assert "planted" not in (attacked.workspace / "soul.md").read_text()


def test_workspace_code_cannot_be_moved_or_replaced(attacked: AttackedDaemon) -> None:
    attacked.allows(
        "write('.brainstem_data/new')", "os.rename('.brainstem_data/new', '.brainstem_data/newer')"
    )
    actions = []
    for name in (*CODE_FOLDERS, *CODE_FILES):
        actions += [f"os.rename({name!r}, '.brainstem_data/x')", f"os.rename({name!r}, {f'{name}.x'!r})"]
    for name in CODE_FILES:
        actions += [f"os.unlink({name!r})", f"os.truncate({name!r}, 0)"]
        actions += [f"os.replace('.brainstem_data/newer', {name!r})"]
        actions += [f"os.link({name!r}, '.brainstem_data/other-name')"]
    attacked.refuses(*actions, "os.rmdir('services')", "os.rename('../brainstem', '../x')")
    assert (attacked.workspace / "soul.md").exists()


def test_no_trick_opens_workspace_code(attacked: AttackedDaemon) -> None:
    soul = attacked.workspace / "soul.md"
    before = soul.read_text()
    attacked.allows(
        "os.symlink('../soul.md', '.brainstem_data/link')",
        "shell('echo x > .brainstem_data/y')",
        "run_from_memory('echo x >> .brainstem_data/y')",
    )
    ways = [
        f"write('/proc/self/root{soul}')",
        "write('/proc/self/cwd/soul.md')",
        "write('/proc/1/cwd/soul.md')",
        f"write('/proc/%d/root{soul}' % os.getppid())",
        "write('.brainstem_data/link')",
        "write('/proc/self/fd/%d' % os.open('soul.md', os.O_RDONLY))",
        "write('/proc/self/fd/%d/soul.md' % os.open('.', os.O_PATH))",
        "os.open('agents/planted_agent.py', os.O_CREAT | os.O_WRONLY, dir_fd=os.open('.', os.O_RDONLY))",
        "shell('mount -o remount,rw . && echo x >> soul.md')",
        "shell('umount soul.md && echo x >> soul.md')",
        "shell('mount --bind .brainstem_data agents')",
        "shell('unshare -Urm sh -c \"umount -l soul.md; echo x >> soul.md\"')",
        "shell('unshare -Urm sh -c \"mount -o remount,rw,bind soul.md; echo x >> soul.md\"')",
        "shell('unshare -Urm sh -c \"mount --bind . /mnt && echo x >> /mnt/soul.md\"')",
        "shell('setsid sh -c \"echo x >> soul.md\"')",
        "write_inherited()",
        "run_from_memory('echo x >> soul.md')",
    ]
    if attacked.mode != LANDLOCK:  # which knows no right to change a file's mode
        ways += ["os.chmod('soul.md', 0o666)", "os.chmod('agents', 0o777)", "os.utime('soul.md')"]
    attacked.refuses(*ways)
    assert soul.read_text() == before
    assert not (attacked.workspace / "agents" / "planted_agent.py").exists()


def test_new_names_in_the_workspace(attacked: AttackedDaemon) -> None:
    found = attacked.attempts("write('notes.txt')", "os.mkdir('output')")
    expected = "PermissionError" if attacked.mode == LANDLOCK else "done"
    assert set(found.values()) == {expected}, found


def test_kept_versions_cannot_be_written(attacked: AttackedDaemon) -> None:
    if attacked.mode == LANDLOCK:
        pytest.skip("Landlock: the folder for data is writable as a whole")
    kept = (".brainstem_data/kept/x", ".brainstem_data/soul_history/2026-01-01T00-00-00Z.md")
    attacked.refuses(
        *(f"write({path!r})" for path in kept),
        "os.rename('.brainstem_data', 'moved')",
        "os.rename('.brainstem_data/kept', '.brainstem_data/x')",
    )


def test_interpreter_and_environment_cannot_be_written(attacked: AttackedDaemon) -> None:
    attacked.allows(f"write({str(attacked.folder / 'Documents' / 'own.txt')!r})")
    packages = attacked.environment_folder / "lib" / NAME / "site-packages"
    victims = [
        attacked.base / "lib" / NAME / "sitecustomize.py",
        attacked.base / "lib" / NAME / "usercustomize.py",
        attacked.base / "lib" / NAME / "json" / "__init__.py",
        attacked.base / "bin" / "uv",
        packages / "planted.pth",
        packages / "sitecustomize.py",
        attacked.environment_folder / "bin" / "git",
        attacked.environment_folder / "pyvenv.cfg",
    ]
    moves = [
        f"os.rename({str(folder)!r}, {f'{folder}.x'!r})"
        for folder in (attacked.base, attacked.environment_folder)
    ]
    attacked.refuses(*(f"write({str(path)!r})" for path in victims), *moves)
    assert not list(attacked.folder.rglob("planted.pth"))


def test_what_starts_in_the_home_folder_cannot_be_written(attacked: AttackedDaemon) -> None:
    home = attacked.folder
    attacked.allows(f"write({str(home / 'Documents' / 'letter.txt')!r})")
    names = [
        *(
            ".bashrc",
            ".profile",
            ".bash_profile",
            ".zshrc",
            ".zshenv",
            ".pam_environment",
            ".xprofile",
            ".inputrc",
        ),
        *(
            ".gitconfig",
            ".netrc",
            ".npmrc",
            ".ssh/authorized_keys",
            ".config/pip.conf",
            ".local/planted",
            "pip.conf",
        ),
    ]
    made = [
        ".local/bin",
        f".local/lib/{NAME}/site-packages",
        ".config/autostart",
        ".config/systemd/user",
        ".pip",
        "bin",
    ]
    attacked.refuses(
        *(f"write({str(home / name)!r})" for name in names),
        *(f"os.makedirs({str(home / name)!r})" for name in made),
        f"os.rename({str(home / '.bashrc')!r}, {str(home / 'Documents' / 'x')!r})",
        f"os.replace({str(home / 'Documents' / 'letter.txt')!r}, {str(home / '.bashrc')!r})",
        f"os.rename({str(home)!r}, {f'{home}.x'!r})",
    )
    assert (home / ".bashrc").read_text() == "# here\n"


def test_system_folders_cannot_be_written(attacked: AttackedDaemon) -> None:
    probes = [
        Path(folder) / f"rappd-probe-{os.getpid()}"
        for folder in ("/etc", "/etc/cron.d", "/usr", "/opt", "/var/spool", "/var/spool/cron", "/boot")
    ]
    try:
        attacked.refuses(*(f"write({str(path)!r})" for path in probes))
    finally:
        for path in probes:
            path.unlink(missing_ok=True)


def test_replaced_soul_is_read_by_agents_and_stays_read_only(attacked: AttackedDaemon) -> None:
    soul = attacked.workspace / "soul.md"
    _replace(attacked, soul, "# Soul\n\nYou are new.\n")
    answer = attacked.run_code("return open('soul.md').read()", "Reader")
    assert answer["result"] == "# Soul\n\nYou are new.\n"
    attacked.refuses("write('soul.md')", "os.unlink('soul.md')")


def test_worker_that_sees_a_soul_replaced_is_ended(attacked: AttackedDaemon) -> None:
    if attacked.mode == LANDLOCK:
        pytest.skip("Landlock keeps a new file read-only by itself")
    attacked.run_code("return 'ready'", "Waiter")
    body = """
import os, time
open('.brainstem_data/begun', 'w').close()
before = os.stat('soul.md').st_ino
while os.stat('soul.md').st_ino == before:
    time.sleep(0.001)
time.sleep(3)
open('soul.md', 'a').write('# planted')
return 'planted'
"""
    import threading

    answers: list[Any] = []
    calling = threading.Thread(target=lambda: answers.append(attacked.run_code(body, "Lurker")))
    calling.start()
    attacked.wait_for((attacked.workspace / ".brainstem_data" / "begun").exists, what="the call to begin")
    _replace(attacked, attacked.workspace / "soul.md", "# Soul\n\nYou are newer.\n")
    calling.join(100)
    assert "soul.md was replaced while it ran" in str(answers), answers
    assert (attacked.workspace / "soul.md").read_text() == "# Soul\n\nYou are newer.\n"


@pytest.mark.parametrize("mode", MODES)
def test_may_write_code_opens_the_workspace_alone(mode: str, nobody_python: Path) -> None:
    for daemon in attacked_daemon(mode, nobody_python, RAPPD_AGENTS_MAY_WRITE_CODE="on"):
        daemon.allows("write('agents/beside.py')", "write('soul.md')", "write('.env')", "write('notes.txt')")
        daemon.refuses(
            f"write({str(daemon.base / 'lib' / NAME / 'sitecustomize.py')!r})",
            f"write({str(daemon.folder / '.bashrc')!r})",
        )
        assert "agents.may_write_code" in _doctor(daemon)


def test_without_sandbox_doctor_says_code_is_writable(nobody_python: Path) -> None:
    for daemon in attacked_daemon(NO_SANDBOX, nobody_python):
        daemon.allows(
            "write('agents/beside.py')", "write('soul.md')", f"write({str(daemon.folder / '.bashrc')!r})"
        )
        assert "agents run as you" in _doctor(daemon)


def _doctor(daemon: AttackedDaemon) -> str:
    command = [daemon.environment_folder / "bin" / "python", "-m", "rappd", "doctor"]
    done = subprocess.run(
        command, env=daemon.environment, user=daemon.account, group=daemon.account, cwd="/",
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return " ".join(done.stdout.split())


def _replace(daemon: AttackedDaemon, path: Path, text: str) -> None:
    """Exchange a file as editors and the daemon do: by renaming another over it."""
    beside = path.with_name(".replacement")
    beside.write_text(text)
    os.chown(beside, daemon.account, daemon.account)
    beside.replace(path)


def _copied_interpreter(python: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of what ``python`` is based on, without tests, and a virtual environment based on the copy."""
    base, environment = folder / "base", folder / "environment"
    told = subprocess.run(
        [python, "-c", "import os, sys; print(os.path.realpath(sys.executable)); print(os.__file__)"],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    shutil.copytree(Path(told[1]).parent, base / "lib" / NAME, ignore=SKIPPED, symlinks=True)
    (base / "bin").mkdir()
    shutil.copy2(told[0], base / "bin" / NAME)
    subprocess.run([base / "bin" / NAME, "-m", "venv", "--without-pip", environment], check=True)
    here = environment / "lib" / NAME / "site-packages" / "here.pth"
    here.write_text(f"{Path(orjson.__file__).parent.parent}\n{PROJECT}\n")
    found = subprocess.run(
        [environment / "bin" / "python", "-c", "import sys; print(sys.base_prefix)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(found.stdout.strip()) == base, "the copy is not the interpreter that runs"
    return base, environment
