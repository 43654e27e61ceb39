"""``peers.json`` and ``BRAINSTEM_PEERS``: read as published, written without losing anything."""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.storage.text_file import decode
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.errors import BadPeersFileError

PUBLISHED: dict[str, Any] = {
    "schema": "somebody's/1.0",
    "peers": [
        "http://attic.lan:7071",
        {
            "name": "shed",
            "url": "http://10.0.0.7:7071/",
            "ssh_user": "me",
            "ssh_host": "shed",
            "zebra": [1, {}],
        },
        {"name": "pi", "url": "https://pi.lan:7443"},
        "http://127.0.0.1:7071",
        "https://localhost:7443",
    ],
    "apple": None,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "peers.json"


def written(path: Path, document: object) -> PeersFile:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return PeersFile(path)


async def test_the_published_form_is_read(path: Path) -> None:
    entries = await written(path, PUBLISHED).entries()
    assert [(one.name, one.address, one.legacy, one.source) for one in entries] == [
        ("", "attic.lan:7071", True, "list"),
        ("shed", "10.0.0.7:7071", True, "list"),
        ("pi", "pi.lan:7443", False, "list"),
    ]
    assert entries[1].url == "http://10.0.0.7:7071/"


async def test_loopback_is_read_only_on_request(path: Path) -> None:
    written(path, PUBLISHED)
    entries = await PeersFile(path, allow_loopback=True).entries()
    assert [one.address for one in entries][-2:] == ["127.0.0.1:7071", "localhost:7443"]


async def test_without_a_file_there_is_nothing_wrong(path: Path) -> None:
    peers = PeersFile(path)
    assert await peers.entries() == ()
    assert peers.trouble == ""
    await peers.check()


async def test_the_environment_comes_after_the_file(path: Path) -> None:
    written(path, {"peers": ["http://a:1"]})
    peers = PeersFile(path, environment="https://b, http://a:1 ,http://127.0.0.1:7071,")
    assert [(one.address, one.source) for one in await peers.entries()] == [
        ("a:1", "list"),
        ("b:7443", "list"),
    ]
    bad = PeersFile(path, environment="http://c:1,ftp://d")
    assert [one.address for one in await bad.entries()] == ["a:1", "c:1"]
    assert bad.trouble == "BRAINSTEM_PEERS: entry 1 is neither http:// nor https://."
    with pytest.raises(BadPeersFileError, match="BRAINSTEM_PEERS: entry 1"):
        await bad.check()


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        (5, "has no URL"),
        ({"name": "x"}, "has no URL"),
        ({"url": ["http://a"]}, "has no URL"),
        ("ftp://a", "is neither"),
        ("http://me:secret@a:7071", "holds a name or a password"),
        ("http://a:0", "names no machine"),
        ("https://", "names no machine"),
        ("http://[::1", "is no URL"),
        ({"url": "http://a", "name": 5}, "has a name or a fingerprint"),
    ],
)
async def test_a_bad_entry_is_named_and_the_others_work(path: Path, entry: object, wrong: str) -> None:
    peers = written(path, {"peers": ["http://a:7071", entry, "http://b:7071"]})
    assert [one.host for one in await peers.entries()] == ["a", "b"]
    assert peers.trouble.startswith(f"peers.json: entry 1 {wrong}")
    assert "secret" not in peers.trouble
    with pytest.raises(BadPeersFileError, match="entry 1") as refused:
        await peers.check()
    assert refused.value.exit_code == 5


