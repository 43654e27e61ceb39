"""Machines as their owners meet them: a page in a real browser on each of two and three real daemons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fixtures.chromium import needs_chromium
from fixtures.free_ports import free_port
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Locator, Page, expect
from zeroconf import ServiceInfo, Zeroconf

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    needs_chromium,
]


Open = Callable[[RunningDaemon], Page]
Make = Callable[..., RunningDaemon]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens a daemon's Machines, as its operator; consoles must stay clean."""
    pages: list[Page] = []
    said: list[str] = []

    def open_(daemon: RunningDaemon) -> Page:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        pages.append(page)
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Machines").click()
        return page

    yield open_
    for page in pages:
        page.close()
    assert [text for text in said if "Failed to load" not in text] == []


@pytest.fixture
def make(make_daemon: Make) -> Make:
    """A factory of daemons whose listeners for other machines are open on this one alone."""

    def made(name: str, **environment: str) -> RunningDaemon:
        doors = {"RAPPD_PEERS_LISTEN": "on", "RAPPD_PEERS_ADDRESS": "127.0.0.1", "RAPPD_PEERS_LOOPBACK": "on"}
        shown = environment.pop("RAPPD_NAME", name)
        port = str(free_port())
        return make_daemon(
            name, RAPPD_NAME=shown, RAPPD_PEERS_PORT=port, LLM_FAKE="1", **doors, **environment
        )

    return made


