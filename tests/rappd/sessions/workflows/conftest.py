"""A daemon whose model waits for the test, and a workflow of three steps."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from fixtures.free_ports import free_port
from fixtures.running_daemon import RunningDaemon

from tests.rappd.sessions.workflows.held_model import HeldModel
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.phone_client import PhoneClient

THREE: dict[str, Any] = {
    "name": "three",
    "title": "Three",
    "participants": [
        {"name": "Ann", "role": "begins", "persona": "You are short."}, {"name": "Bob"}, {"name": "Cy"},
    ],
    "steps": [
        {"participant": "Ann", "cue": "one"},
        {"participant": "Bob", "cue": "two after {Ann}"},
        {"participant": "Cy", "cue": "three after {Bob}"},
    ],
}  # fmt: skip


class Desk(RunningDaemon):
    """A daemon, asked by its owner."""

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        answer = self.request(method, path, body, control=True)
        assert answer.status == status, answer.body
        return answer.json()

    def write(self, workflow: dict[str, Any], name: str = "") -> None:
        folder = self.home / "brainstem" / "workflows"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name or workflow['name']}.json").write_text(json.dumps(workflow))

    def run(self, name: str = "three", **body: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("POST", f"/workflows/{name}/run", body)["run"]
        return found

    def events(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", "/sessions/current")["events"]
        return found

    def sees(self, status: str) -> list[dict[str, Any]]:
        """Waits until the last event of a workflow has this status; the events then."""

        def found() -> list[dict[str, Any]]:
            events = self.events()
            told = [one["workflow"]["status"] for one in events if "workflow" in one]
            return events if told and told[-1] == status else []

        events: list[dict[str, Any]] = self.wait_for(found, what=f"the workflow to be {status}")
        return events


def cues(events: list[dict[str, Any]]) -> list[str]:
    """Texts that were asked, in order."""
    return [one["text"] for one in events if one["kind"] == "operator_input"]


@pytest.fixture
def model() -> Iterator[HeldModel]:
    server = HeldModel()
    server.start()
    yield server
    server.let_go()
    server.stop()


@pytest.fixture
def desk(tmp_path: Any, model: HeldModel) -> Iterator[Desk]:
    """A daemon with that model."""
    made = Desk(
        tmp_path / "desk",
        RAPPD_NAME="desk",
        RAPPD_TETHER_ADDRESS="127.0.0.1",
        RAPPD_TETHER_PORT=str(free_port()),
        OPENAI_BASE_URL=model.url,
        OPENAI_MODEL="small",
        RAPPD_MODEL_HELP="never",  # each sentence is the scripted model's
    )
    made.start()
    made.write(THREE)
    yield made
    made.stop()


@pytest.fixture
def offline(tmp_path: Any) -> Iterator[Desk]:
    """A daemon without a model."""
    made = Desk(tmp_path / "offline", RAPPD_NAME="desk").start()
    yield made
    made.stop()


@pytest.fixture
async def phone(desk: Desk) -> AsyncIterator[Callable[..., Awaitable[PhoneClient]]]:
    """``await phone(workflows=True)``: a phone that joined."""
    made: list[PhoneClient] = []

    async def make(*, workflows: bool) -> PhoneClient:
        one = await AiortcClient(desk).pair(name="Anna")
        made.append(one)
        desk.ask("POST", "/devices/Anna", {"workflows": workflows})
        return one

    yield make
    for one in made:
        await one.leave()
