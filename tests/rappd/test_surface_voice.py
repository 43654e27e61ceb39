"""``/voice*`` and ``/twin*``: switches that stay, and settings behind a password."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator

import pytest
import pyzipper
from fixtures.running_daemon import Answer, RunningDaemon

EDGE = "edge-of-the-test"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("voice") / "home", LLM_FAKE="1").start()
    yield daemon
    daemon.stop()


@pytest.fixture
def daemon(shared: RunningDaemon) -> RunningDaemon:
    (shared.home / "brainstem" / "voice.zip").unlink(missing_ok=True)
    return shared


def _import(daemon: RunningDaemon, content: bytes, password: str | None = "open") -> Answer:
    parts = [("file", '; filename="voice.zip"', content)]
    if password is not None:
        parts.append(("password", "", password.encode()))
    body = b"".join(
        f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + data + b"\r\n"
        for name, more, data in parts
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={EDGE}"}
    return daemon.post("/voice/import", body + f"--{EDGE}--\r\n".encode(), headers=headers)


@pytest.mark.parametrize("mode", ["voice", "twin"])
def test_a_switch_is_set_flipped_told_and_kept(make_daemon: Callable[..., RunningDaemon], mode: str) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    key = f"{mode}_mode"
    assert daemon.get(f"/{mode}").json() == {key: False}
    assert daemon.post(f"/{mode}/toggle", {"enabled": True}).json() == {key: True}
    assert daemon.post(f"/{mode}/toggle", {"enabled": True}).json() == {key: True}
    assert daemon.chat("hello")[key] is True
    assert f"{mode}_response" in daemon.chat("hello")
    assert daemon.get("/health").json()[key] is True
    daemon.stop()
    daemon.start()
    assert daemon.get(f"/{mode}/toggle").json() == {key: True}
    assert daemon.post(f"/{mode}/toggle").json() == {key: False}
    assert daemon.post(f"/{mode}", {}).json() == {key: True}
    assert daemon.post(f"/{mode}", {"enabled": False}).json() == {key: False}
    daemon.stop()
    daemon.start()
    assert daemon.get(f"/{mode}").json() == {key: False}
    assert f"{mode}_response" not in daemon.chat("hello")


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"enabled": "yes"}', 422), (b'{"enabled": 1}', 422), (b"[]", 400), (b"{", 400)]
)
def test_a_switch_takes_true_or_false(daemon: RunningDaemon, body: bytes, status: int) -> None:
    for path in ("/voice/toggle", "/twin/toggle"):
        answer = daemon.post(path, body)
        assert answer.status == status
        assert set(answer.json()) == {"error", "do", "code"}
    assert daemon.get("/voice").json() == {"voice_mode": False}


def test_settings_go_in_out_and_in_again(daemon: RunningDaemon) -> None:
    assert daemon.get("/voice/config").json() == {}
    settings = {"region": "westeurope", "key": "speech-secret", "voices": ["ä", 1, None]}
    assert daemon.post("/voice/config", {**settings, "_password": "open"}).json()["status"] == "ok"
    assert daemon.get("/voice/config?password=open").json() == settings
    exported = daemon.post("/voice/export", control=True)
    assert exported.headers["content-type"] == "application/zip"
    assert 'filename="voice.zip"' in exported.headers["content-disposition"]
    assert b"speech-secret" not in exported.body
    with pyzipper.AESZipFile(io.BytesIO(exported.body)) as archive:
        assert json.loads(archive.read("voice.json", pwd=b"open")) == settings
    daemon.post("/voice/config", {"other": 1, "_password": "changed"})
    assert _import(daemon, exported.body).json() == settings
    assert daemon.get("/voice/config?password=open").json() == settings
    file = daemon.home / "brainstem" / "voice.zip"
    assert file.stat().st_mode & 0o077 == 0


def test_a_wrong_password_is_told_and_changes_nothing(daemon: RunningDaemon) -> None:
    daemon.post("/voice/config", {"a": 1, "_password": "open"})
    exported = daemon.post("/voice/export", control=True).body
    for query in ("", "?password=", "?password=wrong", "?password=%ff%fe", "?password=%ed%a0%80"):
        answer = daemon.get(f"/voice/config{query}")
        assert answer.status == 403, query
        assert answer.json()["error"] == "voice.zip password incorrect"
    daemon.post("/voice/config", {"b": 2, "_password": "new"})
    for password in ("wrong", "", None):
        assert _import(daemon, exported, password).status == 403
    assert daemon.get("/voice/config?password=new").json() == {"b": 2}


def test_without_a_password_nothing_is_kept(daemon: RunningDaemon) -> None:
    for body in ({"key": "x"}, {"key": "x", "_password": ""}, {"key": "x", "_password": 5}):
        answer = daemon.post("/voice/config", body)
        assert answer.status == 400
        assert "password" in answer.json()["error"]
    assert not (daemon.home / "brainstem" / "voice.zip").exists()
    assert daemon.post("/voice/export", control=True).status == 404


@pytest.mark.parametrize("content", [b"", b"no zip"])
def test_a_file_that_is_none_is_refused_and_changes_nothing(daemon: RunningDaemon, content: bytes) -> None:
    daemon.post("/voice/config", {"a": 1, "_password": "open"})
    answer = _import(daemon, content)
    assert answer.status == 400, answer.body
    assert set(answer.json()) == {"error", "do", "code"}
    assert daemon.get("/voice/config?password=open").json() == {"a": 1}


def test_settings_too_large_to_be_read_again_are_not_written(daemon: RunningDaemon) -> None:
    answer = daemon.post("/voice/config", {"a": "x" * (2 << 20), "_password": "open"})
    assert answer.status == 400
    assert daemon.get("/voice/config").json() == {}


def test_guessing_passwords_is_slowed_down(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.post("/voice/config", {"a": 1, "_password": "open"})
    seen = [daemon.get("/voice/config?password=guess").status for _ in range(40)]
    assert set(seen) == {403, 429}
    assert daemon.get("/voice/config?password=open").status == 429


def test_a_password_from_the_settings_opens_it_for_the_operator(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1", VOICE_ZIP_PASSWORD="from the settings").start()
    assert daemon.post("/voice/config", {"a": 1}).status == 200
    assert daemon.get("/voice/config", control=True).json() == {"a": 1}
    assert daemon.get("/voice/config?password=other", control=True).status == 403
    assert daemon.get("/voice/config").status == 403, "it opens the file for the operator alone"