def control(daemon: RunningDaemon, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = daemon.request(method, path, body, control=True)
    assert answer.status == 200, answer.body
    return answer.json()


def address(daemon: RunningDaemon) -> str:
    daemon.wait_for(lambda: control(daemon, "GET", "/peers")["listener"]["open"], what="the listener")
    return f"127.0.0.1:{control(daemon, 'GET', '/peers')['listener']['port']}"


def pair_by_key(one: RunningDaemon, other: RunningDaemon) -> None:
    for here, there in ((one, other), (other, one)):
        key = control(there, "GET", "/peers")["self"]["fingerprint"]
        control(here, "POST", "/pairings", {"peer": address(there), "fingerprint": key, "whose": "mine"})


def ask_to_pair(desk: Page, pi: Page, at: str, name: str = "pi") -> tuple[Locator, Locator]:
    """Adds the other's address, chooses Pair, and Pair over there; the two sheets with their words."""
    desk.get_by_role("button", name="Add by address").first.click()
    desk.get_by_role("textbox", name="Address").fill(at)
    desk.get_by_role("button", name="Add it").click()
    desk.get_by_role("button", name=f"Pair with {name}").click()
    expect(pi.locator(".asks")).to_contain_text("desk (127.0.0.1) wants to pair.")
    pi.get_by_role("button", name="Pair with desk").click()
    sheets = desk.locator("dialog"), pi.locator("dialog")
    for dialog in sheets:
        expect(dialog.locator(".four-words li")).to_have_count(4)
    words = [dialog.locator(".four-words li").all_inner_texts() for dialog in sheets]
    assert words[0] == words[1]
    return sheets


def say_same(dialog: Locator, whose: str) -> None:
    dialog.get_by_label(whose).check()
    dialog.get_by_role("button", name="Same words").click()


@pytest.mark.own_process
def test_two_pages_pair_call_lose_and_find_each_other(make: Make, opened: Open) -> None:
    desk, pi = make("desk"), make("pi")
    pi.drop("gauge_agent.py", agent_source("Gauge", 'return "12 mm of <b>rain</b>"', "Reads the rain gauge."))
    desk.start()
    pi.start()
    at = address(pi)
    one, other = opened(desk), opened(pi)
    expect(one.locator("#main")).to_contain_text("Run make start on another machine")
    here, there = ask_to_pair(one, other, at)
    say_same(here, "Mine")
    expect(here).to_contain_text("Now say yes on pi.")
    assert [row for row in control(pi, "GET", "/peers")["peers"] if row["paired"]] == []
    say_same(there, "Mine")
    expect(here).to_contain_text("pi is paired.")
    expect(there).to_contain_text("desk is paired.")
    here.get_by_role("button", name="Trust pi's eggs").click()
    expect(here).to_contain_text("✓ pi is trusted.")
    assert [row["name"] for row in control(desk, "GET", "/eggs/signers")["signers"]] == ["pi"]
    there.get_by_role("button", name="Close").last.click()
    expect(other.locator(".machine", has_text="desk")).to_contain_text("● here")

    here.get_by_role("button", name="See it").click()
    expect(one.locator(".peer-agents")).to_contain_text("Gauge")
    one.get_by_label("Who answers").select_option(label="Gauge")
    one.get_by_label("What to ask").fill("how much rain?")
    one.keyboard.press("Enter")
    expect(one.locator(".peer-result").first).to_have_text("12 mm of <b>rain</b>")
    expect(one.locator(".peer-call")).to_contain_text("done on pi in")

    pi.kill()
    one.get_by_label("What to ask").fill("and now?")
    one.keyboard.press("Enter")
    expect(one.locator(".peer-call").first).to_contain_text("Queued: pi is away. Goes by itself.")
    expect(one.locator(".twin-head")).to_contain_text("○ last seen")
    one.get_by_role("link", name="Outbox 1").click()
    row = one.locator(".waiting-row")
    expect(row).to_contain_text("and now?")
    expect(row).to_contain_text("pi is away; your call waits until")
    one.get_by_role("link", name="Activity").click()
    expect(one.locator(".in-progress li")).to_contain_text("and now?")

    pi.start()
    expect(one.locator(".in-progress li")).to_have_count(0)
    one.get_by_role("link", name="Machines", exact=False).first.click()
    expect(one.locator(".machine", has_text="pi")).to_contain_text("● here")
    one.get_by_role("link", name="Outbox").click()
    expect(one.locator("[data-id]")).to_contain_text("✓ done")
    one.get_by_role("link", name="All").click()
    one.get_by_role("link", name="pi", exact=True).click()
    expect(one.locator(".peer-call").first).to_contain_text("12 mm of <b>rain</b>")


def test_pairing_words_differ_pairs_neither_machine(make: Make, opened: Open) -> None:
    desk, pi = make("desk").start(), make("pi").start()
    one, other = opened(desk), opened(pi)
    here, there = ask_to_pair(one, other, address(pi))
    say_same(here, "Mine")
    there.get_by_role("button", name="Different").click()
    for dialog in (here, there):
        expect(dialog).to_contain_text("The words differ; nothing was paired")
        expect(dialog).to_contain_text(re.compile("retry once, then change network", re.IGNORECASE))
        dialog.get_by_role("button", name="Close").last.click()
    expect(other.locator(".asks")).to_have_count(0)
    for daemon in (desk, pi):
        assert not any(row["paired"] for row in control(daemon, "GET", "/peers")["peers"])


def test_three_machines_share_offer_and_revoke(make: Make, opened: Open) -> None:
    desk, pi, shed = make("desk"), make("pi"), make("shed")
    pi.drop("gauge_agent.py", agent_source("Gauge", 'return "12 mm"', "Reads the rain gauge."))
    for daemon in (desk, pi, shed):
        daemon.start()
    pair_by_key(desk, pi)
    pair_by_key(desk, shed)
    one, other = opened(desk), opened(pi)
    expect(one.locator("nav a[href='#/machines'].place")).to_contain_text("2 machines")
    for name in ("pi", "shed"):
        expect(one.locator(".machine", has_text=name)).to_contain_text("● here")

    other.get_by_role("link", name="desk", exact=True).click()
    scopes = other.locator(".scopes")
    scopes.get_by_label("What is ticked").check()
    expect(scopes.get_by_label("LearnNew")).to_have_count(0)
    scopes.get_by_label("Send eggs").check()
    scopes.get_by_role("button", name="Save").click()
    expect(other.locator(".toast")).to_contain_text("desk may send eggs, nothing else.")
    one.get_by_role("link", name="pi", exact=True).click()
    one.get_by_label("What to ask").fill("rain?")
    one.keyboard.press("Enter")
    expect(one.locator(".peer-call .problem")).to_be_visible()

    scopes.get_by_label("What is ticked").check()
    scopes.get_by_label("Gauge").check()
    scopes.get_by_role("button", name="Save").click()
    expect(other.locator(".toast").last).to_contain_text("desk may do 2 things here.")
    expect(one.locator(".peer-agents")).to_have_text(re.compile("^Gauge"))
    one.get_by_role("switch", name="Use its agents here").check()
    expect(one.locator(".toast").last).to_contain_text("desk may use pi's agents now.")
    assert control(desk, "GET", "/peers/pi")["peer"]["offered"] is True

    other.get_by_role("button", name="Revoke…").click()
    other.locator("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(other.locator("#main")).to_contain_text("No other machine yet.")
    one.get_by_label("Who answers").select_option(label="Gauge")
    one.get_by_label("What to ask").fill("still?")
    one.keyboard.press("Enter")
    expect(one.locator(".peer-call").first).not_to_contain_text("Asking")
    expect(one.locator(".peer-call .peer-result")).to_have_count(0)


def test_a_code_pairs_a_machine_without_a_screen(make: Make, opened: Open) -> None:
    desk, pi = make("desk").start(), make("pi").start()
    one = opened(desk)
    one.get_by_role("button", name="Pair with a code").click()
    one.get_by_role("menuitem", name="Show a code").click()
    one.locator("dialog").get_by_label("Mine").check()
    one.get_by_role("button", name="Show it").click()
    code = one.locator(".shown-code").inner_text()
    paired = pi.cli("peers", "pair", address(desk), "--code", code, "--mine", "--json")
    assert paired.returncode == 0, paired.stderr
    expect(one.locator("dialog")).to_contain_text("pi is paired.")


HOSTILE = [
    "<img src=x onerror=document.title=1>",
    "\u202egnp.exe\u2066 pi\u200b",
    "\u05d0\u05d1 🥧👩‍👩‍👧 " + "n" * 50,
]


@pytest.fixture
def strangers() -> Iterator[list[str]]:
    """Machines with hostile names, announced on the loopback: their keys."""
    keys = [f"{number}a" * 32 for number in range(1, len(HOSTILE) + 1)]
    kind = "_rappd._tcp.local."

    def announce() -> Zeroconf:
        told = Zeroconf(interfaces=["127.0.0.1"])
        for key, name in zip(keys, HOSTILE, strict=True):
            said = {"v": "1", "id": key, "name": name, "port": "9"}
            told.register_service(
                ServiceInfo(
                    kind, f"x_{key[:16]}.{kind}", 9, properties=said, server=f"{key[:12]}.local.",
                    addresses=[b"\x7f\0\0\1"],
                )
            )  # fmt: skip
        return told

    with ThreadPoolExecutor(1) as beside:  # where the browser's loop does not run
        told = beside.submit(announce).result()
        yield keys
        beside.submit(told.close).result()


def test_discovered_machine_hostile_name_stays_text(make: Make, opened: Open, strangers: list[str]) -> None:
    one = opened(make("desk", RAPPD_NEARBY="on").start())
    cards = [one.locator(f"[data-key='{key}']") for key in strangers]
    for card in cards:
        expect(card).to_contain_text("· found")
        expect(card.locator("code")).to_contain_text("a")
    shown = one.locator("#main").inner_text()
    assert not re.search("[\u200b-\u200f\u202a-\u202e\u2066-\u2069]", shown)
    assert one.locator("main :is(img, b)").count() == 0
    for width in (1280, 320):
        one.set_viewport_size({"width": width, "height": 800})
        assert one.evaluate("document.querySelector('main').scrollWidth - innerWidth") <= 0
    cards[0].get_by_role("button", name="Pair with").click()
    expect(cards[0].get_by_role("alert")).to_contain_text("answers")
    expect(one.locator("dialog")).to_have_count(0)
