"""A2A with the unmodified client of ``@a2a-js/sdk``, and what the page says to paste."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from fixtures.client_programs import block, run_node, run_python
from fixtures.running_daemon import RunningDaemon

CLIENT = (Path(__file__).parent / "a2a_client.js").read_text()


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_message_is_sent_repeated_streamed_and_found(fake_daemon: RunningDaemon, binding: str) -> None:
    url = f"http://127.0.0.1:{fake_daemon.port}"
    done = run_node("a2a-js", CLIENT, URL=url, BINDING=binding, TEXT="hello", ID=f"js {binding}")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sent"]["artifacts"][0]["parts"][0]["content"]["value"] == "fake-llm: hello"
    assert found["sent"] == found["again"] == found["found"]
    kinds = [one["$case"] for one in found["streamed"]]
    assert (kinds[0], kinds[-1]) == ("task", "statusUpdate")
    assert found["streamed"][-1]["value"]["status"]["state"] == 3


@pytest.mark.parametrize("mark", ["a2a-python", "a2a-js", "a2a-curl"])
def test_what_the_page_says_to_paste_works(fake_daemon: RunningDaemon, mark: str) -> None:
    lines = block(mark, fake_daemon.port)
    if mark == "a2a-python":
        done = run_python("a2a", lines)
    elif mark == "a2a-js":
        done = run_node("a2a-js", lines)
    else:
        done = subprocess.run(["sh", "-c", lines], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "fake-llm: hi" in done.stdout
