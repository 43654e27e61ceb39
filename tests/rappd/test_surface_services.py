"""``/api/<service>`` and rapplications: an agent that does it all, a service as a view, a page apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.operator_page import OperatorPage, sign_in
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

ECHO = """
name = "echo"

def handle(method, path, body):
    return {"method": method, "path": path, "body": body}, 200
"""
FORMS = """
def handle(method, path, body):
    return {
        "dict": ({"a": 1}, 201),
        "headers": ({"a": 1}, 202, {"X-Mine": "yes", "Content-Type": "application/vnd.mine+json"}),
        "bytes": (b"\\x00\\xff", 200, {"Content-Type": "image/png"}),
        "page": (b"<script>alert(1)</script>", 200, {"Content-Type": "text/html", "Set-Cookie": "rappd_operator=x"}),
        "text": ("words", 200),
        "alone": {"b": [1]},
        "odd": (5, 6, 7, 8),
        "status": ({}, "200"),
        "early": ({}, 100),
        "framing": ({"a": 1}, 200, {"Content-Length": "3", "Transfer-Encoding": "chunked", "Bad Name": "x", "X-Good": "y"}),
        "split": ({}, 200, {"X-A": "b\\r\\nX-C: d"}),
        "none": None,
    }[path]
"""
RAISES = """
def handle(method, path, body):
    if path == "exit":
        raise SystemExit(3)
    raise ValueError("no such room")
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("services") / "home", LLM_FAKE="1").start()
    for name, text in (("echo", ECHO), ("forms", FORMS), ("raises", RAISES)):
        _write(daemon, name, text)
    yield daemon
    daemon.stop()


def _write(daemon: RunningDaemon, name: str, text: str) -> None:
    folder = daemon.home / "brainstem" / "services"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}_service.py").write_text(text)


def _page(daemon: RunningDaemon, path: str, host: str = "localhost", **headers: str) -> Answer:
    return daemon.get(path, headers={"Host": f"{host}:{daemon.port}", **headers})


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_method_path_and_body_reach_the_service(daemon: RunningDaemon, method: str) -> None:
    body = json.dumps({"ä": [1]}).encode()
    found = daemon.request(method, "/api/echo/a/b%20c?query=no", body).json()
    assert found == {"method": method, "path": "a/b c", "body": {"ä": [1]}}


@pytest.mark.parametrize(
    ("path", "seen"), [("/api/echo", ""), ("/api/echo/", ""), ("/api/echo/a/", "a"), ("/api/echo/a/b", "a/b")]
)
def test_a_slash_at_the_end_makes_no_difference(daemon: RunningDaemon, path: str, seen: str) -> None:
    assert daemon.get(path).json()["path"] == seen


@pytest.mark.parametrize("raw", [b"", b"{", b"null", b"0", b'""', b"[]", b"false", b"\xff"])
def test_a_body_that_is_none_is_an_empty_object(daemon: RunningDaemon, raw: bytes) -> None:
    assert daemon.post("/api/echo", raw).json()["body"] == {}


@pytest.mark.parametrize("method", ["PATCH", "TRACE", "HEAD"])
def test_other_methods_are_refused(daemon: RunningDaemon, method: str) -> None:
    assert daemon.request(method, "/api/echo").status == 405


def test_an_unknown_service_is_named(daemon: RunningDaemon) -> None:
    for path in ("/api/none", "/api/none/", "/api/none/deeper"):
        answer = daemon.get(path)
        assert answer.status == 404
        assert answer.json()["error"] == "service 'none' not found"


def test_every_form_of_answer_goes_out_as_it_was_meant(daemon: RunningDaemon) -> None:
    assert (daemon.get("/api/forms/dict").status, daemon.get("/api/forms/dict").json()) == (201, {"a": 1})
    headed = daemon.get("/api/forms/headers")
    assert (headed.status, headed.headers["x-mine"]) == (202, "yes")
    assert headed.headers["content-type"] == "application/vnd.mine+json"
    picture = daemon.get("/api/forms/bytes")
    assert (picture.body, picture.headers["content-type"]) == (b"\x00\xff", "image/png")
    assert daemon.get("/api/forms/text").body == b"words"
    assert daemon.get("/api/forms/alone").json() == {"b": [1]}


