"""Every program of others on another machine, with a token and this machine's certificate: the matrix of ``tests/rappd/programs``."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.program_cells import check, environment, matrix
from fixtures.program_drivers import PROGRAMS, Address, Driven, Run
from fixtures.running_daemon import REPO, agent_source
from fixtures.willing_model import Signs

from lan.daemons import Daemon
from lan.network import Lan, Machine, require

pytestmark = [matrix, pytest.mark.needs_root, pytest.mark.timeout(900)]

CELLS = [
    pytest.param(one, case, id=f"{one.name}-{case}") for one in PROGRAMS if not one.here for case in one.cases
]
NAME = f"{socket.gethostname().split('.')[0]}.local"
_PORT = 18_100


class Elsewhere:
    """Programs on a laptop, which knows the desk by name."""

    def __init__(self, desk: Daemon, laptop: Machine, folder: Path) -> None:
        self._desk, self._laptop, self.signs = desk, laptop, Signs(folder / "model")
        self._hosts = folder / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost\n{desk.machine.address} {NAME}\n")
        caps = ["HELP.brainstem", "HELP.brainstem.Clock"]
        issued = desk.ask("POST", "/tokens", {"name": "laptop", "caps": caps})["token"]["text"]
        certificate = str(desk.home / "keys" / "machine.pem")
        self.at = Address(f"https://{NAME}:{desk.port_for_peers}", issued, certificate)

    def start(self, run: Run, folder: Path) -> subprocess.Popen[str]:
        named = 'mount --bind "$1" /etc/hosts && cd "$2" && shift 2 && exec "$@"'  # in the namespace alone
        own = [f"{key}={value}" for key, value in environment(run, folder).items()]
        words = ["sh", "-c", named, "sh", self._hosts, run.cwd or folder, "env", "-i", *own, *run.words]
        return self._laptop.start(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        self._desk.crash()

    def start_again(self) -> None:
        self._desk.start()

    @contextmanager
    def refusing(self, driven: Driven) -> Iterator[tuple[Address, tuple[str, ...]]]:
        """A key that is none of the desk's."""
        at = Address(self.at.base, "sk-nothing", self.at.certificate)
        yield at, ("Only paired machines", "401", "Unauthorized", "cannot be read")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elsewhere]:
    require()
    folder = tmp_path_factory.mktemp("programs-elsewhere")
    with Lan() as lan:
        machine, laptop = lan.machine("desk"), lan.machine("laptop")
        model = [sys.executable, "-m", "fixtures.willing_model", str(folder / "model"), str(_PORT)]
        machine.start(model, environment={"PYTHONPATH": f"{REPO / 'tests'}:{REPO}"})
        desk = Daemon(
            machine,
            folder,
            OPENAI_BASE_URL=f"http://127.0.0.1:{_PORT}/v1",
            OPENAI_MODEL="m",
            RAPPD_MODEL_HELP="never",
        )
        desk.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
        yield Elsewhere(desk.start(), laptop, folder)


@pytest.mark.parametrize(("driven", "case"), CELLS)
def test_cell(elsewhere: Elsewhere, tmp_path: Path, driven: Driven, case: str) -> None:
    check(elsewhere, driven, case, tmp_path)
