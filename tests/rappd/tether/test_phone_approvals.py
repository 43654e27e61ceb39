"""Yes and no from a phone to code that waits: by id and hash, once, and only where the page came over https."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.axe import THEMES, VIOLATIONS, axe_core
from fixtures.chromium import needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, expect

from rappd.tether.phone_session import Answer, Hang, Look, PhoneSession
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_client import PhoneClient
from twins.trust.quarantine import QuarantineList

MakeDaemon = Callable[..., RunningDaemon]
KEY = "code::agents/oven_agent.py"
GONE = "code::agents/gone_agent.py"


def hold(daemon: RunningDaemon, name: str = "Oven") -> Path:
    """An agent file that came in an egg and waits."""
    place = daemon.home / f"brainstem/agents/{name.lower()}_agent.py"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(agent_source(name))
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    QuarantineList(daemon.home / "held.json", daemon.home).hold(place, digest, "Unsigned.", "kitchen.egg")
    return place


def desk_with(make_daemon: MakeDaemon, *, tls: bool) -> RunningDaemon:
    over = {"RAPPD_TETHER_TLS": "on"} if tls else {}
    desk = make_daemon("desk", **reachable(), LLM_FAKE="1", **over)
    hold(desk)
    return desk.start()


async def approver(desk: RunningDaemon, name: str, over: type[PhoneClient] = AiortcClient) -> PhoneClient:
    phone = await over(desk).pair(name=name)
    allowed = await asyncio.to_thread(desk.post, f"/devices/{name}", {"kind": "mine"}, control=True)
    assert allowed.json()["approve"] is True, allowed.body
    await phone.sees(lambda: phone.waiting.get("rows"))
    return phone


async def read(phone: PhoneClient, key: str = KEY) -> dict[str, Any]:
    had = len(phone.matters)
    await phone._send({"type": "look", "key": key})
    await phone.sees(lambda: len(phone.matters) > had)
    return phone.matters[-1]


async def answer(phone: PhoneClient, key: str, sha256: str, *, yes: bool = True) -> dict[str, Any]:
    had = len(phone.answered)
    await phone._send({"type": "answer", "key": key, "sha256": sha256, "yes": yes})
    await phone.sees(lambda: len(phone.answered) > had)
    return phone.answered[-1]


def listens(address: tuple[str, int]) -> bool:
    with socket.socket() as line:
        return line.connect_ex(address) == 0


def held(desk: RunningDaemon) -> list[str]:
    return [row["path"] for row in desk.get("/agents/held", control=True).json()["held"]]


async def test_code_is_read_and_approved_by_its_hash_and_the_second_is_told(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    anna, ben = await approver(desk, "Anna"), await approver(desk, "Ben")
    try:
        (row,) = anna.waiting["rows"]
        matter = await read(anna)
        assert matter["sha256"] == row["sha256"] and "class Oven" in matter["text"]
        assert (
            matter["why"] == "Unsigned. With your yes it may read your files and the network."
            and "kitchen.egg" in matter["what"]
        )
        done = await answer(anna, KEY, matter["sha256"])
        assert done["done"] and "oven_agent.py is approved, and runs" in done["text"]
        late = await answer(ben, KEY, matter["sha256"], yes=False)
        assert not late["done"] and late["text"].startswith("Anna approved agents/oven_agent.py on a phone")
        assert held(desk) == [] and "Oven" in str(desk.get("/agents").json()), "the first answer counts"
        again = {"filename": "agents/oven_agent.py", "sha256": matter["sha256"], "waits": True}
        assert desk.post("/agents/approve", again, control=True).status == 404, "nor is it more than it was"
        news = desk.get("/notices", control=True).json()["notices"]
        assert any("Anna approved" in one["what"] and anna.id[:8] in one["do"] for one in news)
    finally:
        await asyncio.gather(anna.leave(), ben.leave())


async def test_two_answers_at_one_time_are_one(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    anna, ben = await approver(desk, "Anna"), await approver(desk, "Ben")
    try:
        sha256 = anna.waiting["rows"][0]["sha256"]
        found = await asyncio.gather(answer(anna, KEY, sha256), answer(ben, KEY, sha256, yes=False))
        assert sorted(one["done"] for one in found) == [False, True]
        assert held(desk) == []
    finally:
        await asyncio.gather(anna.leave(), ben.leave())


async def test_answer_to_other_bytes_is_refused_and_they_are_shown_anew(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    anna = await approver(desk, "Anna")
    try:
        first = await read(anna)
        place = desk.home / "brainstem/agents/oven_agent.py"
        place.write_text(place.read_text() + "# and more\n")
        for sha256, yes, why in (
            (first["sha256"], True, "it changed"),
            (first["sha256"], False, "it changed"),
            ("", True, "was not read"),
        ):
            had = len(anna.matters)
            told = await answer(anna, KEY, sha256, yes=yes)
            assert not told["done"] and why in told["text"]
            await anna.sees(lambda had=had: len(anna.matters) > had)
        assert "# and more" in anna.matters[-1]["text"]
        assert anna.matters[-1]["sha256"] == hashlib.sha256(place.read_bytes()).hexdigest()
        assert held(desk) == ["agents/oven_agent.py"]
        refused = await answer(anna, KEY, anna.matters[-1]["sha256"], yes=False)
        assert refused["done"] and not place.exists()
    finally:
        await anna.leave()


async def test_needs_are_answered_by_the_hash_of_the_bytes_that_declare_them(
    make_daemon: MakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "person" / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    desk = make_daemon("desk", **reachable(), LLM_FAKE="1", RAPPD_TETHER_TLS="on")
    agents = desk.home / "brainstem/agents"
    for name in ("Keys", "Doors"):
        text = f"__manifest__ = {{'needs': {{'read': ['~/.ssh']}}}}\n{agent_source(name)}"
        desk.drop(f"{name.lower()}_agent.py", text)
    desk.start()
    anna = await approver(desk, "Anna")
    try:
        await anna.sees(lambda: len(anna.waiting.get("rows", ())) == 2)
        key = "needs::agents/keys_agent.py"
        first = await read(anna, key)
        assert "~/.ssh, which is hidden" in first["why"] and "With your yes it reads ~/.ssh." in first["why"]
        assert (
            first["sha256"] == hashlib.sha256((agents / "keys_agent.py").read_bytes()).hexdigest()
            and "class Keys" in first["text"]
        )
        for wrong in ("0" * 64, ""):
            assert not (await answer(anna, key, wrong))["done"]
        assert "Keys" not in str(desk.get("/agents").json()["files"][0]["agents"])
        done = await answer(anna, key, first["sha256"])
        assert done["done"] and "keys_agent.py is approved, and runs" in done["text"]
        assert not (await answer(anna, key, first["sha256"]))["done"], "it waits no more"
        other = "needs::agents/doors_agent.py"
        refused = await answer(anna, other, (await read(anna, other))["sha256"], yes=False)
        assert refused["done"] and not (agents / "doors_agent.py").exists()
        agents_now = [one for file in desk.get("/agents").json()["files"] for one in file["agents"]]
        assert "Keys" in agents_now and "Doors" not in agents_now
        assert {row["kind"] for row in desk.get("/waiting", control=True).json()["waiting"]} == {"answered"}
    finally:
        await anna.leave()


async def test_phone_sends_no_path_and_no_key_of_something_else(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    (desk.home / "brainstem/.env").write_text("TOKEN=abc\n")
    digest = hashlib.sha256(b"TOKEN=abc\n").hexdigest()
    QuarantineList(desk.home / "held.json", desk.home).hold(
        desk.home / "brainstem/.env", digest, "x", "kitchen.egg"
    )
    anna = await approver(desk, "Anna")
    try:
        for key in ("code::../../rappd.toml", "code::soul.md", "agents/oven_agent.py", GONE, "code::.env"):
            told = await answer(anna, key, digest)
            assert not told["done"], key
        assert ".env" in held(desk)
    finally:
        await anna.leave()


async def test_phone_that_joined_over_plain_http_only_sees_what_waits(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=False)
    anna = await AiortcClient(desk).pair(name="Anna")
    try:
        assert desk.post("/devices/Anna", {"kind": "mine"}, control=True).json()["approve"] is False
        refused = desk.post("/devices/Anna", {"approve": True}, control=True)
        assert refused.status == 403 and "tether.tls" in refused.json()["do"]
        desk.post("/devices/Anna", {"notices": True}, control=True)
        await anna.sees(lambda: anna.waiting.get("rows"))
        assert "sha256" not in anna.waiting["rows"][0], "it is told nothing that it could answer with"
        await anna._send({"type": "answer", "key": KEY, "sha256": "0" * 64, "yes": True})
        await anna.sees(lambda: anna.refused.get("", "").startswith("Only on the computer."))
        assert held(desk) == ["agents/oven_agent.py"]
    finally:
        await anna.leave()


async def test_relay_that_changes_the_script_cannot_approve(make_daemon: MakeDaemon) -> None:
    """The phone may approve over https. Later its page comes over plain http, through a relay that writes its own."""
    desk = desk_with(make_daemon, tls=True)
    anna = await approver(desk, "Anna")
    sha256 = anna.waiting["rows"][0]["sha256"]
    await anna.leave()
    desk.stop()
    del desk.environment["RAPPD_TETHER_TLS"]
    desk.start()
    await asyncio.to_thread(desk.wait_for, lambda: listens(anna.address))
    anna._scheme, anna.waiting, anna.refused = "http", {}, {}
    await (
        anna.resume()
    )  # by its certificate and its secret: the script is the relay's, its keys are the phone's
    try:
        await anna.sees(lambda: anna.waiting.get("rows"))
        assert "sha256" not in anna.waiting["rows"][0]
        for frame in (
            {"type": "look", "key": KEY},
            {"type": "answer", "key": KEY, "sha256": sha256, "yes": True},
        ):
            anna.refused = {}
            await anna._send(frame)
            await anna.sees(lambda: "came over plain http" in anna.refused.get("", ""))
        assert held(desk) == ["agents/oven_agent.py"] and anna.matters == []
    finally:
        await anna.leave()


async def test_guests_phone_answers_nothing(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    anna = await approver(desk, "Anna")
    try:
        sha256 = anna.waiting["rows"][0]["sha256"]
        assert desk.post("/devices/Anna", {"kind": "guest"}, control=True).json()["approve"] is False
        refused = desk.post("/devices/Anna", {"approve": True}, control=True)
        assert refused.status == 403 and "--mine" in refused.json()["do"]
        await anna._send({"type": "answer", "key": KEY, "sha256": sha256, "yes": True})
        await anna.sees(lambda: anna.refused.get("", "").startswith("Only on the computer."))
        assert held(desk) == ["agents/oven_agent.py"]
    finally:
        await anna.leave()


async def test_secret_alone_approves_nothing(make_daemon: MakeDaemon) -> None:
    desk = desk_with(make_daemon, tls=True)
    anna = await PhoneClient(desk).pair(name="Anna")
    try:
        assert desk.post("/devices/Anna", {"kind": "mine"}, control=True).json()["approve"] is True
        await anna._send({"type": "answer", "key": KEY, "sha256": "0" * 64, "yes": True})
        await anna.sees(lambda: "not over a WebSocket" in anna.refused.get("", ""))
        assert held(desk) == ["agents/oven_agent.py"]
    finally:
        await anna.leave()


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("size", [(390, 844), (1280, 800)])
def test_phone_page_shows_the_whole_of_it_with_its_hash(
    make_daemon: MakeDaemon, browser: Browser, size: tuple[int, int]
) -> None:
    desk = desk_with(make_daemon, tls=True)
    hold(desk, "Stove")
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, ignore_https_errors=True)
    window = desk.post("/devices/window", {"name": "Anna"}, control=True).json()
    page.goto(window["links"][0])
    page.get_by_role("button", name="Same number").click()
    desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
    page.get_by_role("button", name="Start talking").wait_for()
    assert desk.post("/devices/Anna", {"kind": "mine"}, control=True).json()["approve"] is True
    page.get_by_role("button", name="Start talking").click()
    page.get_by_label("Conversations and more, 2 waiting").click()
    page.get_by_text("Waiting for you: 2").click()
    page.get_by_role("button", name="Read and answer: agents/oven_agent.py").click()
    asked = page.locator("dialog.waiting")
    place = desk.home / "brainstem/agents/oven_agent.py"
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    expect(asked).to_contain_text("class Oven")
    expect(asked).to_contain_text(f"SHA-256 {digest}")
    page.evaluate(axe_core())
    for theme, rules in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert page.evaluate(VIOLATIONS, rules) == [], theme
        if folder := os.environ.get("RAPPD_SHOTS"):
            page.screenshot(path=f"{folder}/phone-approve-{size[0]}-{theme}.png")
    place.write_text(place.read_text() + "# and more\n")
    asked.get_by_role("button", name="Approve").click()
    expect(asked).to_contain_text("it changed")
    expect(asked).to_contain_text("# and more")
    asked.get_by_role("button", name="Approve").click()
    expect(asked).to_contain_text("is approved, and runs")
    asked.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Read and answer: agents/stove_agent.py").click()
    asked.get_by_role("button", name="Refuse").click()
    expect(asked).to_contain_text("was refused")
    if folder := os.environ.get("RAPPD_SHOTS"):
        page.screenshot(path=f"{folder}/phone-answered-{size[0]}.png")
    page.close()


@pytest.mark.parametrize(
    ("frame", "action"),
    [
        ({"type": "look", "key": "code::a"}, Look("code::a")),
        ({"type": "look", "key": 5}, Hang("malformed key")),
        ({"type": "answer", "key": "code::a", "sha256": "ab", "yes": True}, Answer("code::a", "ab", True)),
        ({"type": "answer", "key": "code::a", "sha256": "ab", "yes": "true"}, Hang("malformed answer")),
        ({"type": "answer", "key": "code::a", "yes": True}, Hang("malformed answer")),
    ],
)
def test_frame_that_answers_is_checked(frame: dict[str, Any], action: object) -> None:
    session = PhoneSession(0.0, may_talk=False)
    session.on_frame({"type": "hello"}, 0.0)
    assert session.on_frame(frame, 1.0) == [action]