@pytest.mark.parametrize("form", ["odd", "status", "early", "split", "unheard of"])
def test_an_answer_of_no_known_form_is_an_error(daemon: RunningDaemon, form: str) -> None:
    answer = daemon.get(f"/api/forms/{form.replace(' ', '%20')}")
    assert answer.status == 500
    assert answer.json()["error"]
    assert "x-c" not in answer.headers


def test_a_service_cannot_change_how_its_answer_is_framed(daemon: RunningDaemon) -> None:
    answer = daemon.get("/api/forms/framing")
    assert answer.json() == {"a": 1}
    assert answer.headers["x-good"] == "y"
    assert "bad name" not in answer.headers


def test_service_page_runs_nothing_at_operator_origin(daemon: RunningDaemon) -> None:
    answer = daemon.get("/api/forms/page")
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in answer.headers
    assert "content-security-policy" not in _page(daemon, "/api/forms/page").headers


def test_what_a_service_raises_is_a_json_answer(daemon: RunningDaemon) -> None:
    answer = daemon.get("/api/raises")
    assert (answer.status, answer.json()) == (500, {"error": "no such room"})
    left = daemon.get("/api/raises/exit")
    assert left.status == 500
    assert set(left.json()) >= {"error"}
    assert daemon.get("/api/echo").status == 200


def test_a_service_is_loaded_anew_when_its_file_changed(daemon: RunningDaemon) -> None:
    _write(daemon, "clock", "def handle(method, path, body):\n    return {'is': 1}, 200\n")
    assert daemon.get("/api/clock").json() == {"is": 1}
    _write(daemon, "clock", "def handle(method, path, body):\n    return {'is': 'another'}, 200\n")
    assert daemon.get("/api/clock").json() == {"is": "another"}
    _write(daemon, "clock", "x = 1\ndef handle(:\n")
    answer = daemon.get("/api/clock").json()
    assert answer == {"is": "another"} or answer["error"].startswith("clock_service.py line 2: ")
    _write(daemon, "clock", "def handle(method, path, body):\n    return {'is': 'mended'}, 200\n")
    assert daemon.get("/api/clock").json() == {"is": "mended"}
    (daemon.home / "brainstem" / "services" / "clock_service.py").unlink()
    assert daemon.get("/api/clock").status == 404


def test_a_service_that_never_loaded_says_where_it_is_wrong(daemon: RunningDaemon) -> None:
    _write(daemon, "wrong", "x = 1\ndef handle(:\n")
    answer = daemon.get("/api/wrong")
    assert answer.status == 500
    assert answer.json() == {
        "error": "wrong_service.py line 2: invalid syntax",
        "do": "Fix and save; it reloads by itself.",
        "code": "service_failed",
    }
    (daemon.home / "brainstem" / "services" / "wrong_service.py").unlink()


def test_a_service_may_ask_the_daemon_for_nothing(daemon: RunningDaemon) -> None:
    _write(
        daemon,
        "asks",
        "from utils.host import request\n"
        "def handle(method, path, body):\n"
        "    return {'got': request('agents.list')}, 200\n",
    )
    answer = daemon.get("/api/asks")
    assert answer.status == 500
    assert "may not" in answer.json()["error"]


RAPPS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str, str]] = {
    "kanban": ("Kanban", {"action": "add", "task": "Mow"}, {"action": "list"}, "Mow", "kanban.json"),
    "dashboard": ("Dashboard", {"action": "log", "metric": "weight", "value": 71}, {"action": "overview"}, "weight", "dashboard.json"),
    "webhook": ("Webhook", {"action": "record", "summary": "A build broke"}, {"action": "list"}, "A build broke", "webhook.jsonl"),
}  # fmt: skip


