"""Services: what they may answer, and what happens when they change or fail."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.runtimes.python.worker.service_files import (
    ServiceFailedError,
    ServiceReply,
    Services,
    inspect_service,
    reply_of,
)

KANBAN = '''
"""A board."""
name = "kanban"
TASKS = []


def handle(method, path, body):
    if method == "POST" and path == "tasks":
        TASKS.append(body["title"])
        return {"status": "ok", "file": __file__}, 201
    if path == "fail":
        raise KeyError("title")
    return {"columns": TASKS, "path": path, "body": body}, 200
'''


@pytest.mark.parametrize(
    ("result", "status", "kind", "body"),
    [
        (({"a": 1}, 201), 201, "application/json", b'{"a":1}'),
        (({"a": 1}, 404, {"X-Why": 7}), 404, "application/json", b'{"a":1}'),
        ((b"\x89PNG", 200, {"content-type": "image/png"}), 200, "image/png", b"\x89PNG"),
        ((b"raw", 200), 200, "application/octet-stream", b"raw"),
        (("<b>hi</b>", 200, [("Content-Type", "text/html")]), 200, "text/html", b"<b>hi</b>"),
        ("hi", 200, "text/plain; charset=utf-8", b"hi"),
        ({"a": 1}, 200, "application/json", b'{"a":1}'),
        (([1, 2], 200, None), 200, "application/json", b"[1,2]"),
    ],
)
def test_every_known_form_of_an_answer(result: Any, status: int, kind: str, body: bytes) -> None:
    reply = reply_of(result)
    headers = {name.lower(): value for name, value in reply.headers.items()}
    assert (reply.status, headers["content-type"], reply.body) == (status, kind, body)
    assert len(headers) == len(reply.headers)
    assert ServiceReply.from_json(orjson.loads(orjson.dumps(reply.as_json()))) == reply


@pytest.mark.parametrize(
    "result", [(), ({}, "200"), ({}, 99), ({}, True), ({}, 200, {}, 1), ({}, 200, {"A": "b\r\nC: d"})]
)
def test_other_forms_are_faults(result: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        reply_of(result)


def answer(
    services: Services, path: Path, method: str = "GET", rest: str = "", body: Any = None
) -> tuple[int, Any]:
    content = path.read_bytes() if path.exists() else b""
    reply = services.handle(path, hashlib.sha256(content).hexdigest(), method, rest, body)
    return reply.status, orjson.loads(reply.body)


def test_a_service_keeps_its_state_until_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "board_service.py"
    path.write_text(KANBAN)
    services = Services()
    assert answer(services, path, "post", "/tasks/", {"title": "water"}) == (
        201,
        {"status": "ok", "file": str(path)},
    )
    assert answer(services, path, rest="all", body=[]) == (
        200,
        {"columns": ["water"], "path": "all", "body": {}},
    )
    replaced = tmp_path / "new"
    replaced.write_text(KANBAN.replace("TASKS = []", "TASKS = ['fresh']"))
    replaced.replace(path)
    assert answer(services, path)[1]["columns"] == ["fresh"]


def test_what_a_service_raises_is_a_500(tmp_path: Path) -> None:
    path = tmp_path / "board_service.py"
    path.write_text(KANBAN)
    assert answer(Services(), path, rest="fail") == (500, {"error": "'title'"})
    path.write_text("async def handle(method, path, body):\n    return None, 7\n")
    assert answer(Services(), path) == (500, {"error": "7 is no HTTP status"})


def test_faulty_file_is_located_and_former_version_works(tmp_path: Path) -> None:
    path = tmp_path / "board_service.py"
    path.write_text(KANBAN)
    services = Services()
    answer(services, path)
    replaced = tmp_path / "new"
    replaced.write_text("import os\ndef handle(:\n")
    replaced.replace(path)
    assert answer(services, path)[0] == 200
    with pytest.raises(ServiceFailedError, match=r"board_service\.py line 2: invalid syntax"):
        answer(Services(), path)
    replaced.write_text("handle = 7\n")
    replaced.replace(path)
    with pytest.raises(
        ServiceFailedError, match=r"board_service\.py: it has no handle\(method, path, body\)"
    ):
        answer(Services(), path)


def test_only_the_bytes_that_were_checked_are_run(tmp_path: Path) -> None:
    path = tmp_path / "board_service.py"
    path.write_text(f"open({str(tmp_path / 'RAN')!r}, 'w')\n")
    with pytest.raises(ServiceFailedError, match="changed"):
        Services().handle(path, hashlib.sha256(KANBAN.encode()).hexdigest(), "GET", "", None)
    assert not (tmp_path / "RAN").exists()


def test_a_service_that_went_away(tmp_path: Path) -> None:
    path = tmp_path / "board_service.py"
    path.write_text(KANBAN)
    services = Services()
    answer(services, path)
    path.unlink()
    with pytest.raises(ServiceFailedError, match="cannot be read"):
        answer(services, path)


def test_the_name_is_read_without_running_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x_service.py"
    path.write_text("name = 'y'\nraise SystemError\n")
    assert inspect_service(path)[0] == "y"
    path.write_text("name = compute()\n")
    assert inspect_service(path)[0] == "x"
    path.write_text("def handle(:\n")
    assert inspect_service(path, unless="y")[0] == "y", "a typo does not rename it"
    assert inspect_service(tmp_path / "heart_organ.py")[0] == "heart"
