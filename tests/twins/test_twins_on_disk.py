from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import BadFileError, BadRappidError, NoSuchTwinError, TwinConflictError
from twins.trust.quarantine import QuarantineList
from twins.workspace.bonds import events, record_bond, record_event
from twins.workspace.fork import fork
from twins.workspace.identity_file import BadNameError, Identity
from twins.workspace.listing import find, scan
from twins.workspace.new_twin_staging import staged_twin
from twins.workspace.souls import edit_soul, read_soul, soul_history
from twins.workspace.twin import HOST_KIND, KINDS, Twin, adopt, mint, rename
from twins.workspace.workspace import TwinLayout, Workspace, exclusive_lock

pytestmark = pytest.mark.forks

BORN = datetime(2026, 11, 21, 9, 40, tzinfo=UTC)
HEX64 = "c0ffee00" * 8
OLDER = {
    "schema": "rapp/1",
    "rappid": f"rappid:v2:organism:@kody-w/Rose:{'0d51' * 8}@github.com/kody-w/Rose",
    "kind": "ant-farm",
    "display_name": "Grandma Rose",
    "name": "rose",
    "parent_rappid": None,
    "github": "https://github.com/kody-w/Rose",
    "planted_at": "2026-05-09T00:00:00Z",
    "attestation": {"z": 1, "a": [1.5, None, "ä"], "big": 123456789012345678901234567890},
}


@pytest.fixture
def places(tmp_path: Path) -> TwinLayout:
    return TwinLayout(tmp_path)


@pytest.fixture
def gardener(places: TwinLayout) -> Twin:
    return mint(places, "Gärtner 🌱", owner="Rose M.", now=BORN)


def _lay(folder: Path, fields: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "rappid.json").write_text(json.dumps(fields))
    return folder


# Being born


def test_a_new_twin_is_a_whole_workspace(places: TwinLayout, gardener: Twin) -> None:
    assert gardener.name == "Gärtner 🌱"
    assert gardener.kind == "personal"
    assert gardener.rappid.strict
    assert (gardener.rappid.owner, gardener.rappid.slug) == ("rose-m", "gaertner")
    assert gardener.key == gardener.rappid.key
    assert gardener.identity.parent is None
    root = places.twins / gardener.key
    assert gardener.workspace.root == root
    assert sorted(path.name for path in root.iterdir()) == [
        ".brainstem_data",
        "agents",
        "bonds.json",
        "rappid.json",
        "services",
        "soul.md",
    ]
    assert Twin.read(root) == gardener
    assert "Gärtner 🌱" in read_soul(gardener.workspace)
    assert root.stat().st_mode & 0o077 == 0


def test_what_is_written_at_birth(gardener: Twin) -> None:
    root = gardener.workspace.root
    assert list(json.loads((root / "rappid.json").read_bytes()).items()) == [
        ("schema", "rapp/1"),
        ("rappid", gardener.rappid.text),
        ("parent_rappid", None),
        ("parent_repo", None),
        ("parent_commit", None),
        ("born_at", "2026-11-21T09:40:00Z"),
        ("kind", "personal"),
        ("name", "Gärtner 🌱"),
        ("incarnations", 0),
    ]
    assert [event["kind"] for event in events(gardener.workspace)] == ["birth"]


def test_same_time_and_entropy_give_the_same_bytes(tmp_path: Path) -> None:
    homes = [TwinLayout(tmp_path / "a"), TwinLayout(tmp_path / "b")]
    born = [mint(home, "Iris", owner="rose", now=BORN, entropy=bytes(16)) for home in homes]
    assert born[0].key == born[1].key
    for name in ("rappid.json", "soul.md", "bonds.json"):
        first, second = ((twin.workspace.root / name).read_bytes() for twin in born)
        assert first == second


@pytest.mark.parametrize("kind", [*KINDS, "doorman"])
def test_every_kind_has_a_soul_and_unknown_stays(places: TwinLayout, kind: str) -> None:
    twin = mint(places, "Iris", owner="rose", kind=kind)
    assert Twin.read(twin.workspace.root).kind == kind
    assert "You are Iris" in read_soul(twin.workspace)


def test_the_kinds_do_not_share_a_soul(places: TwinLayout) -> None:
    souls = {read_soul(mint(places, "Iris", owner="rose", kind=kind).workspace) for kind in KINDS}
    assert len(souls) == len(KINDS)


def test_a_soul_given_at_birth_is_the_soul(places: TwinLayout) -> None:
    assert read_soul(mint(places, "Iris", owner="rose", soul="Be kind.\n").workspace) == "Be kind.\n"


