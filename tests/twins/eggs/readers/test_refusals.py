"""Refusals, before anything is written, and their words."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from fixtures.refusals import refused

from envelopes.identity.keys import IdentityKey
from tests.twins.eggs.hostile_corpus import HOSTILE, Hostile
from twins.eggs import integrity
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.formats import FAMILIES, table
from twins.errors import BadEggError, BadFileError, HostileEggError, NoSuchFileError

TWIN = {"schema": "rapp-egg/2.0", "scale": "twin"}


def twin(eggs: Any, **manifest: Any) -> dict[str, Any]:
    return {
        "manifest.json": {**TWIN, **manifest},
        "rappid.json": {"rappid": eggs.rappid},
        "soul.md": "# Rose\n",
    }


@pytest.mark.parametrize(
    "document",
    [
        {"schema": "brainstem-egg/9.9", "type": "twin"},
        {"schema": "rapp-egg/2.0", "scale": "galaxy"},
        {"schema": "rapp-egg/2.0", "scale": 7},
        {"schema": "brainstem-egg/2.0", "type": "planet"},
        {"schema": "brainstem-egg/2.3-session", "type": "session"},  # a session is JSON
        {"schema": ["brainstem-egg/2.1"]},
        {"type": "twin"},
        {},
    ],
)
def test_an_unknown_kind_is_refused_whole_with_the_family_table(eggs: Any, document: Any) -> None:
    with refused("unknown_egg") as caught:
        open_egg(eggs.zip({"manifest.json": document, "soul.md": "x"}))
    text = str(caught.value)
    assert text.startswith("I don't know how to hatch this: some.egg ")
    assert "Refused whole; nothing was written." in text
    for family in FAMILIES:
        assert family.tag in text
    assert caught.value.exit_code == 5


@pytest.mark.parametrize(
    "document",
    [{"schema": "x"}, {"_meta": {"type": "cake"}}, {"_format": "cake"}, {"schema": "rapp-egg/1.0"}, {}],
)
def test_unknown_json_is_refused_whole(eggs: Any, document: Any) -> None:
    with refused("unknown_egg", match="don't know how to hatch this"):
        open_egg(eggs.json(document))


@pytest.mark.parametrize("octets", [b"", b"hello", b"\x1f\x8b\x08\x00" * 9, b"\x89PNG\r\n\x1a\n", b"PK"])
def test_what_is_neither_zip_nor_json_is_refused(eggs: Any, octets: bytes) -> None:
    said = "neither a ZIP archive nor JSON" if octets else "is empty"
    with refused("unknown_egg", match=said) as caught:
        open_egg(eggs.json(octets))
    assert "\n" not in str(caught.value), "the table of families helps nobody there"


def test_an_unknown_egg_is_told_by_what_it_says(eggs: Any) -> None:
    with refused(
        "unknown_egg", match=r'some\.egg says schema "brainstem-egg/9\.9", type none\. Refused whole'
    ):
        open_egg(eggs.zip({"manifest.json": {"schema": "brainstem-egg/9.9"}}))


def test_an_unknown_discriminator_cannot_steer_the_terminal(eggs: Any) -> None:
    with refused("unknown_egg") as caught:
        open_egg(eggs.json({"schema": "\x1b[2Jgone\u202e"}))
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_the_family_table_fits_a_terminal() -> None:
    assert max(map(len, table())) <= 80
    assert len(table()) == len(FAMILIES) + 1


def test_a_zip_without_a_manifest_and_an_empty_one(eggs: Any) -> None:
    with refused("unknown_egg", match="holds no manifest"):
        open_egg(eggs.zip({"soul.md": "x"}))
    with pytest.raises(BadEggError, match="empty archive"):
        open_egg(eggs.zip({}))


def test_a_rapplication_bundle_is_sent_to_its_own_verb(eggs: Any) -> None:
    with pytest.raises(BadEggError, match="is a rapplication and no egg") as caught:
        open_egg(eggs.zip({"manifest.json": {"schema": "rapp-application/1.0"}}, "desk.zip"))
    assert caught.value.do == "rappd rapps install ./desk.zip"


def test_a_signature_alone_is_no_egg(eggs: Any) -> None:
    sealed = integrity.seal({"x.egg": "ab" * 32}, at="2026-11-21T09:40:00Z", key=None)
    path = eggs.json(json.loads(sealed), "x.egg.sig")
    with pytest.raises(BadEggError, match="is only a signature"):
        open_egg(path)


def test_what_is_no_regular_file(eggs: Any) -> None:
    with pytest.raises(NoSuchFileError):
        open_egg(eggs.folder / "none.egg")
    with pytest.raises(BadFileError):
        open_egg(eggs.folder)
    pipe = eggs.folder / "pipe.egg"
    os.mkfifo(pipe)
    with pytest.raises(BadFileError):
        open_egg(pipe)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b'{"schema": "a", "schema": "b"}', "twice"),
        (b'{"a": {"b": 1, "b": 1}}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 18446744073709551616}', "64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "64 bits"),
        (b'{"a": ' + b"[" * 200 + b"]" * 200 + b"}", "nested"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too many lists"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"\\udc00": 1}', "half a character"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": 1', "line 1"),
        (b'{"a": 1} {"b": 2}', "line 1"),
        (b"[1, 2]", "no object"),
    ],
)
def test_json_that_two_readers_could_understand_differently(eggs: Any, octets: bytes, why: str) -> None:
    with pytest.raises(BadEggError, match=rf"some\.egg is damaged \(.*{why}.*\); nothing was written"):
        open_egg(eggs.json(octets))
    with pytest.raises(BadEggError, match=rf"manifest\.json, is damaged \(.*{why}.*\)"):
        open_egg(eggs.zip({"manifest.json": octets, "soul.md": "x"}))


def test_a_number_of_72_bits_is_for_seeds_alone(eggs: Any) -> None:
    with pytest.raises(BadEggError, match="64 bits"):
        open_egg(eggs.json({"schema": "rappterbox-cart/0.1", "seeds": [1 << 65]}))
    with pytest.raises(BadEggError, match="64 bits"):
        open_egg(eggs.json({"schema": "rapp-egg/1.0", "seeds": [1 << 72]}))


def test_a_json_egg_and_a_manifest_have_a_largest_size(eggs: Any) -> None:
    path = eggs.folder / "huge.egg"
    with path.open("wb") as file:
        file.write(b'{"a": "')
        file.truncate(65 << 20)
    with pytest.raises(BadEggError, match="at most 67108864 are read"):
        open_egg(path)
    with pytest.raises(BadEggError, match=r"manifest\.json.*nothing was written"):
        open_egg(eggs.zip({"manifest.json": b"{" + b" " * ((17 << 20) - 1)}))


OUTSIDE = ["../../../X", "..", "/etc", "a/b", "C:\\x", "a\\b", ".", "x\x00y", "CON\u202e"]


@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("family", range(9))
def test_every_path_made_from_a_manifest_stays_inside(eggs: Any, family: int, outside: str) -> None:
    rows: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"schema": "brainstem-egg/2.2-rapplication", "rapp_id": outside}, {"agents/a_agent.py": "x"}),
        ({"schema": "rapp-egg/1.0", "id": outside}, {"agent.py": "x"}),
        ({"schema": "brainstem-egg/2.0", "type": "rapplication", "id": outside}, {"agents/a_agent.py": "x"}),
        ({"schema": "rapp-egg/2.0", "scale": "agent", "slug": outside}, {"a_agent.py": "x"}),
        (
            {"schema": "rapp-egg/1.0", "id": "x", "agent_filename": f"{outside}/x_agent.py"},
            {"agent.py": "x"},
        ),
        (
            {"schema": "brainstem-egg/2.3-cubby", "owner": "k", "files": [{"path": outside + "/../../x"}]},
            {"cubby/a": "x"},
        ),
        (
            {"schema": "rapp-egg/2.0", "scale": "neighborhood", "members": [{"hash": f"{outside}/.."}]},
            {"members.json": "[]"},
        ),
        (
            {"schema": "brainstem-egg/2.3-estate", "members": [{"hash": f"../{outside}"}]},
            {"estate.json": "{}"},
        ),
        ({"schema": "rapp-egg/2.0", "scale": "swarm", "hash": f"../{outside}"}, {"x": "x"}),
    ]
    manifest, members = rows[family]
    with pytest.raises(HostileEggError):
        open_egg(eggs.zip({"manifest.json": manifest, **members}))


def test_a_folder_name_that_would_hide_is_refused(eggs: Any) -> None:
    manifest = {"schema": "brainstem-egg/2.3-cubby", "owner": ".purged", "files": []}
    with pytest.raises(BadEggError, match="folder of its own"):
        open_egg(eggs.zip({"manifest.json": manifest, "cubby/a": "x"}))


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "agents\\..\\x"])
def test_paths_in_a_neighborhoods_json_stay_inside(eggs: Any, path: str) -> None:
    for twins in ({"rose": {path: "x"}}, {path: {"soul.md": "x"}}):
        with pytest.raises(HostileEggError):
            open_egg(eggs.json({"_format": "egg", "organism": {"kind": "neighborhood", "twins": twins}}))


@pytest.mark.parametrize(
    "identity",
    ['{"rappid": "rose"}', '{"rappid": "rappid:@a/b:../../x"}', "[]", "nonsense", '{"rappid":1,"rappid":2}'],
)
def test_a_rappid_json_that_names_nobody_sound_is_damage(eggs: Any, identity: str) -> None:
    with pytest.raises(BadEggError, match="damaged"):
        open_egg(eggs.zip({**twin(eggs), "rappid.json": identity}))


def test_a_manifest_about_somebody_else_is_refused(eggs: Any) -> None:
    with pytest.raises(BadEggError, match=r"another than rappid\.json"):
        open_egg(eggs.zip(twin(eggs, rappid=eggs.other)))
    # The same identity in another form is no contradiction.
    with open_egg(eggs.zip(twin(eggs, rappid=f"rappid:gardener:{eggs.key}"))) as opened:
        assert opened.folder == f"twins/{eggs.key}"


def sealed(eggs: Any, members: dict[str, Any], key: IdentityKey | None = None) -> dict[str, Any]:
    import hashlib

    members = {
        name: json.dumps(content).encode() if isinstance(content, dict) else content.encode()
        for name, content in members.items()
    }
    files = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    return {**members, "integrity.json": integrity.seal(files, at="2026-11-21T09:00:00Z", key=key)}


def test_the_integrity_layer_is_checked_over_every_member(eggs: Any) -> None:
    key = IdentityKey.generate()
    members = sealed(eggs, twin(eggs), key)
    with open_egg(eggs.zip(members)) as opened:
        assert opened.seal.whole is True
        assert opened.seal.signer == key.fingerprint
        assert opened.seal.sealed_at == "2026-11-21T09:00:00Z"
        assert opened.seal.listed == 2
        assert "integrity.json" not in {part.name for part in opened.parts}
    with pytest.raises(BadEggError, match=r"some\.egg is damaged \(soul\.md\); nothing was written"):
        open_egg(eggs.zip({**members, "soul.md": "# other\n"}))
    with pytest.raises(BadEggError, match=r"agents/x_agent\.py is not among"):
        open_egg(eggs.zip({**members, "agents/x_agent.py": "x"}))
    with pytest.raises(BadEggError, match=r"soul\.md is missing"):
        open_egg(eggs.zip({name: content for name, content in members.items() if name != "soul.md"}))
    forged = members["integrity.json"].replace(b"2026-11-21", b"2026-11-22")
    with pytest.raises(BadEggError, match="signature"):
        open_egg(eggs.zip({**members, "integrity.json": forged}))


def test_a_projects_own_integrity_json_is_a_file_like_others(eggs: Any) -> None:
    with open_egg(eggs.zip({**twin(eggs), "integrity.json": {"schema": "mine"}})) as opened:
        assert "integrity.json" in {part.name for part in opened.parts}
        assert opened.seal.whole is None


def test_opened_for_a_look_nothing_is_read_and_its_seal_says_so(eggs: Any) -> None:
    key = IdentityKey.generate()
    members = sealed(eggs, {**twin(eggs), "data/x": "x" * 5000}, key)
    path = eggs.zip({**members, "data/x": "y" * 5000})  # damaged, but nobody looked
    with open_egg(path, check_up_to=1000) as opened:
        assert (opened.seal.checked, opened.seal.whole, opened.digest) == (False, None, "")
        assert opened.seal.signer == key.fingerprint
    with pytest.raises(BadEggError, match="data/x"):
        open_egg(path, check_up_to=10_000)


def test_a_signature_beside_an_egg(eggs: Any) -> None:
    import hashlib

    def sign(path: Path, key: IdentityKey) -> None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        octets = integrity.seal({path.name: digest}, at="2026-11-21T09:00:00Z", key=key)
        path.with_name(path.name + ".sig").write_bytes(octets)

    key = IdentityKey.generate()
    members = {"rappid.json": {"rappid": eggs.rappid}, "soul.md": "x"}
    signed = eggs.rapp1(members, name="signed.egg")
    sign(signed, key)
    with open_egg(signed) as opened:
        assert opened.seal.signer == key.fingerprint
    signed.write_bytes(eggs.rapp1({**members, "soul.md": "y"}, name="other.egg").read_bytes())
    with pytest.raises(BadEggError, match="not its own"):
        open_egg(signed)

    buddy = eggs.json({"_meta": {"type": "rappter.egg"}, "organism": {"name": "F"}}, "f.rappter.egg")
    sign(buddy, key)
    with open_egg(buddy) as opened:
        assert opened.seal.signer == key.fingerprint
        assert opened.seal.whole is True
    buddy.write_bytes(buddy.read_bytes().replace(b'"F"', b'"G"'))
    with open_egg(buddy) as opened:
        assert opened.seal.signer == ""
        assert any("counts as unsigned" in note for note in opened.notes)
    buddy.with_name("f.rappter.egg.sig").write_bytes(b"{}")
    with pytest.raises(BadEggError, match="integrity layer"):
        open_egg(buddy)


def test_a_refused_egg_leaves_no_open_file(eggs: Any) -> None:
    path = eggs.zip({"manifest.json": {"schema": "x"}})
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with refused("unknown_egg"):
            open_egg(path)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


@pytest.mark.parametrize("one", HOSTILE, ids=repr)
def test_every_archive_made_to_do_harm_is_refused(eggs: Any, one: Hostile) -> None:
    path = eggs.folder / "hostile.egg"
    path.write_bytes(one.octets)
    with pytest.raises(BadEggError) as caught:
        open_egg(path)
    assert "nothing was written" in str(caught.value) or "refused whole" in str(caught.value)
