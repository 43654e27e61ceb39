"""Programs that speak OpenAI's API, unmodified, with the lines of docs/clients.md: each says hi and has a tool of its own run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fixtures.client_programs import block, node_with, python_with, run_node, run_python
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

HELLO = "Hello from the model."
TOOLS = {
    "bash": {"command": "echo from the tool", "description": "Says it."},
    "exec_command": {"cmd": "echo from the tool"},
    "run_shell_command": {"command": "echo from the tool", "is_background": False},
    "weather": {"place": "Rome"},
}
"""Tools that programs bring along, with arguments."""


class Willing(FakeModel):
    """Calls the first tool that it knows where the sentence has "tool" in it, tells what it returned; else says hello."""

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        last = body["messages"][-1]
        known = [name for one in body.get("tools", ()) if (name := one["function"]["name"]) in TOOLS]
        if last["role"] == "tool":
            self.script = [says(f"It returned: {last['content']}")]
        elif known and "tool" in str(last["content"]):
            self.script = [calls((known[0], TOOLS[known[0]]))]
        else:
            self.script = [says(HELLO)]
        return await super()._complete(request)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon with that model, and an agent."""
    model = Willing()
    model.start()
    home = tmp_path_factory.mktemp("openai-clients") / "home"
    found = RunningDaemon(home, OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="m", RAPPD_MODEL_HELP="never")
    found.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    yield found.start()
    found.stop()
    model.stop()


@pytest.mark.parametrize(
    ("name", "mark"), [("openai", "openai-python"), ("langchain", "langchain"), ("litellm", "litellm")]
)
def test_a_library_of_python_says_hi(daemon: RunningDaemon, name: str, mark: str) -> None:
    ran = run_python(name, block(mark, daemon.port), LITELLM_LOCAL_MODEL_COST_MAP="True")
    assert HELLO in ran.stdout, ran.stderr


def test_a_library_of_agents_runs_its_own_tool(daemon: RunningDaemon, tmp_path: Path) -> None:
    words, code = [python_with("openai-agents"), "-c"], block("openai-agents", daemon.port)
    assert HELLO in _run([*words, code], tmp_path).stdout  # elsewhere: this project has a package agents, too
    ran = _run([*words, code.replace("How is the weather in Rome?", "use the tool")], tmp_path)
    assert "It returned: sunny in Rome" in ran.stdout, ran.stderr


@pytest.mark.parametrize("mark", ["openai-js", "ai-sdk"])
def test_a_library_of_javascript_says_hi(daemon: RunningDaemon, mark: str) -> None:
    ran = run_node("openai-js", block(mark, daemon.port))
    assert HELLO in ran.stdout, ran.stderr


@pytest.mark.parametrize("model", ['createOpenAI(at)("brainstem")', 'createOpenAI(at).chat("brainstem")'])
def test_the_ai_sdk_runs_its_own_tool_and_streams(daemon: RunningDaemon, model: str) -> None:
    code = f"""
        import {{ streamText, tool, stepCountIs }} from "ai";
        import {{ createOpenAI }} from "@ai-sdk/openai";
        import {{ z }} from "zod";
        const at = {{ baseURL: "http://127.0.0.1:{daemon.port}/v1", apiKey: "any" }};
        const weather = tool({{ inputSchema: z.object({{ place: z.string() }}), execute: async (a) => "sun in " + a.place }});
        const said = streamText({{ model: {model}, prompt: "use the tool", tools: {{ weather }}, stopWhen: stepCountIs(3) }});
        for await (const piece of said.textStream) process.stdout.write(piece);
    """
    ran = run_node("openai-js", code)
    assert "It returned: sun in Rome" in ran.stdout, ran.stderr


def test_openais_agents_for_javascript_run_their_own_tool(daemon: RunningDaemon) -> None:
    code = f"""
        import {{ Agent, run, tool, setDefaultOpenAIClient, setTracingDisabled }} from "@openai/agents";
        import OpenAI from "openai";
        import {{ z }} from "zod";
        setDefaultOpenAIClient(new OpenAI({{ baseURL: "http://127.0.0.1:{daemon.port}/v1", apiKey: "any" }}));
        setTracingDisabled(true);
        const weather = tool({{
            name: "weather", description: "The weather.", parameters: z.object({{ place: z.string() }}),
            execute: async (asked) => "sun in " + asked.place,
        }});
        const guide = new Agent({{ name: "Guide", instructions: "Be brief.", model: "brainstem", tools: [weather] }});
        const said = await run(guide, "use the tool", {{ stream: true }});
        for await (const _ of said) {{}}
        console.log(said.finalOutput);
    """
    ran = run_node("openai-agents-js", code)
    assert "It returned: sun in Rome" in ran.stdout, ran.stderr


