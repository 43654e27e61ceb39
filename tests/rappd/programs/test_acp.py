"""The Agent Client Protocol as editors speak it: over stdio through ``rappd acp``, and as a WebSocket."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from envelopes.codecs.acp import new_session
from envelopes.envelope import new_id
from rappd.dispatch.turns import Turn
from rappd.listeners import acp
from tests.envelopes.test_ollama_codec import PIXEL
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.programs.conftest import ask, setting, token
from tests.rappd.test_quarantine import hold

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class Editor:
    """An editor that started ``rappd acp``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._next = 0
        self.updates: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        """Results that the editor answers with, by method."""

    def send(self, method: str, **params: Any) -> int:
        self._next += 1
        self.say({"id": self._next, "method": method, "params": params})
        return self._next

    def say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def answer_to(self, id: int) -> dict[str, Any]:
        """Reads until the answer comes."""
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            found: dict[str, Any] = json.loads(line)
            if found.get("method") == "session/update":
                self.updates.append(found["params"]["update"])
            elif "method" in found:
                self.questions.append(found)
                self.say({"id": found["id"], "result": self.answers[found["method"]]})
            elif found.get("id") == id:
                return found
        raise AssertionError("the bridge ended")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.answer_to(self.send(method, **params))
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refused(self, method: str, **params: Any) -> dict[str, Any]:
        error: dict[str, Any] = self.answer_to(self.send(method, **params))["error"]
        return error

    def prompt(self, session: str, text: str) -> str:
        """Prompts, and returns why it stopped."""
        self.updates.clear()
        blocks = [{"type": "text", "text": text}]
        stop: str = self.ask("session/prompt", sessionId=session, prompt=blocks)["stopReason"]
        return stop

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.updates if one["sessionUpdate"] == kind)


@contextmanager
def editor(daemon: RunningDaemon, **capabilities: Any) -> Iterator[Editor]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rappd", "acp"],
        env=daemon.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = Editor(process)
        info = {"name": "desk-editor", "version": "1"}
        welcome = found.ask("initialize", protocolVersion=1, clientInfo=info, clientCapabilities=capabilities)
        assert welcome["protocolVersion"] == 1
        yield found
    finally:
        process.kill()
        process.wait()


def new(one: Editor) -> str:
    session: str = one.ask("session/new", cwd="/tmp/project", mcpServers=[])["sessionId"]
    return session


def test_a_session_is_there_after_the_editors_restart(node: Node) -> None:
    with editor(node.daemon) as one:
        session = new(one)
        assert one.prompt(session, "use Clock") == "end_turn"
        assert "it is now" in one.said()
        kinds = [update["sessionUpdate"] for update in one.updates]
        assert kinds.index("tool_call") < kinds.index("tool_call_update")
    with editor(node.daemon) as one:
        rows = one.ask("session/list", cwd="/tmp/project")["sessions"]
        assert [(row["sessionId"], row["title"], row["cwd"]) for row in rows] == [
            (session, "use Clock", "/tmp/project")
        ]
        assert one.ask("session/list", cwd="/elsewhere")["sessions"] == []
        one.ask("session/load", sessionId=session, cwd="/tmp/project", mcpServers=[])
        assert one.said("user_message_chunk") == "use Clock"
        assert "it is now" in one.said()
        one.updates.clear()
        one.ask("session/resume", sessionId=session, cwd="/tmp/project", mcpServers=[])
        assert one.updates == []
        assert one.prompt(session, "use Clock again") == "end_turn"
        for known in (session, session, new(one), "never"):
            one.ask("session/delete", sessionId=known)
        assert one.ask("session/list", cwd="/tmp/project")["sessions"] == []


def test_sessions_of_a_folder_are_found_below_many_others(node: Node) -> None:
    with editor(node.daemon) as one:
        session = one.ask("session/new", cwd="/tmp/below", mcpServers=[])["sessionId"]
        assert one.prompt(session, "use Clock") == "end_turn"
        for number in range(51):
            node.daemon.post("/chat", {"user_input": "use Clock", "session_id": f"above-{number}"})
        rows = one.ask("session/list", cwd="/tmp/below")["sessions"]
        assert [row["sessionId"] for row in rows] == [session]