@pytest.mark.parametrize("content", [b"[1]", b"{", b'{"peers": {}}', b"\xff\xfe", b"x" * (5 << 20)])
async def test_a_file_that_is_none_is_told_and_never_overwritten(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    peers = PeersFile(path)
    assert await peers.entries() == ()
    assert "peers.json" in peers.trouble
    with pytest.raises(BadPeersFileError):
        await peers.add("https://pi:7443")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("encoded", "says"),
    [
        (lambda text: codecs.BOM_UTF8 + text.encode(), ""),
        (lambda text: text.replace("\n", "\r\n").encode(), ""),
        (lambda text: text.replace("\n", "\r").encode(), ""),
        (lambda text: text.encode("utf-16"), "is text in UTF-16, not UTF-8"),
        (lambda text: text.encode("latin-1"), "is not UTF-8 in line 2; it may be Latin-1"),
    ],
    ids=["mark", "windows", "old-mac", "utf-16", "latin-1"],
)
async def test_file_of_any_editor_is_read_or_named_and_written_back_in_kind(
    path: Path, encoded: Callable[[str], bytes], says: str
) -> None:
    text = '{\n  "peers": [{"name": "café", "url": "http://a:1"}]\n}\n'
    kept = path.parent.parent / "dotfiles.json"
    kept.write_bytes(encoded(text))
    path.parent.mkdir()
    path.symlink_to(kept)
    peers = PeersFile(path)
    assert [one.name for one in await peers.entries()] == ([] if says else ["café"])
    assert says in peers.trouble
    if says:
        with pytest.raises(BadPeersFileError, match=f"peers.json {says}") as refused:
            await peers.add("10.0.0.9")
        assert refused.value.do.startswith("Save it as UTF-8 in your editor.")
        assert kept.read_bytes() == encoded(text)
        return
    await peers.add("10.0.0.9", name="barn")
    assert path.is_symlink()
    found = decode(kept.read_bytes())
    assert kept.read_bytes() == encoded(found.text)
    assert [one["name"] for one in json.loads(found.text)["peers"]] == ["café", "barn"]


async def test_adding_keeps_everything_else(path: Path) -> None:
    peers = written(path, PUBLISHED)
    added = await peers.add("10.0.0.9", name="barn", fingerprint="ab" * 32)
    assert (added.url, added.source, added.legacy) == ("https://10.0.0.9:7443", "typed", False)
    document = json.loads(path.read_text())
    assert list(document) == list(PUBLISHED)
    assert document["peers"][:-1] == PUBLISHED["peers"]
    assert list(document["peers"][1]) == list(PUBLISHED["peers"][1])
    assert document["peers"][-1] == {
        "name": "barn", "url": "https://10.0.0.9:7443", "fingerprint": "ab" * 32, "typed": True,
    }  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600
    assert (await peers.entries())[-1] == added
    assert [one.name for one in path.parent.iterdir()] == ["peers.json"]


async def test_adding_again_fills_in_and_adds_nothing(path: Path) -> None:
    peers = written(path, PUBLISHED)
    await peers.add("https://pi.lan:7443", fingerprint="cd" * 32)
    await peers.add("http://attic.lan:7071", name="attic", typed=False)
    document = json.loads(path.read_text())
    assert len(document["peers"]) == len(PUBLISHED["peers"])
    assert document["peers"][2] == {
        "name": "pi", "url": "https://pi.lan:7443", "fingerprint": "cd" * 32, "typed": True,
    }  # fmt: skip
    assert document["peers"][0] == {"name": "attic", "url": "http://attic.lan:7071"}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_published_brainstem_on_another_local_port_is_added(path: Path, host: str) -> None:
    peers = PeersFile(path, own_port=7171)
    added = await peers.add(f"http://{host}:7072")
    assert (added.legacy, added.port) == (True, 7072)
    assert await peers.entries() == (added,)
    for own in (f"http://{host}:7171", f"https://{host}:7072", f"{host}:7072", "http://0.0.0.0:7072"):
        with pytest.raises(BadPeersFileError, match="this machine itself"):
            await peers.add(own)
    assert await peers.entries() == (added,)


@pytest.mark.parametrize("address", ["localhost", "http://127.0.0.1:7071", "", "ssh://pi", "a b"])
async def test_what_leads_nowhere_is_not_added(path: Path, address: str) -> None:
    with pytest.raises(BadPeersFileError):
        await PeersFile(path).add(address)
    assert not path.exists()


