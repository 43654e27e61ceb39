from __future__ import annotations

import hashlib
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.rapps.rapplication import BadRapplicationError, read_rapplication

AGENT = b"class X:\n    def perform(self, **kwargs):\n        return ''\n"


def bundle(**manifest: Any) -> dict[str, bytes]:
    return {
        "manifest.json": json.dumps(
            {"schema": "rapp-application/1.0", "id": "notes", "name": "Notes", "version": "1.0.0", **manifest}
        ).encode(),
        "singleton/notes_agent.py": AGENT,
        "service/notes_service.py": b"name = 'notes'\n",
        "ui/index.html": b"<p>hello",
        "ui/parts/list.js": b"",
        "README.md": b"# Notes",
        "eggs/notes.egg": b"egg",
    }


def folder(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = root / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root / "notes"


def zipped(root: Path, files: dict[str, bytes] | list[tuple[str | zipfile.ZipInfo, bytes]]) -> Path:
    path = root / "notes.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            archive.writestr(name, content)
    return path


PLACED = {
    "agents/notes_agent.py",
    "services/notes_service.py",
    "rapps/notes/manifest.json",
    "rapps/notes/ui/index.html",
    "rapps/notes/ui/parts/list.js",
}


@pytest.mark.parametrize("form", ["folder", "zip", "zip with a folder"])
def test_a_bundle_becomes_files_for_the_workspace(tmp_path: Path, form: str) -> None:
    files = bundle(description="Keeps notes", category="workspace", author="ada")
    if form == "folder":
        path = folder(tmp_path, files)
    else:
        outer = "notes-1.0/" if form.endswith("folder") else ""
        path = zipped(tmp_path, {outer + name: content for name, content in files.items()})
    rapp = read_rapplication(path)
    assert (rapp.id, rapp.name, rapp.version, rapp.description, rapp.category) == (
        "notes",
        "Notes",
        "1.0.0",
        "Keeps notes",
        "workspace",
    )
    assert rapp.manifest["author"] == "ada"
    assert {file.path for file in rapp.files} == PLACED
    assert next(file.content for file in rapp.files if file.path == "agents/notes_agent.py") == AGENT
    assert set(rapp.left_out) == {"README.md", "eggs/notes.egg"}
    assert rapp.has_ui


def test_an_agent_is_enough(tmp_path: Path) -> None:
    files = {name: bundle()[name] for name in ("manifest.json", "singleton/notes_agent.py")}
    rapp = read_rapplication(folder(tmp_path, files))
    assert not rapp.has_ui


def test_hidden_litter_is_passed_over(tmp_path: Path) -> None:
    files = {**bundle(), ".DS_Store": b"x", "__MACOSX/ui/._index.html": b"x", "ui/__pycache__/x.pyc": b"x"}
    assert {file.path for file in read_rapplication(zipped(tmp_path, files)).files} == PLACED
    assert {file.path for file in read_rapplication(folder(tmp_path, files)).files} == PLACED


@pytest.mark.parametrize(
    "ident", ["Notes", "1notes", "no-tes", "no/tes", "../x", "", None, 7, "x" * 65, "n\n"]
)
def test_an_id_of_another_form_is_refused(tmp_path: Path, ident: Any) -> None:
    with pytest.raises(BadRapplicationError, match="is not a rapplication's id"):
        read_rapplication(folder(tmp_path, bundle(id=ident)))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"manifest.json": None}, "no manifest.json"),
        ({"manifest.json": b"{"}, "is not JSON"),
        ({"manifest.json": b"[]"}, "is not of schema"),
        ({"manifest.json": b'{"schema": "rapp-application/2.0", "id": "notes"}'}, "is not of schema"),
        ({"singleton/notes_agent.py": None}, "A rapplication without an agent is refused."),
        ({"singleton/notes_agent.py": b"def ("}, "notes_agent.py line 1: "),
        ({"singleton/notes_agent.py": b"x = 1\0"}, "notes_agent.py line 1: "),
        ({"service/more_service.py": b""}, "more than one service"),
        ({"agents/notes_agent.py": AGENT}, "Two files of the bundle would become agents/notes_agent.py"),
        ({"singleton/notes_agent.py": AGENT + b"#" * (200 << 10)}, "bytes; 204800 are allowed"),
        ({"ui/index.html": b" " * (501 << 10)}, "bytes; 512000 are allowed"),
        ({"eggs/notes.egg": b"x" * (6 << 20)}, "more than 500 files or 5 MB"),
        ({f"ui/{number}.txt": b"" for number in range(501)}, "more than 500 files or 5 MB"),
    ],
)
@pytest.mark.parametrize("make", [folder, zipped])
def test_a_wrong_bundle_is_refused_in_words(
    tmp_path: Path, make: Any, change: dict[str, Any], told: str
) -> None:
    files = {name: content for name, content in {**bundle(), **change}.items() if content is not None}
    with pytest.raises(BadRapplicationError, match=told) as refused:
        read_rapplication(make(tmp_path, files))
    assert refused.value.do
    assert refused.value.exit_code == 5