@pytest.mark.parametrize(
    ("name", "kind", "soul"),
    [
        ("", "personal", ""),
        ("  \t ", "personal", ""),
        ("x" * 121, "personal", ""),
        ("red\x1b[31m", "personal", ""),
        ("left\u202eright", "personal", ""),
        ("half\ud83d", "personal", ""),
        ("Iris", "../evil", ""),
        ("Iris", "", ""),
        ("Iris", "personal", "nul\0"),
        ("Iris", "personal", "half\ud83d"),
        ("Iris", "personal", "x" * (257 << 10)),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    places: TwinLayout, name: str, kind: str, soul: str
) -> None:
    with pytest.raises((BadNameError, BadFileError)):
        mint(places, name, owner="rose", kind=kind, soul=soul)
    assert not places.twins.exists()


def test_a_taken_place_is_not_touched(places: TwinLayout) -> None:
    first = mint(places, "Iris", owner="rose", entropy=bytes(16))
    with pytest.raises(TwinConflictError, match="already"):
        mint(places, "Other", owner="rose", entropy=bytes(16))
    assert find(places, first.key).name == "Iris"
    places.archive.mkdir()
    first.workspace.root.rename(places.archived(first.key))
    with pytest.raises(TwinConflictError, match="archived"):
        mint(places, "Other", owner="rose", entropy=bytes(16))
    assert scan(places).twins == []
    assert list(places.staging.iterdir()) == []


def test_many_are_born_at_once(places: TwinLayout) -> None:
    def give_birth() -> None:
        for number in range(5):
            mint(places, f"Twin {number}", owner="rose")

    threads = [threading.Thread(target=give_birth) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scan(places).twins) == 30
    assert list(places.staging.iterdir()) == []


def test_a_living_builder_is_not_swept(places: TwinLayout) -> None:
    with staged_twin(places, "abcdef01") as staged:
        (staged / "half").write_text("mine")
        mint(places, "Iris", owner="rose")
        assert (staged / "half").read_text() == "mine"


def test_twin_moved_into_place_while_leftovers_are_looked_for_breaks_no_birth(
    places: TwinLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    places.staging.mkdir(parents=True)
    (places.staging / "abcdef01.1").mkdir()
    opened = os.open

    def open_and_move(path: Any, *rest: Any, **more: Any) -> int:
        handle = opened(path, *rest, **more)
        if str(path).endswith("abcdef01.1"):
            Path(path).rename(places.home / "moved")
        return handle

    monkeypatch.setattr(os, "open", open_and_move)
    mint(places, "Iris", owner="rose")
    assert (places.home / "moved").is_dir()
    assert [twin.workspace.root.parent for twin in scan(places).twins] == [places.active("a").parent]


@pytest.mark.parametrize("key", ["", ".", "..", ".archive", "a/b", "a\\b", "nul\0", "x" * 201, "line\n"])
def test_names_that_are_no_folder_of_a_twin_lead_nowhere(places: TwinLayout, key: str) -> None:
    for path in (places.active, places.archived, places.tombstone):
        with pytest.raises(BadRappidError):
            path(key)


# The host's own


def test_the_host_gets_a_rappid_once(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path / "brainstem")
    workspace.create()
    first = adopt(workspace, "desk", owner="rose", host="desk", platform="linux", now=BORN)
    assert first.kind == HOST_KIND
    assert list(first.identity.fields)[-3:] == ["incarnations", "host", "platform"]
    assert adopt(workspace, "other", owner="iris", host="x", platform="y") == first
    assert [event["kind"] for event in events(workspace)] == ["adoption"]


def test_a_damaged_identity_is_not_replaced_by_a_new_one(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path / "brainstem")
    workspace.create()
    (workspace.root / "rappid.json").write_text("{")
    with pytest.raises(BadFileError):
        adopt(workspace, "desk", owner="rose", host="desk", platform="linux")
    assert (workspace.root / "rappid.json").read_text() == "{"


# rappid.json


def test_an_older_file_is_read_as_it_is(tmp_path: Path) -> None:
    twin = Twin.read(_lay(tmp_path / "0d51", OLDER))
    assert twin.rappid.text == OLDER["rappid"]
    assert (twin.name, twin.kind, twin.born_at) == ("Grandma Rose", "ant-farm", "2026-05-09T00:00:00Z")
    assert twin.key == "0d51"
    assert Twin.read(_lay(tmp_path / "u", {"rappid_uuid": OLDER["rappid"]})).name == "Rose"


def test_renaming_keeps_identity_folder_and_every_other_key(tmp_path: Path) -> None:
    root = _lay(tmp_path / "0d51", OLDER)
    renamed = rename(Twin.read(root), "  Oma   Rosa ")
    assert renamed.name == "Oma Rosa"
    assert Twin.read(root) == renamed
    written = json.loads((root / "rappid.json").read_bytes())
    assert list(written) == list(OLDER)
    assert written == {**OLDER, "name": "Oma Rosa", "display_name": "Oma Rosa"}
    with pytest.raises(BadNameError):
        rename(renamed, "two\nlines\x00")
    assert Twin.read(root).name == "Oma Rosa"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"rappid": 7}',
        b'{"rappid": "gardener"}',
        b'{"name": "nobody"}',
        b'{"rappid": "' + HEX64[:32].encode() + b'", "rappid": "' + b"a" * 32 + b'"}',
        b'{"rappid": "' + HEX64[:32].encode() + b'", "x": NaN}',
        b"[" * 100_000,
        b" " * ((1 << 20) + 1),
    ],
)
def test_a_damaged_file_says_which_one_it_is(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "0d51"
    folder.mkdir()
    (folder / "rappid.json").write_bytes(content)
    with pytest.raises(BadFileError, match=r"rappid\.json"):
        Twin.read(folder)


def test_links_and_pipes_in_its_place_are_not_read(tmp_path: Path) -> None:
    real = _lay(tmp_path / "real", OLDER)
    linked, piped = tmp_path / "linked", tmp_path / "piped"
    linked.mkdir()
    piped.mkdir()
    (linked / "rappid.json").symlink_to(real / "rappid.json")
    os.mkfifo(piped / "rappid.json")
    for folder in (linked, piped):
        with pytest.raises(BadFileError):
            Twin.read(folder)
    with pytest.raises(NoSuchTwinError):
        Twin.read(tmp_path / "nowhere")


def test_what_is_shown_of_a_hostile_file_is_one_clean_line(tmp_path: Path) -> None:
    fields = {"rappid": HEX64[:32], "name": "\x1b[2J\u202e\nevil" + "x" * 500, "kind": "a\nb", "born_at": 7}
    twin = Twin.read(_lay(tmp_path / "x", fields))
    assert len(twin.name) <= 120
    assert not {"\x1b", "\n", "\u202e"} & set(twin.name + twin.kind)
    assert twin.born_at == ""


_json = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=12), _json, max_size=6), st.integers(0, 6))
def test_keys_of_others_and_their_order_survive(extra: dict[str, Any], at: int) -> None:
    items = [(key, value) for key, value in extra.items() if key not in ("rappid", "rappid_uuid")]
    items.insert(at, ("rappid", f"rappid:@rose/iris:{HEX64}"))
    identity = Identity.decode(json.dumps(dict(items)).encode())
    again = Identity.decode(identity.changed(name="New").encode())
    assert [key for key, _ in items if key != "name"] == [key for key in again.fields if key != "name"]
    assert {**dict(items), "name": "New"} == again.fields
    assert again.name == "New" or "display_name" in extra


