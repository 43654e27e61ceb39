from __future__ import annotations

import copy
import io
import json
import os
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import orjson
import pytest

from agents.slosh.context import Context
from agents.slosh.layers import Layers
from agents.storage.storage_manager import StorageManager, storage_for

GUID = "aaaaaaaa-0000-4000-8000-00000000000a"


@pytest.fixture
def storage(tmp_path: Path) -> StorageManager:
    return storage_for(tmp_path / "data")


def test_both_ways_of_naming_a_file_reach_the_same_one(storage: StorageManager) -> None:
    assert storage.write_file("notes/today.txt", "path") is True
    assert storage.read_file("notes", "today.txt") == "path"
    assert storage.write_file("notes", "today.txt", "pair") is True
    assert storage.read_file("notes/today.txt") == "pair"
    assert storage.file_exists("notes/today.txt") is storage.file_exists("notes", "today.txt") is True
    assert storage.delete_file("notes", "today.txt") is True
    assert storage.delete_file("notes/today.txt") is False
    assert storage.file_exists("notes/today.txt") is False
    assert storage.read_file("notes/today.txt") is storage.read_file("notes", "today.txt") is None


def test_keywords_of_both_kinds(storage: StorageManager) -> None:
    assert storage.write_file(directory_name="d", file_name="f.txt", content="1") is True
    assert storage.read_file(directory_name="d", file_name="f.txt") == "1"
    assert storage.read_file("d", file_name="f.txt") == "1"
    assert storage.read_file(path="d/f.txt") == storage.read_file(file_path="d/f.txt") == "1"
    assert storage.write_file("d/f.txt", content="2") is True
    assert storage.write_file("d", "g.txt", content="3") is True
    assert storage.write_file(path="h.txt", content="4") is True
    assert [storage.read_file(name) for name in ("d/f.txt", "d/g.txt", "h.txt")] == ["2", "3", "4"]
    assert storage.list_files(directory_name="d") == ["f.txt", "g.txt"]


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.read_file(),
        lambda s: s.read_file("a", "b", "c"),
        lambda s: s.read_file("a", colour="red"),
        lambda s: s.write_file(),
        lambda s: s.write_file("a"),
        lambda s: s.write_file("a", "b", "c", "d"),
    ],
)
def test_a_call_of_no_known_shape_is_a_type_error(storage: StorageManager, call: Any) -> None:
    with pytest.raises(TypeError):
        call(storage)


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        ("text é", "text é".encode()),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"x"), b"x"),
        (io.BytesIO(b"from a file"), b"from a file"),
        (io.StringIO("from a file"), b"from a file"),
        ("", b""),
        ("lone \ud800", b"lone ?"),
    ],
)
def test_contents_of_every_kind(storage: StorageManager, content: Any, stored: bytes) -> None:
    assert storage.write_file("d", "f.bin", content) is True
    assert storage.read_file_binary("d", "f.bin") == stored
    assert storage.read_file_binary("d/f.bin") == stored


def test_values_are_written_as_json_and_nothing_is_refused(storage: StorageManager) -> None:
    assert storage.write_file("d", "f.json", {"a": [1]}) is True
    assert json.loads(storage.read_file("d", "f.json") or "") == {"a": [1]}
    assert storage.write_file("d", "f.json", None) is False


@pytest.mark.parametrize(
    "suffix", [".pptx", ".docx", ".xlsx", ".pdf", ".zip", ".jpg", ".png", ".gif", ".jpeg", ".webp", ".PDF"]
)
def test_binary_suffixes_are_read_as_bytes(storage: StorageManager, suffix: str) -> None:
    storage.write_file("d", f"f{suffix}", b"\x89binary")
    assert storage.read_file("d", f"f{suffix}") == b"\x89binary"


def test_other_files_are_read_as_text_whatever_is_in_them(storage: StorageManager) -> None:
    storage.write_file("f.txt", b"caf\xe9")
    assert storage.read_file("f.txt") == "caf\ufffd"


def test_listed_names_are_strings_that_know_what_they_are(storage: StorageManager) -> None:
    storage.write_file("d", "b.txt", "x")
    storage.write_file("d/sub", "c.txt", "x")
    listed = storage.list_files("d")
    assert listed == ["b.txt", "sub"]
    assert [(entry.name, entry.is_directory) for entry in listed] == [("b.txt", False), ("sub", True)]
    assert listed[0].endswith(".txt")
    assert json.dumps(listed) == '["b.txt", "sub"]'
    assert orjson.dumps(listed) == b'["b.txt","sub"]'
    for same in (copy.copy(listed[1]), pickle.loads(pickle.dumps(listed[1]))):
        assert (same, same.is_directory) == ("sub", True)
    assert [entry.name for entry in storage.list_files()] == ["d"]
    assert storage.list_files("", False) == ["d"]


