"""Services at the HTTP edge: files that cannot be parsed, other sites' pages, response headers."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import Answer, RunningDaemon
from fixtures.sandboxed_daemon import NO_SANDBOX, sandboxed_daemon_in
from playwright.sync_api import Browser, Page

from rappd.listeners.loopback.service_routes import service_headers

ECHO = 'name = "echo"\ndef handle(method, path, body):\n    return {"path": path}, 200\n'
COUNTS = """
from pathlib import Path

name = "counts"
SEEN = Path(__file__).parents[1] / ".brainstem_data" / "seen"  # every worker's requests

def handle(method, path, body):
    if path == "seen":
        return {"seen": SEEN.read_text().split("|") if SEEN.exists() else []}, 200
    with SEEN.open("a") as seen:
        seen.write(path + "|")
    return "counted", 200
"""
ALL_HEADERS = """
name = "headers"

def handle(method, path, body):
    return "text", 200, {
        "Access-Control-Allow-Origin": "*", "Access-Control-Allow-Credentials": "true",
        "Refresh": "0; url=http://evil.example/", "Set-Cookie": "rappd_operator=x", "Clear-Site-Data": '"*"',
        "Service-Worker-Allowed": "/", "Content-Security-Policy": "default-src *", "Link": "</x>; rel=preload",
        "Content-Security-Policy-Report-Only": "default-src *", "Strict-Transport-Security": "max-age=1",
        "Alt-Svc": 'h2=":1"', "Location": "http://evil.example/", "NEL": "{}", "Report-To": "{}",
        "Reporting-Endpoints": "a=b", "Permissions-Policy": "camera=*", "Cross-Origin-Resource-Policy": "cross-origin",
        "Cross-Origin-Opener-Policy": "unsafe-none", "Timing-Allow-Origin": "*", "SourceMap": "/x",
        "WWW-Authenticate": "Basic", "Origin-Agent-Cluster": "?0", "X-Frame-Options": "ALLOWALL",
        "X-Accel-Redirect": "/x", "X-Content-Type-Options": "sniff", "Speculation-Rules": "x", "Set-Login": "x",
        "Content-Disposition": "attachment", "Cache-Control": "no-store", "ETag": '"1"', "X-Total-Count": "7",
    }