@pytest.mark.parametrize("write", [record_bond, lambda workspace: record_event(workspace, "dock")])
def test_a_second_writer_waits_for_the_first(gardener: Twin, write: Callable[[Workspace], object]) -> None:
    with exclusive_lock(gardener.workspace.root):
        thread = threading.Thread(target=write, args=(gardener.workspace,))
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        rename(gardener, "Iris")
        assert len(events(gardener.workspace)) == 1
    thread.join()
    assert len(events(gardener.workspace)) == 2
    assert Twin.read(gardener.workspace.root).name == "Iris"


@pytest.mark.parametrize(
    "write",
    [
        lambda twin: edit_soul(twin.workspace, "x"),
        lambda twin: record_event(twin.workspace, "dock"),
        lambda twin: record_bond(twin.workspace),
        lambda twin: rename(twin, "x"),
    ],
)
def test_waiting_for_archived_twin_writes_nothing(
    places: TwinLayout, gardener: Twin, write: Callable[[Twin], object]
) -> None:
    root, failed = gardener.workspace.root, []

    def attempt() -> None:
        try:
            write(gardener)
        except NoSuchTwinError as problem:
            failed.append(problem)

    with exclusive_lock(root):
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join(0.1)
        places.archive.mkdir()
        root.rename(places.archived(gardener.key))
    thread.join()
    assert len(failed) == 1
    assert not root.exists()
    with pytest.raises(NoSuchTwinError):
        write(gardener)
    assert not root.exists()


# Dying in between. The child dies before its n-th touch of the disk, for every n.


