"""The installer's sandbox: one folder to write, the network, and nothing of the owner's to read."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.kernel_features import end_without
from fixtures.ordinary_account import NOBODY
from fixtures.sandboxed_daemon import LANDLOCK, MODES, NAMESPACE_AS_USER, NO_SANDBOX

_PROBE = """
import json, os, socket, sys
from agents.packages.sandboxed_installer import enter
from agents.runtimes.python.sandbox import privileges, sandbox
from agents.runtimes.python.sandbox.namespace_fork import fork

order = json.load(sys.stdin)
privileges.adopt_orphans()
chosen = sandbox.choose(order["kind"])

def attempt(deed, *arguments):
    try:
        deed(*arguments)
        return True
    except OSError:
        return False

def read(path):
    open(path).read()

def write(path):
    open(path, "w").close()
    os.unlink(path)

def probe():
    place = enter(chosen, order["work"], order["path"], order["hidden"], [])
    write(os.path.join(place, "packages", "own"))
    socket.create_connection(("127.0.0.1", order["port"]), 5).close()
    import pip
    found = {path: attempt(read, path) for path in order["read"]}
    found |= {path: attempt(write, path) for path in order["write"]}
    print(json.dumps([chosen.kind, found]))

child = fork(chosen.namespaces, probe)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def owner() -> Iterator[Path]:
    """A folder with a home, keys and a workspace in it, beside nothing else."""
    folder = Path(tempfile.mkdtemp(prefix="rappd-owner-"))
    folder.chmod(0o755)
    for name in ("keys", ".ssh", ".local/bin", "workspace/agents", "workspace/.deps.new/packages"):
        (folder / name).mkdir(parents=True)
    (folder / "keys" / "identity.pem").write_text("PRIVATE KEY")
    (folder / ".ssh" / "id_ed25519").write_text("PRIVATE KEY")
    yield folder
    shutil.rmtree(folder)


def probed(owner: Path, mode: str, python: Path, *, outside: bool = True) -> dict[str, bool]:
    """For each path, whether it could be read, or written, from inside."""
    as_user = mode == NAMESPACE_AS_USER
    kind = {LANDLOCK: "landlock", NO_SANDBOX: "none"}.get(mode, "mount namespace")
    fresh = owner / "workspace" / ".deps.new"
    read = [owner / "keys" / "identity.pem", owner / ".ssh" / "id_ed25519"]
    write = [owner / ".local" / "bin" / "uv", owner / "workspace" / "agents" / "planted_agent.py"]
    if outside:
        write += [Path("/etc/planted"), Path("/var/tmp/planted"), Path(sys.prefix, "planted")]
        write += [Path(sys.base_prefix, "planted"), Path("/usr/local/bin/planted"), Path("/dev/shm/planted")]
    if as_user:
        for path in (owner, *owner.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    work = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY)
    account: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_user else {}
    with socket.create_server(("127.0.0.1", 0)) as server:
        order = {
            "kind": kind, "work": work, "path": str(fresh), "port": server.getsockname()[1],
            "hidden": [str(owner), "/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/run"],
            "read": list(map(str, read)), "write": list(map(str, write)),
        }  # fmt: skip
        done = subprocess.run(
            [python if as_user else sys.executable, "-I", "-c", _PROBE],
            input=json.dumps(order), capture_output=True, text=True, pass_fds=[work], cwd="/", check=False, **account,
        )  # fmt: skip
    os.close(work)
    assert done.returncode == 0, done.stderr
    found_kind, found = json.loads(done.stdout)
    if found_kind != kind:
        end_without(kind, found_kind, account=NOBODY if as_user else None)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_installer_reads_no_key_and_writes_one_folder(owner: Path, mode: str, nobody_python: Path) -> None:
    found = probed(owner, mode, nobody_python)
    assert [path for path, reached in found.items() if reached] == []


def test_installer_without_a_sandbox_reaches_what_is_probed(owner: Path, nobody_python: Path) -> None:
    found = probed(owner, NO_SANDBOX, nobody_python, outside=False)
    assert all(found.values()), "the positive control: the probe works"