def test_a_picture_alone_is_a_prompt(node: Node) -> None:
    with editor(node.daemon) as one:
        picture = {"type": "image", "mimeType": "image/png", "data": PIXEL}
        asked = {"sessionId": new(one), "prompt": [picture]}
        refused = one.refused("session/prompt", **asked)
        assert refused["data"]["code"] == "picture_refused", (
            "that there is no model, not that nothing was said"
        )


def test_the_owners_conversation_goes_on_in_the_editor(node: Node) -> None:
    node.daemon.post("/chat", {"user_input": "use Clock first", "session_id": "from-the-page"})
    with editor(node.daemon) as one:
        rows = {row["sessionId"]: row["title"] for row in one.ask("session/list")["sessions"]}
        assert rows["from-the-page"] == "use Clock first"
        one.ask("session/load", sessionId="from-the-page", cwd="/tmp", mcpServers=[])
        assert one.said("user_message_chunk") == "use Clock first"
        assert one.prompt("from-the-page", "use Clock second") == "end_turn"
    _, found = node.owner("GET", "/conversations")
    (row,) = [row for row in found["conversations"] if row["session"] == "from-the-page"]
    _, shown = node.owner("GET", f"/conversations/{row['id']}")
    assert [turn["user"] for turn in shown["turns"]] == ["use Clock first", "use Clock second"]


def test_a_twin_is_a_mode(node: Node) -> None:
    with editor(node.daemon) as one:
        made = one.ask("session/new", cwd="/tmp", mcpServers=[])
        modes = made["modes"]
        assert (modes["currentModeId"], [row["id"] for row in modes["availableModes"]]) == (
            "brainstem",
            ["brainstem", "twin/gardener"],
        )
        one.ask("session/set_mode", sessionId=made["sessionId"], modeId="twin/gardener")
        assert one.prompt(made["sessionId"], "hello") == "end_turn"
        again = one.ask("session/resume", sessionId=made["sessionId"], cwd="/tmp", mcpServers=[])
        assert again["modes"]["currentModeId"] == "twin/gardener"
        assert one.refused("session/set_mode", sessionId="x", modeId="twin/nobody")["code"] == -32002


@pytest.mark.parametrize(
    ("method", "params", "number"),
    [
        ("nothing/here", {}, -32601),
        ("initialize", {"protocolVersion": "1"}, -32602),
        ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
        ("session/list", {"cwd": "relative"}, -32602),
        ("session/load", {"sessionId": "unknown", "cwd": "/tmp"}, -32002),
        ("session/list", {"cursor": "x"}, -32602),
        ("session/list", {"cwd": 7}, -32602),
        ("session/prompt", {"sessionId": "unknown", "prompt": [{"type": "text", "text": "hi"}]}, -32002),
        ("session/set_mode", {"sessionId": "unknown", "modeId": "brainstem"}, -32002),
        ("session/prompt", {"sessionId": "s", "prompt": "text"}, -32602),
        ("session/prompt", {"sessionId": 7, "prompt": []}, -32602),
    ],
)
def test_bad_input_gets_the_protocols_number(node: Node, method: str, params: Any, number: int) -> None:
    with editor(node.daemon) as one:
        assert one.refused(method, **params)["code"] == number


def test_lines_that_are_no_messages_are_refused_and_the_next_is_answered(node: Node) -> None:
    lines = ["not json", "[]", '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}', ""]
    ran = node.daemon.cli("acp", stdin="\n".join(lines))
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert sorted(one["error"]["code"] for one in found if "error" in one) == [-32700, -32600]
    assert [one["id"] for one in found if "result" in one] == [1]


