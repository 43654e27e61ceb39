"""Declared needs as the owner meets them: at the card, in a run, as a question, and as a rule for all agents."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

MakeDaemon = Callable[..., RunningDaemon]
READS = 'from pathlib import Path; return Path(kwargs["path"]).read_text()'
SWALLOWS = """try:
            return open(kwargs["path"]).read()
        except OSError:
            return "all is well\""""
LISTENER = '''"""Reads."""
from dataclasses import dataclass
from pathlib import Path
from agents.listener import listener

@listener(description="Reads a file.")
@dataclass
class Read:
    path: str

def read(payload: Read) -> str:
    return Path(payload.path).read_text()
'''


def declaring(source: str, needs: str) -> str:
    """An agent file that declares ``needs``."""
    return f"__manifest__ = {{'needs': {needs}}}\n{source}"


def cards(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    files = daemon.get("/agents").json()["files"]
    return {card["name"] or card["file"]: card for file in files for card in file["cards"]}


def run(daemon: RunningDaemon, agent: str, **args: str) -> dict[str, Any]:
    ran: dict[str, Any] = daemon.post("/agents/run", {"agent": agent, "args": args}, control=True).json()
    return ran


@pytest.fixture(scope="module")
def notes() -> Iterator[Path]:
    """A folder outside of ``/tmp``, of which such agents have one of their own."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    (folder / "shown").mkdir()
    (folder / "shown" / "note").write_text("words")
    (folder / "beside").write_text("a diary")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def daemon(notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    made = RunningDaemon(tmp_path_factory.mktemp("scope") / "home", LLM_FAKE="1")
    shown = f"{{'read': [{str(notes / 'shown')!r}], 'hosts': ['example.com']}}"
    for name, text in (
        ("open_agent.py", agent_source("Open", READS)),
        ("reads_agent.py", declaring(agent_source("Reads", READS), shown)),
        ("swallows_agent.py", declaring(agent_source("Swallows", SWALLOWS), shown)),
        ("reader_listener.py", LISTENER),
        ("made_agent.py", declaring(agent_source("Made"), "dict(read=['/x'])")),
        ("odd_agent.py", declaring(agent_source("Odd"), "{'hosts': ['http://x']}")),
    ):
        made.drop(name, text)
    made.start()
    yield made
    made.stop()


def test_cards_say_what_is_declared_and_what_is_not(daemon: RunningDaemon, notes: Path) -> None:
    found = cards(daemon)
    assert (
        found["Open"]["reach"] == ["may read your files and the network"] and found["Open"]["needs"] is None
    )
    assert found["Reads"]["reach"] == [f"reads {notes / 'shown'}", "talks to example.com"]
    assert found["reader"]["reach"] == ["uses its own storage alone"]
    shipped = [card for card in found.values() if card["origin"] == "shipped"]
    assert shipped and all(card["needs"] is not None for card in shipped)
    for file, reason in (("made_agent.py", "not written out"), ("odd_agent.py", '"http://x" is no host')):
        assert found[file]["quarantined"] and reason in found[file]["reason"] and found[file]["line"] == 1


def test_exceeded_need_fails_the_call_and_counts_at_the_card(daemon: RunningDaemon, notes: Path) -> None:
    note, diary = str(notes / "shown" / "note"), str(notes / "beside")
    assert run(daemon, "Open", path=diary)["result"] == "a diary", "what declares nothing runs as before"
    assert run(daemon, "Reads", path=note)["result"] == "words"
    for agent in ("Reads", "Swallows"):
        ran = run(daemon, agent, path=diary)
        assert not ran["ok"] and f"reading {diary}" in ran["result"], ran
    assert not run(daemon, "reader", path=note)["ok"], "a listener that declares nothing has its own storage"
    found = cards(daemon)
    assert [found[name]["exceeded"] for name in ("Open", "Reads", "Swallows")] == [0, 1, 1]
    told = daemon.cli("agents", "needs", "Reads").stdout
    assert diary in told and "refused" in told and note in told and "A call failed" in told
    assert "example.com" in daemon.cli("agents", "show", "Reads").stdout
    assert "✓ instantiation" in daemon.cli("agents", "test", "Reads").stdout, "its file is shown to its test"


def test_hidden_folder_is_given_after_a_yes_to_these_needs_of_these_bytes(
    make_daemon: MakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "person" / ".ssh").mkdir(parents=True)
    key = tmp_path / "person" / ".ssh" / "config"
    key.write_text("Host pi")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    daemon = make_daemon(LLM_FAKE="1")
    text = declaring(agent_source("Keys", READS), "{'read': ['~/.ssh/config']}")
    daemon.drop("keys_agent.py", text)
    daemon.start()
    card = cards(daemon)["keys_agent.py"]
    assert card["held"] and "~/.ssh/config, which is hidden" in card["reason"]
    assert card["reach"] == ["reads ~/.ssh/config"]
    (asked,) = daemon.get("/waiting", control=True).json()["waiting"]
    assert (asked["kind"], asked["path"]) == ("needs", "agents/keys_agent.py") and "~/.ssh/config" in asked[
        "why"
    ]
    body = {"filename": "keys_agent.py", "sha256": hashlib.sha256(text.encode()).hexdigest(), "waits": True}
    assert daemon.post("/agents/approve", {**body, "sha256": "0" * 64}, control=True).status == 409
    assert daemon.post("/agents/approve", body, control=True).json()["status"] == "ok"
    assert run(daemon, "Keys", path=str(key))["result"] == "Host pi"
    assert daemon.get("/waiting", control=True).json()["waiting"] == []
    daemon.drop("keys_agent.py", f"{text}\n# other bytes\n")
    daemon.wait_for(lambda: "keys_agent.py" in cards(daemon), what="other bytes to wait again")


def test_undeclared_agents_wait_and_unheld_ones_are_refused_where_all_must_declare(
    make_daemon: MakeDaemon,
) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_AGENTS_MUST_DECLARE="on")
    daemon.drop("open_agent.py", agent_source("Open"))
    daemon.drop("told_agent.py", declaring(agent_source("Told"), "{}"))
    daemon.start()
    found = cards(daemon)
    assert found["open_agent.py"]["held"] and "Told" in found
    assert daemon.cli("agents", "approve", "open").returncode == 0
    assert "Open" in cards(daemon)
    daemon.stop()
    bare = make_daemon("bare", LLM_FAKE="1", RAPPD_AGENTS_MUST_DECLARE="on", RAPPD_SANDBOX="none")
    bare.drop("told_agent.py", declaring(agent_source("Told"), "{}"))
    bare.start()
    refused = cards(bare)["told_agent.py"]
    assert refused["quarantined"] and not refused["held"] and "cannot hold it" in refused["reason"]
    assert "cannot hold it" in cards(bare)["calculator"]["unheld"], "what came with rappd runs and says so"
