"""A home on a disk that takes no writing (a mounted backup), and a shell that lets few files be open."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon

RAPPD = str(Path(sys.executable).parent / "rappd")
UNSHARE = [
    shutil.which("unshare") or "unshare",
    *(() if os.geteuid() == 0 else ("--map-root-user",)),
    "--mount",
]
_MOUNT = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def mounts() -> bool:
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or not mounts(), reason="nothing can be mounted here"
)
@pytest.mark.parametrize("ended", ["stop", "kill"])
@pytest.mark.own_process
def test_a_read_only_home_is_listed_exported_and_verified(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path, ended: str
) -> None:
    daemon = make_daemon("backup", LLM_FAKE="1").start()
    daemon.chat("the apple tree was planted", session_id="one")
    assert daemon.cli("twins", "new", "gardener").returncode == 0
    daemon.stop() if ended == "stop" else daemon.kill()
    log = daemon.home / "rappd.db-wal"
    assert (ended == "stop") == (not log.exists() or not log.stat().st_size)
    before = sorted(path.name for path in daemon.home.iterdir())

    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [*UNSHARE, "sh", "-c", _MOUNT, "sh", daemon.home, RAPPD, *words],
            env=daemon.environment,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout + done.stderr

    [thread] = json.loads(run("threads", "list", "--json"))["threads"]
    assert "the apple tree was planted" in run("threads", "export", thread["id"])
    assert "none changed" in run("threads", "verify")
    assert "gardener" in run("twins", "list")
    assert "ContextMemory" in run("agents", "list")
    assert "You are gardener" in run("twins", "soul", "gardener")
    egg = tmp_path / "gardener.egg"
    run("egg", "pack", "gardener", "--output", str(egg))
    assert "all 3 files match" in run("egg", "verify", str(egg))
    assert "--output FILE" in run("egg", "pack", "gardener", code=2)
    assert "read-only" in run("start", code=1)
    assert sorted(path.name for path in daemon.home.iterdir()) == before


def test_too_few_open_files_are_named_with_ulimit(tmp_path: Path) -> None:
    for words in (("start",), ("start", "--detach")):
        done = subprocess.run(
            ["sh", "-c", 'ulimit -n 40; exec "$@"', "sh", RAPPD, *words],
            env={**os.environ, "RAPP_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 9
        assert done.stderr.startswith("✗ A program may open only 40 files here, and rappd needs 128 or more")
        assert "ulimit -n 1024" in done.stderr.splitlines()[1]
        assert not (tmp_path / "home").exists()


def test_a_low_soft_limit_of_open_files_is_raised() -> None:
    done = subprocess.run(
        ["sh", "-c", 'ulimit -S -n 40; exec "$@"', "sh", sys.executable, "-c",
         "import resource; from rappd.cli.start import require_open_files; require_open_files();"
         "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    assert int(done.stdout) >= 128
