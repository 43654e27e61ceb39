"""``make descriptions``: prints how the agents of this folder describe themselves, for ``descriptions.json``."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agents.contract.declared_needs import declared_in
from agents.contract.file_discovery import find_shipped_files
from agents.providers.offline.responses import suggest
from agents.providers.offline.route import NOT_AT_ONCE
from agents.runtimes.python.worker.worker_requests import WorkerHost
from envelopes.payloads.form import PayloadForm
from envelopes.payloads.schemas import json_schema, tool_text


def described() -> dict[str, dict[str, object]]:
    """The description that each file gives of its agents, by the file's SHA-256. Changes this process for good."""
    library = Path(__file__).parent
    files = find_shipped_files(library)
    with tempfile.TemporaryDirectory() as folder:
        host = WorkerHost({"agents_dir": str(library), "data_dir": folder, "deps_dir": None})
        bodies = [{"rel": one.rel, "path": str(one.path), "stamp": list(one.stamp)} for one in files]
        answers = host.handle("describe", {"files": bodies})["files"]
    found = {}
    for file, answer in zip(files, answers, strict=True):
        if answer["failure"] or answer["quarantined"] or not answer["agents"]:
            raise SystemExit(f"{file.rel}: {answer['failure'] or answer['quarantined']}")
        del answer["seconds"]
        needs = declared_in(file.rel, file.content()).needs
        answer["needs"] = needs and needs.as_json()
        answer["examples"] = {one["name"]: _example(one) for one in answer["agents"]}
        found[hashlib.sha256(file.content()).hexdigest()] = answer
    return found


def _example(agent: dict[str, Any]) -> str:
    """A sentence that reaches the agent in a new home without a model; "" where that has not what it needs."""
    if agent["name"] in NOT_AT_ONCE:
        return ""
    function = {key: agent[key] for key in ("description", "parameters")}
    if "listener" in agent:
        form = msgspec.convert(agent["listener"], PayloadForm)
        function = {"description": tool_text(form), "parameters": json_schema(form)}
    return suggest({"type": "function", "function": {"name": agent["tool_name"], **function}})


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(described(), option=orjson.OPT_INDENT_2) + b"\n")
