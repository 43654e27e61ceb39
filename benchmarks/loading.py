"""Finding and loading agent files."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.contract.file_discovery import find_agent_files
from agents.contract.loading import load_agent_file
from agents.runtimes.python.worker.worker_requests import WorkerHost

FILE = '''"""Agent number {number}."""
import json

from agents.basic_agent import BasicAgent

__manifest__ = {{"schema": "rapp-agent/1.0", "name": "@bench/number_{number}", "version": "1.0.0"}}


class Number{number}(BasicAgent):
    def __init__(self):
        self.name = "Number{number}"
        self.metadata = {{
            "name": self.name,
            "description": "Answers with the number {number}",
            "parameters": {{
                "type": "object",
                "properties": {{"query": {{"type": "string", "description": "What is asked"}}}},
                "required": [],
            }},
        }}
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs):
        return json.dumps({{"status": "success", "number": {number}, "asked": kwargs.get("query", "")}})
'''


def run() -> list[tuple[str, str]]:
    """Medians over repeated runs, in this process."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in range(1000):
            path = root / f"group_{number // 100}" / f"number_{number}_agent.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(FILE.format(number=number))
        files = find_agent_files(root)
        requests = [
            {"rel": file.rel, "path": str(file.path), "stamp": list(file.stamp)} for file in files[:200]
        ]

        def described(count: int) -> Callable[[], Any]:
            room = WorkerHost(
                {"agents_dir": folder, "data_dir": f"{folder}/data", "deps_dir": None, "workspace": None}
            )
            return lambda: room.handle("describe", {"files": requests[:count]})

        return [
            ("discover 1,000 agent files", _median(lambda: lambda: find_agent_files(root))),
            ("load 1 agent file", _median(lambda: lambda: load_agent_file(files[0].path))),
            ("load and describe 1 agent file", _median(lambda: described(1))),
            ("load and describe 200 agent files", _median(lambda: described(200))),
        ]


def _median(prepare: Callable[[], Callable[[], Any]], times: int = 7) -> str:
    taken = []
    for _ in range(times):
        work = prepare()
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return f"{sorted(taken)[times // 2] * 1000:.1f} ms"
