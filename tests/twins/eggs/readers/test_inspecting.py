"""Reports on an egg for people and programs."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from envelopes.identity.keys import IdentityKey
from twins.byte_sizes import format_bytes
from twins.eggs import integrity
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.inspect import AT_ONCE, inspect, lines, look_at, verdict
from twins.errors import BadEggError


def sealed(eggs: Any, *, key: IdentityKey | None = None, filler: int = 0) -> Any:
    members = {
        "manifest.json": json.dumps(
            {
                "schema": "rapp-egg/2.0",
                "scale": "twin",
                "exported_at": "2026-11-20T10:00:00Z",
                "host": "kitchen",
            }
        ).encode(),
        "rappid.json": json.dumps({"rappid": eggs.rappid, "name": "gardener"}).encode(),
        "soul.md": b"# G\n",
        "agents/a_agent.py": b"x",
        "agents/b_agent.py": b"x",
        "data/memory.json": b"{}" + b" " * filler,
    }
    files = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    members["integrity.json"] = integrity.seal(files, at="2026-11-20T10:00:00Z", key=key)
    return eggs.zip(members, "gardener.egg")


def test_the_lines_for_people(eggs: Any) -> None:
    key = IdentityKey.generate()
    with open_egg(sealed(eggs, key=key)) as opened:
        said = [(line.verdict, line.text) for line in lines(opened)]
    assert said[0][1].startswith("gardener, a twin, ")
    assert said[0][1].endswith("packed 20 Nov 2026")
    assert said[1:] == [
        ("good", "Complete: all 5 files match their hashes"),
        ("note", f"signed by key {key.fingerprint[:16]}"),
        ("", f"rapp-egg/2.0, ZIP; hatches to twins/{eggs.key}"),
        ("", eggs.rappid),
        ("", 'made by "kitchen"'),
        ("", "1 soul, 2 agent files, 1 memory file"),
    ]


def test_the_object_for_programs_can_be_written_as_json(eggs: Any) -> None:
    with open_egg(sealed(eggs)) as opened:
        egg = json.loads(json.dumps(inspect(opened)))["egg"]
    assert egg["file"] == "gardener.egg"
    assert egg["schema"] == "rapp-egg/2.0"
    assert egg["whole"] is True
    assert egg["signer"] == ""
    assert egg["roles"] == {"identity": 1, "soul": 1, "agent": 2, "memory": 1}
    assert {"name": "soul.md", "role": "soul", "target": "soul.md", "size": 4} in egg["parts"]
    assert egg["manifest"]["host"] == "kitchen"
    assert egg["sha256"] == hashlib.sha256((eggs.folder / "gardener.egg").read_bytes()).hexdigest()


def test_a_large_egg_is_looked_at_and_not_read(eggs: Any) -> None:
    with look_at(sealed(eggs, filler=AT_ONCE)) as opened:
        assert [line.text for line in verdict(opened)] == [
            "not checked yet: rappd egg verify gardener.egg",
            "not signed",
        ]
        assert inspect(opened)["egg"]["checked"] is False
    with look_at(sealed(eggs)) as opened:
        assert opened.seal.checked


MANY = {
    "a twin": ({"schema": "rapp-egg/2.0", "scale": "twin"}, "data/notes/{} (x).md"),
    "a twin's code": ({"schema": "rapp-egg/2.0", "scale": "twin"}, "agents/digit_{}_agent.py"),
    "an organism": ({"schema": "brainstem-egg/2.2-organism"}, "gärten/{}.md"),
    "a repository": ({"schema": "brainstem-egg/2.1"}, "repo/agents/{}.lispy"),
    "compiled files": ({"schema": "brainstem-egg/2.1"}, "repo/agents/{}.pyc"),
    "a rapplication": ({"schema": "brainstem-egg/2.2-rapplication", "rapp_id": "g"}, "rapp_ui/g/{}.html"),
    "a neighborhood": (
        {"schema": "rapp-egg/2.0", "scale": "neighborhood", "members": []},
        "brainstem/data/{}",
    ),
    "a gate": ({"schema": "brainstem-egg/2.3-neighborhood"}, "docs/{}.md"),
}


@pytest.mark.parametrize("kind", MANY)
def test_what_is_only_looked_at_is_told_as_what_is_read(eggs: Any, kind: str) -> None:
    manifest, name = MANY[kind]
    members: dict[str, Any] = {name.format(number): "x" * number for number in range(450)}
    members |= {"rappid.json": {"rappid": eggs.rappid}, "agents/one_agent.py": "ONE = 1\n"}
    hashes = {
        one: hashlib.sha256(content.encode()).hexdigest()
        for one, content in members.items()
        if isinstance(content, str)
    }
    manifest = {**manifest, "provenance": {"file_hashes": hashes}}
    path = eggs.zip({"manifest.json": manifest, **members}, "many.egg")
    with look_at(path) as quick, open_egg(path) as read:
        quickly, slowly = inspect(quick)["egg"], inspect(read)["egg"]
        assert not quickly["checked"]
        assert slowly["checked"]
        for field in ("parts", "roles", "listed", "name", "rappid", "folder", "answer"):
            assert quickly[field] == slowly[field], field
        assert len(quick.parts) == len(quickly["parts"]) > 450
        assert [part.read() for part in quick.parts] == [part.read() for part in read.parts]
        assert set(quick.notes) <= set(read.notes)


@pytest.mark.parametrize("listed", [{"not/there": "0" * 64}, {"soul.md": "0" * 63 + "g"}, {"soul.md": 7}])
def test_a_look_refuses_a_list_of_hashes_that_cannot_hold(eggs: Any, listed: dict[str, Any]) -> None:
    members: dict[str, Any] = {f"data/{number}": "x" for number in range(450)}
    members |= {"soul.md": "I.", "rappid.json": {"rappid": eggs.rappid}}
    hashes = {f"data/{number}": "1" * 64 for number in range(450)} | listed
    manifest = {"schema": "rapp-egg/2.0", "provenance": {"file_hashes": hashes}}
    path = eggs.zip({"manifest.json": manifest, **members})
    with pytest.raises(BadEggError) as quick:
        look_at(path)
    with pytest.raises(BadEggError) as read:
        open_egg(path)
    assert str(quick.value) == str(read.value)


def test_an_egg_without_hashes_is_called_readable_and_not_whole(eggs: Any) -> None:
    members = {"manifest.json": {"schema": "brainstem-egg/2.1"}, "repo/rappid.json": {"rappid": eggs.rappid}}
    with open_egg(eggs.zip(members)) as opened:
        assert [line.text for line in verdict(opened)] == [
            "readable: 1 file; it carries no hashes",
            "not signed",
        ]


def test_an_answer_is_told_line_by_line(eggs: Any) -> None:
    cart = {"schema": "rappterbox-cart/0.1", "title": "T", "transcript": [{"x": "y" * 2000}] * 90}
    with open_egg(eggs.json(cart)) as opened:
        texts = [line.text for line in lines(opened)]
        shown = inspect(opened)["egg"]["manifest"]["transcript"]
    assert "A session: 'T'" in texts
    assert any(text.endswith("does not hatch by itself") for text in texts)
    assert len(shown) == 51
    assert shown[-1] == "… 40 more"
    assert shown[0]["x"].endswith("1700 more characters")


def test_names_out_of_an_egg_are_one_readable_line(eggs: Any) -> None:
    identity = {"rappid": eggs.rappid, "name": "Ro\x1b[2Jse\n\u202e" + "x" * 500}
    members = {"manifest.json": {"schema": "rapp-egg/2.0"}, "rappid.json": identity}
    with open_egg(eggs.zip(members)) as opened:
        text = lines(opened)[0].text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\n" not in text
    assert len(opened.name) <= 120


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (999, "999 bytes"),
        (3_100_000, "3.1 MB"),
        (412_000_000, "412 MB"),
        (99_900, "100 kB"),
        (999_600, "1.0 MB"),
        (10**12, "1.0 TB"),
        (10**16, "10000 TB"),
    ],
)
def test_amounts(octets: int, text: str) -> None:
    assert format_bytes(octets) == text


def test_a_moment_that_is_none_is_shown_as_it_is(eggs: Any) -> None:
    with open_egg(eggs.json({"schema": "rappterbox-cart/0.1", "exported_at": "last week"})) as opened:
        assert lines(opened)[0].text.endswith("packed last week")


def test_verifying_a_damaged_egg_names_the_file(eggs: Any) -> None:
    path = sealed(eggs)
    octets = path.read_bytes()
    at = octets.index(b"agents/a_agent.py") + len("agents/a_agent.py")
    path.write_bytes(octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1 :])
    with pytest.raises(
        BadEggError, match=r"gardener\.egg is damaged \(agents/a_agent\.py\); nothing was written"
    ):
        open_egg(path)


def test_the_layers_names_are_those_that_are_written() -> None:
    from twins.eggs.readers import hash_check

    assert hash_check._LAYER == integrity.MEMBER
    assert integrity.SCHEMA.encode().startswith(hash_check._SCHEMA)
    assert hash_check._BESIDE == integrity.SIGNATURE_SUFFIX
