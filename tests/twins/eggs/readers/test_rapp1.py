"""RAPP/1 eggs: what is demanded, what published ones may do, and the figures that others published."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fixtures.refusals import refused

from envelopes.codecs.canonical import canonical
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.detect import open_egg
from twins.errors import BadEggError, HostileEggError


def plain_organism(eggs: Any) -> dict[str, Any]:
    return {
        "agents/a_agent.py": "class A: pass\n",
        "data/frames.json": "[]",
        "rappid.json": {"rappid": eggs.rappid, "name": "Rose"},
        "soul.md": "# Rose\n",
    }


def test_published_organism_is_whole_with_departures(eggs: Any) -> None:
    with open_egg(eggs.rapp1(plain_organism(eggs))) as opened:
        assert (opened.family.tag, opened.family.kind) == ("rapp/1-egg", "organism")
        assert opened.destination is Destination.TWIN
        assert opened.folder == f"twins/{eggs.key}"
        assert opened.seal.whole is True
        assert opened.packed_at == "2026-07-16T22:41:23.842Z"
        assert {part.role for part in opened.parts} == {
            Role.AGENT,
            Role.CONVERSATIONS,
            Role.IDENTITY,
            Role.SOUL,
        }
        assert any("exact" in note for note in opened.notes)


def exact(members: list[tuple[str, bytes]], path: Path) -> bytes:
    """The exact layout: version 20, UTF-8 flag, stored, 1980-01-01, no attributes."""
    import struct
    import zlib

    out, directory = b"", b""
    for name, content in members:
        raw = name.encode()
        head = struct.pack(
            "<HHHHHIIIHH", 20, 0x800, 0, 0, 0x21, zlib.crc32(content), len(content), len(content), len(raw), 0
        )
        directory += (
            b"PK\x01\x02" + struct.pack("<H", 20) + head + struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + raw
        )
        out += b"PK\x03\x04" + head + raw + content
    end = struct.pack("<HHHHIIH", 0, 0, len(members), len(members), len(directory), len(out), 0)
    octets = out + directory + b"PK\x05\x06" + end
    path.write_bytes(octets)
    return octets


def test_exact_layout_opens_as_published_vector(eggs: Any) -> None:
    files = {"rappid.json": b"{}", "soul.md": b"hi\n"}
    rappid = "rappid:@example/node:" + "a" * 64
    manifest = eggs.manifest1(files, variant="organism", rappid=rappid)
    manifest["created_utc"] = "2026-01-01T00:00:00.000Z"
    path = eggs.folder / "exact.egg"
    octets = exact([("manifest.json", canonical(manifest)), *files.items()], path)
    assert len(octets) == 726
    assert hashlib.sha256(octets).hexdigest() == (
        "8431a79e1ff3b97ad4f5ae1828d8b015abb780933e1052f49bf950988dd42822"
    )
    with open_egg(path) as opened:
        assert not any("layout" in note for note in opened.notes)
        assert opened.rappid is not None
        assert opened.rappid.text == rappid
        # Its rappid.json names nobody: one is made, and the egg's own is kept beside.
        targets = {part.target: part for part in opened.parts}
        assert json.loads(targets["rappid.json"].read())["rappid"] == rappid
        assert targets[".brainstem_data/unplaced/rappid.json"].read() == b"{}"


def test_a_rapplication(eggs: Any) -> None:
    members = {
        "agent.py": "class A: pass\n",
        "rappid.json": {"rappid": eggs.rappid},
        "state/board.json": "{}",
        "ui.html": "<p>",
    }
    with open_egg(eggs.rapp1(members, variant="rapplication")) as opened:
        assert opened.destination is Destination.HOST
        found = {part.name: part.target for part in opened.parts}
        assert found["agent.py"] == "agents/gardener_agent.py"
        assert found["ui.html"] == "rapps/gardener/ui/index.html"
        assert found["state/board.json"] == ".brainstem_data/gardener/board.json"
        assert found["rappid.json"] == ".brainstem_data/gardener/rappid.json"


def test_another_egg_in_an_organism_is_the_buddy_that_it_holds(eggs: Any) -> None:
    cartridge = {"_meta": {"type": "rappter.egg", "version": 1}, "organism": {"name": "Fluffy"}}
    members = {"organism.json": cartridge, "rappid.json": "{}", "soul.md": "# x\n"}
    with open_egg(eggs.rapp1(members)) as opened:
        found = {part.name: part for part in opened.parts}
        assert found["organism.json"].role is Role.MEMORY
        identity = next(part for part in opened.parts if part.role is Role.IDENTITY)
        assert json.loads(identity.read())["kind"] == "buddy"


def document(eggs: Any, variant: str, payload: Any, **more: Any) -> bytes:
    return canonical({**eggs.manifest1({}, variant=variant, payload=payload), **more})


def test_a_session(eggs: Any) -> None:
    payload = {"runtime": "{'type': 'html'}", "transcript": [{"event": 0}]}
    with open_egg(eggs.json(document(eggs, "session", payload))) as opened:
        assert opened.destination is Destination.ANSWER
        assert "transcript of 1 events" in opened.answer
        texts = {part.name: part.read() for part in opened.parts}
        assert texts["runtime.txt"] == b"{'type': 'html'}"


INVITE = {
    "target_rappid": "rappid:@kody-w/commons:" + "c" * 64,
    "target_url": "https://example.org/" + "x" * 200,
    "target_kind": "neighborhood",
}


def test_an_invite_has_to_be_signed_and_may_only_say_so(eggs: Any) -> None:
    with pytest.raises(BadEggError, match="has to be signed"):
        open_egg(eggs.json(document(eggs, "invite", INVITE)))
    with open_egg(
        eggs.json(document(eggs, "invite", INVITE, sig="MIGRATED-UNSIGNED-legacy-pointer"))
    ) as opened:
        assert INVITE["target_url"] in opened.answer
        assert any("counts as unsigned" in note for note in opened.notes)
    with open_egg(eggs.json(document(eggs, "invite", INVITE, sig=f"eyJ9..{'A' * 86}"))) as opened:
        assert any("cannot be checked" in note for note in opened.notes)
        assert opened.seal.signer == ""


def inner(eggs: Any, slug: str, depth: int) -> tuple[str, str, bytes]:
    """(rappid, name, octets) of an egg to be put into another."""
    rappid = f"rappid:@kody-w/{slug}:" + hashlib.sha256(slug.encode()).hexdigest()
    if depth == 0:
        path = eggs.rapp1({"rappid.json": {"rappid": rappid}, "soul.md": "# s\n"}, rappid=rappid, name=slug)
    else:
        child, name, octets = inner(eggs, f"{slug}-{depth}", depth - 1)
        variant, key = ("neighborhood", "members") if depth == 1 else ("estate", "neighborhoods")
        path = eggs.rapp1({name: octets}, variant=variant, rappid=rappid, payload={key: [child]}, name=slug)
    return rappid, f"kody-w--{slug}.egg", path.read_bytes()


@pytest.mark.parametrize(("depth", "kind"), [(1, "neighborhood"), (2, "estate")])
def test_eggs_in_an_egg_are_each_checked(eggs: Any, depth: int, kind: str) -> None:
    inner(eggs, "top", depth)
    with open_egg(eggs.folder / "top") as opened:
        assert opened.family.kind == kind
        assert opened.destination is Destination.INERT
        assert "1 eggs" in opened.answer
        assert [part.role for part in opened.parts] == [Role.OTHER, Role.OTHER]


def test_a_damaged_egg_two_levels_down_is_found(eggs: Any) -> None:
    rappid, name, octets = inner(eggs, "leaf", 0)
    broken = octets.replace(b"# s\n", b"# t\n")
    assert len(broken) == len(octets)
    key = "members"
    path = eggs.rapp1({name: broken}, variant="neighborhood", payload={key: [rappid]})
    with pytest.raises(BadEggError, match=r"damaged \(soul\.md\)"):
        open_egg(path)


def test_nesting_ends_at_three(eggs: Any) -> None:
    rappid, name, octets = inner(eggs, "mid", 2)
    path = eggs.rapp1({name: octets}, variant="estate", payload={"neighborhoods": [rappid]})
    with pytest.raises(BadEggError):
        open_egg(path)
    # Also where each level says it is a neighborhood of neighborhoods, as no honest one does.
    for _ in range(3):
        rappid, name, octets = eggs.rappid, "kody-w--gardener.egg", path.read_bytes()
        path = eggs.rapp1({name: octets}, variant="estate", payload={"neighborhoods": [rappid]})
    with pytest.raises(BadEggError):
        open_egg(path)


@pytest.mark.parametrize("row", ["text", "object"])
def test_an_inner_egg_must_be_who_it_is_announced_as(eggs: Any, row: str) -> None:
    _, _, octets = inner(eggs, "leaf", 0)
    announced = f"rappid:@kody-w/leaf:{'f' * 64}"
    members = [announced if row == "text" else {"rappid": announced}]
    path = eggs.rapp1({"kody-w--leaf.egg": octets}, variant="neighborhood", payload={"members": members})
    with pytest.raises(BadEggError, match="about another"):
        open_egg(path)
    path = eggs.rapp1({"kody-w--leaf.egg": octets}, variant="estate", payload={"neighborhoods": members})
    with pytest.raises(BadEggError, match="is no neighborhood"):
        open_egg(path)


def set_to(**values: Any) -> Any:
    return lambda manifest: manifest.update(values)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (set_to(rappid="rappid:gardener:" + "a" * 64), "rappid in its manifest"),
        (set_to(rappid="rappid:@Kody/gardener:" + "a" * 64), "rappid in its manifest"),
        (set_to(created_utc="2026-02-30T00:00:00.000Z"), "moment"),
        (set_to(created_utc="2026-02-20T00:00:60.000Z"), "moment"),
        (set_to(created_utc="2026-02-20T00:00:00Z"), "moment"),
        (set_to(payload=[]), "payload"),
        (set_to(sig=""), "signature"),
        (set_to(sig={}), "signature"),
        (set_to(more=1), "one too many"),
        (lambda manifest: manifest.pop("sig"), "lacks a key"),
        (lambda manifest: manifest["contents"].reverse(), "list of files"),
        (lambda manifest: manifest["contents"].append(manifest["contents"][-1]), "list of files"),
        (lambda manifest: manifest["contents"].pop(), "not those that it lists"),
        (lambda manifest: manifest["contents"][0].update(hash="0" * 64), "agents/a_agent.py"),
        (lambda manifest: manifest["contents"][0].update(hash="A" * 64), "no hash"),
        (lambda manifest: manifest["contents"][0].update(size=1), "list of files"),
        (lambda manifest: manifest["contents"][0].update(path=7), "list of files"),
        (set_to(contents={}), "list of files"),
        (set_to(variant="rapplication"), "agent.py is missing"),
        (set_to(variant="session"), "is JSON"),
        (set_to(payload={"deep": json.loads("[" * 80 + "]" * 80)}), "nested too deep"),
    ],
)
def test_what_the_specification_demands_is_demanded(eggs: Any, change: Any, named: str) -> None:
    with pytest.raises(BadEggError, match=f"damaged.*{named}"):
        open_egg(eggs.rapp1(plain_organism(eggs), change=change))


def test_an_unknown_variant_is_refused_with_the_table(eggs: Any) -> None:
    with refused("unknown_egg", match="don't know how to hatch this"):
        open_egg(eggs.rapp1(plain_organism(eggs), variant="galaxy"))


@pytest.mark.parametrize("missing", ["rappid.json", "soul.md"])
def test_an_organism_needs_identity_and_soul(eggs: Any, missing: str) -> None:
    members = plain_organism(eggs)
    del members[missing]
    with pytest.raises(BadEggError, match=f"{missing} is missing"):
        open_egg(eggs.rapp1(members))


def test_two_identities_need_a_migration_note(eggs: Any) -> None:
    members = {**plain_organism(eggs), "rappid.json": {"rappid": eggs.other}}
    with pytest.raises(BadEggError, match="another than"):
        open_egg(eggs.rapp1(members))
    with open_egg(eggs.rapp1(members, payload={"_migrated_from": eggs.other})) as opened:
        assert opened.rappid is not None
        assert opened.rappid.text == eggs.other


def test_a_manifest_that_is_not_canonical_is_refused(eggs: Any) -> None:
    path = eggs.rapp1(plain_organism(eggs))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for change in (lambda text: text + b"\n", lambda text: text.replace(b'":', b'": ', 1)):
        changed = {**members, "manifest.json": change(members["manifest.json"])}
        with pytest.raises(BadEggError, match="canonical"):
            open_egg(eggs.zip(changed, stored=True))
    with pytest.raises(BadEggError, match="canonical"):
        payload = {"runtime": "r", "transcript": []}
        open_egg(eggs.json(document(eggs, "session", payload).replace(b'"r"', b'"\\u0072"')))


def test_order_and_storage_are_demanded(eggs: Any) -> None:
    path = eggs.rapp1(plain_organism(eggs))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with pytest.raises(BadEggError, match="compressed"):
        open_egg(eggs.zip(members))
    with pytest.raises(BadEggError, match="not the first"):
        open_egg(eggs.zip(dict(reversed(members.items())), stored=True))
    soul = members.pop("soul.md")
    reordered = {"manifest.json": members.pop("manifest.json"), "soul.md": soul, **members}
    with pytest.raises(BadEggError, match="in that order"):
        open_egg(eggs.zip(reordered, stored=True))
    with pytest.raises(BadEggError, match="in that order"):
        open_egg(eggs.zip({**reordered, "integrity.json": "{}"}, stored=True))


def test_a_path_that_leads_outside_is_hostile(eggs: Any) -> None:
    def outside(manifest: dict[str, Any]) -> None:
        manifest["contents"][0]["path"] = "../../x"

    with pytest.raises(HostileEggError):
        open_egg(eggs.rapp1(plain_organism(eggs), change=outside))


def test_numbers_that_change_in_binary64_have_no_canonical_form(eggs: Any) -> None:
    octets = document(eggs, "session", {"runtime": "r", "transcript": [{"n": 1}]})
    for number in (b"9007199254740993", b"333333333.33333329", b"1.0", b"-0", b"1e3"):
        with pytest.raises(BadEggError, match="canonical"):
            open_egg(eggs.json(octets.replace(b'"n":1', b'"n":' + number)))
    with open_egg(eggs.json(octets.replace(b'"n":1', b'"n":1e+30'))) as opened:
        assert opened.family.kind == "session"
