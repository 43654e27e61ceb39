"""A phone asks about twins and machines: the owner's own is told, and whatever changes them is done on the computer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon

from agents.contract.read_only_actions import LOOKING
from agents.errors import CallbackDeniedError
from rappd.tenants.worker_callbacks import CallbackRights, WorkerCallbackHandler
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient

MakePhone = Callable[..., Awaitable[PhoneClient]]
ONLY_THERE = "(no model) That is done on the computer only: say it there."


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A daemon without a model, on which a twin lives."""
    daemon = make_daemon("offline", **reachable()).start()
    assert daemon.post("/twins", {"name": "Rose"}, control=True).status == 200
    return daemon


async def told(phone: PhoneClient, text: str) -> str:
    answer = await phone.is_answered(await phone.say(text))
    return str(answer["text"])


async def test_own_phone_is_told_and_changes_nothing(desk: RunningDaemon, phone: MakePhone) -> None:
    mine = await phone(AiortcClient, name="Mine")
    guest = await phone(AiortcClient, name="Guest")
    await asyncio.to_thread(desk.post, "/devices/Mine", {"workflows": True}, control=True)
    assert (await told(mine, "how are my machines?")).startswith("(no model) desk (this machine): running")
    assert "Rose" in await told(mine, "who lives here?")
    assert (await told(mine, "which neighborhoods am I in?")).endswith("in no neighborhood.")
    assert "- Twin: Manages the twins that live here.\n" in await told(mine, "what can you do?")
    for text in (
        "archive Rose",
        "yes, purge the twin Rose",
        "archive all twins whose name starts with R",
        "take a snapshot of my machines",
        "make a new twin called Iris",
    ):
        assert await told(mine, text) == ONLY_THERE, text
    for text in ("how are my machines?", "who lives here?", "archive Rose", "make a new twin called Iris"):
        assert await told(guest, text) == ONLY_THERE, text
    assert await told(guest, "17% of 80") == "(no model) 17% of 80 = 13.6"
    rows = (await asyncio.to_thread(desk.get, "/twins", control=True)).json()["twins"]
    assert [(row["name"], row["state"]) for row in rows] == [("Rose", "asleep")]


async def test_model_on_a_phone_has_structural_agents_look_alone(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel, phone: MakePhone, desk: RunningDaemon
) -> None:
    desk.stop()
    desk.environment |= {"OPENAI_BASE_URL": fake_model.url, "OPENAI_MODEL": "small"}
    desk.start()
    mine = await phone(AiortcClient, name="Mine")
    await asyncio.to_thread(desk.post, "/devices/Mine", {"workflows": True}, control=True)
    fake_model.will(
        calls(("Twin", {"action": "archive", "rappid_uuid": "Rose"}), ("Twin", {"action": "list"})),
        calls(("LearnNew", {"action": "create", "description": "counts words"})),
        says("That is done on the computer."),
    )
    assert await told(mine, "tidy up, please") == "That is done on the computer."
    offered = {tool["function"]["name"]: tool for tool in fake_model.asked[0]["tools"]}
    actions = {
        name: tuple(offered[name]["function"]["parameters"]["properties"]["action"]["enum"])
        for name in offered.keys()
        & {"Twin", "Fleet", "NeighborhoodSnapshot", "NeighborhoodRun", "LearnNew", "LayEgg"}
    }
    assert actions == dict(LOOKING)
    results = [one["content"] for one in fake_model.asked[-1]["messages"] if one["role"] == "tool"]
    assert "computer only" in results[0] or "action" in results[0]
    assert "Rose" in results[1]
    assert "not found" in results[2]
    rows = (await asyncio.to_thread(desk.get, "/twins", control=True)).json()["twins"]
    assert [(row["name"], row["state"]) for row in rows] == [("Rose", "asleep")]


@pytest.mark.parametrize(
    "operation", ["twins.purge", "twins.archive", "agents.install", "neighborhood.snapshot", ""]
)
async def test_looking_agent_reaches_no_operation_that_changes(operation: str) -> None:
    """An agent may be given one action and ask for another operation."""
    performed: list[str] = []

    async def perform(operation: str, arguments: dict[str, Any]) -> str:
        performed.append(operation)
        return "done"

    tenant: Any = SimpleNamespace(perform=perform, name="desk", is_of_buddies=lambda agent: False)
    agent: Any = SimpleNamespace(name="Twin", trusted=True, file=SimpleNamespace(rel="twin_agent.py"))
    settings: Any = SimpleNamespace(number=lambda name: 1)
    callbacks = WorkerCallbackHandler(tenant, cast(Any, None), settings)
    rights = CallbackRights(agent, operator=False, looks=True, used=lambda completion: None, reach=None)
    assert await callbacks.answer(rights, "host", {"operation": "twins.list"}) == "done"
    with pytest.raises(CallbackDeniedError, match="Only this machine's operator"):
        await callbacks.answer(rights, "host", {"operation": operation})
    assert performed == ["twins.list"]