@pytest.mark.parametrize(
    "address",
    ["fe80::2%lo", "[fe80::2%lo]:7443", "https://[fe80::2%lo]", "https://[fe80::2%25lo]:7443", "FE80::2%lo"],
)
async def test_a_zone_is_understood_in_addresses_and_urls(path: Path, address: str) -> None:
    peers = PeersFile(path)
    entry = await peers.add(address)
    assert (entry.host, entry.address) == ("fe80::2%lo", "[fe80::2%lo]:7443")
    await peers.add("http://[fe80::2%25lo]:7071/api/brain")
    assert [one["url"].partition("lo]")[0] for one in json.loads(path.read_text())["peers"]] == [
        "https://[fe80::2%25", "http://[fe80::2%25",
    ]  # fmt: skip
    again = await PeersFile(path).entries()
    assert [one.host for one in again] == ["fe80::2%lo", "fe80::2%lo"]
    assert again[1].url == "http://[fe80::2%lo]:7071/api/brain", "as sockets take it"


async def test_a_zone_that_begins_as_an_escape_stays_itself(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.if_indextoname", lambda number: "veth")
    peers = PeersFile(path)
    for number in (25, 251, 2525):
        await peers.add(f"fe80::2%{number}")
    found = await PeersFile(path).entries()
    assert [one.host for one in found] == ["fe80::2%25", "fe80::2%251", "fe80::2%2525"]


@pytest.mark.parametrize(
    ("address", "said", "do"),
    [
        ("fe80::2", "leads nowhere without its link", "Say by which link: fe80::2%"),
        ("http://[fe80::2]:7071", "leads nowhere without its link", "Say by which link: fe80::2%"),
        ("fe80::2%nolink", "This machine has no link nolink.", "It has: "),
        ("fe80::2%99999999999", "This machine has no link 99999999999.", "It has: "),
    ],
)
async def test_a_link_local_address_needs_a_link_of_this_machine(
    path: Path, address: str, said: str, do: str
) -> None:
    with pytest.raises(BadPeersFileError, match=said) as refused:
        await PeersFile(path).add(address)
    assert (refused.value.do or "").startswith(do)
    assert not path.exists()


async def test_removing(path: Path) -> None:
    peers = written(path, PUBLISHED)
    assert not await peers.remove("https://attic.lan:7071")
    assert await peers.remove("http://attic.lan:7071")
    assert await peers.remove("pi.lan:7443")
    assert not await peers.remove("pi.lan:7443")
    document = json.loads(path.read_text())
    assert document["peers"] == [PUBLISHED["peers"][1], *PUBLISHED["peers"][3:]]
    assert document["schema"] == PUBLISHED["schema"]


async def test_a_change_made_by_hand_is_seen(path: Path) -> None:
    peers = written(path, {"peers": ["http://a:1"]})
    assert [one.host for one in await peers.entries()] == ["a"]
    path.write_text('{"peers": ["http://b:1"]}')
    until = time.monotonic() + 100
    while [one.host for one in await peers.entries()] != ["b"]:
        assert time.monotonic() < until
    path.unlink()
    while await peers.entries():
        assert time.monotonic() < until


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
entries_of_any_kind = st.lists(
    json_values
    | st.fixed_dictionaries(
        {"url": st.text(max_size=20)}, optional={"name": json_values, "ssh_user": json_values}
    ),
    max_size=6,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    entries_of_any_kind, st.dictionaries(st.text(max_size=6).filter(lambda key: key != "peers"), json_values)
)
async def test_nothing_in_the_file_is_ever_lost_or_raises(
    path: Path, listed: list[Any], others: dict[str, Any]
) -> None:
    document = {**others, "peers": listed}
    peers = written(path, document)
    await peers.entries()
    await peers.add("https://a-new-one.lan:7443")
    after = json.loads(path.read_text())
    assert after["peers"][:-1] == listed
    assert {key: value for key, value in after.items() if key != "peers"} == others
