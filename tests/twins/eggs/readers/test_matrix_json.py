"""Every row of the format matrix that is JSON."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.detect import open_egg
from twins.errors import BadEggError

PAYLOAD = "<!doctype html><p>Grüße</p>"


def session(**more: Any) -> dict[str, Any]:
    return {
        "schema": "brainstem-egg/2.3-session",
        "type": "session",
        "rappid": f"rappid:v2:cart:@kody-w/RAPP#vbrainstem:{'a' * 32}@github.com/kody-w/RAPP",
        "name": "vbrainstem",
        "title": "Two at a table",
        "participants": [
            {"rappid": "x", "role": "operator", "name": "Kody"},
            {"rappid": "y", "role": "coordinator", "name": "Ada"},
        ],
        "runtime": {
            "type": "html",
            "sha256": hashlib.sha256(PAYLOAD.encode()).hexdigest(),
            "payload": PAYLOAD,
        },
        "transcript": [{"event": 0, "kind": "session_start", "ts": "2026-05-10T00:00:00Z"}],
        "exported_at": "2026-05-10T01:00:00Z",
        **more,
    }


@pytest.mark.parametrize("schema", ["brainstem-egg/2.3-session", "rappterbox-cart/0.1"])
def test_a_session_answers_with_where_to_open_it(eggs: Any, schema: str) -> None:
    with open_egg(eggs.json(session(schema=schema))) as opened:
        assert (opened.family.tag, opened.destination) == (schema, Destination.ANSWER)
        answer = opened.answer
        assert "'Two at a table' (vbrainstem)" in answer
        octets = PAYLOAD.encode()
        assert f"html, sha256 {hashlib.sha256(octets).hexdigest()[:16]}, {len(octets)} bytes" in answer
        assert "transcript of 1 events" in answer
        assert "Kody, Ada" in answer
        assert "rappd sessions open some.egg" in answer
        runtime = next(part for part in opened.parts if part.name == "runtime.html")
        assert runtime.read() == octets
        assert opened.rappid is not None
        assert opened.rappid.form == "v2"


def test_a_runtime_that_is_not_what_its_hash_says_is_damage(eggs: Any) -> None:
    cart = session()
    cart["runtime"]["payload"] += " "
    with pytest.raises(BadEggError, match=r"some\.egg is damaged \(runtime\); nothing was written"):
        open_egg(eggs.json(cart))


def test_a_tutorial_session_may_lack_nearly_everything(eggs: Any) -> None:
    cart = {"schema": "brainstem-egg/2.3-session", "type": "session", "runtime": {"type": "html"}}
    with open_egg(eggs.json(cart, "tutorial.egg")) as opened:
        assert "transcript of 0 events" in opened.answer
        assert opened.name == "tutorial.egg"
        assert any("no runtime" in note for note in opened.notes)
        assert any("operator" in note for note in opened.notes)


def test_an_invitation_to_a_neighborhood(eggs: Any) -> None:
    said = {
        "schema": "brainstem-egg/2.3-neighborhood",
        "type": "neighborhood-invite",
        "version": "1.0",
        "rappid": eggs.rappid,
        "display_name": "The Batcave",
        "neighborhood_url": "https://example.org/batcave",
        "invite_created_at": "2026-06-01T00:00:00Z",
        "invite_expires_at": "2026-07-01",
        "payphone": "x",
    }
    with open_egg(eggs.json(said)) as opened:
        assert opened.destination is Destination.ANSWER
        assert (opened.name, opened.packed_at) == ("The Batcave", "2026-06-01T00:00:00Z")
        assert "good until 2026-07-01" in opened.answer
        assert "https://example.org/batcave" in opened.answer
        assert opened.parts == ()


def spec(kind: str, content: Any, scale: str = "daemon") -> dict[str, Any]:
    octets = (
        content.encode()
        if kind == "cartridge_xml"
        else json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    )
    return {
        "_format": "egg",
        "_schema_version": 1,
        "organism": {"slug": "sparky", "species": "rappter-buddy", "instance": "sparky", "scale": scale},
        "body": {
            "kind": kind,
            "filename": "sparky.json",
            "content": content,
            "sha256": hashlib.sha256(octets).hexdigest(),
            "size_bytes": len(octets),
        },
        "lineage": {"created_at": "2026-04-01T00:00:00Z", "created_by": "kody", "parent_egg_sha256": None},
        "validation": {"ok": True, "issues": []},
    }


VECTOR_A = {"name": "Sparky", "mood": "curious", "tick": 0}
VECTOR_B = "<organism>\n  <name>Hello</name>\n</organism>\n"


def test_egg_spec_v1_with_its_published_vectors(eggs: Any) -> None:
    a, b = spec("state_json", VECTOR_A), spec("cartridge_xml", VECTOR_B, "planet")
    assert a["body"]["sha256"] == "8212945245a0aee1e49eee9ca275715810e266c04ce7bbae1ab3feb875ee76bf"
    assert b["body"]["sha256"] == "945246918eb874fbbfc0559ce4dc78a0bfc0c8773e652ac565f7c5c39cef162c"
    assert (a["body"]["size_bytes"], b["body"]["size_bytes"]) == (43, 44)
    with open_egg(eggs.json(a)) as opened:
        assert opened.destination is Destination.TWIN
        assert opened.seal.whole is True
        roles = {part.role: part for part in opened.parts}
        assert json.loads(roles[Role.IDENTITY].read())["kind"] == "buddy"
        parts = {part.target: part for part in opened.parts}
        assert json.loads(parts[".brainstem_data/buddy.rappter.egg"].read()) == a
        assert json.loads(parts[".brainstem_data/buddy.json"].read())["organism"]["name"] == "Sparky"
    with open_egg(eggs.json(b)) as opened:
        assert opened.destination is Destination.INERT
        assert opened.folder.startswith("organisms/")
        assert json.loads(opened.parts[0].read()) == b


def test_egg_spec_v1_with_another_body_is_damaged(eggs: Any) -> None:
    egg = spec("state_json", VECTOR_A)
    egg["body"]["content"] = {**VECTOR_A, "tick": 1}
    with pytest.raises(BadEggError, match="its body"):
        open_egg(eggs.json(egg))


def buddy(**organism: Any) -> dict[str, Any]:
    return {
        "_meta": {
            "type": "rappter.egg",
            "version": 1,
            "format": ".rappter.egg",
            "exported_at": "2026-04-12T00:00:00Z",
        },
        "organism": {
            "name": "Fluffy",
            "stage": "juvenile",
            "xp": 60,
            "created_at": "2026-03-01T08:15:30.123Z",
            **organism,
        },
    }


def test_a_buddy_saved_twice_is_the_same_one(eggs: Any) -> None:
    first = open_egg(eggs.json(buddy(), "a.rappter.egg"))
    later = open_egg(eggs.json(buddy(xp=900), "b.rappter.egg"))
    other = open_egg(eggs.json(buddy(created_at="2026-03-02T08:15:30.123Z"), "c.rappter.egg"))
    assert first.destination is Destination.TWIN
    assert first.rappid == later.rappid != other.rappid
    assert first.name == "Fluffy"
    assert first.packed_at == "2026-04-12T00:00:00Z"
    state = next(part for part in first.parts if part.role is Role.MEMORY)
    assert state.target.startswith(".brainstem_data/")
    assert json.loads(state.read())["organism"]["xp"] == 60


def test_a_buddy_is_the_same_one_in_every_shape(eggs: Any) -> None:
    seed = {"schema": "rappter-egg/1.0", "id": "fluffy-04", "name": "Fluffy", "stage": "juvenile",
            "lineage": {"hatched_at": "2026-03-01T00:00:00Z"}}  # fmt: skip
    for number, one in enumerate((buddy(), seed)):
        rappids = [
            open_egg(eggs.json(convert(one, shape), f"{number}{shape.name}.egg")).rappid for shape in Shape
        ]
        assert len({rappid.text for rappid in rappids}) == 1
    other = {**seed, "id": "fluffy-05"}
    assert open_egg(eggs.json(other)).rappid != open_egg(eggs.json(seed)).rappid


def test_the_cartridge_documents_own_shape(eggs: Any) -> None:
    cartridge = {
        "schema": "rappter-egg/1.0",
        "id": "fluffy-04",
        "name": "Fluffy",
        "stage": "juvenile",
        "stats": {"intellect": 47},
        "lineage": {"hatched_at": "2026-03-01T00:00:00Z"},
    }
    with open_egg(eggs.json(cartridge)) as opened:
        assert (opened.family.tag, opened.family.kind) == ("rappter-egg/1.0", "buddy")
        assert opened.destination is Destination.TWIN


def test_a_cartridge_that_claims_two_shapes_is_refused(eggs: Any) -> None:
    with pytest.raises(BadEggError, match="at once"):
        open_egg(eggs.json({**buddy(), "schema": "rappter-egg/1.0", "name": "x", "stage": "egg"}))


def test_a_lispy_cartridge_is_an_agent_beside_the_others(eggs: Any) -> None:
    octets = b'{ "_meta": {"type": "lispy-cartridge", "version": 1, "agent_id": "zion-coder"},\n "env": {} }'
    with open_egg(eggs.json(octets)) as opened:
        assert opened.destination is Destination.HOST
        (part,) = opened.parts
        assert (part.role, part.target) == (Role.AGENT, "agents/zion-coder.lispy.json")
        assert part.read() == octets


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (
            {
                "_meta": {"format": "phylogeny.v1"},
                "species": "rappter",
                "identity": {"name": "Rex", "stage": "elder"},
            },
            "phylogeny",
        ),
        ({"format": "orappter-cartridge/1.0", "name": "pong", "boot": []}, "game"),
    ],
)
def test_what_nothing_here_runs_is_read_and_says_so(eggs: Any, document: Any, kind: str) -> None:
    with open_egg(eggs.json(document)) as opened:
        assert (opened.family.kind, opened.destination) == (kind, Destination.ANSWER)
        assert "nothing here runs it" in opened.answer
        assert json.loads(opened.parts[0].read()) == document


def neighborhood(eggs: Any) -> dict[str, Any]:
    return {
        "_format": "egg",
        "organism": {
            "kind": "neighborhood",
            "name": "Elm Street",
            "rappid": eggs.rappid,
            "hash": eggs.key,
            "neighborhood": {"rappid.json": {"rappid": eggs.rappid}, "members.json": '{"members": []}'},
            "twins": {
                "rose": {
                    "rappid.json": json.dumps({"rappid": eggs.other}),
                    "soul.md": "# Rose\n",
                    "agents/rose_agent.py": "class A: pass\n",
                    ".deps/evil.py": "x",
                }
            },
            "fleet_agents": {"fleet_agent.py": "class F: pass\n"},
            "weather": "mild",
        },
    }


def test_a_neighborhood_in_one_json_file(eggs: Any) -> None:
    with open_egg(eggs.json(neighborhood(eggs))) as opened:
        assert (opened.family.tag, opened.destination) == ("neighborhood-egg/1.0", Destination.ANSWER)
        assert opened.name == "Elm Street"
        found = {part.name: (part.role.value, part.target) for part in opened.parts}
        twin = f"twins/{'b' * 64}"
        assert found["twins/rose/rappid.json"] == ("identity", f"{twin}/rappid.json")
        assert found["twins/rose/agents/rose_agent.py"] == ("agent", f"{twin}/agents/rose_agent.py")
        own = f"neighborhoods/{eggs.key}"
        assert found["twins/rose/.deps/evil.py"] == ("other", f"{own}/unplaced/twins/rose/.deps/evil.py")
        assert found["members.json"] == ("roster", f"{own}/members.json")
        assert found["fleet_agents/fleet_agent.py"] == ("other", f"{own}/fleet_agents/fleet_agent.py")
        rest = next(part for part in opened.parts if part.name == "organism.json")
        assert json.loads(rest.read())["weather"] == "mild"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_content_hash_counts_where_it_fits(eggs: Any, ascii_only: bool) -> None:
    document = neighborhood(eggs)
    document["organism"]["name"] = "Ülme"
    octets = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only).encode()
    document["_content_sha256"] = hashlib.sha256(octets).hexdigest()
    with open_egg(eggs.json(document)) as opened:
        assert opened.seal.whole is True
    document["organism"]["name"] = "Elm"
    with open_egg(eggs.json(document)) as opened:
        assert opened.seal.whole is None
        assert any("_content_sha256" in note for note in opened.notes)


def test_seeds_as_a_file_answer_with_the_egg_string(eggs: Any) -> None:
    with open_egg(eggs.json({"schema": "rapp-egg/1.0", "seeds": [0, 1, 2], "count": 3})) as opened:
        assert opened.destination is Destination.ANSWER
        assert "AAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAC" in opened.answer
    with open_egg(eggs.json({"schema": "rapp-egg/1.0", "seeds": [1 << 65]})) as opened:
        assert opened.manifest["seeds"] == [str(1 << 65)]
        assert "v2." in opened.answer
    with pytest.raises(BadEggError, match="seeds"):
        open_egg(eggs.json({"schema": "rapp-egg/1.0", "seeds": ["1"]}))


def test_the_bytes_decide_and_not_the_extension(eggs: Any) -> None:
    with open_egg(eggs.json(session(), "some.zip")) as opened:
        assert opened.family.kind == "session"
    with open_egg(eggs.json(b"\xef\xbb\xbf\n " + json.dumps(session()).encode(), "bom.txt")) as opened:
        assert opened.family.kind == "session"
