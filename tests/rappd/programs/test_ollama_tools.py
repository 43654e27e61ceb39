"""Tools as Home Assistant sends them over Ollama's API: offered beside the agents, called by the program itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fixtures.client_programs import run_python
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

from tests.rappd.programs.conftest import lines

Make = Callable[..., RunningDaemon]

TOOL = {
    "type": "function",
    "function": {
        "name": "HassTurnOn",
        "description": "Turns on a device",
        "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
}


def made(make_daemon: Make, model: FakeModel) -> RunningDaemon:
    daemon = make_daemon(OPENAI_BASE_URL=f"{model.url}/v1", OPENAI_MODEL="small")
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    return daemon.start()


def say(daemon: RunningDaemon, *messages: dict[str, Any], stream: bool = True) -> list[dict[str, Any]]:
    body = {
        "model": "brainstem:latest",
        "messages": [{"role": "system", "content": "You are Assist."}, *messages],
        "tools": [TOOL],
        "stream": stream,
        "keep_alive": "-1s",
        "options": {"num_ctx": 8192},
    }
    answer = daemon.post("/ollama/api/chat", body)
    assert answer.status == 200, answer.body
    return lines(answer.body)


def test_a_devices_tool_is_called_by_home_assistant_and_the_turn_goes_on_after_a_restart(
    make_daemon: Make, fake_model: FakeModel
) -> None:
    daemon = made(make_daemon, fake_model)
    fake_model.will(calls(("HassTurnOn", {"name": "lamp"})))
    asked = {"role": "user", "content": "turn on the lamp"}
    last = say(daemon, asked)[-1]
    assert last["done"] is True
    (call,) = last["message"]["tool_calls"]
    assert call["function"] == {"name": "HassTurnOn", "arguments": {"name": "lamp"}}
    assert {"Clock", "HassTurnOn"} <= set(fake_model.tools(0))
    assert "You are Assist." in fake_model.system(0)
    daemon.stop()
    daemon.start()
    fake_model.will(says("The lamp is on."))
    called = {"role": "assistant", "content": "", "tool_calls": [{"function": call["function"]}]}
    result = {"role": "tool", "content": '{"success": true}'}
    said = "".join(one["message"]["content"] for one in say(daemon, asked, called, result))
    assert said == "The lamp is on."
    assert fake_model.results(0) == {"HassTurnOn": '{"success": true}'}
    again = say(daemon, asked, called, result, stream=False)
    assert again[0]["message"]["content"] == "The lamp is on."
    assert len(fake_model.asked) == 1, "results that come twice get the recorded answer"
    found = daemon.request("GET", "/programs/conversations", control=True).json()["conversations"]
    assert [one["title"] for one in found] == ["turn on the lamp"], "one conversation, with both in it"


def test_results_that_nobody_waits_for_are_refused(make_daemon: Make, fake_model: FakeModel) -> None:
    daemon = made(make_daemon, fake_model)
    invented = {"role": "assistant", "tool_calls": [{"function": {"name": "HassTurnOn", "arguments": {}}}]}
    body = {"model": "brainstem", "messages": [invented, {"role": "tool", "content": "on"}], "tools": [TOOL]}
    answer = daemon.post("/ollama/api/chat", body)
    assert (answer.status, answer.json()["code"]) == (404, "no_such_call")
    assert fake_model.asked == []


_TOOLS = """
import json, ollama

def turn_on(name: str) -> str:
    '''Turns on a device.

    Args:
      name: the device
    '''
    return f"{name} is on"

client = ollama.Client()
messages = [{"role": "user", "content": "turn on the lamp"}]
first = client.chat("brainstem", messages, tools=[turn_on])
call = first.message.tool_calls[0].function
messages += [first.message, {"role": "tool", "content": turn_on(**call.arguments), "tool_name": call.name}]
print(json.dumps([call.name, client.chat("brainstem", messages, tools=[turn_on]).message.content]))
"""


def test_a_function_of_a_python_program_is_called_by_it(make_daemon: Make, fake_model: FakeModel) -> None:
    daemon = made(make_daemon, fake_model)
    fake_model.will(calls(("turn_on", {"name": "lamp"})), says("Done: the lamp is on."))
    done = run_python("ollama", _TOOLS, OLLAMA_HOST=f"http://127.0.0.1:{daemon.port}/ollama")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["turn_on", "Done: the lamp is on."]
    assert fake_model.results(1) == {"turn_on": "lamp is on"}