def test_a_missing_folder_is_empty_and_made_when_asked(storage: StorageManager, tmp_path: Path) -> None:
    assert storage.list_files("inbox") == []
    assert not (tmp_path / "data").exists()
    assert storage.list_files("inbox", auto_create=True) == []
    assert (tmp_path / "data" / "inbox").is_dir()
    assert storage.ensure_directory_exists("deep/er") is True
    assert storage.ensure_directory_exists("deep/er") is True
    assert (tmp_path / "data" / "deep" / "er").is_dir()
    storage.write_file("deep/file", "x")
    assert storage.ensure_directory_exists("deep/file") is False


def test_a_download_url_names_an_existing_file(storage: StorageManager, tmp_path: Path) -> None:
    storage.write_file("out put", "ä b.txt", "x")
    url = storage.generate_download_url("out put", "ä b.txt", expiry_minutes=5)
    assert url is not None
    assert Path(unquote(urlparse(url).path)) == tmp_path / "data" / "out put" / "ä b.txt"
    assert url == storage.generate_download_url("out put/ä b.txt")
    assert storage.generate_download_url("out put", "none.txt") is None
    assert storage.generate_download_url("out put") is None


def test_properties(storage: StorageManager, tmp_path: Path) -> None:
    storage.write_file("d", "page.html", "12345")
    os.utime(tmp_path / "data" / "d" / "page.html", (1_000_000_000, 1_000_000_000))
    found = storage.get_file_properties("d", "page.html")
    assert found is not None
    assert (found["name"], found["size"], found["content_type"]) == ("page.html", 5, "text/html")
    assert datetime.fromisoformat(found["last_modified"]) == datetime.fromtimestamp(1_000_000_000, UTC)
    assert found == storage.get_file_properties("d/page.html")
    storage.write_file("d", "page.html", "54321")
    changed = storage.get_file_properties("d", "page.html")
    assert changed is not None
    assert changed["etag"] != found["etag"]
    assert json.dumps(changed)
    assert storage.get_file_properties("d", "none.html") is None
    assert storage.get_file_properties("d", "x.unknownkind") is None


def test_json_files(storage: StorageManager) -> None:
    assert storage.read_json("state/x.json") == {}
    assert storage.write_json([1, {"a": "é"}], "state/x.json") is True
    assert storage.read_json("state/x.json") == [1, {"a": "é"}]
    assert storage.write_json({"k": 1}, file_path="state/x.json") is True
    assert storage.update_json(lambda value: {**value, "l": 2}, "state/x.json") is True
    assert storage.read_json(file_path="state/x.json") == {"k": 1, "l": 2}
    storage.write_file("state/x.json", "not json")
    assert storage.read_json("state/x.json") == {}


def test_what_json_has_not_is_written_as_text(storage: StorageManager) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    value = {"when": moment, "where": Path("/a"), 5: 2**70, "odd": "\ud800"}
    assert storage.write_json(value) is True
    assert storage.read_json() == {
        "when": str(moment),
        "where": "/a",
        "5": 2**70,
        "odd": "\ud800",
    }


def test_what_cannot_be_written_leaves_the_old_file(storage: StorageManager) -> None:
    storage.write_json({"old": 1})
    circle: dict[str, Any] = {}
    circle["self"] = circle
    assert storage.write_json(circle) is False
    assert storage.write_json({(1, 2): 3}) is False
    assert storage.read_json() == {"old": 1}
    assert [entry.name for entry in storage.list_files("shared_memories")] == ["memory.json"]


def test_a_context_is_written_with_everything_in_it(storage: StorageManager) -> None:
    assert storage.write_json(Context(Layers("show my latest", 0.0, None, None))) is True
    assert storage.read_json()["query_signals"]["specificity"] == "medium"


def test_the_published_attributes(storage: StorageManager) -> None:
    assert storage.DEFAULT_MARKER_GUID == "c0p110t0-aaaa-bbbb-cccc-123456789abc"
    assert (storage.shared_memory_path, storage.default_file_name) == ("shared_memories", "memory.json")
    assert (storage.current_guid, storage.current_memory_path) == (None, "shared_memories")
    assert storage.refresh_credentials() is True
    storage.write_json({"m": 1})
    assert json.loads(storage.read_file(storage.current_memory_path, storage.default_file_name) or "") == {
        "m": 1
    }


def test_files_are_for_their_owner_only(storage: StorageManager, tmp_path: Path) -> None:
    storage.set_memory_context(GUID)
    storage.write_json({"m": 1})
    memory = tmp_path / "data" / "memory" / GUID / "user_memory.json"
    assert memory.stat().st_mode & 0o077 == 0
    assert memory.parent.stat().st_mode & 0o077 == 0
