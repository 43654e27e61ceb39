"""docs/eggs.md is true, and enough: a second implementation, made from the page alone, understands the first."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from envelopes.identity.keys import IdentityKey
from twins.eggs import integrity
from twins.eggs.egg_strings import decode, encode
from twins.eggs.frames import chained, decoded, verified
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.formats import table
from twins.eggs.readers.hash_check import by_lines, by_object
from twins.eggs.readers.workspace_paths import in_workspace
from twins.eggs.writers import exclusions, rapp1
from twins.eggs.writers.formats import EggFormat, EggMaker
from twins.eggs.writers.pack import pack
from twins.installer.placement_rules import Category
from twins.workspace.rappid import Rappid, same, widened
from twins.workspace.twin import Twin, mint
from twins.workspace.workspace import TwinLayout

PAGE = (Path(__file__).parents[3] / "docs" / "eggs.md").read_text()
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SOUL = b"# Rose\n"
AT = datetime(2026, 11, 22, 4, 34, tzinfo=UTC)
WHO = "4f2a" * 16
RAPPID = f"rappid:@ada/rose:{WHO}"


def block(mark: str) -> str:
    found: list[str] = re.findall(rf"^```\w+ {mark}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, mark
    return found[0].rstrip("\n")


def rows(heading: str) -> list[list[str]]:
    """The rows of the table whose first heading is that."""
    lines = PAGE[PAGE.index(f"| {heading} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def sha256(*pieces: bytes) -> str:
    return hashlib.sha256(b"".join(pieces)).hexdigest()


# The page against the code.


def test_rappids() -> None:
    for form, example, folder in rows("Form"):
        rappid = Rappid.parse(example.strip("`"))
        assert (rappid.form, rappid.key) == (form.partition("`, ")[0].strip("`"), folder.strip("`"))
    old, _, wide = block("widened").splitlines()
    assert sha256(b"rapp/1:rappid\n", bytes.fromhex(old)) == wide
    new = widened(Rappid.parse(old), owner="ada", slug="rose")
    assert new.tail == wide
    assert same(new, Rappid.parse(old))


def test_the_family_table() -> None:
    assert block("families").splitlines() == [line.rstrip() for line in table()]


def test_where_members_go() -> None:
    for member, place, _ in rows("In the egg")[:-2]:
        for name in re.findall(r"`([^`]+)`", member):
            example = name.replace("<id>", "kanban").replace(
                "/**", "/ui/x.py" if name.startswith("rapps") else "/x.py"
            )
            found = in_workspace(example)
            assert found is not None, name
            if "the same" in place:
                assert found[1] == example
            elif "**" in place:
                assert found[1] == place.strip("`").replace("**", "x.py")
    for name in (".git/config", "agents/x.pyc", ".deps/x.py", "Agents/x.py"):
        assert in_workspace(name) is None, name


def test_the_forms_that_are_written() -> None:
    told = {form for row in rows("`--form`") for form in re.findall(r"`([^`]+)`", row[0])}
    assert told == {form.value for form in EggFormat}


def test_the_categories_of_overwriting() -> None:
    line = re.search(r"`--overwrite` names its category: ([^.]*)\.", PAGE)
    assert line is not None
    assert set(re.findall(r"`(\w+)`", line[1])) == {one.value for one in Category} - {Category.NO_MEMORY}


def test_provenance() -> None:
    hashes, _, first, _, second = block("provenance").splitlines()
    assert by_lines(json.loads(hashes)) == first
    assert by_object(json.loads(hashes)) == second


def test_rapp1() -> None:
    text = block("rapp1")
    identity = f'{{"rappid":"{RAPPID}"}}'.encode()
    hashes = {
        name: sha256(b"rapp/1:egg\n", content)
        for name, content in (("rappid.json", identity), ("soul.md", SOUL))
    }
    assert rapp1.manifest("organism", Rappid.parse(RAPPID), hashes, at=AT).decode() == text
    unsigned = {key: one for key, one in json.loads(text).items() if key != "sig"}
    canonical = json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()
    assert sha256(b"rapp/1:egg-manifest\n", canonical) == block("rapp1-address")


def test_compact_strings() -> None:
    for line in block("strings").splitlines():
        seeds, text = line.split(" = ")
        numbers = [int(seed) for seed in seeds.split()]
        assert encode(numbers) == text
        assert decode(text) == numbers


def test_the_integrity_layer() -> None:
    text = block("integrity")
    files = {"manifest.json": sha256(b"{}"), "soul.md": sha256(SOUL)}
    assert integrity.seal(files, at="2026-11-22T04:34:00Z", key=IdentityKey(KEY)).decode() == text
    assert integrity.check(text.encode()).files == files


def test_frames() -> None:
    first, second = (json.loads(line) for line in block("frames").splitlines())
    said = [(one["utc"], one["kind"], one["payload"]) for one in (first, second)]
    assert list(chained(first["stream_id"], said)) == [first, second]
    octets = ("[\n" + ",\n".join(block("frames").splitlines()) + "\n]\n").encode()
    assert list(verified(decoded([octets]))) == [first, second]


@pytest.mark.parametrize("row", rows("Why")[:-1], ids=lambda row: row[0])
def test_what_the_page_says_stays_behind_does(row: list[str]) -> None:
    why, what = row
    at_root = re.findall(r"`([^`]+)`", what.partition("; in the memory")[0])
    for name in at_root:
        assert exclusions.at_root(name) == why, name
        if why != "belongs to this machine":
            assert exclusions.by_name(name) == why, name
            assert exclusions.by_name(name.upper()) == why, name
    for name in re.findall(r"`([^`]+)`", what.partition("; in the memory")[2]):
        assert exclusions.in_memory(name) == why, name


# A second implementation: nothing of the first but the page.


def write_egg(
    path: Path, members: dict[str, bytes], manifest: dict[str, Any], key: Ed25519PrivateKey
) -> None:
    members = {**members, "manifest.json": json.dumps(manifest).encode()}
    public = key.public_key().public_bytes_raw()
    layer: dict[str, Any] = {
        "schema": "rappd-integrity/1.0",
        "files": {name: sha256(content) for name, content in members.items()},
        "signed_at": "2026-11-22T04:34:00Z",
        "signer": {"fingerprint": sha256(public), "public_key": public.hex()},
    }
    layer["signature"] = key.sign(b"rappd/egg-integrity\n" + compact(layer)).hex()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, "integrity.json": compact(layer)}.items():
            archive.writestr(name, content)


def compact(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def frame(stream: str, number: int, utc: str, payload: object, before: str) -> dict[str, Any]:
    octets = f"{before}|{utc}|{number}|note|".encode() + compact(payload)
    return {
        "stream_id": stream, "frame_n": number, "utc": utc, "kind": "note", "payload": payload,
        "prev_hash": before or None, "hash": sha256(octets),
    }  # fmt: skip


def test_an_egg_written_from_the_page_is_whole_and_signed(tmp_path: Path) -> None:
    one = frame("s", 0, "2026-11-22T04:34:00Z", {"said": "grüß dich"}, "")
    two = frame("s", 1, "2026-11-22T04:34:01Z", ["x", None, 2.5], one["hash"])
    members = {
        "rappid.json": json.dumps({"rappid": RAPPID, "name": "Rose"}).encode(),
        "soul.md": SOUL,
        "agents/kettle_agent.py": b"x = 1\n",
        "data/frames.json": json.dumps([one, two]).encode(),
    }
    write_egg(tmp_path / "rose.egg", members, json.loads(block("manifest")), KEY)
    with open_egg(tmp_path / "rose.egg") as opened:
        assert opened.seal.whole is True
        assert opened.seal.signer == sha256(KEY.public_key().public_bytes_raw())
        assert opened.key == WHO
        assert opened.notes == []
        talked = next(part for part in opened.parts if part.role == "conversations")
        assert len(list(verified(decoded(talked.chunks())))) == 2


def read_egg(path: Path) -> tuple[dict[str, bytes], str]:
    """(members, fingerprint), after every hash and the signature were checked as the page says."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert list(members)[-1] == "integrity.json"
    octets = members.pop("integrity.json")
    layer = json.loads(octets)
    assert octets == compact(layer)
    assert layer["files"] == {name: sha256(content) for name, content in members.items()}
    public = bytes.fromhex(layer["signer"]["public_key"])
    signature = bytes.fromhex(layer.pop("signature"))
    Ed25519PublicKey.from_public_bytes(public).verify(signature, b"rappd/egg-integrity\n" + compact(layer))
    assert layer["signer"]["fingerprint"] == sha256(public)
    return members, layer["signer"]["fingerprint"]


