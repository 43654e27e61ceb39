"""Every program of others, unmodified, in every case: plain, streamed, with a tool, cancelled, over a ``kill -9``, refused.

``tests/lan/test_programs.py`` has the same from another machine.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.program_cells import check, environment, matrix
from fixtures.program_drivers import PROGRAMS, Address, Driven, Run
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.willing_model import WillingModel

pytestmark = [matrix, pytest.mark.own_process, pytest.mark.timeout(900)]

CELLS = [pytest.param(one, case, id=f"{one.name}-{case}") for one in PROGRAMS for case in one.cases]


class Here:
    """Programs on the daemon's own machine."""

    def __init__(self, daemon: RunningDaemon, model: WillingModel) -> None:
        self._daemon, self.signs = daemon, model.signs
        self.at = Address(f"http://127.0.0.1:{daemon.port}", home=str(daemon.home))

    def start(self, run: Run, folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            run.words,
            cwd=run.cwd,
            env=environment(run, folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> None:
        self._daemon.kill()

    def start_again(self) -> None:
        self._daemon.start()

    @contextmanager
    def refusing(self, driven: Driven) -> Iterator[tuple[Address, tuple[str, ...]]]:
        """The protocol is switched off. Some programs tell the status alone."""
        self._switch(driven, "off")
        try:
            yield self.at, ("does not answer over", "404")
        finally:
            self._switch(driven, "on")

    def _switch(self, driven: Driven, on: str) -> None:
        setting = {"name": f"programs.{driven.protocol}", "value": on}
        assert self._daemon.post("/settings", setting, control=True).status == 200


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """A daemon whose agents programs may call, and its model."""
    folder = tmp_path_factory.mktemp("matrix")
    model = WillingModel(folder / "model")
    model.start()
    daemon = RunningDaemon(
        folder / "home",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_MODEL_HELP="never",
        RAPPD_HTTP_TOOLS="on",
    )
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield Here(daemon.start(), model)
    daemon.stop()
    model.stop()


@pytest.mark.parametrize(("driven", "case"), CELLS)
def test_cell(here: Here, tmp_path: Path, driven: Driven, case: str) -> None:
    check(here, driven, case, tmp_path)
