"""Programs of others that speak MCP and ACP, unmodified, and MCP's own conformance suite.

The lines of docs/clients.md are run as they stand there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.client_programs import block, node_with, python_with, run_node, run_python
from fixtures.mcp_agents import files
from fixtures.running_daemon import RunningDaemon

_BEYOND = {
    "completion-complete": "there are no prompts to complete",
    "logging-set-level": "logging is deprecated and not served",
    "tools-call-with-logging": "logging is deprecated and not served",
    "tools-call-sampling": "requests by the server take a session; the newer revision asks by results",
    "tools-call-elicitation": "requests by the server take a session; the newer revision asks by results",
    "elicitation-sep1034-defaults": "requests by the server take a session; the newer revision asks by results",
    "elicitation-sep1330-enums": "requests by the server take a session; the newer revision asks by results",
    "resources-list": "resources are conversations and memories, for tokens that were given them",
    "resources-read-text": "no resource has an address of the suite's",
    "resources-read-binary": "no resource has an address of the suite's",
    "resources-templates-read": "no resource has an address of the suite's",
    "resources-subscribe": "subscriptions to resources are not served",
    "resources-unsubscribe": "subscriptions to resources are not served",
    "prompts-list": "prompts are not served",
    "prompts-get-simple": "prompts are not served",
    "prompts-get-with-args": "prompts are not served",
    "prompts-get-embedded-resource": "prompts are not served",
    "prompts-get-with-image": "prompts are not served",
    "caching": "it asks for prompts and resources, too",
    "input-required-result-non-tool-request": "prompts are not served",
}
"""Scenarios that ask for what is not served, with the reason."""


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon]) -> RunningDaemon:
    """A daemon with agents of the suite's names, which programs here may call."""
    found = make_daemon(LLM_FAKE="1", RAPPD_HTTP_TOOLS="on")
    for name, source in files().items():
        found.drop(name, source)
    found.start()
    found.wait_for(lambda: "test_simple_text" in found.agent_names(), what="the agents")
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_published_suite_passes_where_it_asks_for_what_is_served(
    daemon: RunningDaemon, tmp_path: Path, revision: str
) -> None:
    packages = node_with("mcp-conformance") / "node_modules"
    found = [*packages.glob("node*/bin/node"), Path(shutil.which("node") or "node")]
    program = str(found[0])
    kit = packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    url = f"http://127.0.0.1:{daemon.port}/mcp"
    command = [
        program,
        str(kit),
        "server",
        "--url",
        url,
        "--requirements",
        revision,
        "-o",
        str(tmp_path / "out"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    rows = {name: mark for mark, name in re.findall(r"^(\S) ([a-z0-9-]+): ", ran.stdout, re.MULTILINE)}
    failed = {name for name, mark in rows.items() if mark != "✓"}
    print(f"{revision}: {len(rows) - len(failed)} of {len(rows)} scenarios pass")
    assert len(rows) >= 30, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert failed - set(_BEYOND) == set()
    if revision == "2026-07-28":
        assert sum(name.startswith("tasks-") and mark == "✓" for name, mark in rows.items()) == 10


MCP_CLIENT = """
import asyncio, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main(way, mode, program, home):
    server = way if way.startswith("http") else stdio_client(
        StdioServerParameters(command=program, args=["-m", "rappd", "mcp"], env={"RAPP_HOME": home}))
    async with Client(server, mode=mode) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools[0] == "ask" and "greet" in tools, tools
        told = []
        async def progress(done, whole, message): told.append(message)
        said = await client.call_tool("ask", {"message": "hello"}, progress_callback=progress)
        assert said.content[0].text == "fake-llm: hello", said
        greeted = await client.call_tool("greet", {"name": "Ann"})
        assert greeted.content[0].text == "Hello, Ann!", greeted
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        assert [one.strip() for one in told[-3:]] == ["0 of 100.", "50 of 100.", "100 of 100."], told
        failed = await client.call_tool("test_error_handling", {})
        assert failed.is_error
        try:
            await client.call_tool("LearnNew", {})
        except Exception as error:
            assert "There is no tool" in str(error), error
        else:
            raise AssertionError("a structural agent was called")
        try:
            async with asyncio.timeout(0.5):
                await client.call_tool("slow_compute", {"seconds": 60})
        except TimeoutError:
            print("all well")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_the_python_sdk_uses_it_in_both_eras(daemon: RunningDaemon, way: str, mode: str) -> None:
    python = python_with("mcp")
    where = f"http://127.0.0.1:{daemon.port}/mcp" if way == "http" else "stdio"
    command = [python, "-c", MCP_CLIENT, where, mode, sys.executable, str(daemon.home)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ran.stdout.strip() == "all well", ran.stdout + ran.stderr


ACP_CLIENT = """
import asyncio, sys
import acp
from acp import PROTOCOL_VERSION, spawn_agent_process, text_block

class Editor(acp.Client):
    def __init__(self):
        self.told = []
    async def session_update(self, session_id, update, **more):
        self.told.append(update.model_dump(by_alias=True, exclude_none=True))
    async def request_permission(self, *a, **k):
        raise AssertionError("nothing waits for the owner")

def said(editor, kind):
    return "".join(one["content"]["text"] for one in editor.told if one["sessionUpdate"] == kind)

async def main(program, home):
    where = {"RAPP_HOME": home, "PATH": "/usr/bin:/bin"}
    editor = Editor()
    async with spawn_agent_process(editor, program, "-m", "rappd", "acp", env=where) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        session = (await agent.new_session(cwd="/tmp", mcp_servers=[])).session_id
        answer = await agent.prompt(session_id=session, prompt=[text_block("hello")])
        assert answer.stop_reason == "end_turn" and said(editor, "agent_message_chunk") == "fake-llm: hello"
    editor = Editor()
    async with spawn_agent_process(editor, program, "-m", "rappd", "acp", env=where) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        assert session in [one.session_id for one in (await agent.list_sessions()).sessions]
        await agent.load_session(cwd="/tmp", session_id=session, mcp_servers=[])
        assert said(editor, "user_message_chunk") == "hello"
        try:
            await agent.load_session(cwd="/tmp", session_id="unknown", mcp_servers=[])
        except acp.RequestError as error:
            assert error.code == -32002
            print("all well")

asyncio.run(main(*sys.argv[1:]))
"""


def test_the_python_client_of_acp_uses_it(daemon: RunningDaemon) -> None:
    python = python_with("acp")
    command = [python, "-c", ACP_CLIENT, sys.executable, str(daemon.home)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert ran.stdout.strip() == "all well", ran.stdout + ran.stderr


def test_the_lines_of_the_page_are_answered(daemon: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / ".rapp").symlink_to(daemon.home)  # the client hands few variables on to what it starts
    shell = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "RAPP_HOME": str(daemon.home),
    }
    ran = run_python("mcp", block("mcp-python", daemon.port))
    assert ran.stdout.strip() == "fake-llm: hi", ran.stderr
    ran = run_node("mcp-js", block("mcp-js", daemon.port))
    assert ran.stdout.strip() == "fake-llm: hi", ran.stderr
    ran = run_python("acp", block("acp-python", daemon.port), **shell)
    assert ran.stdout.strip() == "fake-llm: hi", ran.stderr
    for mark, told in (("mcp-curl", "fake-llm: hi"), ("mcp-config", '"mcpServers"')):
        lines = ["sh", "-c", block(mark, daemon.port)]
        ran = subprocess.run(lines, env=shell, capture_output=True, text=True, timeout=400, check=False)
        assert told in ran.stdout, ran.stderr


def test_acpx_says_hi(daemon: RunningDaemon, tmp_path: Path) -> None:
    folder = node_with("acpx") / "node_modules" / ".bin"
    own = {"HOME": str(tmp_path), "RAPP_HOME": str(daemon.home)}
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    lines = ["sh", "-c", block("acpx", daemon.port)]
    ran = subprocess.run(
        lines,
        env={**own, "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert "fake-llm: hi" in ran.stdout, ran.stdout + ran.stderr