def rose(home: Path) -> Twin:
    """The twin of the page's manifest."""
    twin = mint(
        TwinLayout(home), "Rose", owner="ada", soul=SOUL.decode(), now=datetime(2026, 11, 20, 10, tzinfo=UTC)
    )
    (twin.workspace.agents / "kettle_agent.py").write_text("x = 1\n")
    (twin.workspace.data / "notes.txt").write_text("watered")
    (twin.workspace.root / ".env").write_text("PUMP_TOKEN=abc\n")
    return twin


def test_an_egg_of_rappd_is_read_with_the_page_alone(tmp_path: Path) -> None:
    twin = rose(tmp_path)
    key = IdentityKey(KEY)

    class Talked:
        def frames(self, key: str) -> Any:
            return chained("s", [("2026-11-22T04:34:00Z", "note", {"said": "grüß dich"})])

    pack(
        twin.workspace, tmp_path / "rose.egg", at=AT, key=key, conversations=Talked(),
        maker=EggMaker(version="0.1.0", host="desk"),
    )  # fmt: skip
    members, signer = read_egg(tmp_path / "rose.egg")
    assert signer == key.fingerprint
    assert members["soul.md"] == SOUL
    assert members["data/notes.txt"] == b"watered"
    assert not any(".env" in name for name in members)
    (told,) = json.loads(members["data/frames.json"])
    assert told == frame("s", 0, told["utc"], told["payload"], "") | {"kind": "note"}
    manifest = json.loads(members["manifest.json"])
    page = json.loads(block("manifest"))
    assert manifest.keys() == page.keys()
    assert {**manifest, "rappid": RAPPID, "hash": WHO} == page


def test_a_rapp1_egg_of_rappd_is_read_with_the_page_alone(tmp_path: Path) -> None:
    twin = rose(tmp_path)
    egg = tmp_path / "rose.egg"
    pack(twin.workspace, egg, form=EggFormat.RAPP1_ORGANISM, at=AT, key=IdentityKey(KEY))
    with zipfile.ZipFile(egg) as archive:
        infos = archive.infolist()
        assert {one.compress_type for one in infos} == {zipfile.ZIP_STORED}
        assert infos[0].filename == "manifest.json"
        manifest = json.loads(archive.read("manifest.json"))
        names = [one.filename for one in infos[1:]]
        assert names == sorted(names, key=str.encode)
        assert manifest["contents"] == [
            {"path": name, "hash": sha256(b"rapp/1:egg\n", archive.read(name))} for name in names
        ]
        assert archive.read("manifest.json") == compact(manifest)
    beside = json.loads((tmp_path / "rose.egg.sig").read_bytes())
    assert beside["files"] == {"rose.egg": sha256(egg.read_bytes())}
    assert integrity.check(compact(beside)).signer == IdentityKey(KEY).fingerprint