def _run(daemon: RunningDaemon, agent: str, args: dict[str, Any]) -> dict[str, Any]:
    found = daemon.post("/agents/run", {"agent": agent, "args": args}, control=True).json()
    assert found["ok"], found
    result: dict[str, Any] = json.loads(found["result"])
    assert result["status"] == "success", result
    return result


@pytest.mark.parametrize("rapp", RAPPS)
def test_a_shipped_rapplication_installs_works_and_goes(daemon: RunningDaemon, rapp: str) -> None:
    agent, add, show, told, file = RAPPS[rapp]
    workspace = daemon.home / "brainstem"
    before = {path for path in workspace.rglob("*") if path.is_file() and ".brainstem_data" not in path.parts}
    rows = {row["id"]: row for row in daemon.get("/rapps").json()["rapps"]}
    assert rows[rapp]["installed"] is False
    assert daemon.get(f"/api/{rapp}").status == 404

    installed = daemon.post("/rapps/install", {"id": rapp}, control=True).json()
    assert (installed["status"], installed["id"], installed["ui"]) == ("ok", rapp, f"rapps/{rapp}/")
    assert agent in daemon.agent_names()
    row = next(row for row in daemon.get("/rapps").json()["rapps"] if row["id"] == rapp)
    assert row["installed"] is True
    assert row["ui"] == f"http://localhost:{daemon.port}/rapps/{rapp}/"
    assert b"<!doctype html>" in _page(daemon, f"/rapps/{rapp}/").body.lower()

    _run(daemon, agent, add)
    assert told in json.dumps(daemon.get(f"/api/{rapp}").json()), "the service is a view of the same data"
    (workspace / "services" / f"{rapp}_service.py").unlink()
    assert daemon.get(f"/api/{rapp}").status == 404
    assert told in json.dumps(_run(daemon, agent, show)), "without its service it can do the same"

    gone = daemon.post("/rapps/uninstall", {"id": rapp}, control=True)
    assert gone.status == 200
    assert "remembered stays" in gone.json()["message"]
    assert agent not in daemon.agent_names()
    assert _page(daemon, f"/rapps/{rapp}/").status == 404
    after = {path for path in workspace.rglob("*") if path.is_file() and ".brainstem_data" not in path.parts}
    assert after == before
    assert not (workspace / "rapps" / rapp).exists()
    assert told in (workspace / ".brainstem_data" / rapp / file).read_text()
    daemon.post("/rapps/install", {"id": rapp}, control=True)
    assert told in json.dumps(_run(daemon, agent, show)), "and it is there again"
    daemon.post("/rapps/uninstall", {"id": rapp}, control=True)


def test_what_one_says_through_the_service_the_agent_knows(daemon: RunningDaemon) -> None:
    for rapp in RAPPS:
        assert daemon.post("/rapps/install", {"id": rapp}, control=True).status == 200
    made = daemon.post("/api/kanban/tasks", {"title": "Paint", "column": "Doing"})
    assert made.status == 201
    task = made.json()["task_id"]
    assert "Paint" in json.dumps(_run(daemon, "Kanban", {"action": "list", "column": "Doing"}))
    assert daemon.request("PUT", f"/api/kanban/tasks/{task}", {"column": "Done"}).status == 200
    assert "Paint" in json.dumps(_run(daemon, "Kanban", {"action": "list", "column": "Done"}))
    assert daemon.request("DELETE", f"/api/kanban/tasks/{task}").status == 200
    assert daemon.request("DELETE", f"/api/kanban/tasks/{task}").status == 404
    assert daemon.post("/api/dashboard/height", {"value": 1.8}).status == 201
    assert daemon.post("/api/dashboard/height", {}).status == 400
    assert "height" in json.dumps(_run(daemon, "Dashboard", {"action": "query", "metric": "height"}))
    assert daemon.post("/api/webhook/ingest", {"source": "github", "title": "pushed"}).status == 201
    assert "pushed" in json.dumps(_run(daemon, "Webhook", {"action": "list"}))
    for rapp in RAPPS:
        daemon.post("/rapps/uninstall", {"id": rapp}, control=True)