def test_files_come_through_the_editor_alone(node: Node) -> None:
    with editor(node.daemon, fs={"readTextFile": True}) as one:
        one.answers["fs/read_text_file"] = {"content": "the words of the file"}
        session = new(one)
        blocks = [
            {"type": "text", "text": "use Clock"},
            {"type": "resource_link", "uri": "file:///etc/hostname", "name": "h"},
        ]
        one.ask("session/prompt", sessionId=session, prompt=blocks)
        (question,) = one.questions
        assert question["params"] == {"sessionId": session, "path": "/etc/hostname"}
        one.ask("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        assert "the words of the file" in one.said("user_message_chunk")
    with editor(node.daemon) as one:
        session = new(one)
        one.ask("session/prompt", sessionId=session, prompt=blocks)
        assert one.questions == []
        one.ask("session/load", sessionId=session, cwd="/tmp", mcpServers=[])
        assert one.said("user_message_chunk") == "use Clock\n\nfile:///etc/hostname"


def _waits(daemon: RunningDaemon) -> list[str]:
    found = daemon.request("GET", "/waiting", control=True).json()["waiting"]
    return [row["path"] for row in found if row.get("sha256")]


def test_the_owners_yes_may_be_given_in_the_editor_to_exactly_these_bytes(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.home.mkdir(parents=True, exist_ok=True)
    hold(daemon, "agents/oven_agent.py", agent_source("Oven", 'return "hello from afar"'))
    daemon.start()
    assert _waits(daemon) == ["agents/oven_agent.py"]
    with editor(daemon) as one:
        one.answers["session/request_permission"] = {"outcome": {"outcome": "cancelled"}}
        session = new(one)
        one.prompt(session, "hello")
        assert "hello from afar" in json.dumps(one.questions[0]["params"]["toolCall"])
        one.prompt(session, "hello again")
        assert len(one.questions) == 1, "a no is not asked about again"
    assert _waits(daemon) == ["agents/oven_agent.py"]
    with editor(daemon) as one:
        one.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "yes"}}
        one.prompt(new(one), "hello")
        assert "oven_agent.py is approved" in one.said("agent_thought_chunk")
    assert _waits(daemon) == []


async def test_only_over_stdio_is_the_owner_asked(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.home.mkdir(parents=True, exist_ok=True)
    hold(daemon, "agents/oven_agent.py", agent_source("Oven"))
    await asyncio.to_thread(daemon.start)
    messages = [
        ("initialize", {"protocolVersion": 1}),
        (
            "session/prompt",
            {"sessionId": new_session(new_id(), "/tmp"), "prompt": [{"type": "text", "text": "hello"}]},
        ),
    ]
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"http://127.0.0.1:{daemon.port}/acp") as socket,
    ):
        for id, (method, params) in enumerate(messages):
            await socket.send_json({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            while (found := await socket.receive_json(timeout=100)).get("id") != id:
                assert found["method"] == "session/update"
        assert found["result"] == {"stopReason": "end_turn"}
    assert await asyncio.to_thread(_waits, daemon) == ["agents/oven_agent.py"]


async def test_a_socket_has_an_id_and_takes_text_alone(node: Node) -> None:
    """As the protocol's transport has it: a frame of octets is passed over."""
    url = f"http://127.0.0.1:{node.daemon.port}/acp"
    async with aiohttp.ClientSession() as http:
        async with http.get(url, headers=UPGRADE) as upgrade:
            assert len(upgrade.headers["Acp-Connection-Id"]) == 36
        async with http.ws_connect(url) as socket:
            asked = {"jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": 1}}
            await socket.send_bytes(json.dumps({**asked, "id": "octets"}).encode())
            await socket.send_json({**asked, "id": "text"})
            assert (await socket.receive_json(timeout=100))["id"] == "text"


def test_a_cancelled_prompt_says_so(node: Node) -> None:
    node.daemon.drop("slow_agent.py", agent_source("Slow", "import time; time.sleep(30)"))
    node.daemon.wait_for(lambda: "Slow" in node.daemon.agent_names(), what="Slow")
    with editor(node.daemon) as one:
        session = new(one)
        id = one.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "use Slow"}])
        second = one.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "use Clock"}])
        assert one.answer_to(second)["error"]["code"] == -32600
        one.say({"method": "session/cancel", "params": {"sessionId": session}})
        assert one.answer_to(id)["result"] == {"stopReason": "cancelled"}
        id = one.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "use Slow"}])
        for other in (id + 1, str(id), None, [id]):
            one.say({"method": "$/cancel_request", "params": {"requestId": other}})
        one.say({"method": "$/cancel_request", "params": {"requestId": id}})
        assert one.answer_to(id)["result"] == {"stopReason": "cancelled"}
        assert one.prompt(session, "use Clock") == "end_turn"


