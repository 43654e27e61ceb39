"""Compact egg strings, and the registry copy that they are read against."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.eggs.egg_strings import decode, encode
from twins.eggs.parsed_egg import Destination, Role
from twins.eggs.registry_clone import RegistryClone, install_filename
from twins.errors import BadEggError, BadFileError, NoSuchFileError

PUBLISHED = [
    ([0], "AAAAAAAAAAA"),
    ([1], "AAAAAAAAAAE"),
    ([18446744073709551615], "__________8"),
    ([0, 1, 2], "AAAAAAAAAAAAAAAAAAAAAQAAAAAAAAAC"),
]
"""The published vectors."""


@pytest.mark.parametrize(("seeds", "text"), PUBLISHED)
def test_the_published_vectors(seeds: list[int], text: str) -> None:
    assert encode(seeds) == text
    assert decode(text) == seeds


@pytest.mark.parametrize("text", ["AAAA", "v2.AAAA"])
def test_a_length_that_is_no_number_of_seeds(text: str) -> None:
    with pytest.raises(BadEggError, match="3 bytes are no whole number of seeds"):
        decode(text)


@pytest.mark.parametrize("text", ["", "v2."])
def test_an_empty_egg(text: str) -> None:
    assert decode(text) == []
    assert encode([]) == ""


def test_one_seed_beyond_64_bits_makes_all_of_them_wide() -> None:
    text = encode([1, 1 << 65])
    assert text.startswith("v2.")
    assert decode(text) == [1, 1 << 65]


@pytest.mark.parametrize(
    "text",
    [
        "!!!!",
        "AAAAAAAAAA+",
        "AAAAAAAAAA/",
        "AAAAAAAAAAA=",
        " AAAAAAAAAAA",
        "AAAAAAAAAAA\n",
        "V2.",
        "v2.v2.",
        "Ä",
    ],
)
def test_letters_that_a_lenient_decoder_would_drop(text: str) -> None:
    with pytest.raises(BadEggError, match="letter that no egg string has"):
        decode(text)


def test_bits_that_belong_to_no_seed() -> None:
    assert base64.urlsafe_b64decode("AAAAAAAAAAB=") == bytes(8)  # a lenient reader sees seed 0
    with pytest.raises(BadEggError, match="belong to no seed"):
        decode("AAAAAAAAAAB")


@pytest.mark.parametrize("cut", range(1, 11))
def test_a_string_that_was_cut_off(cut: int) -> None:
    with pytest.raises(BadEggError, match=r"cut off|belong to no seed"):
        decode("__________8"[:-cut])


@pytest.mark.parametrize("seeds", [[-1], [1 << 72], ["1"], [True], [1.0], "1", None])
def test_what_is_no_seed(seeds: Any) -> None:
    with pytest.raises(BadEggError, match="72 bits"):
        encode(seeds)


@given(st.lists(st.integers(0, (1 << 72) - 1)))
def test_seeds_come_back_in_order_with_repetitions(seeds: list[int]) -> None:
    assert decode(encode(seeds)) == seeds


@given(st.text(st.sampled_from("ABab01-_v2.=+ "), max_size=30))
def test_there_is_one_string_for_what_is_decoded(text: str) -> None:
    try:
        seeds = decode(text)
    except BadEggError:
        return
    # Seeds that fit 8 bytes may also come in 9: published encoders may have chosen so.
    assert text in (encode(seeds), "v2.", "v2." + _wide(seeds))


def _wide(seeds: list[int]) -> str:
    return base64.urlsafe_b64encode(b"".join(seed.to_bytes(9, "big") for seed in seeds)).rstrip(b"=").decode()


SOURCE = b"class Weather:\n    pass\n"


def entry(name: str, seed: Any, **more: Any) -> dict[str, Any]:
    stem = name.rpartition("/")[2]
    return {
        "name": name,
        "_seed": seed,
        "_file": f"agents/{stem}_agent.py",
        "_install_filename": f"rar_{stem}_agent.py",
        "_sha256": hashlib.sha256(SOURCE).hexdigest(),
        **more,
    }


def clone(folder: Path, *agents: dict[str, Any], **more: Any) -> RegistryClone:
    (folder / "agents").mkdir(exist_ok=True)
    for agent in agents:
        file = agent.get("_file")
        if isinstance(file, str) and file.startswith("agents/"):
            (folder / file).write_bytes(SOURCE)
    registry = {"schema": "rapp-registry/1.1", "agents": list(agents), **more}
    (folder / "registry.json").write_text(json.dumps(registry))
    return RegistryClone.open(folder)


def test_a_string_becomes_agents_for_the_brainstem(tmp_path: Path) -> None:
    registry = clone(tmp_path, entry("@kody/weather", 5), entry("@kody/tides", 1 << 65))
    text = registry.forge(["@kody/tides", "@kody/weather"])
    assert decode(text) == [1 << 65, 5]
    opened = registry.open_string(text)
    assert opened.destination is Destination.HOST
    assert [(part.role, part.target) for part in opened.parts] == [
        (Role.AGENT, "agents/rar_tides_agent.py"),
        (Role.AGENT, "agents/rar_weather_agent.py"),
    ]
    assert opened.parts[0].read() == SOURCE
    json.dumps(opened.manifest)


def test_line_ends_do_not_count(tmp_path: Path) -> None:
    registry = clone(tmp_path, entry("@kody/weather", 5))
    (tmp_path / "agents/weather_agent.py").write_bytes(SOURCE.replace(b"\n", b"\r\n"))
    (found,) = registry.resolve([5])
    assert (found.error, found.content) == ("", SOURCE)


def test_older_seeds_of_an_agent_still_stand_for_it(tmp_path: Path) -> None:
    registry = clone(tmp_path, entry("@kody/weather", 5, _seed_aliases=[7, "8"]), entry("@kody/tides", 7))
    assert [one.name for one in registry.resolve([5, 7, 8])] == [
        "@kody/weather",
        "@kody/tides",
        "@kody/weather",
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"type": "stub", "_source": {"repo": "kody/private"}}, "is a stub; its code is in kody/private"),
        ({"_file": "agents/weather_agent.py.stub"}, "is a stub"),
        ({"_stub_sha256": "0" * 64}, "is a stub"),
        ({"_sha256": "0" * 64}, "not what the registry says"),
        ({"_sha256": None}, "no file and hash"),
        ({"_file": "agents/gone_agent.py"}, "holds no agents/gone_agent.py"),
        ({"_file": "../outside_agent.py"}, "outside its folder"),
        ({"_file": "/etc/passwd"}, "outside its folder"),
        ({"_file": 7}, "no file and hash"),
        ({"_install_filename": "../../x_agent.py"}, "outside its folder"),
    ],
)
def test_unavailable_agent_says_why_and_others_load(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    registry = clone(tmp_path, entry("@kody/weather", 5, **change), entry("@kody/tides", 6))
    if change.get("_file") == "agents/gone_agent.py":
        (tmp_path / "agents/gone_agent.py").unlink()
    (found,) = registry.resolve([5])
    assert why in found.error
    assert found.as_json() == {"seed": "5", "name": "@kody/weather", "error": found.error}
    opened = registry.open_string(encode([5, 6]))
    assert [part.name for part in opened.parts] == ["@kody/tides"]
    assert any(why in note for note in opened.notes)
    with pytest.raises(BadEggError, match="Nothing of this egg string"):
        registry.open_string(encode([5]))


def test_a_link_out_of_the_copy_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    registry = clone(folder, entry("@kody/weather", 5))
    (tmp_path / "secret").write_bytes(SOURCE)
    (folder / "agents/weather_agent.py").unlink()
    (folder / "agents/weather_agent.py").symlink_to(tmp_path / "secret")
    (found,) = registry.resolve([5])
    assert "leads out" in found.error
    assert found.content == b""


def test_unknown_buried_and_ambiguous(tmp_path: Path) -> None:
    registry = clone(
        tmp_path,
        entry("@kody/weather", 5),
        entry("@kody/rain", 5),
        entry("@kody/old", 9),
        lifecycle={"tombstones": [{"name": "@kody/old"}]},
    )
    unknown, ambiguous, buried = registry.resolve([1, 5, 9])
    assert "no agent of this registry" in unknown.error
    assert "@kody/weather and @kody/rain" in ambiguous.error
    assert "withdrawn" in buried.error
    for name in ("@kody/none", "@kody/old"):
        with pytest.raises(NoSuchFileError, match=f'no agent "{name}"'):
            registry.forge([name])


def test_names_to_install_under_follow_the_published_rule() -> None:
    assert install_filename({"name": "@kody-w/Dad.Joke"}) == "rar_kody_w_dad_joke_agent.py"
    assert install_filename({"name": "@rapp/twin_agent"}) == "rar_rapp_twin_agent.py"
    assert install_filename({"name": "x", "_install_filename": "rar_y_agent.py"}) == "rar_y_agent.py"


def test_a_folder_that_is_no_registry(tmp_path: Path) -> None:
    with pytest.raises(NoSuchFileError):
        RegistryClone.open(tmp_path)
    (tmp_path / "registry.json").write_text('{"schema": "rapp-store/1.0"}')
    with pytest.raises(BadFileError, match="no registry"):
        RegistryClone.open(tmp_path)
    (tmp_path / "registry.json").write_text('{"schema": "a", "schema": "b"}')
    with pytest.raises(BadEggError, match="twice"):
        RegistryClone.open(tmp_path)