def test_rapp_page_and_operator_have_different_origins(daemon: RunningDaemon) -> None:
    daemon.post("/rapps/install", {"id": "kanban"}, control=True)
    page_of_operator = OperatorPage(daemon)
    for path in ("/rapps/kanban/", "/rapps/kanban/app.js?v=2"):
        moved = daemon.get(path)
        assert moved.status == 302
        assert moved.headers["location"] == f"http://localhost:{daemon.port}{path}"
    page = _page(daemon, "/rapps/kanban/")
    assert page.status == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors http://127.0.0.1:*" in policy
    assert _page(daemon, "/rapps/kanban/app.js").headers["content-type"].startswith("text/javascript")

    assert page_of_operator.get("/settings").status == 200
    for host in (f"localhost:{daemon.port}", f"[::1]:{daemon.port}"):
        there = {"headers": {"Host": host}, "host": host}
        assert page_of_operator.get("/settings", **there).status == 403
        assert page_of_operator.get("/operator/session", **there).json() == {"operator": False}
    key = daemon.post("/operator/key", control=True).json()["key"]
    localhost = {"Host": f"localhost:{daemon.port}"}
    assert sign_in(daemon, key, headers=localhost).status == 403
    assert sign_in(daemon, key).status == 200, "the key was not used up by that"
    home = _page(daemon, "/")
    assert (home.status, home.headers["location"]) == (302, f"http://127.0.0.1:{daemon.port}/")
    uninstall, board = "/rapps/uninstall", {"id": "kanban"}
    crossing = {"Origin": f"http://localhost:{daemon.port}"}
    there = localhost["Host"]
    assert page_of_operator.post(uninstall, board, headers=localhost | crossing, host=there).status == 403
    assert page_of_operator.post(uninstall, board, headers=crossing).status == 403
    assert page_of_operator.post(uninstall, board).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/rapps/none/",
        "/rapps/kanban/../../soul.md",
        "/rapps/kanban/%2e%2e/manifest.json",
        "/rapps/kanban/..%2fplaced.json",
        "/rapps/%2e%2e/soul.md",
        "/rapps/..%2f..%2fkeys/x",
        f"/rapps/{'x' * 3000}/",
        f"/rapps/kanban/{'x' * 3000}",
        "/rapps/kanban/%00",
    ],
)
def test_no_path_leads_out_of_a_page(daemon: RunningDaemon, path: str) -> None:
    daemon.post("/rapps/install", {"id": "kanban"}, control=True)
    answer = _page(daemon, path)
    assert answer.status == 404
    assert set(answer.json()) == {"error", "do", "code"}
    daemon.post("/rapps/uninstall", {"id": "kanban"}, control=True)


def _bundle(folder: Path, files: dict[str, str], **manifest: Any) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = {"schema": "rapp-application/1.0", "id": "mine", **manifest}
    (folder / "manifest.json").write_text(json.dumps(found))
    return str(folder)


def test_a_rapplication_without_an_agent_is_refused(daemon: RunningDaemon, tmp_path: Path) -> None:
    path = _bundle(tmp_path / "b", {"service/mine_service.py": ECHO, "ui/index.html": "<p>"})
    answer = daemon.post("/rapps/install", {"id": path}, control=True)
    assert answer.status == 400
    assert answer.json()["error"] == "A rapplication without an agent is refused."
    assert daemon.get("/api/mine").status == 404
    assert all(row["id"] != "mine" for row in daemon.get("/rapps").json()["rapps"])


def test_a_bundle_with_a_bare_manifest_installs_and_is_listed(daemon: RunningDaemon, tmp_path: Path) -> None:
    path = _bundle(tmp_path / "b", {"singleton/mine_agent.py": agent_source("Mine"), "ui/index.html": "<p>"})
    assert daemon.post("/rapps/install", {"id": path}, control=True).status == 200
    row = next(row for row in daemon.get("/rapps").json()["rapps"] if row["id"] == "mine")
    assert (row["name"], row["installed"]) == ("mine", True)
    assert row["ui"].endswith("/rapps/mine/")
    assert _page(daemon, "/rapps/mine/").status == 200
    daemon.post("/rapps/uninstall", {"id": "mine"}, control=True)


