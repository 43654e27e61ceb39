"""Eggs that were changed at random: whatever they are, they open or are refused as eggs, and nothing else happens."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.diff import compare_eggs
from twins.eggs.readers.inspect import inspect, lines
from twins.errors import BadEggError
from twins.workspace.identity_file import Identity

ROUNDS = 300
_CONTENTS: list[Any] = [
    "", "[]", "{", "{}", '{"rappid": "x"}', b"\xff", '{"rappid": "rappid:rose:0d51aaaabbbbcccc"}',
    '{"rappid": null, "rappid_uuid": "123e4567-e89b-42d3-a456-426614174000"}',
]  # fmt: skip
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_JUNK: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2**63,
    "",
    "..",
    "/x",
    "a\x00b",
    "x" * 300,
    [],
    {},
    [{}],
    {"a": []},
    "é",
]


def opens_or_is_refused(path: Path) -> bool:
    """True when it opened. Anything that is raised and is no ``BadEggError`` fails the test."""
    try:
        opened = open_egg(path)
    except BadEggError as error:
        assert str(error)
        assert "\x1b" not in str(error)
        return False
    with opened:
        json.dumps(inspect(opened))
        assert not any(_STEERING.search(line.text) for line in lines(opened))
        assert compare_eggs(opened, opened).files == ()
        if opened.destination is Destination.TWIN:
            (identity,) = (part for part in opened.parts if part.role is Role.IDENTITY)
            said = Identity.decode(identity.read())
            assert (identity.target, said.rappid) == ("rappid.json", opened.rappid)
            assert opened.folder == f"twins/{said.rappid.key}"
        for part in opened.parts:
            assert len(part.read()) == part.size
    return True


def documents(eggs: Any) -> list[dict[str, Any]]:
    """A JSON egg of each family."""
    return [
        {
            "schema": "brainstem-egg/2.3-session",
            "rappid": eggs.rappid,
            "participants": [{"role": "operator", "name": "K"}],
            "runtime": {"type": "html", "payload": "<p>"},
            "transcript": [{"event": 0}],
        },
        {"schema": "brainstem-egg/2.3-neighborhood", "rappid": eggs.rappid, "display_name": "B"},
        {"_meta": {"type": "rappter.egg", "version": 1}, "organism": {"name": "F", "memories": []}},
        {"schema": "rappter-egg/1.0", "name": "F", "stage": "egg", "lineage": {"evolutions": []}},
        {
            "_format": "egg",
            "_schema_version": 1,
            "organism": {"slug": "s", "species": "p", "instance": "i", "scale": "daemon"},
            "body": {
                "kind": "state_json",
                "filename": "s.json",
                "content": {},
                "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
                "size_bytes": 2,
            },
            "lineage": {},
            "validation": {},
        },
        {
            "_format": "egg",
            "_content_sha256": "x",
            "organism": {
                "kind": "neighborhood",
                "neighborhood": {"rappid.json": {"rappid": eggs.rappid}},
                "twins": {"rose": {"soul.md": "x", "rappid.json": "{}"}},
                "fleet_agents": {"a.py": "x"},
            },
        },
        {"_meta": {"type": "lispy-cartridge", "agent_id": "z"}, "env": {}},
        {"_meta": {"format": "phylogeny.v1"}, "identity": {"name": "R"}},
        {"format": "orappter-cartridge/1.0", "name": "pong"},
        {"schema": "rapp-egg/1.0", "seeds": [1, 2]},
        eggs.manifest1({}, variant="session", payload={"runtime": "r", "transcript": [{}]}),
        eggs.manifest1({}, variant="invite", payload={"target_kind": "estate"}, sig="x"),
    ]


def manifests(eggs: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A ZIP egg of each family: its manifest, its other members."""
    workspace = {
        "rappid.json": json.dumps({"rappid": eggs.rappid}),
        "soul.md": "x",
        "agents/a_agent.py": "x",
        "estate.json": "{}",
        "cubby/a": "x",
        "data/m.json": "{}",
        f"twins/{eggs.key}/soul.md": "x",
    }
    said: list[dict[str, Any]] = [
        {"schema": "brainstem-egg/2.0", "type": "snapshot", "id": "x", "lineage": {}},
        {"schema": "brainstem-egg/2.1", "source": {"rappid": eggs.rappid}},
        {"schema": "brainstem-egg/2.2-organism", "provenance": {"file_hashes": {"soul.md": "0" * 64}}},
        {"schema": "brainstem-egg/2.2-rapplication", "rapp_id": "x", "rappid": eggs.rappid},
        {"schema": "brainstem-egg/2.3-neighborhood", "rappid": eggs.rappid},
        {"schema": "brainstem-egg/2.3-cubby", "owner": "k", "files": [{"path": "a", "sha256": "0" * 64}]},
        {"schema": "brainstem-egg/2.3-estate", "members": [{"hash": "x"}], "owner_rappid": eggs.rappid},
        {"schema": "rapp-egg/1.0", "id": "x", "agent_filename": "a_agent.py"},
        {"schema": "rapp-application/1.0", "id": "x"},
        *(
            {"schema": "rapp-egg/2.0", "scale": scale, "rappid": eggs.rappid}
            for scale in ("agent", "twin", "brainstem", "swarm")
        ),
        {"schema": "rapp-egg/2.0", "scale": "neighborhood", "members": [{"hash": eggs.key}]},
        {
            "schema": "rapp-egg/2.0",
            "scale": "neighborhood",
            "members": {
                "local": {"twins": [{"hash": eggs.key}]},
                "peers": [{"name": "p", "twins": [{"hash": "h"}]}],
            },
        },
    ]
    egg = {"EGG.json": json.dumps({"schema": "rapp-egg/1.0"})}
    return [(one, {**workspace, **(egg if "application" in one["schema"] else {})}) for one in said]


