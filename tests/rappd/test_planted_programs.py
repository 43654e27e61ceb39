"""An agent that plants programs and configuration in the owner's home gets nothing run outside its sandbox."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.ordinary_account import NOBODY
from fixtures.package_index import PackageIndex
from fixtures.running_daemon import agent_source
from fixtures.sandboxed_daemon import (
    MODES,
    NAMESPACE_AS_USER,
    NO_SANDBOX,
    SandboxedDaemon,
    sandboxed_daemon_in,
)

from agents.programs import programs

SITE = f".local/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


class Plants:
    """Programs and configuration in a home that leave a mark when they are run, or obeyed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.marks = home / "marks"
        mark = f"#!/bin/sh\ntouch {self.marks}/$(basename $0)\nexit 1\n"
        conf = f"[global]\npython = {home}/.local/bin/from_pip_conf\n"
        self.files = {
            **dict.fromkeys((f".local/bin/{name}" for name in ("uv", "gh", "lsof", "ps", "git", "from_pip_conf")), mark),
            ".config/pip/pip.conf": conf,
            ".pip/pip.conf": conf,
            ".config/uv/uv.toml": f'[pip]\npython = "{home}/.local/bin/from_pip_conf"\n',
            f"{SITE}/usercustomize.py": f"open({str(self.marks / 'user_site')!r}, 'w').close()\n",
        }  # fmt: skip

    def make_folders(self) -> None:
        """The folders that a home has anyway."""
        for folder in {self.marks, *(path.parent for path in map(self.home.joinpath, self.files))}:
            folder.mkdir(parents=True, exist_ok=True)

    def code(self) -> str:
        """The code of an agent that plants them; it returns the names of those that it could not."""
        return (
            "import os\n"
            "failed = []\n"
            f"for name, text in {self.files!r}.items():\n"
            f"    path = os.path.join({str(self.home)!r}, name)\n"
            "    try:\n"
            "        os.makedirs(os.path.dirname(path), exist_ok=True)\n"
            "        open(path, 'w').write(text)\n"
            "        os.chmod(path, 0o755)\n"
            "    except OSError:\n"
            "        failed.append(name)\n"
            "return failed\n"
        )

    def plant(self, user: int | None) -> None:
        """Plant them all, as if an agent could: another part of the sandbox may close these places."""
        for name, text in self.files.items():
            path = self.home / name
            path.write_text(text)
            path.chmod(0o755)
        for path in (self.marks, self.home / ".local", self.home / ".config", self.home / ".pip"):
            for one in (path, *path.rglob("*")):
                if user is not None:
                    os.chown(one, user, user)

    def obeyed(self) -> set[str]:
        """The marks that are left, which are then removed."""
        found = {path.name for path in self.marks.iterdir()}
        for path in self.marks.iterdir():
            path.unlink()
        return found


@pytest.fixture(params=(*MODES, NO_SANDBOX))
def attacked(request: pytest.FixtureRequest, nobody_python: Path) -> Iterator[SandboxedDaemon]:
    """A daemon whose PATH begins with the owner's own programs, and which has a package index."""
    with sandboxed_daemon_in(request.param, nobody_python) as daemon:
        home = daemon.home.parent
        index = PackageIndex(home.parent / f"{home.name}-index")
        index.add("wanted", "1.0", {"wanted.py": "WORD = 'installed'\n"})
        daemon.environment |= {
            "PATH": f"{home}/.local/bin:{os.environ['PATH']}",
            "RAPPD_PACKAGE_INDEX": index.url,
        }
        del daemon.environment["GH_CONFIG_DIR"]
        yield daemon
        subprocess.run(["rm", "-r", str(index.folder)], check=True)


def test_planted_programs_and_configuration_are_never_run(attacked: SandboxedDaemon) -> None:
    plants = Plants(attacked.home.parent)
    plants.make_folders()
    attacked.start()
    planted = attacked.run_code(plants.code(), "Planter")
    assert planted["ok"], planted
    as_user = attacked.mode == NAMESPACE_AS_USER
    plants.plant(NOBODY if as_user else None)
    _positive_control(attacked, plants)

    needy = f"# pip install wanted\n{agent_source('Needy', 'import wanted; return wanted.WORD')}"
    attacked.drop("needy_agent.py", needy.replace("\nclass ", "\nimport wanted\n\nclass ", 1))
    attacked.wait_for(lambda: "Needy" in attacked.agent_names(), what="the package to be installed")
    answer: Any = attacked.post("/agents/run", {"agent": "Needy"}, control=True).json()
    assert "installed" in str(answer["result"])
    attacked.post("/chat", {"user_input": "hello"})  # looks for a model, and for a token
    attacked.get("/operator/status", control=True)
    assert plants.obeyed() == set()

    attacked.stop()
    attacked.start()
    attacked.post("/chat", {"user_input": "hello"})
    assert plants.obeyed() == set()


def _positive_control(attacked: SandboxedDaemon, plants: Plants) -> None:
    """By its name, or by a plain interpreter, each of them is run."""
    environment = attacked.environment
    for name in ("uv", "gh", "lsof", "ps", "git"):
        subprocess.run(["sh", "-c", name], env=environment, check=False)
    pip = [sys.executable, "-I", "-m", "pip", "install", "wanted"]
    subprocess.run(pip, env=environment, capture_output=True, check=False)
    base = Path(sys.base_prefix) / "bin" / Path(SITE).parent.name
    subprocess.run([base, "-c", ""], env=environment, check=True)
    assert plants.obeyed() == {"uv", "gh", "lsof", "ps", "git", "from_pip_conf", "user_site"}


def test_doctor_names_a_program_that_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if programs.find("gh"):
        pytest.skip("this system has a gh of its own")
    planted = tmp_path / ".local" / "bin" / "gh"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    environment = {
        **os.environ,
        "PATH": f"{planted.parent}:{os.environ['PATH']}",
        "RAPP_HOME": str(tmp_path / "home"),
    }
    done = subprocess.run(
        shlex.split(f"{sys.executable} -m rappd doctor"),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "gh in ~/.local/bin is not used: agents could replace it" in " ".join(done.stdout.split())
