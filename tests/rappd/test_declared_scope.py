"""Declared needs as the owner meets them: at the card, in a run, as a question, and as a rule for all agents."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from fixtures.kernel_features import end_without
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.runtimes.python.sandbox.sandbox import MOUNT_NAMESPACE
from tests.rappd.tether.conftest import reachable

MakeDaemon = Callable[..., RunningDaemon]
READS = 'from pathlib import Path; return Path(kwargs["path"]).read_text()'
SWALLOWS = """try:
            return open(kwargs["path"]).read()
        except OSError:
            return "all is well\""""
TELLS = "import os; return os.environ['RAIN_KEY']"
JOINED = """from pathlib import Path
        found = [WORD]
        for place in Path(__file__).parent.rglob("*"), Path.cwd().rglob(".env"):
            for one in place:
                if one.is_file():
                    try:
                        one.read_bytes()
                    except OSError:
                        continue
                    found.append(one.name)
        return " ".join(sorted(found))"""
FETCHES = (
    "import urllib.request; return urllib.request.urlopen(kwargs['address'], timeout=10).read().decode()"
)
SERVICE = """
def handle(method, path, body):
    return open(body["path"]).read(), 200
"""
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


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a person's, ``~/.ssh/config``, which is hidden from agents."""
    found = tmp_path / "person" / ".ssh" / "config"
    found.parent.mkdir(parents=True)
    found.write_text("Host pi")
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return found


@pytest.fixture(scope="module")
def daemon(notes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    made = RunningDaemon(tmp_path_factory.mktemp("scope") / "home", LLM_FAKE="1")
    shown = f"{{'read': [{str(notes / 'shown')!r}], 'hosts': ['example.com']}}"
    for name, text in (
        ("open_agent.py", agent_source("Open", READS)),
        ("reads_agent.py", declaring(agent_source("Reads", READS), shown)),
        ("swallows_agent.py", declaring(agent_source("Swallows", SWALLOWS), shown)),
        ("reader_listener.py", LISTENER),
        ("keyed_agent.py", declaring(agent_source("Keyed", TELLS), "{'variables': ['RAIN_KEY']}")),
        ("keyless_agent.py", declaring(agent_source("Keyless", TELLS), "{}")),
        ("helper.py", "from utils.further import WORD\n"),
        ("joined_agent.py", declaring(f"from helper import WORD\n{agent_source('Joined', JOINED)}", "{}")),
        ("made_agent.py", declaring(agent_source("Made"), "dict(read=['/x'])")),
        ("odd_agent.py", declaring(agent_source("Odd"), "{'hosts': ['http://x']}")),
    ):
        made.drop(name, text)
    for name, text in (("utils/further.py", "WORD = 'helped'\n"), (".env", "RAIN_KEY=abc\n")):
        place = made.home / "brainstem" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
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


def test_variables_are_given_to_whoever_names_them(daemon: RunningDaemon) -> None:
    assert run(daemon, "Keyed")["result"] == "abc"
    assert cards(daemon)["Keyed"]["reach"] == ["is given your RAIN_KEY"]
    ran = run(daemon, "Keyless")
    assert not ran["ok"] and "the variable RAIN_KEY is not among its needs" in ran["result"]
    assert re.search("using +RAIN_KEY +refused", daemon.cli("agents", "needs", "Keyless").stdout)


def test_services_are_held_to_what_they_declare(make_daemon: MakeDaemon, notes: Path) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_AGENTS_MAY_READ="")
    services = daemon.home / "brainstem" / "services"
    services.mkdir(parents=True)
    note, diary = str(notes / "shown" / "note"), str(notes / "beside")
    for name, head in (
        ("free", ""),
        ("held", f"__manifest__ = {{'needs': {{'read': [{str(notes / 'shown')!r}]}}}}"),
        ("odd", "__manifest__ = {'needs': {'read': 'all'}}"),
    ):
        (services / f"{name}_service.py").write_text(f"{head}\n{SERVICE}")
    daemon.start()

    def asked(name: str, path: str) -> tuple[int, str]:
        reply = daemon.post(f"/api/{name}/file", {"path": path}, control=True)
        return reply.status, reply.body.decode() if isinstance(reply.body, bytes) else str(reply.body)

    assert asked("free", diary) == (200, "a diary"), "one that declares nothing runs as before"
    assert asked("held", note) == (200, "words")
    status, told = asked("held", diary)
    assert status == 403 and f"reading {diary}" in told
    status, told = asked("odd", note)
    assert status >= 400 and "read is no list" in told
    assert "read is no list" in str(daemon.get("/health").json())