def changed(value: Any, rng: random.Random) -> Any:
    """The value with one place in it replaced, removed or repeated."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        what = rng.random()
        if what < 0.15:
            return {name: inner for name, inner in value.items() if name != key}
        if what < 0.25:
            return {**value, str(rng.choice(_JUNK)): value[key]}
        return {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], changed(value[at], rng), *value[at + rng.randrange(2) :]]
    return rng.choice(_JUNK)


def test_every_family_of_the_corpus_opens_unchanged(eggs: Any) -> None:
    assert sum(opens_or_is_refused(eggs.json(document)) for document in documents(eggs)) >= 10
    opened = sum(opens_or_is_refused(eggs.zip({"manifest.json": a, **b})) for a, b in manifests(eggs))
    assert opened >= 12  # of the rest the hashes are made up


@pytest.mark.parametrize("seed", range(4))
def test_changed_json_eggs(eggs: Any, seed: int) -> None:
    rng = random.Random(seed)
    corpus = documents(eggs)
    refused = 0
    for _ in range(ROUNDS):
        refused += not opens_or_is_refused(eggs.json(changed(rng.choice(corpus), rng)))
    assert 0 < refused < ROUNDS


@pytest.mark.parametrize("seed", range(4))
def test_changed_manifests(eggs: Any, seed: int) -> None:
    rng = random.Random(seed)
    corpus = manifests(eggs)
    refused = 0
    for _ in range(ROUNDS):
        manifest, members = rng.choice(corpus)
        members = dict(members)
        if rng.random() < 0.3:
            members[rng.choice([*members, "repo/rappid.json", "organism.json", "EGG.json", ".env"])] = (
                rng.choice(_CONTENTS)
            )
        refused += not opens_or_is_refused(eggs.zip({"manifest.json": changed(manifest, rng), **members}))
    assert 0 < refused < ROUNDS


@pytest.mark.parametrize("seed", range(4))
def test_changed_bytes(eggs: Any, seed: int) -> None:
    rng = random.Random(seed)
    manifest, members = rng.choice(manifests(eggs))
    files = {"rappid.json": json.dumps({"rappid": eggs.rappid}), "soul.md": "x"}
    corpus = [
        eggs.zip({"manifest.json": manifest, **members}, "a.egg").read_bytes(),
        eggs.rapp1(files, name="b.egg").read_bytes(),
        json.dumps(rng.choice(documents(eggs))).encode(),
    ]
    path = eggs.folder / "changed.egg"
    for _ in range(ROUNDS):
        octets = bytearray(rng.choice(corpus))
        for _ in range(rng.randint(1, 4)):
            octets[rng.randrange(len(octets))] = rng.randrange(256)
        if rng.random() < 0.2:
            del octets[rng.randrange(len(octets)) :]
        path.write_bytes(bytes(octets))
        opens_or_is_refused(path)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
_DISCRIMINATORS: list[dict[str, Any]] = [
    {"schema": "brainstem-egg/2.3-session"},
    {"schema": "rapp/1-egg", "variant": "session"},
    {"schema": "rapp-egg/1.0", "seeds": []},
    {"_format": "egg"},
    {"_meta": {"type": "rappter.egg"}},
    {"schema": "brainstem-egg/2.3-neighborhood"},
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(_DISCRIMINATORS), st.dictionaries(st.sampled_from(
    ["organism", "body", "runtime", "transcript", "participants", "payload", "rappid", "name", "lineage",
     "contents", "sig", "created_utc", "_content_sha256", "exported_at", "members"]
), _json))  # fmt: skip
def test_any_values_in_the_places_that_count(eggs: Any, said: dict[str, Any], more: dict[str, Any]) -> None:
    opens_or_is_refused(eggs.json({**more, **said}))