def test_a_newer_version_leaves_nothing_of_the_earlier(daemon: RunningDaemon, tmp_path: Path) -> None:
    old = {"singleton/mine_agent.py": agent_source("Mine"), "singleton/more_agent.py": agent_source("More")}
    daemon.post("/rapps/install", {"id": _bundle(tmp_path / "1", old)}, control=True)
    assert {"Mine", "More"} <= set(daemon.agent_names())
    new = {"singleton/mine_agent.py": agent_source("Mine", 'return "newer"')}
    daemon.post("/rapps/install", {"id": _bundle(tmp_path / "2", new)}, control=True)
    assert "More" not in daemon.agent_names()
    found = daemon.post("/agents/run", {"agent": "Mine"}, control=True).json()
    assert found["result"] == "newer"
    daemon.post("/rapps/uninstall", {"id": "mine"}, control=True)
    assert "Mine" not in daemon.agent_names()


def test_a_rapplication_does_not_overwrite_a_file_of_yours(daemon: RunningDaemon, tmp_path: Path) -> None:
    daemon.drop("mine_agent.py", agent_source("Mine", 'return "yours"'))
    path = _bundle(tmp_path / "b", {"singleton/mine_agent.py": agent_source("Mine"), "ui/index.html": "<p>"})
    answer = daemon.post("/rapps/install", {"id": path}, control=True)
    assert answer.status == 409
    assert "mine_agent.py" in answer.json()["error"]
    assert 'return "yours"' in (daemon.agents / "mine_agent.py").read_text()
    assert not (daemon.home / "brainstem" / "rapps" / "mine").exists()
    (daemon.agents / "mine_agent.py").unlink()


def test_a_file_you_put_beside_a_page_survives_uninstalling(daemon: RunningDaemon) -> None:
    daemon.post("/rapps/install", {"id": "kanban"}, control=True)
    notes = daemon.home / "brainstem" / "rapps" / "kanban" / "ui" / "notes.txt"
    notes.write_text("mine")
    assert daemon.post("/rapps/uninstall", {"id": "kanban"}, control=True).status == 200
    assert notes.read_text() == "mine"
    assert daemon.get("/rapps").status == 200
    assert _page(daemon, "/rapps/kanban/").status == 404
    notes.unlink()


@pytest.mark.parametrize("damage", ["", "{", "[1, null]", '{"a": 1}', "[]"])
def test_a_damaged_manifest_or_receipt_harms_only_itself(daemon: RunningDaemon, damage: str) -> None:
    daemon.post("/rapps/install", {"id": "kanban"}, control=True)
    folder = daemon.home / "brainstem" / "rapps" / "kanban"
    kept = {name: (folder / name).read_bytes() for name in ("manifest.json", "placed.json")}
    for name in kept:
        (folder / name).write_text(damage)
    rows = daemon.get("/rapps").json()["rapps"]
    assert {row["id"] for row in rows} >= set(RAPPS)
    answer = daemon.post("/rapps/uninstall", {"id": "kanban"}, control=True)
    assert answer.status in (200, 404), answer.body
    for name, content in kept.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    assert daemon.post("/rapps/uninstall", {"id": "kanban"}, control=True).status == 200


@pytest.mark.parametrize(
    "name",
    [
        "none",
        "..",
        ".",
        "",
        "__init__.py",
        "../rapps/kanban",
        "x" * 3000,
        "/" + "x" * 3000,
        "/a\0b",
        "./none",
        "KANBAN",
    ],
)
def test_what_is_no_rapplication_is_refused(daemon: RunningDaemon, name: str) -> None:
    for path in ("/rapps/install", "/rapps/uninstall"):
        answer = daemon.post(path, {"id": name}, control=True)
        assert answer.status in (400, 404), (path, answer.body)
        assert set(answer.json()) == {"error", "do", "code"}