"""
KEPT = {"content-disposition": "attachment", "cache-control": "no-store", "etag": '"1"', "x-total-count": "7"}
UNPARSABLE = {
    "null_bytes": b"name = 'x'\0",
    "minus": b"-" * 100_000 + b"1",
    "nested": b"x = " + b"(" * 5_000,
    "attributes": b"x" + b".a" * 100_000,
    "elif": b"if 1: pass\n" + b"elif 1: pass\n" * 35_000,
    "encoding": b"# coding: nonsense\n",
    "bytes": b"x = '\xff'\n",
    "syntax": b"x = 1\ndef handle(:\n",
    "huge": b"#" * (600 << 10),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("edge") / "home", LLM_FAKE="1").start()
    for name, text in (("echo", ECHO), ("counts", COUNTS), ("headers", ALL_HEADERS)):
        _write(daemon, name, text.encode())
    yield daemon
    daemon.stop()


def _services(daemon: RunningDaemon) -> Path:
    folder = daemon.home / "brainstem" / "services"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _write(daemon: RunningDaemon, name: str, text: bytes) -> None:
    (_services(daemon) / f"{name}_service.py").write_bytes(text)


def _faults(daemon: RunningDaemon) -> dict[str, Any]:
    rows = daemon.get("/health").json()["quarantined"]
    return {row["file"]: row for row in rows if row["file"].startswith("services/")}


@pytest.mark.parametrize("kind", UNPARSABLE)
def test_unparsable_service_file_is_listed_and_harms_no_other(daemon: RunningDaemon, kind: str) -> None:
    _write(daemon, kind, UNPARSABLE[kind])
    try:
        assert daemon.get("/api/echo/a").json() == {"path": "a"}
        assert daemon.get("/api/none").status == 404
        fault = _faults(daemon)[f"services/{kind}_service.py"]
        assert fault["reason"]
        assert fault["line"] == {"syntax": 2, "nested": 1, "bytes": 1, "encoding": 0}.get(kind)
        assert daemon.get(f"/api/{kind}").status == 500
    finally:
        (_services(daemon) / f"{kind}_service.py").unlink()
    assert _faults(daemon) == {}


@pytest.mark.parametrize("kind", ["pipe", "link", "link to nothing", "folder", "socket"])
def test_service_entry_without_file_harms_no_other(daemon: RunningDaemon, kind: str) -> None:
    path = _services(daemon) / "odd_service.py"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(_services(daemon) / "echo_service.py")
    elif kind == "link to nothing":
        path.symlink_to("/nowhere")
    elif kind == "folder":
        path.mkdir()
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.close()
    try:
        assert daemon.get("/api/echo/a").json() == {"path": "a"}
        assert daemon.get("/api/odd").status in (404, 500)
        assert "not a file" in _faults(daemon)["services/odd_service.py"]["reason"]
    finally:
        path.rmdir() if kind == "folder" else path.unlink()


def test_agent_that_plants_services_stops_no_other(nobody_python: Path) -> None:
    """Without a sandbox an agent can write there; it may end its own services, not the others."""
    with sandboxed_daemon_in(NO_SANDBOX, nobody_python, LLM_FAKE="1") as daemon:
        _write(daemon, "echo", ECHO.encode())
        daemon.start()
        planted = daemon.run_code(
            "import os\n"
            f"folder = {str(_services(daemon))!r}\n"
            "open(folder + '/minus_service.py', 'w').write('-' * 100_000 + '1')\n"
            "os.mkfifo(folder + '/pipe_service.py')\n"
            "os.symlink('/dev/zero', folder + '/zero_service.py')\n"
            "return str(sorted(os.listdir(folder)))"
        )
        assert "zero_service.py" in planted["result"], f"positive control: {planted}"
        assert daemon.get("/api/echo/a").json() == {"path": "a"}
        assert len(_faults(daemon)) == 3


def test_service_sends_listed_headers_and_no_others(daemon: RunningDaemon) -> None:
    for host in ("127.0.0.1", "localhost"):
        answer = daemon.get("/api/headers", headers={"Host": f"{host}:{daemon.port}"})
        assert answer.body == b"text"
        own = {"date", "server", "content-length", "content-type", *KEPT}
        if host == "127.0.0.1":
            own |= {"content-security-policy", "x-content-type-options"}
            assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert set(answer.headers) == own, host
        assert {name: answer.headers[name] for name in KEPT} == KEPT


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("/api/kanban", True),
        ("/api/kanban/tasks/1?x=http://y#z", True),
        ("/api/kanbans", False),
        ("/operator/session", False),
        ("http://evil.example/api/kanban", False),
        ("//evil.example/api/kanban", False),
        ("/api/kanban/../../operator", False),
        ("/api/kanban/%2e%2e/other", False),
        ("/api/kanban//evil", False),
        ("/api/kanban\\..\\x", False),
    ],
)
def test_service_redirects_to_its_own_paths_alone(address: str, kept: bool) -> None:
    assert bool(service_headers("kanban", {"Location": address}, at_operator_origin=False)) is kept


def _get(daemon: RunningDaemon, site: str | None, path: str = "/api/echo/a", **headers: str) -> Answer:
    sent = {"Sec-Fetch-Site": site, **headers} if site is not None else headers
    return daemon.get(path, headers=sent)


def test_other_sites_get_no_answer_of_a_service(daemon: RunningDaemon) -> None:
    for site in (None, "none", "same-origin"):
        assert _get(daemon, site).status == 200, site
    for site in ("cross-site", "same-site", "", "anything"):
        assert _get(daemon, site).status == 403, site
        navigation = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert _get(daemon, site, **navigation).status == 403, site
    assert _get(daemon, "cross-site", "/healthz").status == 200, "positive control: other paths are as before"


def test_listed_origin_gets_answers_of_a_service(tmp_path: Path) -> None:
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1", RAPP_CORS_ORIGINS="https://mine.example")
    _write(daemon, "echo", ECHO.encode())
    daemon.start()
    try:
        assert _get(daemon, "cross-site", Origin="https://mine.example").status == 200
        assert _get(daemon, "cross-site", Origin="https://other.example").status == 403
        assert _get(daemon, "cross-site").status == 403
    finally:
        daemon.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    yield page
    page.close()


@contextmanager
def _other_site(html: str) -> Iterator[int]:
    class Site(BaseHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("site", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("target", ["127.0.0.1", "localhost"])
def test_page_of_another_site_reaches_no_service_in_a_browser(
    daemon: RunningDaemon, page: Page, site: str, target: str
) -> None:
    service = f"http://{target}:{daemon.port}/api/counts"
    tag = f"{site}-{target}"
    html = (
        f"<img src='{service}/img-{tag}'><script src='{service}/script-{tag}'></script>"
        f"<link rel=stylesheet href='{service}/style-{tag}'><iframe src='{service}/frame-{tag}'></iframe>"
        f"<form action='{service}/form-{tag}'></form><a id=a href='{service}/link-{tag}'>x</a>"
        f"<script>fetch('{service}/fetch-{tag}', {{mode: 'no-cors'}}).catch(() => 0)"
        f".then(() => {{document.title = 'over'}})</script>"
    )
    with _other_site(html) as port:
        page.goto(f"http://{site}:{port}/")
        page.wait_for_function("() => document.title === 'over'")
        page.wait_for_load_state("load")
        page.click("#a")
        page.goto(f"http://{site}:{port}/")
        page.wait_for_function("() => document.title === 'over'")
        page.evaluate("document.forms[0].submit()")
        page.wait_for_timeout(500)
    assert [path for path in daemon.get("/api/counts/seen").json()["seen"] if path.endswith(tag)] == []


@pytest.mark.browser
@needs_chromium
def test_own_page_and_typed_address_reach_services_in_a_browser(daemon: RunningDaemon, page: Page) -> None:
    assert daemon.post("/rapps/install", {"id": "kanban"}, control=True).status == 200
    page.goto(f"http://localhost:{daemon.port}/rapps/kanban/")
    found = page.evaluate("fetch('/api/counts/from-a-rapplication').then(answer => answer.status)")
    assert found == 200
    made = page.evaluate(
        "fetch('/api/kanban/tasks', {method: 'POST', headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({title: 'Paint'})}).then(answer => answer.status)"
    )
    assert made == 201
    assert page.goto(f"http://127.0.0.1:{daemon.port}/api/counts/typed").status == 200
    key = daemon.post("/operator/key", control=True).json()["url"]
    page.goto(key)
    page.evaluate("location.hash = '#/agents'")
    frame = page.evaluate(
        f"""new Promise(done => {{
          const frame = document.createElement('iframe');
          frame.src = 'http://localhost:{daemon.port}/rapps/kanban/';
          frame.sandbox = 'allow-scripts allow-same-origin allow-forms';
          frame.onload = () => done(true);
          document.body.append(frame);
        }})"""
    )
    assert frame
    inside = page.frames[-1]
    assert inside.evaluate("fetch('/api/kanban').then(answer => answer.status)") == 200
    seen = daemon.get("/api/counts/seen").json()["seen"]
    assert {"from-a-rapplication", "typed"} <= set(seen)
