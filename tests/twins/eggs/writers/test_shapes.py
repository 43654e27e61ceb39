"""Eggs in the published shapes: what members they have, in which order, and what their manifests say."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.twins.eggs.writers.nest import AT, WHOLE, Nest, Told, contents, manifest
from twins.eggs import frames, integrity
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers import rapp1
from twins.eggs.writers.exclusions import ExclusionReason
from twins.eggs.writers.formats import EggFormat
from twins.errors import BadFileError, NoSuchFileError, NoSuchTwinError, TwinConflictError
from twins.workspace.rappid import Rappid, same
from twins.workspace.workspace import Workspace
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

MOMENT = "2026-11-22T04:34:56Z"


def test_twin_egg_has_members_at_root_and_data_memory(nest: Nest) -> None:
    members = nest.packed(conversations=Told())
    assert list(members) == [
        *("rappid.json", "soul.md", "README.md"),
        *("agents/kanban_agent.py", "agents/mail_agent.py", "agents/workspace_agents/draft_agent.py"),
        *("bonds.json", "data/frames.json", "data/kanban/board.json", "data/memory.json"),
        *("rapps/kanban/manifest.json", "rapps/kanban/ui/app.js", "rapps/kanban/ui/index.html"),
        *("senses/smell.py", "services/kanban_service.py", "manifest.json", "integrity.json"),
    ]
    said = manifest(members)
    assert (said["schema"], said["scale"], said["exported_at"]) == ("rapp-egg/2.0", "twin", MOMENT)
    assert (said["rappid"], said["hash"], said["name"]) == (nest.rappid.text, nest.rappid.key, "Gärtner")
    assert (said["kind"], said["host"], said["created_by"]) == ("personal", "desk", "rappd 1.2.3")
    assert said["counts"] == {
        "agents": 3,
        "services": 1,
        "senses": 1,
        "organs": 0,
        "rapps": 3,
        "data": 3,
        "soul": 1,
        "conversations": 1,
    }


def test_what_was_packed_comes_back_byte_for_byte(nest: Nest) -> None:
    for name, content in nest.packed().items():
        place = name.replace("data/", ".brainstem_data/", 1) if name.startswith("data/") else name
        if name not in ("manifest.json", "integrity.json"):
            assert content == (nest.workspace.root / place).read_bytes(), name


def test_a_brainstem_differs_by_its_scale_alone(nest: Nest) -> None:
    twin, brainstem = nest.packed(EggFormat.TWIN), nest.packed(EggFormat.BRAINSTEM)
    assert manifest(brainstem) == {**manifest(twin), "scale": "brainstem"}
    assert twin.keys() == brainstem.keys()


def test_an_agent_travels_alone(nest: Nest) -> None:
    members = nest.packed(EggFormat.AGENT)
    assert list(members) == ["mail_agent.py", "manifest.json", "integrity.json"]
    assert members["mail_agent.py"] == b"MAIL = 1\n"
    said = manifest(members)
    assert (said["schema"], said["scale"], said["agent_filename"]) == (
        "rapp-egg/2.0",
        "agent",
        "mail_agent.py",
    )
    assert (
        next(iter(nest.packed(EggFormat.AGENT, item="workspace_agents/draft_agent.py"))) == "draft_agent.py"
    )


@pytest.mark.parametrize("item", [
    "no_agent.py", "../soul.md", "../../x_agent.py", "/etc/x_agent.py", "basic_agent.py", "mail_agent", "", "a\0_agent.py",
    "private/x_agent.py", "workspace_agents", "link_agent.py",
])  # fmt: skip
def test_only_an_agent_file_travels_as_one(nest: Nest, item: str) -> None:
    nest.put("agents/private/x_agent.py")
    nest.put("x_agent.py")
    (nest.workspace.agents / "link_agent.py").symlink_to(nest.workspace.root / "soul.md")
    with pytest.raises((NoSuchFileError, ValueError)):
        nest.pack(EggFormat.AGENT, item=item)
    assert not (nest.folder / "agent.egg").exists()


def test_organism_has_manifest_last(nest: Nest) -> None:
    nest.put("tools/scan.sh", "echo\n")
    nest.put("tools/deep/x.sh", "echo\n")
    nest.put("lan-quickstart.sh", "echo\n")
    members = nest.packed(EggFormat.ORGANISM, conversations=Told())
    assert list(members) == [
        *("rappid.json", "soul.md", ".env"),
        *("agents/kanban_agent.py", "agents/mail_agent.py", "agents/workspace_agents/draft_agent.py"),
        *("data/frames.json", "data/kanban/board.json", "data/memory.json", "lan-quickstart.sh"),
        *(
            "senses/smell.py",
            "services/kanban_service.py",
            "tools/scan.sh",
            "manifest.json",
            "integrity.json",
        ),
    ]
    assert members[".env"] == b"TOKEN=\nPORT=7071\n"
    said = manifest(members)
    provenance = said.pop("provenance")
    assert said == {
        "schema": "brainstem-egg/2.2-organism",
        "type": "organism",
        "exported_at": MOMENT,
        "kernel_version": "1.2.3",
        "host": "desk",
        "rappid": nest.rappid.text,
        "parent_rappid": None,
        "parent_repo": None,
        "incarnations_at_egg": 0,
        "counts": {
            "agents": 3,
            "organs": 0,
            "senses": 1,
            "services": 1,
            "data": 3,
            "soul": 1,
            "env": 1,
            "rappid": 1,
            "lan_tools": 1,
            "quickstart": 1,
        },
        "lan_federation_ready": True,
    }
    published = {
        name: one for name, one in members.items() if name not in ("manifest.json", "integrity.json")
    }
    hashes = {name: hashlib.sha256(one).hexdigest() for name, one in published.items()}
    assert provenance["schema"] == "rapp-egg-provenance/1.0" and provenance["scheme"] == "sha256"
    assert provenance["file_hashes"] == hashes
    lines = "\n".join(f"{path}\t{hashes[path]}" for path in sorted(hashes))
    assert provenance["manifest_hash"] == hashlib.sha256(lines.encode()).hexdigest()
    assert (provenance["sealed_at"], provenance["sealed_by_rappid"]) == (MOMENT, nest.rappid.text)
    assert provenance["state_at_seal"]["schema"] == "rapp-organism-state/1.0"


def test_what_an_organism_has_no_place_for_is_named(nest: Nest) -> None:
    left = nest.pack(EggFormat.ORGANISM).left_out
    assert {path for path, why in left if why is ExclusionReason.NO_PLACE} == {
        "README.md",
        "bonds.json",
        "rapps",
    }
    assert (".env", ExclusionReason.BLANKED) in left


def test_a_rapplication_brings_its_agent_organ_page_and_memory(nest: Nest) -> None:
    nest.put(".brainstem_data/kanban/soul.md", "I sort.")
    members = nest.packed(EggFormat.RAPPLICATION)
    assert list(members) == [
        *("rappid.json", "soul.md", "agents/kanban_agent.py", "data/kanban/board.json"),
        *("organs/kanban_service.py", "rapp_ui/kanban/app.js", "rapp_ui/kanban/index.html"),
        *("manifest.json", "integrity.json"),
    ]
    rappid = "rappid:v2:rapplication:kody-w/kanban:" + hashlib.sha256(b"kody-w/kanban").hexdigest()[:32]
    assert orjson.loads(members["rappid.json"])["rappid"] == rappid
    assert manifest(members) == {
        "schema": "brainstem-egg/2.2-rapplication",
        "type": "rapplication",
        "exported_at": MOMENT,
        "rappid": rappid,
        "rapp_id": "kanban",
        "name": "Kanban",
        "version": "1.0.0",
        "publisher": "kody-w",
        "host": "desk",
        "agent_filename": "kanban_agent.py",
        "organ_filename": "kanban_service.py",
        "has_skin": True,
        "counts": {"agent": 1, "organ": 1, "ui": 2, "data": 1, "soul": 1},
    }


def test_a_rapplication_keeps_the_identity_it_came_with(nest: Nest) -> None:
    own = b'{"schema":"rapp/1","rappid":"rappid:@kody-w/kanban:' + b"7" * 64 + b'"}'
    nest.put(".brainstem_data/kanban/rappid.json", own)
    for form in (EggFormat.RAPPLICATION, EggFormat.RAPP1_RAPPLICATION):
        members = nest.packed(form)
        assert members["rappid.json"] == own
        assert manifest(members)["rappid"] == "rappid:@kody-w/kanban:" + "7" * 64
    assert manifest(members)["payload"] == {}


def test_a_rapplication_without_a_receipt_is_known_by_its_name(nest: Nest) -> None:
    (nest.workspace.rapps / "kanban" / "placed.json").unlink()
    assert {"agents/kanban_agent.py", "organs/kanban_service.py"} <= nest.packed(
        EggFormat.RAPPLICATION
    ).keys()


@pytest.mark.parametrize(
    "receipt", ['["agents/../../x.py","agents/kanban_agent.py"]', "{", "[7]", '["agents/private"]']
)
def test_a_receipt_that_lies_brings_nothing_else_in(nest: Nest, receipt: str) -> None:
    nest.put("rapps/kanban/placed.json", receipt)
    (nest.workspace.root.parent / "x.py").write_text("")
    try:
        members = nest.packed(EggFormat.RAPPLICATION)
    except BadFileError:
        return
    assert [name for name in members if name.startswith("agents/")] == ["agents/kanban_agent.py"]


def test_what_is_not_installed_is_not_packed(nest: Nest) -> None:
    for item in ("sudoku", "../kanban", "Kanban", "kanban/ui", "a" * 300):
        with pytest.raises(NoSuchFileError):
            nest.pack(EggFormat.RAPPLICATION, item=item)
    nest.workspace.agents.joinpath("kanban_agent.py").unlink()
    with pytest.raises(BadFileError, match="no agent"):
        nest.pack(EggFormat.RAPPLICATION)
    nest.put("rapps/kanban/manifest.json", "{")
    with pytest.raises(BadFileError, match=r"manifest\.json"):
        nest.pack(EggFormat.RAPPLICATION)


def test_memory_beside_rapp_folder_is_left_out(nest: Nest) -> None:
    nest.put(".brainstem_data/kanban.json", "{}")
    assert (".brainstem_data/kanban.json", ExclusionReason.NO_PLACE) in nest.pack(
        EggFormat.RAPPLICATION
    ).left_out


@pytest.mark.parametrize("form", [EggFormat.RAPP1_ORGANISM, EggFormat.RAPP1_RAPPLICATION])
def test_a_rapp1_egg_is_exact_to_the_byte(nest: Nest, form: EggFormat) -> None:
    path = nest.pack(form, conversations=Told()).path
    members = contents(path)
    said = manifest(members)
    assert list(said) == ["contents", "created_utc", "payload", "rappid", "schema", "sig", "variant"]
    assert (said["schema"], said["variant"]) == ("rapp/1-egg", form.value.removeprefix("rapp1-"))
    assert (said["created_utc"], said["sig"]) == ("2026-11-22T04:34:56.789Z", None)
    assert (
        members["manifest.json"]
        == json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    ), "these keys and values have no other canonical form"
    listed = [one["path"] for one in said["contents"]]
    assert list(members) == ["manifest.json", *listed] and listed == sorted(listed, key=str.encode)
    assert "integrity.json" not in members
    for one in said["contents"]:
        assert one["hash"] == hashlib.sha256(b"rapp/1:egg\n" + members[one["path"]]).hexdigest()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED and info.date_time == (1980, 1, 1, 0, 0, 0)
            assert (info.flag_bits, info.create_version, info.extract_version) == (0x800, 20, 20)
            assert not (info.external_attr or info.internal_attr or info.extra or info.comment)
    with Archive.open(path) as exact:
        assert exact.rapp1_deviations() == []


def test_the_published_vector_of_an_organism_comes_out() -> None:
    rappid = Rappid.parse("rappid:@example/node:" + "a" * 64)
    members = {"rappid.json": b"{}", "soul.md": b"hi\n"}
    hashes = {name: hashlib.sha256(rapp1.SPACE + content).hexdigest() for name, content in members.items()}
    at = AT.replace(year=2026, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    file = io.BytesIO()
    writer = ArchiveWriter(file, stored=True)
    writer.add("manifest.json", rapp1.manifest("organism", rappid, hashes, at=at))
    for name, content in members.items():
        writer.add(name, content)
    writer.finish()
    assert len(file.getvalue()) == 726
    assert hashlib.sha256(file.getvalue()).hexdigest() == (
        "8431a79e1ff3b97ad4f5ae1828d8b015abb780933e1052f49bf950988dd42822"
    )


def test_rapp1_organism_holds_what_a_twin_egg_holds(nest: Nest) -> None:
    twin, organism = nest.packed(EggFormat.TWIN), nest.packed(EggFormat.RAPP1_ORGANISM)
    made = {"manifest.json", "integrity.json"}
    assert {name: one for name, one in organism.items() if name not in made} == {
        name: one for name, one in twin.items() if name not in made
    }


def test_a_rapp1_rapplication_has_only_what_is_admitted(nest: Nest) -> None:
    nest.put(".brainstem_data/kanban/soul.md", "I sort.")
    packed = nest.pack(EggFormat.RAPP1_RAPPLICATION)
    members = contents(packed.path)
    assert list(members) == [
        *("manifest.json", "agent.py", "rappid.json", "state/board.json", "state/soul.md", "ui.html")
    ]
    assert members["agent.py"] == b"KANBAN = 1\n" and members["ui.html"] == b"<p>board</p>"
    assert {left.path for left in packed.left_out} == {"rapps/kanban/ui/app.js", "services/kanban_service.py"}
    old = Rappid.parse(orjson.loads(members["rappid.json"])["rappid"])
    assert manifest(members)["payload"] == {"_migrated_from": old.text}
    assert same(old, Rappid.parse(manifest(members)["rappid"]))


@pytest.mark.parametrize("form", [EggFormat.RAPP1_ORGANISM, EggFormat.RAPP1_RAPPLICATION])
def test_the_signature_of_a_rapp1_egg_lies_beside_it(nest: Nest, form: EggFormat) -> None:
    packed = nest.pack(form)
    assert packed.signature == packed.path.with_name(packed.path.name + ".sig")
    sealed = integrity.check(packed.signature.read_bytes())
    assert sealed.files == {packed.path.name: packed.sha256} and sealed.signer == nest.key.fingerprint
    assert packed.sha256 == hashlib.sha256(packed.path.read_bytes()).hexdigest()
    again = nest.pack(form, key=None)
    assert again.signature is None and not packed.signature.exists(), (
        "an old signature would be about another egg"
    )


@pytest.mark.parametrize("form", [form for form in EggFormat if not form.is_rapp1])
@pytest.mark.parametrize("signed", [True, False])
def test_other_eggs_name_member_hashes_and_source(nest: Nest, form: EggFormat, signed: bool) -> None:
    members = nest.packed(form, key=nest.key if signed else None)
    assert list(members)[-1] == "integrity.json"
    sealed = integrity.check(members.pop("integrity.json"))
    sealed.compare({name: hashlib.sha256(content).hexdigest() for name, content in members.items()})
    assert (sealed.signer, sealed.signed_at) == (nest.key.fingerprint if signed else "", MOMENT)


@pytest.mark.parametrize("form", EggFormat)
def test_the_same_packed_again_gives_the_same_bytes(nest: Nest, form: EggFormat) -> None:
    first = nest.pack(form, conversations=Told()).path.read_bytes()
    for path in nest.workspace.root.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
        path.chmod(0o700)
    assert nest.pack(form, conversations=Told(), target=nest.folder / "again.egg").path.read_bytes() == first
    assert nest.pack(form, conversations=Told(), at=AT.replace(year=2027)).path.read_bytes() != first


@pytest.mark.parametrize("form", EggFormat)
def test_what_is_packed_opens(nest: Nest, form: EggFormat) -> None:
    packed = nest.pack(form, conversations=Told())
    opened = open_egg(packed.path)
    assert opened.seal.signer == nest.key.fingerprint and opened.seal.whole is not False
    assert opened.packed_at.startswith("2026-11-22T04:34:56") and opened.digest == packed.sha256
    assert not [note for note in opened.notes if "no place" in note], opened.notes
    if form in WHOLE:
        assert opened.rappid is not None and opened.rappid.text == nest.rappid.text == packed.rappid.text  # type: ignore[union-attr]
        targets = {part.target for part in opened.parts}
        assert {"agents/mail_agent.py", ".brainstem_data/memory.json", "soul.md", "rappid.json"} <= targets


@pytest.mark.parametrize("form", WHOLE)
def test_conversations_travel_as_a_chain_that_holds(nest: Nest, form: EggFormat) -> None:
    told = Told(5)
    members = nest.packed(form, conversations=told)
    assert list(frames.verified(frames.decoded([members["data/frames.json"]]))) == list(told.frames(""))
    assert set(told.asked_for) - {""} == {nest.rappid.key}
    assert "data/frames.json" not in nest.packed(form, conversations=Told(0))


def test_told_conversations_go_before_a_file_of_their_name(nest: Nest) -> None:
    nest.put(".brainstem_data/frames.json", "[]")
    assert nest.packed()["data/frames.json"] == b"[]"
    packed = nest.pack(conversations=Told())
    assert b"Hello 0" in contents(packed.path)["data/frames.json"]
    assert (".brainstem_data/frames.json", ExclusionReason.NO_PLACE) in packed.left_out


@pytest.mark.parametrize("form", [form for form in EggFormat if form is not EggFormat.AGENT])
def test_memory_stays_when_it_is_told_to(nest: Nest, form: EggFormat) -> None:
    packed = nest.pack(form, conversations=Told(), exclude_memory=True)
    assert not [name for name in contents(packed.path) if name.startswith(("data/", "state/"))]
    assert [left for left in packed.left_out if left.why is ExclusionReason.MEMORY]


@pytest.mark.parametrize("form", WHOLE)
def test_moved_soul_and_agents_are_used_everywhere(nest: Nest, form: EggFormat, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "skills").mkdir(parents=True)
    (elsewhere / "skills" / "far_agent.py").write_text("FAR = 1\n")
    (elsewhere / "me.md").write_text("I am far.")
    nest.workspace = Workspace(nest.workspace.root, elsewhere / "me.md", elsewhere / "skills")
    members = nest.packed(form)
    assert members["soul.md"] == b"I am far."
    assert [name for name in members if name.startswith("agents/")] == ["agents/far_agent.py"]

    nest.put("own/skills/near_agent.py", "NEAR = 1\n")
    nest.put("own/me.md", "I am near.")
    root = nest.workspace.root
    nest.workspace = Workspace(root, root / "own/me.md", root / "own/skills")
    members = nest.packed(form)
    assert members["soul.md"] == b"I am near."
    assert [name for name in members if name.startswith(("agents/", "own/"))] == ["agents/near_agent.py"]


def test_who_has_no_name_cannot_be_packed(bare: Nest) -> None:
    (bare.workspace.root / "soul.md").unlink()
    assert "soul.md" not in bare.packed(EggFormat.TWIN)
    with pytest.raises(BadFileError, match="soul"):
        bare.pack(EggFormat.RAPP1_ORGANISM)
    bare.put("rappid.json", "{}")
    with pytest.raises(BadFileError, match=r"rappid\.json"):
        bare.pack()
    (bare.workspace.root / "rappid.json").unlink()
    with pytest.raises(NoSuchTwinError):
        bare.pack()


@pytest.mark.parametrize(("text", "form"), [
    ("123e4567-e89b-42d3-a456-426614174000", "uuid"), ("rappid:grandma-rose:0d51" + "ab" * 14, "legacy"),
    ("rappid:v2:twin:@kody-w/x:" + "ab" * 16 + "@github.com/kody-w/x", "v2"), ("rappid:twin:@o/s:0123456789abcdef", "twin"),
])  # fmt: skip
def test_every_rappid_in_circulation_is_carried_byte_for_byte(bare: Nest, text: str, form: str) -> None:
    content = json.dumps({"rappid": text, "more": {"kept": [1, 2]}}, indent=1).encode()
    bare.put("rappid.json", content)
    assert Rappid.parse(text).form == form
    for shape in (EggFormat.TWIN, EggFormat.ORGANISM, EggFormat.BRAINSTEM):
        members = bare.packed(shape)
        assert members["rappid.json"] == content and manifest(members)["rappid"] == text
    if form == "twin":
        with pytest.raises(BadFileError, match="RAPP/1"):
            bare.pack(EggFormat.RAPP1_ORGANISM)
    else:
        members = bare.packed(EggFormat.RAPP1_ORGANISM)
        assert members["rappid.json"] == content and manifest(members)["payload"] == {"_migrated_from": text}
        assert same(Rappid.parse(text), Rappid.parse(manifest(members)["rappid"]))


def test_names_in_a_rapp1_egg_are_composed(bare: Nest) -> None:
    bare.put(".brainstem_data/" + unicodedata.normalize("NFD", "Köln.md"))
    assert "data/" + unicodedata.normalize("NFC", "Köln.md") in bare.packed(EggFormat.RAPP1_ORGANISM)
    assert "data/" + unicodedata.normalize("NFD", "Köln.md") in bare.packed(EggFormat.TWIN)


@pytest.mark.parametrize(
    "names", [("A.md", "a.md"), ("Köln", unicodedata.normalize("NFD", "Köln")), ("x", "X/y")]
)
@pytest.mark.parametrize("form", [EggFormat.TWIN, EggFormat.RAPP1_ORGANISM])
def test_two_files_that_are_one_elsewhere_are_refused_not_lost(
    bare: Nest, names: tuple[str, str], form: EggFormat
) -> None:
    for name in names:
        bare.put(f".brainstem_data/{name}")
    with pytest.raises(BadFileError):
        bare.pack(form)
    assert not (bare.folder / f"{form}.egg").exists()


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "C:x", "\udcff", "\u202eexe"])
def test_a_name_that_no_egg_may_carry_is_said_not_lost(bare: Nest, name: str) -> None:
    (bare.workspace.data / name).write_text("x")
    try:
        packed = bare.pack()
    except BadFileError as error:
        assert "name" in str(error)
    else:
        stays = [left for left in packed.left_out if left.why is ExclusionReason.NOT_UTF8]
        assert len(stays) == 1 or f"data/{name}" in contents(packed.path)


def test_too_many_files_for_rapp1_are_refused(bare: Nest) -> None:
    for number in range(4400):
        (bare.workspace.data / f"{number:0150d}").write_bytes(b"")
    with pytest.raises(BadFileError, match="too many"):
        bare.pack(EggFormat.RAPP1_ORGANISM)
    assert len(bare.packed(EggFormat.TWIN)) > 4400


def test_progress_ends_at_everything(nest: Nest) -> None:
    nest.put(".brainstem_data/large", os.urandom(3 << 20))
    for form in EggFormat:
        told: list[tuple[str, int, int]] = []
        nest.pack(form, conversations=Told(), progress=lambda *far, told=told: told.append(far))
        for phase in dict.fromkeys(phase for phase, _, _ in told):
            steps = [(done, total) for one, done, total in told if one == phase]
            assert steps == sorted(steps) and steps[-1][0] == steps[-1][1], (form, phase)
        assert told[-1][0] == "pack"


def test_python_reads_a_large_member_too(bare: Nest) -> None:
    large = b"".join(b"%d bottles\n" % n for n in range(600_000))
    bare.put(".brainstem_data/large.txt", large)
    for form in WHOLE:
        assert bare.packed(form)["data/large.txt"] == large
    subprocess.run(["bsdtar", "-tf", bare.folder / "twin.egg"], check=True, capture_output=True)


def test_an_egg_is_not_written_over_another_by_chance(nest: Nest) -> None:
    target = nest.folder / "twin.egg"
    target.write_text("precious")
    with pytest.raises(TwinConflictError, match="exists"):
        nest.pack(overwrite=False)
    assert target.read_text() == "precious"
    nest.pack(overwrite=True)
    assert contents(target)


@pytest.mark.parametrize("form", [EggFormat.TWIN, EggFormat.AGENT])
def test_what_to_pack_must_be_said_and_only_where_it_is_asked(nest: Nest, form: EggFormat) -> None:
    with pytest.raises(ValueError, match="packs"):
        nest.pack(form, item="" if form.needs_item else "kanban")


@pytest.mark.parametrize("later", [0, 4])
def test_file_changed_while_packing_is_not_torn(nest: Nest, later: int) -> None:
    class Talking(Told):
        def frames(self, key: str) -> Iterator[frames.Frame]:
            if len(self.asked_for) == 2:  # asked whether there are any, then hashed, then written
                self.count = later
            return super().frames(key)

    with pytest.raises(TwinConflictError, match="changed while it was packed"):
        nest.pack(EggFormat.RAPP1_ORGANISM, conversations=Talking())
    assert not list(nest.folder.glob("*.egg"))