@pytest.mark.parametrize("key", ["agent", "service", "ui"])
def test_what_the_manifest_names_has_to_be_there(tmp_path: Path, key: str) -> None:
    with pytest.raises(BadRapplicationError, match=f"manifest's {key} 'gone' is not in the bundle"):
        read_rapplication(folder(tmp_path, bundle(**{key: "gone"})))


def test_the_agents_hash_has_to_match(tmp_path: Path) -> None:
    right = hashlib.sha256(AGENT).hexdigest()
    assert read_rapplication(folder(tmp_path, bundle(singleton_sha256=right)))
    assert read_rapplication(folder(tmp_path, bundle(singleton_sha256=f"sha256:{right.upper()}")))
    windows = {**bundle(singleton_sha256=right), "singleton/notes_agent.py": AGENT.replace(b"\n", b"\r\n")}
    assert read_rapplication(folder(tmp_path, windows))
    for wrong in ("0" * 64, "0"):
        with pytest.raises(BadRapplicationError, match="is not the one"):
            read_rapplication(folder(tmp_path, bundle(singleton_sha256=wrong)))


@pytest.mark.parametrize(
    "name",
    [
        "../evil_agent.py",
        "/etc/evil_agent.py",
        "ui/../../x",
        "ui\\..\\x",
        "C:/x",
        "ui//x",
        "ui/a b",
        "ui/é",
        "ui/x\n",
    ],
)
def test_a_zip_that_writes_elsewhere_is_refused_whole(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadRapplicationError, match="writes outside its folder"):
        read_rapplication(zipped(tmp_path, {**bundle(), name: b""}))


def test_links_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("ui/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(BadRapplicationError, match="links are refused"):
        read_rapplication(zipped(tmp_path, [*bundle().items(), (link, b"/etc/passwd")]))
    path = folder(tmp_path, bundle())
    (path / "ui" / "link").symlink_to("/etc/passwd")
    with pytest.raises(BadRapplicationError, match="links are refused"):
        read_rapplication(path)


def test_a_name_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRapplicationError, match="twice"):
        read_rapplication(zipped(tmp_path, [*bundle().items(), ("UI/index.html", b"other")]))


def test_a_bomb_is_stopped_by_what_it_unpacks_to(tmp_path: Path) -> None:
    path = zipped(tmp_path, {**bundle(), "ui/zeros": bytes(100 << 20)})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(BadRapplicationError, match="more than 500 files or 5 MB"):
        read_rapplication(path)


def test_neither_folder_nor_zip(tmp_path: Path) -> None:
    with pytest.raises(BadRapplicationError, match="neither a folder nor a zip"):
        read_rapplication(tmp_path / "gone")
    (tmp_path / "x.zip").write_bytes(b"not a zip")
    with pytest.raises(BadRapplicationError, match="is not a readable zip"):
        read_rapplication(tmp_path / "x.zip")


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_zip_is_refused_or_whole(tmp_path: Path, data: st.DataObject) -> None:
    path = zipped(tmp_path, bundle())
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)
    try:
        rapp = read_rapplication(path)
    except BadRapplicationError:
        return
    assert all(not part.startswith(".") for file in rapp.files for part in file.path.split("/"))


def test_reading_changes_nothing(tmp_path: Path) -> None:
    path = folder(tmp_path, bundle())
    before = sorted(str(found) for found in tmp_path.rglob("*"))
    read_rapplication(path)
    assert sorted(str(found) for found in tmp_path.rglob("*")) == before
