"""A conversation of the owner's goes on from the page, the terminal, OpenAI, MCP, A2A and an editor in turn: one thread, nothing forgotten."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon

from tests.rappd.programs.test_acp import editor
from tests.rappd.programs.test_mcp import call

ORDER = ("page", "openai", "mcp", "a2a", "acp", "responses", "page again")


def test_one_conversation_goes_on_from_everywhere(
    make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel
) -> None:
    daemon = make_daemon(
        OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small", RAPPD_MODEL_HELP="never"
    ).start()
    session = str(uuid.uuid4())
    fake_model.will(*(says(f"answer to {one}") for one in ORDER))
    daemon.chat("from page", session_id=session)
    openai = {"model": "brainstem", "messages": [{"role": "user", "content": "from openai"}]}
    assert daemon.post("/v1/chat/completions", openai, headers={"X-Session-Id": session}).status == 200
    found = call(daemon, "ask", {"message": "from mcp", "conversation": session}, control=True)
    assert found["structuredContent"]["conversation"] == session
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "from a2a"}], "contextId": session}
    sent = daemon.post("/a2a/message:send", {"message": message}, headers={"A2A-Version": "1.0"}).json()
    assert sent["task"]["contextId"] == session
    with editor(daemon) as one:
        one.ask("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        assert one.said("user_message_chunk") == "from pagefrom openaifrom mcpfrom a2a"
        assert one.prompt(session, "from acp") == "end_turn"
    body = {"model": "brainstem", "input": "from responses", "metadata": {"session_id": session}}
    assert daemon.post("/v1/responses", body).status == 200
    daemon.chat("from page again", session_id=session)
    for number, told in enumerate(fake_model.asked[:-1]):  # the page sends along what was said
        said = [one["content"] for one in told["messages"] if one["role"] != "system"]
        wanted = [text for one in ORDER[:number] for text in (f"from {one}", f"answer to {one}")]
        assert said[-2 * number - 1 :] == [*wanted, f"from {ORDER[number]}"], ORDER[number]
    (row,) = daemon.get("/conversations", control=True).json()["conversations"]
    turns = daemon.get(f"/conversations/{row['id']}", control=True).json()["turns"]
    assert [turn["user"] for turn in turns] == [f"from {one}" for one in ORDER]
