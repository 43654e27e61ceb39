"""llama.cpp for Python with ``--chat_format chatml-function-calling``: tools on offer, and calls of the model's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.models.conftest import SILENCE
from tests.models.packages import MissingPackageError, Packages
from tests.models.real_server import RealServer


@pytest.fixture(scope="module")
def python_desk(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    folder = tmp_path_factory.mktemp("python")
    try:
        server = RealServer(packages, folder, kind="llama.cpp for Python", context=4096)
    except MissingPackageError as missing:
        pytest.skip(str(missing))
    server.start()
    daemon = RunningDaemon(folder / "home", OPENAI_BASE_URL=server.url, RAPPD_MODEL_TIMEOUT=SILENCE)
    daemon.drop("coin_agent.py", agent_source("Coin", 'return "heads"', "Flips a coin."))
    daemon.start()
    yield daemon
    daemon.stop()
    server.kill()


def test_tools_are_taken_and_a_named_agent_is_used_once(python_desk: RunningDaemon) -> None:
    answer = python_desk.chat("use Coin")
    assert answer["agents_used"] == ["Coin"]
    assert answer["agent_logs"].count("[Coin] heads") == 1
    assert "heads" in answer["response"]


def test_remember_and_recall(python_desk: RunningDaemon) -> None:
    python_desk.chat("remember that the boiler is serviced in May")
    assert "May" in python_desk.chat("when is the boiler serviced?")["response"]


def test_the_server_is_known_by_its_own_words(python_desk: RunningDaemon) -> None:
    assert python_desk.get("/health").json()["provider"]["name"] == "llama.cpp for Python"
