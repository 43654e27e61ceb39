"""The daemon's part for cartridges in the page: those that lie here, who signed one, and a signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import Answer, RunningDaemon

from twins.cartridges import json_documents, lispy_file

CLOCK = json_documents.encode(lispy_file.new("clock", {"main": "(+ 1 2)"}, description="Adds."))


@pytest.fixture
def lying(fake_daemon: RunningDaemon) -> Iterator[RunningDaemon]:
    """A daemon with cartridges beside its agents."""
    folder = fake_daemon.agents
    files = {
        "clock.lispy.json": CLOCK,
        "deep/zoë.lispy.json": b"\xef\xbb\xbf" + CLOCK,
        "torn.lispy.json": b"{",
        "pip.lispy.json": b'{"_meta": {"type": "rappter.egg", "version": 1}, "organism": {}}',
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    yield fake_daemon
    for name in files:
        (folder / name).unlink()
    (folder / "deep").rmdir()


def get(daemon: RunningDaemon, path: str) -> Answer:
    return daemon.get(path, control=True)


def post(daemon: RunningDaemon, path: str, body: Any) -> Answer:
    return daemon.post(path, body, control=True)


def test_others_beside_agents_are_listed_as_they_are(lying: RunningDaemon) -> None:
    rows = {row["file"]: row for row in get(lying, "/cartridges").json()["cartridges"]}
    assert list(rows) == ["clock.lispy.json", "deep/zoë.lispy.json", "pip.lispy.json", "torn.lispy.json"]
    clock = rows["clock.lispy.json"]
    assert (clock["name"], clock["description"], clock["size"]) == ("clock", "Adds.", len(CLOCK))
    assert (clock["frame"], clock["frozen"], clock["problem"]) == (0, False, "")
    assert clock["signer"]["standing"] == "unsigned"
    assert "damaged" in rows["torn.lispy.json"]["problem"] and rows["pip.lispy.json"]["problem"]
    told = get(lying, "/cartridges/deep/zo%C3%AB.lispy.json").json()["cartridge"]
    assert told["text"].encode() == (lying.agents / "deep" / "zoë.lispy.json").read_bytes()
    for elsewhere in ("../settings.toml", "%2e%2e/soul.md", "clock_agent.py", "nobody.lispy.json"):
        assert get(lying, f"/cartridges/{elsewhere}").status == 404


def test_twins_files_are_listed_apart_from_brainstems(
    lying: RunningDaemon,
) -> None:
    key = post(lying, "/twins", {"name": "Rose"}).json()["key"]
    agents = lying.home / "twins" / key / "agents"
    own = json_documents.encode(lispy_file.new("clock", {"main": "(+ 2 2)"}))
    (agents / "clock.lispy.json").write_bytes(own)
    (agents / "torn.lispy.json").write_text("{")
    try:
        rows = get(lying, "/cartridges").json()["cartridges"]
        of_rose = {row["file"]: row for row in rows if row["twin"] == key}
        assert list(of_rose) == ["clock.lispy.json", "torn.lispy.json"]
        assert {row["of"] for row in of_rose.values()} == {"Rose"}
        assert of_rose["torn.lispy.json"]["problem"]
        assert [row["of"] for row in rows[:4]] == [""] * 4, "the brainstem's come first"
        for twin, octets in (("", CLOCK), (key, own)):
            told = get(lying, f"/cartridges/clock.lispy.json?twin={twin}").json()["cartridge"]
            assert told["text"].encode() == octets
        assert get(lying, "/cartridges/clock.lispy.json?twin=../brainstem").status == 404
        assert get(lying, f"/cartridges/../soul.md?twin={key}").status == 404
        told = lying.cli("cartridge", "list", "--json")
        assert json.loads(told.stdout)["cartridges"] == rows
        shown = lying.cli("cartridge", "list")
        line = next(line for line in shown.stdout.splitlines() if "Rose" in line)
        assert line.split()[:5] == ["clock", "Rose", "0", "frames", "done"]
        assert f"{key}/agents/torn.lispy.json" in shown.stderr
    finally:
        post(lying, f"/twins/{key}/archive", {})
    assert key not in {row["twin"] for row in get(lying, "/cartridges").json()["cartridges"]}


def test_page_signature_holds_in_terminal_for_same_bytes(fake_daemon: RunningDaemon, tmp_path: Path) -> None:
    made = post(fake_daemon, "/cartridges/signature?name=clock.lispy.json", CLOCK).json()
    assert made["file"] == "clock.lispy.json.sig"
    (tmp_path / "clock.lispy.json").write_bytes(CLOCK)
    (tmp_path / made["file"]).write_text(made["signature"])
    told = fake_daemon.cli("cartridge", "inspect", str(tmp_path / "clock.lispy.json"), "--json")
    assert json.loads(told.stdout)["cartridge"]["signer"]["standing"] == "self"

    def signer(octets: bytes, signature: str) -> dict[str, Any]:
        body = {"name": "clock", "sha256": hashlib.sha256(octets).hexdigest(), "signature": signature}
        found: dict[str, Any] = post(fake_daemon, "/cartridges/signer", body).json()
        return found

    assert signer(CLOCK, made["signature"])["signer"]["standing"] == "self"
    for octets, signature in (
        (CLOCK + b" ", made["signature"]),
        (CLOCK, "{}"),
        (CLOCK, made["signature"].replace("clock", "block")),
    ):
        found = signer(octets, signature)
        assert found["signer"]["standing"] == "unsigned"
        assert found["notes"] == ["clock was changed after it was signed; it counts as unsigned."]


def test_nothing_but_a_lispy_cartridge_is_signed(fake_daemon: RunningDaemon) -> None:
    for body in (b"rm -rf /", b"{}", b'{"_meta": {"type": "rappter.egg", "version": 1}}'):
        refused = post(fake_daemon, "/cartridges/signature?name=clock.lispy.json", body)
        assert refused.status == 400 and "signature" not in refused.json()
    assert post(fake_daemon, "/cartridges/signature", CLOCK).json()["code"] == "bad_body"
    bad = {"sha256": "ab", "signature": "{}"}
    assert post(fake_daemon, "/cartridges/signer", bad).json()["code"] == "mistyped"


def test_a_stranger_reads_no_cartridge_and_has_nothing_signed(lying: RunningDaemon) -> None:
    for method, path, body in (
        ("GET", "/cartridges", None),
        ("GET", "/cartridges/clock.lispy.json", None),
        ("POST", "/cartridges/signer", b'{"sha256": "", "signature": ""}'),
        ("POST", "/cartridges/signature?name=clock.lispy.json", CLOCK),
    ):
        refused = lying.request(method, path, body)
        assert refused.status == 403 and refused.json()["code"] == "not_operator", path
