from __future__ import annotations

import json
import re
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.runtimes.python.worker.invoke import perform
from agents.storage.memory import DEFAULT_MARKER_GUID, memory_reader, partition
from agents.storage.storage_manager import storage_for
from envelopes.default_user import DEFAULT_USER_GUID

ANN = "aaaaaaaa-0000-4000-8000-00000000000a"
BOB = "bbbbbbbb-0000-4000-8000-00000000000b"
REMEMBERED = {"1": {"message": "red apple"}}


def test_the_marker_is_the_one_of_the_wire() -> None:
    assert DEFAULT_MARKER_GUID == DEFAULT_USER_GUID == "c0p110t0-aaaa-bbbb-cccc-123456789abc"


@pytest.mark.parametrize("guid", [None, "", DEFAULT_MARKER_GUID, 0, []])
def test_nobody_in_particular_means_the_shared_memory(guid: Any, tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.set_memory_context(ANN)
    assert storage.set_memory_context(guid) is True
    assert (storage.current_guid, storage.current_memory_path) == (None, "shared_memories")
    assert storage.write_json(REMEMBERED) is True
    assert json.loads((tmp_path / "shared_memories" / "memory.json").read_bytes()) == REMEMBERED


@pytest.mark.parametrize("guid", [ANN, ANN.upper(), uuid.UUID(ANN)])
def test_a_user_has_a_file_of_their_own(guid: Any, tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    assert storage.set_memory_context(guid) is True
    file = tmp_path / "memory" / str(guid) / "user_memory.json"
    assert json.loads(file.read_bytes()) == {}
    assert (storage.current_guid, storage.current_memory_path) == (str(guid), f"memory/{guid}")
    assert storage.write_json(REMEMBERED) is True
    assert json.loads(file.read_bytes()) == REMEMBERED
    assert not (tmp_path / "shared_memories").exists()
    assert storage.set_memory_context(guid) is True
    assert storage.read_json() == REMEMBERED  # choosing again does not begin again


@pytest.mark.parametrize(
    "guid",
    [
        "ann",
        "../../etc",
        f"{ANN}/../{BOB}",
        f"{ANN}\n",
        f" {ANN}",
        ANN.replace("-", ""),
        f"{{{ANN}}}",
        ANN[:-1],
        "gaaaaaaa-0000-4000-8000-00000000000a",
        "c0p110t0-aaaa-bbbb-cccc-123456789abd",
        "１aaaaaaa-0000-4000-8000-00000000000a",
        5,
        ["x"],
        {"guid": ANN},
    ],
)
def test_what_is_no_guid_is_the_shared_memory_and_said_so(guid: Any, tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.set_memory_context(ANN)
    assert storage.set_memory_context(guid) is False
    assert (storage.current_guid, storage.current_memory_path) == (None, "shared_memories")
    assert sorted(path.name for path in (tmp_path / "memory").iterdir()) == [ANN]


@example(f"{ANN}/../../keys")
@example(f"{ANN}\n")
@example(f"../{ANN}")
@given(st.one_of(st.text(), st.uuids().map(str), st.from_regex(r"[0-9a-fA-F-]{36}"), st.integers()))
def test_only_hex_of_the_right_shape_ever_becomes_a_path(guid: Any) -> None:
    found = partition(guid)
    if found.guid is None:
        assert found.parts == ("shared_memories", "memory.json")
    else:
        assert found.guid == guid
        assert uuid.UUID(found.guid)
        assert re.fullmatch(r"[0-9a-fA-F-]{36}", found.guid)
        assert found.parts == ("memory", guid, "user_memory.json")
        assert found.accepted is True


@given(st.uuids(), st.uuids())
def test_two_users_never_share_a_file(one: uuid.UUID, other: uuid.UUID) -> None:
    assert (partition(one).parts == partition(other).parts) == (one == other)


def test_two_managers_do_not_touch_each_others_context(tmp_path: Path) -> None:
    ann, bob, shared = (storage_for(tmp_path) for _ in range(3))
    ann.set_memory_context(ANN)
    bob.set_memory_context(BOB)
    ann.write_json({"a": {"message": "ann's"}})
    bob.write_json({"b": {"message": "bob's"}})
    shared.write_json({"s": {"message": "everyone's"}})
    assert list(ann.read_json()) == ["a"]
    assert list(bob.read_json()) == ["b"]
    assert list(shared.read_json()) == ["s"]
    assert ann.current_guid == ANN


@pytest.mark.parametrize("content", [b"not json", b"[1, 2]", b'"text"', b"\xff\xfe", b'{"1": '])
def test_unreadable_user_memory_is_not_the_shared_one(content: bytes, tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.write_json({"s": {"message": "everyone's"}})
    storage.set_memory_context(ANN)
    file = tmp_path / "memory" / ANN / "user_memory.json"
    file.write_bytes(content)
    assert storage.read_json() == {}
    assert storage.write_json(REMEMBERED) is True
    assert storage.read_json() == REMEMBERED
    assert (file.parent / "user_memory.json.damaged").read_bytes() == content
    storage.set_memory_context(None)
    assert list(storage.read_json()) == ["s"]


def test_an_update_of_damaged_memories_keeps_the_damaged_ones(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.write_json(REMEMBERED)
    file = tmp_path / "shared_memories" / "memory.json"
    file.write_bytes(b'{"1": {"message": "red ap')
    assert storage.update_json(lambda memories: memories.update(new=1)) is True
    assert storage.read_json() == {"new": 1}
    assert (file.parent / "memory.json.damaged").read_bytes() == b'{"1": {"message": "red ap'


def test_unwritable_user_memory_is_not_the_shared_one(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file where the folder should be")
    storage = storage_for(tmp_path)
    storage.write_json({"s": 1})
    assert storage.set_memory_context(ANN) is True
    assert storage.current_guid == ANN
    assert storage.read_json() == {}
    assert storage.write_json(REMEMBERED) is False
    assert storage.update_json(lambda memories: memories.update(REMEMBERED)) is False
    assert storage_for(tmp_path).read_json() == {"s": 1}


@pytest.mark.parametrize("value", [[1], "text", None, 5])
def test_memories_are_an_object(value: Any, tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.write_json(REMEMBERED)
    assert storage.write_json(value) is False
    assert value is None or storage.update_json(lambda memories: value) is False
    assert storage.read_json() == REMEMBERED


def test_memories_written_elsewhere_are_read(tmp_path: Path) -> None:
    storage = storage_for(tmp_path)
    storage.set_memory_context(ANN)
    file = tmp_path / "memory" / ANN / "user_memory.json"
    file.write_bytes(b'\xef\xbb\xbf{"1": {"message": "\\ud800", "importance": NaN}}')
    assert storage.read_json()["1"]["message"] == "\ud800"
    assert storage.update_json(lambda memories: memories.update(two=2)) is True
    assert storage.read_json()["1"]["message"] == "\ud800"


def test_sloshing_reads_the_callers_memory(tmp_path: Path) -> None:
    for guid, whose in ((ANN, "ann"), (BOB, "bob"), (None, "everyone")):
        storage = storage_for(tmp_path)
        storage.set_memory_context(guid)
        storage.write_json({"1": {"message": f"red apple of {whose}", "theme": "fact"}})

    class Recalls:
        def perform(self, **kwargs: Any) -> Any:
            return self.context.memory[0].message  # type: ignore[attr-defined]

    read = memory_reader(tmp_path)
    for guid, whose in ((ANN, "ann"), (BOB, "bob"), (DEFAULT_MARKER_GUID, "everyone")):
        performed = perform(Recalls(), {"query": "the red apple"}, user_guid=guid, memory_reader=read)
        assert performed.result == f"red apple of {whose}"
    assert read("cccccccc-0000-4000-8000-00000000000c") == {}
