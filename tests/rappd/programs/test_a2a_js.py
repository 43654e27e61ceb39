"""A2A with the unmodified client of ``@a2a-js/sdk``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

CLIENT = Path(__file__).parent / "node" / "a2a_client.cjs"
PACKAGES = Path(sys.prefix) / "programs" / "node_modules"


def run(*words: str) -> Any:
    """The output of the client; the test is skipped where it is not installed."""
    if not shutil.which("node") or not (PACKAGES / "@a2a-js" / "sdk").is_dir():
        pytest.skip(f"needs Node and @a2a-js/sdk: sh tests/program-packages {PACKAGES.parent}")
    environment = {**os.environ, "NODE_PATH": str(PACKAGES)}
    done = subprocess.run(["node", CLIENT, *words], capture_output=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_a_message_is_sent_repeated_streamed_and_found(fake_daemon: RunningDaemon, binding: str) -> None:
    found = run(f"http://127.0.0.1:{fake_daemon.port}", binding, "hello", f"js {binding}")
    assert found["sent"]["artifacts"][0]["parts"][0]["content"]["value"] == "fake-llm: hello"
    assert found["sent"] == found["again"] == found["found"]
    kinds = [one["$case"] for one in found["streamed"]]
    assert (kinds[0], kinds[-1]) == ("task", "statusUpdate")
    assert found["streamed"][-1]["value"]["status"]["state"] == 3