def test_continue_says_hi(daemon: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(block("continue", daemon.port))
    words = ["node", _program("continue", "cn"), "--config", str(tmp_path / "config.yaml"), "-p", "hi"]
    ran = _run(words, tmp_path, CONTINUE_GLOBAL_DIR=str(tmp_path / "continue"))
    assert HELLO in ran.stdout, ran.stdout + ran.stderr


def test_llm_says_hi(daemon: RunningDaemon, tmp_path: Path) -> None:
    (tmp_path / "extra-openai-models.yaml").write_text(block("llm", daemon.port))
    program = str(Path(python_with("llm")).with_name("llm"))
    _run([program, "keys", "set", "rappd", "--value", "any"], tmp_path, LLM_USER_PATH=str(tmp_path))
    ran = _run([program, "-m", "rappd", "hi"], tmp_path, LLM_USER_PATH=str(tmp_path))
    assert HELLO in ran.stdout, ran.stderr


@pytest.mark.parametrize(("sentence", "answer"), [("hi", HELLO), ("use the tool", "from the tool")])
class TestTerminalAgents:
    def test_codex(self, daemon: RunningDaemon, tmp_path: Path, sentence: str, answer: str) -> None:
        (tmp_path / "config.toml").write_text(block("codex", daemon.port))
        words = ["codex", "exec", "--skip-git-repo-check", "-s", "danger-full-access", sentence]
        ran = _run([_program("codex", words[0]), *words[1:]], tmp_path, CODEX_HOME=str(tmp_path))
        assert answer in ran.stdout, ran.stdout + ran.stderr

    def test_opencode(self, daemon: RunningDaemon, tmp_path: Path, sentence: str, answer: str) -> None:
        (tmp_path / "opencode.json").write_text(block("opencode", daemon.port))
        folders = {f"XDG_{one}_HOME": str(tmp_path / one) for one in ("CONFIG", "DATA", "CACHE", "STATE")}
        program = next(node_with("opencode").glob("node_modules/opencode-*/bin/opencode"))
        ran = _run([str(program), "run", *sentence.split()], tmp_path, **folders)
        assert answer in ran.stdout, ran.stdout + ran.stderr

    def test_pi(self, daemon: RunningDaemon, tmp_path: Path, sentence: str, answer: str) -> None:
        (tmp_path / "models.json").write_text(block("pi", daemon.port))
        words = ["--provider", "rappd", "--model", "brainstem", "-p", sentence]
        ran = _run([_program("pi", "pi"), *words], tmp_path, PI_CODING_AGENT_DIR=str(tmp_path))
        assert answer in ran.stdout, ran.stdout + ran.stderr

    def test_qwen(self, daemon: RunningDaemon, tmp_path: Path, sentence: str, answer: str) -> None:
        code = block("qwen", daemon.port).replace('-p "hi"', f'-y -p "{sentence}"')
        folder = Path(_program("qwen", "qwen")).parent
        ran = _run(["sh", "-e", "-c", code], tmp_path, PATH=f"{folder}:{os.environ['PATH']}")
        assert answer in ran.stdout, ran.stdout + ran.stderr


def _program(name: str, program: str) -> str:
    return str(node_with(name) / "node_modules" / ".bin" / program)


def _run(words: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    whole: dict[str, Any] = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        **environment,
    }
    return subprocess.run(
        words,
        cwd=folder,
        env=whole,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_aider_says_hi(daemon: RunningDaemon, tmp_path: Path) -> None:
    code = block("aider", daemon.port).replace(
        "--message", "--no-git --yes-always --no-check-update --message"
    )
    folder = Path(python_with("aider")).parent
    own = {"PATH": f"{folder}:{os.environ['PATH']}", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    ran = _run(["sh", "-e", "-c", code], tmp_path, **own)
    assert HELLO in ran.stdout, ran.stdout + ran.stderr
