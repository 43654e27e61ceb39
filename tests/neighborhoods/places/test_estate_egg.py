"""The estate egg: each egg in it comes out with the very files, hashes and signature that it went in with."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envelopes.identity.keys import IdentityKey
from neighborhoods.places.estate_egg import MemberEgg, write_estate_egg
from neighborhoods.places.estate_file import Estate
from twins.eggs.nested_eggs import hashes_within, nested_hashes, without_nested, write_nested
from twins.eggs.parsed_egg import ParsedEgg
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.formats import EggFormat, EggMaker
from twins.eggs.writers.pack import pack
from twins.errors import BadEggError
from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid
from twins.workspace.workspace import Workspace

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
KEY = IdentityKey.generate()
OWNER = f"rappid:@ada/desk:{'e' * 64}"

names = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
twin_files = st.dictionaries(
    st.one_of(
        st.just("soul.md"),
        st.builds("agents/{}_agent.py".format, names),
        st.builds("notes/{}.txt".format, names),
        st.builds(".brainstem_data/memory/{}.json".format, names),
    ),
    st.binary(max_size=200).filter(lambda octets: not octets.isascii()),
    max_size=5,
)


def member(folder: Path, number: int, files: dict[str, bytes], form: EggFormat) -> MemberEgg:
    rappid = Rappid.parse(f"rappid:@ada/twin-{number}:{f'{number}' * 64}")
    root = folder / f"twin-{number}"
    (root / "agents").mkdir(parents=True)
    Identity.new(rappid, name=f"twin {number}", kind="personal", born_at=AT).write(root)
    for path, content in {"soul.md": b"I am.", **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    target = folder / f"{number}.egg"
    pack(Workspace.at(root), target, form=form, key=KEY, at=AT, maker=EggMaker(host="desk"))
    return MemberEgg(rappid.key, rappid.text, f"twin {number}", target)


def write(folder: Path, members: list[MemberEgg]) -> Path:
    path = folder / "estate.egg"
    estate = Estate(owner=OWNER).with_entries("created", [one.rappid for one in members], via="scan", at=AT)
    with path.open("x+b") as file:
        write_estate_egg(file, estate, members, at=AT, key=KEY, maker=EggMaker(host="desk"))
    return path


def contents(opened: ParsedEgg) -> dict[str, bytes]:
    return {part.name: part.read() for part in opened.parts}


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(twin_files, st.sampled_from(["twin", "organism", "rapp1-organism"])), max_size=3))
def test_nested_eggs_come_out_as_they_went_in(twins: list[tuple[dict[str, bytes], str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        members = [
            member(folder, number, files, EggFormat(form)) for number, (files, form) in enumerate(twins, 1)
        ]
        with open_egg(write(folder, members)) as opened:
            assert opened.seal.whole
            assert (
                nested_hashes(opened) == sorted(one.key for one in members) == sorted(hashes_within(opened))
            )
            assert not [part for part in without_nested(opened).parts if part.name.startswith("members/")]
            for one in members:
                write_nested(opened, one.key, folder / f"{one.key}.egg")
                with open_egg(folder / f"{one.key}.egg") as inner, open_egg(one.path) as before:
                    assert contents(inner) == contents(before)
                    assert (inner.rappid, inner.family, inner.seal.whole) == (
                        before.rappid,
                        before.family,
                        before.seal.whole,
                    )


def test_changed_file_of_a_nested_egg_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, [member(tmp_path, 1, {"notes/a.txt": b"before"}, EggFormat.TWIN)])
    octets = path.read_bytes()
    path.write_bytes(octets.replace(b"before", b"aft er"))
    with pytest.raises(BadEggError), open_egg(path):
        pass
