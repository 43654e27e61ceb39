"""Every kind of code is asked about before anything of it runs: a hostile file of each kind, held and then let in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from twins.trust.trust import Trust

AGENT = agent_source("Evil", 'return "ran"')
SERVICE = 'name = "evil"\n\n\ndef handle(method, path, body):\n    return {"ran": True}, 200\n'
SENSE = 'delimiter = "|||EVIL|||"\nresponse_key = "evil"\nsystem_prompt = "Fill it."\n'
WORKFLOW = json.dumps(
    {
        "schema": "rappd-workflow/1.0",
        "name": "evil",
        "title": "Evil",
        "participants": [{"name": "Me"}],
        "steps": [{"participant": "Me", "cue": "Say it."}],
    }
)
LISPY = """
(define agent-name "Evil")
(define agent-description "Says that it ran.")
(define agent-parameters '())
(define (evil-run context kwargs) "ran")
"""
SHOWS_ENV = agent_source("Shows", 'import os; return os.environ.get("EVIL", "nothing")')


class Kind(NamedTuple):
    """A kind of code: where its file lies, its text, and whether it had an effect."""

    path: str
    text: str
    ran: Callable[[RunningDaemon], bool]


def _agent(daemon: RunningDaemon) -> bool:
    return daemon.post("/agents/run", {"agent": "Evil"}, control=True).status == 200


def _service(daemon: RunningDaemon) -> bool:
    return daemon.get("/api/evil").status == 200


def _sense(daemon: RunningDaemon) -> bool:
    return "evil" in daemon.chat("hello")


def _workflow(daemon: RunningDaemon) -> bool:
    rows = daemon.get("/workflows", control=True).json()["workflows"]
    (row,) = [one for one in rows if one["name"] == "evil"]
    return not row["foreign"]


def _variables(daemon: RunningDaemon) -> bool:
    ran = daemon.post("/agents/run", {"agent": "Shows"}, control=True).json()
    return bool(ran["result"] != "nothing")


def _egg(daemon: RunningDaemon) -> bool:
    packed = daemon.cli("egg", "pack", "-o", daemon.home / "it.egg", "--force")
    assert packed.returncode == 0, packed.stderr
    inside = daemon.cli("egg", "inspect", daemon.home / "it.egg", "--json").stdout
    return "evil_agent.py" in inside


def _module(daemon: RunningDaemon) -> bool:
    """Code that an agent of the owner's imports."""
    return b'"ran"' in daemon.post("/agents/run", {"agent": "Imports"}, control=True).body


KINDS = {
    "an agent": Kind("agents/evil_agent.py", AGENT, _agent),
    "an agent in LisPy": Kind("agents/evil.lispy", LISPY, _agent),
    "a service": Kind("services/evil_service.py", SERVICE, _service),
    "an organ, as services were called": Kind("organs/evil_organ.py", SERVICE, _service),
    "a sense": Kind("senses/evil_sense.py", SENSE, _sense),
    "a workflow": Kind("workflows/evil.json", WORKFLOW, _workflow),
    "variables": Kind(".env", "EVIL=ran\n", _variables),
    "what an egg is made of": Kind("agents/evil_agent.py", AGENT, _egg),
    "a module that an agent imports": Kind("utils/oven.py", 'HEAT = "ran"\n', _module),
}


@pytest.mark.parametrize("name", KINDS)
def test_code_has_no_effect_before_the_owners_yes(
    make_daemon: Callable[..., RunningDaemon], name: str
) -> None:
    kind = KINDS[name]
    daemon = make_daemon(LLM_FAKE="1")
    root = daemon.home / "brainstem"
    for path, text in (
        ("agents/shows_agent.py", SHOWS_ENV),
        ("agents/imports_agent.py", agent_source("Imports", "from utils.oven import HEAT; return HEAT")),
    ):
        _write(root / path, text)
    file = root / kind.path
    digest = hashlib.sha256(kind.text.encode()).hexdigest()
    trust = Trust(daemon.home)
    trust.quarantine.hold(file, digest, "It came in an egg of kitchen.", "kitchen.egg")
    _write(file, kind.text)
    daemon.start()
    assert not kind.ran(daemon), "held"
    done = daemon.post("/agents/approve", {"filename": kind.path, "sha256": digest}, control=True)
    assert done.status == 200, done.body
    assert kind.ran(daemon), "the probe works"


def test_the_last_good_copy_is_code_too(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    file = daemon.home / "brainstem" / "agents" / "evil_agent.py"
    _write(file, AGENT)
    daemon.start()
    assert _agent(daemon)
    daemon.stop()
    _write(file, "def (:\n")
    daemon.start()
    assert _agent(daemon), "the probe works: the copy serves for the broken file"
    daemon.stop()
    held = Trust(daemon.home).quarantine
    digest = hashlib.sha256(AGENT.encode()).hexdigest()
    held.hold(file, digest, "It came in an egg of kitchen.", "kitchen.egg")
    held.narrow([(held.key_of(file), digest)])
    daemon.start()
    assert not _agent(daemon)


def test_installing_a_rapplication_is_no_yes_to_what_is_held(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.home.mkdir(parents=True, exist_ok=True)
    service = daemon.home / "brainstem" / "services" / "kanban_service.py"
    held = Trust(daemon.home).quarantine
    held.hold(service, "ab" * 32, "It came in an egg of kitchen.", "kitchen.egg")
    daemon.start()
    assert daemon.cli("rapps", "install", "kanban").returncode == 0
    assert daemon.get("/api/kanban").status == 403
    held.release(service)
    assert daemon.get("/api/kanban").status == 200, "the probe works"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
