"""A running daemon answers any post in JSON, tells nothing of its inside, and lives on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.running_daemon import Answer, RunningDaemon
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EDGE = "edge-of-the-test"
HEADERS = {"Content-Type": f"multipart/form-data; boundary={EDGE}"}
PLAIN_WORDS = ("Invalid JSON in request body", "Missing JSON payload in request body")
KNOWN = ["user_input", "session_id", "user_guid", "turn_id", "conversation_history", "model", "enabled", "url",
         "agent_id", "enable", "agent", "args", "filename", "source", "undo", "id", "name", "value", "key", "_password",
         "twin_chat_envelope"]  # fmt: skip
SET_APART = {
    "/settings",
    "/chat/stream",
}  # the first could switch the daemon off its port, the second has its own test

texts = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["", ".", "..", "../../x", "/", "/etc/passwd", "a/b", "~nobody/x", "\0", "x" * 300, "kanban",
                     "ContextMemory", "context_memory_agent.py", "c0p110t0-aaaa-bbbb-cccc-123456789abc",
                     "11111111-2222-4333-8444-555555555555", "auto", "|||VOICE|||"]),
)  # fmt: skip
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(KNOWN), values, max_size=6)
bodies = st.one_of(
    objects.map(lambda found: json.dumps(found).encode()),
    st.tuples(texts, objects).map(
        lambda both: json.dumps({**both[1], "user_input": both[0] or "hello"}).encode()
    ),
    values.map(lambda found: json.dumps(found).encode()),
    st.binary(max_size=60),
    st.tuples(st.sampled_from(["file", "password", "x", ""]), texts, st.binary(max_size=40)).map(
        lambda part: (
            f'--{EDGE}\r\nContent-Disposition: form-data; name="{part[0]}"; filename="{part[1]}"\r\n\r\n'.encode()
            + part[2]
            + f"\r\n--{EDGE}--\r\n".encode()
        )
    ),
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    nowhere = "http://127.0.0.1:9"
    daemon = RunningDaemon(
        tmp_path_factory.mktemp("fuzz") / "home",
        LLM_FAKE="1",
        RAPPD_HTTP_TOOLS="1",
        RAPPD_INSTALL_PACKAGES="0",
        RAPPD_BODY_MB="1",
        RAPPD_GITHUB_URL=nowhere,
        RAPPD_GITHUB_API=nowhere,
        RAPPD_GITHUB_RAW=nowhere,
    ).start()
    yield daemon
    daemon.stop()


@pytest.fixture(scope="module")
def posts(daemon: RunningDaemon) -> list[str]:
    """Every path that takes a POST."""
    paths = daemon.get("/openapi.json").json()["paths"]
    found = sorted(
        path for path, operations in paths.items() if "post" in operations and path not in SET_APART
    )
    assert len(found) > 25
    return [path.replace("{service}", "none").replace("{path}", "x/y") for path in found]


FOREIGN = ("/v1/", "/ollama/", "/mcp", "/a2a", "/acp")
"""Protocols whose errors have shapes of their own, with our sentence inside."""


def _check(answer: Answer, path: str) -> None:
    """JSON of a documented form, nothing of the inside in it."""
    kind = answer.headers.get("content-type", "")
    assert "html" not in kind, path
    text = answer.body.decode("utf-8", "replace")
    for inside in ("Traceback", 'File "/', "/rappd/", "site-packages"):
        assert inside not in text, (path, text[:400])
    if answer.status < 400:
        return
    if path == "/api/businessinsightbot_function" and text in PLAIN_WORDS:
        return
    if path.startswith(FOREIGN):
        error = json.loads(text.splitlines()[0])["error"]
        message = error["message"] if isinstance(error, dict) else error
        assert message and "inside" not in message, (path, text[:200])
        return
    assert kind.startswith("application/json"), (path, answer.status, kind, text[:200])
    found = answer.json()
    if path == "/tether/agent" and found.get("status") == "error":
        assert isinstance(found["message"], str)
        return
    assert {"error", "do", "code"} <= set(found), (path, found)
    assert all(isinstance(found[key], str) for key in ("error", "do", "code"))
    assert found["error"], path
    assert found["code"] != "failed", (path, found, "an error that nobody thought of")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_post_body_is_fallen_over(daemon: RunningDaemon, posts: list[str], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(posts), label="path")
    body = data.draw(bodies, label="body")
    headers = data.draw(st.sampled_from([{}, HEADERS, {"Accept": "text/html"}]), label="headers")
    _check(daemon.post(path, body, headers=headers, control=data.draw(st.booleans(), label="control")), path)
    assert daemon.get("/healthz").json() == {"status": "ok"}


def test_afterwards_it_still_does_what_it_should(daemon: RunningDaemon) -> None:
    assert daemon.chat("hello")["response"] == "fake-llm: hello"
    assert "ContextMemory" in daemon.agent_names()
    assert "Traceback" not in daemon.log, re.findall(r"^\w*(?:Error|Exception).*$", daemon.log, re.MULTILINE)


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


DEEP = [f'{{"user_input":"x","session_id":{_nested(depth)}}}' for depth in (60, 200, 300, 1000, 5000)]
DEEP += [
    f'{{"user_input":"x","conversation_history":[{{"role":"user","content":"y","z":{_nested(depth)}}}]}}'
    for depth in (60, 300)
]


@pytest.mark.parametrize(
    "path",
    [
        "/chat",
        "/chat/stream",
        "/chat/cancel",
        "/api/businessinsightbot_function",
        "/api/none",
        "/tether/agent",
        "/voice/config",
    ],
)
def test_nesting_without_end_is_refused(daemon: RunningDaemon, path: str) -> None:
    for body in DEEP:
        answer = daemon.post(path, body.encode())
        assert 400 <= answer.status < 500, (path, answer.status)
        _check(answer, path)


def test_a_nested_session_that_can_be_written_down_is_echoed(daemon: RunningDaemon) -> None:
    session = json.loads(_nested(40)[1:-1].join(("[1,", "]")))
    assert daemon.chat("hello", session_id=session)["session_id"] == session


@pytest.mark.parametrize("last", ["0", "1", "7", "99999999", "9" * 5000, "-1", "x", "١٢", ""])
def test_odd_listener_events_do_not_stop_the_daemon(daemon: RunningDaemon, last: str) -> None:
    headers = {"Last-Event-ID": last.encode().decode("latin-1")}
    answer = daemon.post("/chat/stream", {"user_input": "hello"}, headers=headers)
    assert answer.status == 200
    assert b'"type":"done"' in answer.body
    assert daemon.get("/healthz").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Encoding": "gzip"},
        {"Content-Type": "multipart/form-data"},
        {"Content-Type": "multipart/form-data; boundary="},
        {"Content-Type": "multipart/mixed; boundary=x"},
        {"Cookie": "rappd_operator=\xff", "X-Rappd-Signature": "\xe9"},
        {"Cookie": "rappd_operator=" + "." * 2000, "X-Rappd-Signature": "." * 2000},
        {"Accept": "text/html"},
        {"Origin": "\xff"},
    ],
)
@pytest.mark.parametrize("path", ["/chat", "/voice/import", "/agents/import", "/settings"])
def test_odd_headers_get_a_plain_refusal(daemon: RunningDaemon, path: str, headers: dict[str, str]) -> None:
    for control in (False, True):
        answer = daemon.post(path, b'{"nothing": 1}', headers=headers, control=control)
        assert 400 <= answer.status < 500, (path, headers, answer.status)
        _check(answer, path)


@pytest.mark.parametrize(
    "part",
    [
        b'Content-Disposition: form-data; name="password"\r\nContent-Type: text/plain; charset=nope\r\n\r\nx',
        b'Content-Disposition: form-data; name="file"; filename="a.py"\r\nContent-Transfer-Encoding: nope\r\n\r\nx',
        b'Content-Disposition: form-data; name="file"; filename="a.py"\r\nContent-Transfer-Encoding: base64\r\n\r\nx',
        b'Content-Disposition: form-data; name="file"; filename="a.py"\r\nContent-Encoding: deflate\r\n\r\nxyz',
        b"Content-Disposition: form-data; name=\"file\"; filename*=utf-8''%ff.py\r\n\r\nx",
        b"Content-Disposition: form-data\r\n\r\nx",
        b"Content-Type: multipart/mixed; boundary=q\r\n\r\n--q\r\n\r\nx\r\n--q--",
        b"\xff\xfe: x\r\n\r\nx",
        b"no header at all",
    ],
)
def test_odd_uploads_get_a_plain_refusal(daemon: RunningDaemon, part: bytes) -> None:
    body = b"--" + EDGE.encode() + b"\r\n" + part + b"\r\n--" + EDGE.encode() + b"--\r\n"
    for path in ("/voice/import", "/agents/import"):
        answer = daemon.post(path, body, headers=HEADERS, control=True)
        assert 400 <= answer.status < 500, (path, answer.status)
        _check(answer, path)


def test_an_upload_has_the_same_bound_as_any_body(daemon: RunningDaemon) -> None:
    head = f'--{EDGE}\r\nContent-Disposition: form-data; name="file"; filename="a.py"\r\n\r\n'
    body = head.encode() + b"x" * (3 << 20) + f"\r\n--{EDGE}--\r\n".encode()
    answer = daemon.post("/agents/import", body, headers=HEADERS, control=True)
    assert (answer.status, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize("name", ["name", "value"])
@pytest.mark.parametrize("value", ["", "none", "voice_mode", "../x", "\n[a]", 5, None, [], {}, "x" * 5000])
def test_odd_settings_are_refused(daemon: RunningDaemon, name: str, value: Any) -> None:
    body = {"name": "twin_mode", "value": "off", name: value}
    if body == {"name": "voice_mode", "value": "off"} or body == {"name": "twin_mode", "value": ""}:
        return
    answer = daemon.post("/settings", body, control=True)
    assert 400 <= answer.status < 500, answer.body
    _check(answer, "/settings")


def test_huge_limits_of_lists_are_only_large(daemon: RunningDaemon) -> None:
    for path in ("/log", "/threads", "/activity"):
        for limit, status in (
            ("9" * 18, 200),
            ("-1", 200),
            ("0", 200),
            ("9" * 5000, 422),
            ("x", 422),
            ("١", 422),
        ):
            query = limit.encode().hex("%") if not limit.isascii() else limit
            answer = daemon.get(f"{path}?limit={query}", control=True)
            assert answer.status == status, (path, limit[:9], answer.body[:200])
            assert status == 200 or answer.json()["error"] == "limit must be a whole number"