def _deaths(act: Callable[[], object], prepare: Callable[[], object]) -> Iterator[int]:
    """Runs ``act`` in children that die at each step in turn; yields after each death, until one lives."""
    for step in range(1, 400):
        prepare()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sys.dont_write_bytecode = True  # what is compiled on the way is no step
                sys.addaudithook(_death_at(step))
                act()
                code = 0
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, 9), f"step {step} failed by itself"
        if code == 0:
            assert step > 5
            return
        yield step
    raise AssertionError("it never came to an end")


def _death_at(step: int) -> Callable[[str, object], None]:
    left = step

    def hook(event: str, _: object) -> None:
        nonlocal left
        if event == "open" or event.startswith(("os.", "shutil.")):
            left -= 1
            if left == 0:
                os._exit(9)

    return hook


def _only_whole_ones(places: TwinLayout) -> list[Twin]:
    found = scan(places)
    assert found.unreadable == []
    if places.twins.exists():
        visible = {path.name for path in places.twins.iterdir() if not path.name.startswith(".")}
        assert visible == {twin.key for twin in found.twins}
    for twin in found.twins:
        assert read_soul(twin.workspace)
        assert events(twin.workspace)[0]["kind"] == "birth"
        assert twin.workspace.agents.is_dir()
    return found.twins


def test_dying_at_birth_leaves_no_half_twin(places: TwinLayout) -> None:
    seen = set()
    for _ in _deaths(
        lambda: mint(places, "Iris", owner="rose", entropy=bytes(16)),
        lambda: shutil.rmtree(places.twins, ignore_errors=True),
    ):
        seen.add(len(_only_whole_ones(places)))
        mint(places, "Next", owner="rose")
        assert list(places.staging.iterdir()) == []
    assert seen == {0, 1}


def test_dying_in_a_fork_leaves_no_half_twin(places: TwinLayout, gardener: Twin) -> None:
    (gardener.workspace.agents / "dice_agent.py").write_text("x = 1\n")
    (gardener.workspace.data / "shared_memories").mkdir()
    (gardener.workspace.data / "shared_memories" / "memory.json").write_text("{}")
    held = QuarantineList(places.home / "held.json", places.home)

    def forget() -> None:
        for twin in scan(places).twins:
            if twin.key != gardener.key:
                shutil.rmtree(twin.workspace.root)

    seen = set()
    for _ in _deaths(lambda: fork(places, gardener, quarantine=held, owner="rose", name="Iris"), forget):
        forks = [twin for twin in _only_whole_ones(places) if twin.key != gardener.key]
        seen.add(len(forks))
        for twin in forks:
            assert (twin.workspace.agents / "dice_agent.py").read_text() == "x = 1\n"
            assert (twin.workspace.data / "shared_memories" / "memory.json").read_text() == "{}"
    assert seen == {0, 1}
    assert Twin.read(gardener.workspace.root) == gardener


def test_dying_while_renaming_leaves_the_old_name_or_the_new(places: TwinLayout, gardener: Twin) -> None:
    for _ in _deaths(lambda: rename(gardener, "Iris"), lambda: rename(gardener, "Gärtner")):
        assert Twin.read(gardener.workspace.root).name in ("Gärtner", "Iris")
    assert find(places, "Iris").rappid == gardener.rappid


def test_dying_in_a_soul_edit_loses_no_text(gardener: Twin) -> None:
    workspace = gardener.workspace

    def prepare() -> None:
        shutil.rmtree(workspace.data / "soul_history", ignore_errors=True)
        workspace.soul.write_text("the old one")

    seen = set()
    for _ in _deaths(lambda: edit_soul(workspace, "the new one", reason="calmer"), prepare):
        kept = [version.path.read_text() for version in soul_history(workspace)]
        assert kept in ([], ["the old one"])
        assert "the old one" in [read_soul(workspace), *kept]
        seen.add(read_soul(workspace))
    assert seen == {"the old one", "the new one"}
    assert read_soul(workspace) == "the new one"


def test_dying_while_a_bond_is_recorded_damages_nothing(gardener: Twin) -> None:
    root = gardener.workspace.root
    before = {name: (root / name).read_bytes() for name in ("rappid.json", "bonds.json")}

    def prepare() -> None:
        for name, content in before.items():
            (root / name).write_bytes(content)

    seen = set()
    for _ in _deaths(lambda: record_bond(gardener.workspace), prepare):
        bonds = [event for event in events(gardener.workspace) if event["kind"] == "bond"]
        seen.add((Twin.read(root).identity.incarnations, len(bonds)))
    assert seen == {(0, 0), (1, 0)}
    assert Twin.read(root).identity.incarnations == len(events(gardener.workspace)) - 1 == 1