def test_service_that_names_what_is_hidden_waits_for_a_yes(make_daemon: MakeDaemon, key: Path) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    (daemon.home / "brainstem" / "services").mkdir(parents=True)
    text = f"__manifest__ = {{'needs': {{'read': ['~/.ssh']}}}}\n{SERVICE}"
    (daemon.home / "brainstem" / "services" / "keys_service.py").write_text(text)
    daemon.start()
    assert daemon.post("/api/keys/file", {"path": str(key)}, control=True).status == 403
    (asked,) = daemon.get("/waiting", control=True).json()["waiting"]
    assert (asked["kind"], asked["path"], asked["reach"]) == (
        "needs", "services/keys_service.py", ["reads ~/.ssh"],
    )  # fmt: skip
    body = {"filename": asked["path"], "sha256": asked["sha256"], "waits": True}
    assert daemon.post("/agents/approve", {**body, "sha256": "0" * 64}, control=True).status == 409
    assert daemon.post("/agents/approve", body, control=True).json()["status"] == "ok"
    assert daemon.post("/api/keys/file", {"path": str(key)}, control=True).status == 200
    assert daemon.get("/waiting", control=True).json()["waiting"] == []


def test_no_need_leads_to_a_port_of_rappd(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(**reachable(), LLM_FAKE="1")
    daemon.start()
    report = daemon.get("/operator/status", control=True).json()["sandbox"]
    if not report["network"]:
        end_without(MOUNT_NAMESPACE, report)
    window = daemon.post("/devices/window", {"name": "Anna"}, control=True).json()
    phones = urlsplit(window["links"][0]).port
    for name, port in (("Loop", daemon.port), ("Phones", phones)):
        needs = f"{{'hosts': ['localhost:{port}', '127.0.0.1:{port}']}}"
        daemon.drop(f"{name.lower()}_agent.py", declaring(agent_source(name, FETCHES), needs))
        daemon.wait_for(lambda name=name: name in cards(daemon), what="the agent to be there")
        for host in ("localhost", "127.0.0.1"):
            ran = run(daemon, name, address=f"http://{host}:{port}/health")
            assert not ran["ok"] and f"talking to {host}:{port}" in ran["result"], ran


def test_counts_stay_over_a_restart(make_daemon: MakeDaemon) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("reads_agent.py", declaring(agent_source("Reads", READS), "{}"))
    daemon.start()
    assert not run(daemon, "Reads", path="/var/tmp/diary")["ok"]
    daemon.stop()
    daemon.start()
    assert cards(daemon)["Reads"]["exceeded"] == 1
    assert "/var/tmp/diary" in daemon.cli("agents", "needs", "Reads").stdout
    daemon.drop("reads_agent.py", declaring(agent_source("Reads", READS), "{}") + "\n# another version\n")
    daemon.wait_for(lambda: cards(daemon)["Reads"]["exceeded"] == 0, what="another version to begin anew")


def test_of_its_workspace_it_reads_itself_and_what_it_imports(daemon: RunningDaemon) -> None:
    assert run(daemon, "Joined")["result"] == "helped helper.py joined_agent.py"


def test_hidden_folder_is_given_after_a_yes_to_these_needs_of_these_bytes(
    make_daemon: MakeDaemon, key: Path
) -> None:
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
