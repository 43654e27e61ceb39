"""Access to the loopback listener, and its answers to bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from fixtures.operator_page import OperatorPage, sign_in
from fixtures.running_daemon import RunningDaemon, agent_source

from rappd.listeners.loopback import request_guard

STRUCTURAL = [
    ("POST", "/agents/import"),
    ("DELETE", "/agents/x_agent.py"),
    ("POST", "/agents/undo"),
    ("POST", "/agents/approve"),
    ("POST", "/agents/new"),
    ("POST", "/agents/run"),
    ("POST", "/repos/connect"),
    ("POST", "/repos/disconnect"),
    ("POST", "/repos/toggle"),
    ("POST", "/rapps/install"),
    ("POST", "/rapps/uninstall"),
    ("POST", "/settings"),
    ("GET", "/settings"),
    ("GET", "/threads"),
    ("GET", "/activity"),
    ("GET", "/log"),
    ("POST", "/operator/key"),
    ("POST", "/voice/export"),
    ("GET", "/agents/export/x_agent.py"),
    ("GET", "/agents/source/x_agent.py"),
]


@pytest.mark.parametrize(("method", "path"), STRUCTURAL)
def test_structure_and_records_need_the_operator(fake_daemon: RunningDaemon, method: str, path: str) -> None:
    answer = fake_daemon.request(method, path, b"{}")
    assert answer.status == 403
    assert answer.json()["code"] == "not_operator"
    assert answer.json()["do"] == "rappd open"


@pytest.mark.parametrize("path", ["/voice/toggle", "/twin/toggle", "/models/set", "/login/poll"])
def test_published_everyday_routes_need_no_operator(fake_daemon: RunningDaemon, path: str) -> None:
    assert fake_daemon.post(path, b"{}").status != 403


def test_a_link_becomes_a_session_once(fake_daemon: RunningDaemon) -> None:
    link = fake_daemon.post("/operator/key", control=True).json()
    assert link["url"].partition("#k=")[2] == link["key"]
    opened = sign_in(fake_daemon, link["key"])
    assert opened.status == 200
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert "SameSite=Strict" in opened.headers["set-cookie"]
    assert sign_in(fake_daemon, link["key"]).status == 403
    assert sign_in(fake_daemon, "guess").status == 403


def test_a_session_needs_its_cookie_and_its_key(fake_daemon: RunningDaemon) -> None:
    page, other = OperatorPage(fake_daemon), OperatorPage(fake_daemon)
    assert page.get("/settings").status == 200
    assert fake_daemon.get("/settings", headers={"Cookie": page.cookie}).status == 403
    assert page.get("/settings", headers={"Cookie": other.cookie}).status == 403
    claim, _, mark = page.cookie.rpartition(".")
    lengthened = claim.replace("rappd_operator=", "rappd_operator=9")
    exchanged = claim.replace(page.browser.public, other.browser.public)
    for forged in (
        "rappd_operator=",
        "rappd_operator=9999999999.x.y",
        f"{lengthened}.{mark}",
        f"{exchanged}.{mark}",
    ):
        assert page.get("/settings", headers={"Cookie": forged}).status == 403
        assert other.get("/settings", headers={"Cookie": forged}).status == 403


def test_a_session_outlives_the_daemon(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    page = OperatorPage(daemon)
    daemon.stop()
    daemon.start()
    assert page.get("/operator/session").json() == {"operator": True}


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:7071", ""])
def test_other_host_names_are_refused(fake_daemon: RunningDaemon, host: str) -> None:
    assert fake_daemon.get("/health", headers={"Host": host}).status == 403


def test_pages_of_other_sites_cannot_talk(fake_daemon: RunningDaemon) -> None:
    for origin in ("https://evil.example", "null", f"http://127.0.0.1:{fake_daemon.port + 1}"):
        answer = fake_daemon.post("/chat", b'{"user_input":"x"}', headers={"Origin": origin})
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers
        preflight = fake_daemon.request("OPTIONS", "/chat", headers={"Origin": origin})
        assert preflight.status == 403


def test_a_site_on_the_list_may_talk(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPP_CORS_ORIGINS="https://mine.example").start()
    origin = {"Origin": "https://mine.example"}
    preflight = daemon.request("OPTIONS", "/chat", headers=origin)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://mine.example"
    answer = daemon.post("/chat", b'{"user_input":"x"}', headers=origin)
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "https://mine.example"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nope", 404),
        ("POST", "/nope", 404),
        ("PUT", "/chat", 405),
        ("GET", "/chat", 405),
        ("GET", "/web/../house.py", 404),
        ("GET", "/web/%2e%2e/house.py", 404),
        ("GET", "/api/nothing", 404),
        ("PATCH", "/api/nothing", 405),
        ("GET", "/agents/export/none_agent.py", 403),
        ("GET", "/agents/export/..%2f..%2fkeys%2fidentity.pem", 403),
    ],
)
def test_bad_requests_get_one_json_shape(
    fake_daemon: RunningDaemon, method: str, path: str, status: int
) -> None:
    answer = fake_daemon.request(method, path)
    assert answer.status == status
    assert set(answer.json()) == {"error", "do", "code"}


def test_too_large_a_body_is_refused(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_BODY_MB="1").start()
    answer = daemon.post("/chat", json.dumps({"user_input": "x" * (1 << 20)}).encode())
    assert answer.status == 413
    assert answer.json()["code"] == "too_large"


def test_an_upload_that_is_none_is_refused(fake_daemon: RunningDaemon) -> None:
    answer = fake_daemon.post("/agents/import", b"x", control=True, headers={"Content-Type": "text/plain"})
    assert answer.status == 415
    answer = fake_daemon.post(
        "/agents/import", b"x", control=True, headers={"Content-Type": "multipart/form-data; boundary=b"}
    )
    assert answer.status == 400


@pytest.mark.needs_root
def test_home_reached_from_another_container_is_the_operators(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    """The system tells no number of a process that the daemon's container cannot see."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("process numbers of its own need root")
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("aaa_agent.py", agent_source("Aaa"))
    daemon.process = subprocess.Popen(
        [*apart, sys.executable, "-m", "rappd", "start", "--quiet"],
        env=daemon.environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        daemon.wait_for(daemon.is_ready, what="the daemon to be ready")
        assert daemon.chat("go")["agent_logs"] == "[Aaa] done"
        assert daemon.get("/threads", control=True).status == 200
        assert daemon.get("/threads").status == 403
    finally:
        daemon.kill()


def test_no_secret_is_told(make_daemon: Callable[..., RunningDaemon]) -> None:
    secret = "ghu_abcdefghijklmnop123456"
    daemon = make_daemon(LLM_FAKE="1", GITHUB_TOKEN=secret, OPENAI_API_KEY="sk-abcdefghijklmnop").start()
    told = daemon.get("/health").body + daemon.get("/settings", control=True).body + daemon.log.encode()
    told += (
        daemon.cli("config", "show", "--json").stdout.encode()
        + daemon.cli("status", "--json").stdout.encode()
    )
    assert secret.encode() not in told
    assert b"sk-abcdefgh" not in told


def test_who_connected_to_the_control_socket_is_looked_up_once_for_a_connection(
    fake_daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def is_worker_process(pid: int, zygote: int) -> bool:
        asked.append(pid)
        return len(asked) > 1

    monkeypatch.setattr(request_guard, "is_worker_process", is_worker_process)
    with fake_daemon.control() as first, fake_daemon.control() as second:
        assert [first("GET", "/threads").status for _ in range(3)] == [200, 200, 200]
        assert [second("GET", "/threads").status for _ in range(2)] == [403, 403]
    assert asked == [os.getpid()] * 3, "a worker is looked up, and refused, each time"
