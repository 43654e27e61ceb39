"""A conversation of the owner's goes on from page, phone, terminal, OpenAI, MCP, A2A and an editor in turn: one thread, nothing forgotten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.programs.test_acp import editor
from tests.rappd.programs.test_mcp import call
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable

ORDER = ("page", "phone", "terminal", "openai", "mcp", "a2a", "acp", "responses", "phone again", "page again")
ALL_OF_IT = frozenset(ORDER) - {"page again"}
"""Places that send along, or look up, what was said before. (The page sends it along itself.)"""


async def by_phone(phone: AiortcClient, text: str, session: str) -> None:
    """Says something in a conversation that the phone found in its list, as its page does."""
    _, listed = await phone.ask("GET", "/conversations")
    (row,) = listed["conversations"]
    assert row["session"] == session
    _, shown = await phone.ask("GET", f"/conversations/{row['id']}")
    history: list[dict[str, Any]] = []
    for turn in shown["turns"]:
        history += [{"role": "user", "content": turn["user"]}, {"role": "assistant", "content": turn["text"]}]
    body = {"user_input": text, "session_id": session, "conversation_history": history}
    status, events = await phone.ask("POST", "/chat/stream", body)
    assert (status, events[-1][1]["type"]) == (200, "done")


async def test_one_conversation_goes_on_from_everywhere(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(
        OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small", RAPPD_MODEL_HELP="never", **reachable()
    ).start()
    session = str(uuid.uuid4())
    fake_model.will(*(says(f"answer to {one}") for one in ORDER))
    await asyncio.to_thread(daemon.chat, "from page", session_id=session)
    phone = await AiortcClient(daemon).pair(name="Anna", kind="mine")
    await by_phone(phone, "from phone", session)
    await asyncio.to_thread(_by_programs, daemon, session)
    await by_phone(phone, "from phone again", session)
    await phone.leave()
    await asyncio.to_thread(daemon.chat, "from page again", session_id=session)
    for number, told in enumerate(fake_model.asked):
        said = [one["content"] for one in told["messages"] if one["role"] != "system"]
        wanted = [text for one in ORDER[:number] for text in (f"from {one}", f"answer to {one}")]
        if ORDER[number] in ALL_OF_IT:
            assert said[-2 * number - 1 :] == [*wanted, f"from {ORDER[number]}"], ORDER[number]
    (row,) = daemon.get("/conversations", control=True).json()["conversations"]
    turns = daemon.get(f"/conversations/{row['id']}", control=True).json()["turns"]
    assert [turn["user"] for turn in turns] == [f"from {one}" for one in ORDER]


def _by_programs(daemon: RunningDaemon, session: str) -> None:
    told = daemon.cli("chat", "--session", session, "from terminal")
    assert "answer to terminal" in told.stdout, told.stderr
    openai = {"model": "brainstem", "messages": [{"role": "user", "content": "from openai"}]}
    assert daemon.post("/v1/chat/completions", openai, headers={"X-Session-Id": session}).status == 200
    found = call(daemon, "ask", {"message": "from mcp", "conversation": session}, control=True)
    assert found["structuredContent"]["conversation"] == session
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "from a2a"}], "contextId": session}
    sent = daemon.post("/a2a/message:send", {"message": message}, headers={"A2A-Version": "1.0"}).json()
    assert sent["task"]["contextId"] == session
    with editor(daemon) as one:
        one.ask("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        before = ORDER[: ORDER.index("acp")]
        assert one.said("user_message_chunk") == "".join(f"from {name}" for name in before)
        assert one.prompt(session, "from acp") == "end_turn"
    body = {"model": "brainstem", "input": "from responses", "metadata": {"session_id": session}}
    assert daemon.post("/v1/responses", body).status == 200