def test_a_prompt_cancelled_before_it_began_says_so(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    begins, cancelled, begin = threading.Event(), threading.Event(), acp.begin

    async def begin_late(*asked: Any, **how: Any) -> Turn:
        begins.set()
        await asyncio.to_thread(cancelled.wait, 30)
        return await begin(*asked, **how)

    monkeypatch.setattr(acp, "begin", begin_late)
    with editor(make_daemon().start()) as one:
        session = new(one)
        id = one.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "use Clock"}])
        assert begins.wait(100)
        one.say({"method": "session/cancel", "params": {"sessionId": session}})
        one.ask("session/list")  # the daemon takes messages in their order
        cancelled.set()
        assert one.answer_to(id)["result"] == {"stopReason": "cancelled"}
        assert one.prompt(session, "use Clock") == "end_turn"


def test_a_cancel_that_comes_with_its_prompt_counts(node: Node) -> None:
    session = new_session(new_id(), "/tmp")
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "use Clock"}]}
    both = [
        {"id": 1, "method": "session/prompt", "params": prompt},
        {"method": "session/cancel", "params": {"sessionId": session}},
    ]
    greeting = "".join(f"{name}: {value}\r\n" for name, value in UPGRADE.items())
    with socket.create_connection(("127.0.0.1", node.daemon.port), timeout=100) as line:
        line.sendall(f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{node.daemon.port}\r\n{greeting}\r\n".encode())
        heard = line.recv(4096)
        line.sendall(b"".join(map(frame, both)))
        while b'"id":1' not in heard:
            piece = line.recv(4096)
            assert piece, heard
            heard += piece
    assert b'"stopReason":"cancelled"' in heard


def frame(message: dict[str, Any]) -> bytes:
    """A message as a client's WebSocket frame; its mask is zeros."""
    octets = json.dumps({"jsonrpc": "2.0", **message}).encode().ljust(126)
    return b"\x81\xfe" + len(octets).to_bytes(2, "big") + bytes(4) + octets


@pytest.mark.own_process
@pytest.mark.timeout(900)
def test_a_prompt_that_a_kill_cut_off_gets_one_honest_error(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon()
    note = 'import pathlib, time\n        with (pathlib.Path(".brainstem_data") / "n.txt").open("a") as f: f.write("begun ")\n        time.sleep(30)'
    daemon.drop("slow_agent.py", agent_source("Slow", note))
    daemon.start()
    begun = daemon.data / "n.txt"
    with editor(daemon) as one:
        session = new(one)
        id = one.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "use Slow"}])
        daemon.wait_for(begun.exists, what="the agent to begin")
        daemon.kill()
        daemon.start()
        error = one.answer_to(id)["error"]
        assert "cut off" in error["message"]
        assert begun.read_text().count("begun") == 1
        assert [row["sessionId"] for row in one.ask("session/list")["sessions"]] == [session]


def test_an_editor_is_told_that_the_protocol_is_off(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(RAPPD_ACP="off").start()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    ran = daemon.cli("acp", stdin=json.dumps(asked) + "\n")
    error = json.loads(ran.stdout)["error"]
    assert "does not answer over acp. rappd config set programs.acp on" in error["message"]


def test_strangers_and_foreign_pages_get_no_connection(node: Node, elsewhere: PlainMachine) -> None:
    for name, value in (("Host", "evil.example:80"), ("Origin", "https://evil.example")):
        assert node.daemon.get("/acp", headers={**UPGRADE, name: value}).status == 403
    assert node.daemon.get("/acp").status == 426
    assert ask(elsewhere, "/acp").status == 401
    assert ask(elsewhere, "/acp", token="sk-nothing").status == 401
    issued = token(node, "HELP.brainstem")["text"]
    assert ask(elsewhere, "/acp", token=issued).status == 426, "let in, and told what it is"
    setting(node, "programs.acp", "off")
    try:
        assert node.daemon.get("/acp", headers=UPGRADE).status == 404
    finally:
        setting(node, "programs.acp", "on")
