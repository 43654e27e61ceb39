"""Eggs, and askers, that are refused, and leave no trace."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from fixtures.operator_page import BrowserKey, OperatorPage
from fixtures.running_daemon import Answer, RunningDaemon
from fixtures.twin_workspace import KETTLE, Place, lies

from rappd.errors import NotFoundError
from rappd.features.eggs import links
from rappd.features.features import all_operations
from tests.twins.eggs.hostile_corpus import HOSTILE, Hostile


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A home in which nothing happens but what the test does."""
    daemon = RunningDaemon(tmp_path_factory.mktemp("quiet") / "home", LLM_FAKE="1").start()
    daemon.request("POST", "/eggs", b"no egg", control=True)
    daemon.request("GET", "/peers", control=True)  # waits until what other machines need is there, too
    yield daemon
    daemon.stop()


@pytest.mark.parametrize("few", range(4))
def test_hostile_eggs_leave_no_trace(quiet: RunningDaemon, few: int) -> None:
    before = lies(quiet.home)
    for one in HOSTILE[few::4]:
        answer = quiet.request("POST", f"/eggs?name={one.name}.egg", one.octets, control=True)
        _refused_well(answer, one)
    assert lies(quiet.home) == before
    assert list((quiet.home / "eggs" / ".waiting").iterdir()) == []


def _refused_well(answer: Answer, one: Hostile) -> None:
    assert answer.status == 400, one
    found = answer.json()
    assert found["code"] in ("hostile_egg", "bad_egg", "unknown_egg", "bad_body"), one
    assert "\n" not in found["error"] or found["code"] == "unknown_egg", "which says what is known"
    assert one.says in found["error"] or found["code"] in ("bad_body", "unknown_egg"), (one, found)


def test_a_hostile_egg_by_its_path_leaves_no_trace_either(quiet: RunningDaemon, tmp_path: Path) -> None:
    before = lies(quiet.home)
    for one in HOSTILE[::23]:
        path = tmp_path / "x.egg"
        path.write_bytes(one.octets)
        answer = quiet.request("POST", "/eggs/hatch", {"path": str(path)}, control=True)
        assert answer.status == 400, one
    for path in (tmp_path, tmp_path / "none.egg", Path("/dev/zero"), Path("relative.egg"), Path("/a\0b")):
        answer = quiet.request("POST", "/eggs/plan", {"path": str(path)}, control=True)
        assert answer.status in (400, 404), path
    assert lies(quiet.home) == before


def test_an_upload_that_breaks_off_leaves_nothing(quiet: RunningDaemon) -> None:
    signed = OperatorPage(quiet).headers("POST", "/eggs?name=x.egg", covers="length=9000000")
    head = f"POST /eggs?name=x.egg HTTP/1.1\r\nHost: 127.0.0.1:{quiet.port}\r\nContent-Length: 9000000\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in signed.items()) + "\r\n"
    folder = quiet.home / "eggs" / ".waiting"
    with socket.create_connection(("127.0.0.1", quiet.port)) as line:
        line.sendall(head.encode() + b"PK\3\4" + bytes(3_000_000))
        quiet.wait_for(lambda: any(path.stat().st_size > 1_000_000 for path in folder.iterdir()))
    quiet.wait_for(lambda: not list(folder.iterdir()))
    assert quiet.get("/health").status == 200


def test_a_likely_secret_stops_the_packing_and_says_where(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, _ = two
    key = desk.new("Careless")
    desk.give(key, "agents/mail_agent.py", f'{KETTLE}\nPASSWORD = "hunter2-but-longer-9X"\n')
    answer = desk.ask("POST", "/eggs/pack", {"twin": key, "into": str(tmp_path / "x.egg")})
    assert answer.status == 409
    (finding,) = answer.json()["findings"]
    line = KETTLE.count("\n") + 2
    assert (finding["path"], finding["line"]) == ("mail_agent.py", line)
    assert answer.json()["error"].startswith(f"mail_agent.py line {line} holds a likely")
    assert not (tmp_path / "x.egg").exists()
    packed = desk.post("/eggs/pack", {"twin": key, "into": str(tmp_path / "x.egg"), "allow": [finding["id"]]})
    assert packed["packed"]["allowed"][0]["path"] == "mail_agent.py"


def _operators() -> list[tuple[str, str]]:
    return [(one.method, one.path) for one in all_operations() if one.noun == "eggs"]


@pytest.mark.parametrize(("method", "path"), _operators())
def test_eggs_are_the_operators_business(
    quiet: RunningDaemon, tmp_path: Path, method: str, path: str
) -> None:
    before = lies(quiet.home)
    place = re.sub(r"\{\w+\}", "0" * 64, path)
    body = json.dumps({"path": str(tmp_path), "twin": "", "fingerprint": "0" * 64, "name": "x"}).encode()
    answer = quiet.request(method, place, body)
    assert (answer.status, answer.json()["code"]) == (403, "not_operator")
    if method != "GET":
        remote = quiet.request(method, place, body, {"Origin": "http://evil.example"})
        assert (remote.status, remote.json()["code"]) == (403, "refused")
        assert "access-control-allow-origin" not in remote.headers
    assert lies(quiet.home) == before


def test_packed_egg_is_fetched_by_its_link_only(two: tuple[Place, Place]) -> None:
    desk, _ = two
    page, thief = OperatorPage(desk.daemon), BrowserKey()
    done = page.post("/eggs/pack", {"twin": desk.new("Dragged")}).json()
    link = done["link"]
    rest, folder, name = link.removeprefix("/eggs/out/").split("/")
    until, _, key = rest.partition("-")
    signed = page.signed_path(link)
    public = page.browser.public
    stolen = thief.signature("GET", link, host=page.host)
    for wrong in (
        f"/eggs/out/{int(until) + 3600}-{key}/{signed}/{folder}/{name}",
        f"/eggs/out/{until}-{'0' * 64}/{signed}/{folder}/{name}",
        f"/eggs/out/x/{signed}/{folder}/{name}",
        f"/eggs/out/{rest}/{signed}/{folder}/..%2f..%2frappd.toml",
        f"/eggs/out/{rest}/{signed}/..%2fkeys/identity.pem",
        f"/eggs/out/{rest}/{thief.public}.{stolen}/{folder}/{name}",
        link,
    ):
        assert desk.daemon.get(wrong).status == 404, wrong
    for wrong in (f"{public}.{stolen}", f"{public}.", public):
        assert desk.daemon.get(f"/eggs/out/{rest}/{wrong}/{folder}/{name}").status == 403, wrong
    got = desk.daemon.get(f"/eggs/out/{rest}/{signed}/{folder}/{name}")
    assert hashlib.sha256(got.body).hexdigest() == done["packed"]["sha256"]
    assert desk.daemon.get(f"/eggs/out/{rest}/{signed}/{folder}/{name}").status == 403, "good once"
    assert "link" not in desk.post("/eggs/pack", {"twin": desk.new("Dragged again")}), "no page to sign it"


def test_link_of_a_packed_egg_ends_after_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, ticket, folder, name = links.link_to(Path("/home/eggs/laid/rose/rose.egg"), "key").split("/")
    began, passed = time.time(), 3590
    monkeypatch.setattr(links, "time", SimpleNamespace(time=lambda: began + passed))
    links.check_ticket(ticket, f"{folder}/{name}", "key")
    passed = 3610
    with pytest.raises(NotFoundError):
        links.check_ticket(ticket, f"{folder}/{name}", "key")
