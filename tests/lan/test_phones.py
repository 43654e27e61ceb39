"""Phones that join by a QR code: real Chromium on a network with the computer, which it can reach by no other way."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from fixtures.chromium import driver
from fixtures.running_daemon import REPO
from playwright.sync_api import Browser, BrowserType, Error, Page, expect

from lan.daemons import Daemon
from lan.network import Lan, Machine, require
from lan.phones import Phone, launched_on, paired_device, qr_codes
from rappd.tether.qr_code import as_text

pytestmark = pytest.mark.browser

WIRE = (REPO / "docs" / "wire.md").read_text().partition("## Phones")[2]
VECTORS = dict(
    re.findall(r"^(commit|digest|guest|host|digits|code) +([0-9a-f ]+?)(?:  .*)?$", WIRE, re.MULTILINE)
)


class Place(NamedTuple):
    """A computer, and a browser on another machine of the same network."""

    lan: Lan
    desk: Daemon
    machine: Machine
    browser: Browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[BrowserType]:
    with driver() as playwright:
        yield playwright.chromium


@contextmanager
def opened(chromium: BrowserType, folder: Path, **environment: str) -> Iterator[Place]:
    require()
    with Lan() as lan:
        desk, machine = Daemon(lan.machine("desk"), folder), lan.machine("phone")
        desk.environment |= environment
        desk.start()
        browser = launched_on(machine, folder, chromium)
        yield Place(lan, desk, machine, browser)
        browser.close()


@pytest.fixture(scope="module")
def shared(chromium: BrowserType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with opened(chromium, tmp_path_factory.mktemp("phones")) as place:
        yield place


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    """A place without phones, in a session of its own."""
    for device in shared.desk.ask("GET", "/devices")["devices"]:
        shared.desk.ask("DELETE", f"/devices/{device['id']}")
    shared.desk.ask("DELETE", "/devices/window")
    shared.desk.ask("POST", "/sessions", {})
    yield shared
    for context in shared.browser.contexts:
        context.close()


@pytest.fixture
def own_place(chromium: BrowserType, tmp_path: Path) -> Iterator[Place]:
    """A place whose computer, network or browser may break."""
    with opened(chromium, tmp_path) as place:
        yield place


def test_phone_scans_compares_and_is_answered(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.pair()
    phone.write("hello")
    phone.is_answered(1)
    assert phone.bubbles() == ["hello", "fake-llm: hello"]
    device = paired_device(place.desk)
    assert (device["connected"], device["way"], device["scope"]) == (True, "webrtc", "talk")
    assert "token" not in phone.page.url and "#" not in phone.page.url
    assert phone.errors == []


def test_phone_types_the_code_instead_of_scanning(place: Place) -> None:
    window = place.desk.ask("POST", "/devices/window", {"session": True})
    phone = Phone(place.browser, place.desk)
    phone.page.goto(window["short_links"][0])
    phone.page.get_by_role("textbox", name="Code").fill(window["code"].lower().replace("-", " "))
    phone.page.get_by_role("button", name="Continue").click()
    digits = phone.page.inner_text(".digits")
    assert place.desk.ask("GET", "/devices/window")["digits"] == digits


def test_phone_resumes_after_reload_cut_and_restart(own_place: Place) -> None:
    place = own_place
    phone = Phone(place.browser, place.desk)
    phone.pair()
    phone.write("first")
    phone.is_answered(1)
    phone.page.reload()
    phone.is_connected()
    phone.is_answered(1)
    place.desk.crash()
    phone.page.get_by_text("Lost desk. Trying again.").wait_for()
    phone.write("second")
    place.desk.start()
    phone.is_connected()
    phone.is_answered(2)
    assert phone.bubbles(".mine") == ["first", "second"]
    assert len(place.desk.ask("GET", "/devices")["devices"]) == 1


def test_phone_loses_and_repeats_nothing_over_twenty_cuts(place: Place) -> None:
    seed = time.time_ns()
    print(f"moments of the cuts: seed {seed}")
    moments = random.Random(seed)
    phone = Phone(place.browser, place.desk)
    phone.pair()
    for number in range(20):
        phone.write(f"sentence {number}")
        phone.page.wait_for_timeout(moments.uniform(0, 300))
        place.machine.unplug()
        phone.page.wait_for_timeout(moments.uniform(0, 800))
        place.machine.plug()
        if number % 2:
            phone.page.evaluate("dispatchEvent(new Event('focus'))")
    phone.is_answered(20)
    assert phone.bubbles(".mine") == [f"sentence {number}" for number in range(20)]
    thread = next(iter(place.desk.ask("GET", "/threads?limit=10")["threads"]))
    events = place.desk.ask("GET", f"/threads/{thread['id']}")["events"]
    asked = [one["id"] for one in events if one["verb"] == "HELP" and "user_input" in one["data"]]
    assert len(asked) == len(set(asked)) == 20


@pytest.mark.parametrize("what", ["network", "tab"])
def test_phone_that_vanishes_is_noticed_within_15_seconds(own_place: Place, what: str) -> None:
    place = own_place
    phone = Phone(place.browser, place.desk)
    phone.pair()
    if what == "network":
        place.machine.down()
    else:
        with suppress(Error):  # the page is gone
            phone.page.goto("chrome://crash", timeout=1000)
    place.desk.wait_for(lambda: not paired_device(place.desk)["connected"], what="the phone to be away")


def test_phone_removed_is_told_at_once_and_stays_out(place: Place) -> None:
    here, away = Phone(place.browser, place.desk), Phone(place.browser, place.desk)
    here.pair(name="here")
    away.pair(name="away")
    place.desk.ask("DELETE", "/devices/here")
    here.page.get_by_text("This phone was removed.").wait_for()
    here.page.reload()
    here.page.get_by_text("Point your camera").wait_for()
    away.page.goto("about:blank")
    Phone(place.browser, place.desk).pair(name="third")  # keeps the listener open
    place.desk.ask("DELETE", "/devices/away")
    away.page.go_back()
    away.page.get_by_text("This phone was removed.").wait_for()


@pytest.mark.parametrize("who", ["phone", "computer"])
def test_phone_pairing_stops_at_one_no(place: Place, who: str) -> None:
    window = place.desk.ask("POST", "/devices/window", {"session": True})
    phone = Phone(place.browser, place.desk)
    phone.shows_digits(window["links"][0])
    if who == "phone":
        phone.page.get_by_role("button", name="Different").click()
    else:
        phone.page.get_by_role("button", name="Same number").click()
        place.desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": False})
    phone.page.get_by_text("Stopped: the numbers differ.").wait_for()
    place.desk.wait_for(lambda: place.desk.ask("GET", "/devices/window")["state"] == "differs")
    assert place.desk.ask("GET", "/devices")["devices"] == []


def test_phone_with_a_used_code_is_told_it_expired(place: Place) -> None:
    window = place.desk.ask("POST", "/devices/window", {"session": True})
    phone = Phone(place.browser, place.desk)
    phone.shows_digits(window["links"][0])
    phone.page.get_by_role("button", name="Same number").click()
    place.desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
    other = Phone(place.browser, place.desk)
    other.page.goto(window["links"][0])
    other.page.get_by_text("That QR code has expired.").wait_for()


def test_phones_three_at_once_see_the_same(place: Place) -> None:
    phones = [Phone(place.browser, place.desk) for _ in range(3)]
    for number, phone in enumerate(phones):
        phone.pair(name=f"phone {number}", scope="listen" if number == 2 else "talk")
    phones[0].write("from the first")
    phones[0].is_answered(1)
    phones[1].write("from the second")
    phones[1].is_answered(1)
    said = ["from the first", "fake-llm: from the first", "from the second", "fake-llm: from the second"]
    for phone in phones:
        phone.page.get_by_text("fake-llm: from the second").wait_for()
        assert phone.bubbles() == said
    expect(phones[2].page.get_by_role("textbox", name="Message")).to_be_hidden()
    place.desk.ask("DELETE", "/devices/phone 1".replace(" ", "%20"))
    phones[1].page.get_by_text("This phone was removed.").wait_for()
    phones[0].write("still here")
    phones[0].is_answered(2)


CREATES = "create an agent that counts words"


def test_phone_reaches_no_structural_agent(chromium: BrowserType, tmp_path: Path) -> None:
    with opened(chromium, tmp_path, LLM_FAKE="off") as (_, desk, _, browser):
        before = {path.name for path in desk.agents.glob("*_agent.py")}
        phone = Phone(browser, desk)
        phone.pair()
        phone.write(CREATES)
        phone.is_answered(1)
        assert {path.name for path in desk.agents.glob("*_agent.py")} == before
        desk.ask("POST", "/chat", {"user_input": CREATES})
        assert {path.name for path in desk.agents.glob("*_agent.py")} != before


def test_page_derives_what_the_computer_derives(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.page.goto(place.desk.ask("POST", "/devices/window", {"session": True})["short_links"][0])
    found = phone.page.evaluate(
        """async () => {
            const page = await import("/t/proofs.js");
            const bytes = (value, count) => new Uint8Array(count).fill(value);
            const digest = page.digestOf({subject: "c2Vzc2lvbi0", hostPrint: bytes(1, 32), guestPrint: bytes(2, 32),
                hostNonce: bytes(3, 16), guestNonce: bytes(4, 16), hostKey: new TextEncoder().encode("host key")});
            const hex = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
            return {commit: hex(page.commitment(bytes(4, 16))), digest: hex(digest),
                guest: hex(page.proof(bytes(5, 16), "guest", digest)), host: hex(page.proof(bytes(5, 16), "host", digest)),
                digits: page.sixDigits(digest), code: hex(page.codeKey("abcd efgh jkOi"))};
        }"""
    )
    assert found == VECTORS


WITHOUT_UDP = """RTCPeerConnection.prototype.setRemoteDescription = async () => {};
const real = setTimeout; window.setTimeout = (f, ms, ...more) => real(f, ms === 8000 ? 200 : ms, ...more);"""


def test_phone_without_udp_asks_before_a_websocket_then_talks(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.page.add_init_script(WITHOUT_UDP)
    sockets: list[str] = []
    phone.page.on("websocket", lambda socket: sockets.append(socket.url))
    window = place.desk.ask("POST", "/devices/window", {"session": True})
    phone.page.goto(window["links"][0])
    phone.page.get_by_text("Others on it could read what is said.").wait_for()
    assert same_weight(phone.page, "Stop", "Talk anyway")
    phone.page.get_by_role("button", name="Stop").click()
    phone.page.get_by_text("Stopped. Nothing was shared.").wait_for()
    assert sockets == [] and place.desk.ask("GET", "/devices/window")["state"] == "open"
    phone.page.get_by_role("button", name="Try again").click()
    phone.page.get_by_role("button", name="Talk anyway").click()
    digits = phone.page.inner_text(".digits")
    assert place.desk.ask("GET", "/devices/window")["digits"] == digits
    assert same_weight(phone.page, "Same number", "Different")
    phone.page.get_by_role("button", name="Same number").click()
    place.desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
    phone.page.get_by_text("Keep it on the home screen").wait_for()
    phone.page.get_by_role("button", name="Start talking").click()
    phone.page.get_by_text("● connected, not private").wait_for()
    phone.write("hello")
    phone.is_answered(1)
    assert paired_device(place.desk)["way"] == "websocket"
    phone.page.reload()  # this tab was asked already
    phone.is_connected()


def test_phone_that_stops_in_a_session_sends_nothing(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.pair()
    phone.page.add_init_script(WITHOUT_UDP)
    sockets: list[str] = []
    phone.page.on("websocket", lambda socket: sockets.append(socket.url))
    phone.page.reload()
    phone.page.get_by_text("Others on it could read what is said.").wait_for()
    phone.page.get_by_role("button", name="Stop").click()
    phone.page.get_by_text("Stopped. Nothing was shared.").wait_for()
    assert sockets == [] and not paired_device(place.desk)["connected"]
    phone.page.get_by_role("button", name="Try again").click()
    phone.page.get_by_role("button", name="Talk anyway").click()
    phone.is_connected()


def same_weight(page: Page, *names: str) -> bool:
    """True when the buttons look alike, but for their words."""
    buttons = [page.get_by_role("button", name=name, exact=True) for name in names]
    return len({str(one.evaluate(WEIGHT)) for one in buttons}) == 1


WEIGHT = """button => {
    const {width, height} = button.getBoundingClientRect(), style = getComputedStyle(button);
    return [Math.round(width), height, style.backgroundColor, style.color, style.fontWeight, document.activeElement === button];
}"""


SPEECH = """window.spoken = [];
speechSynthesis.speak = words => spoken.push(words.text);
window.SpeechRecognition = window.webkitSpeechRecognition = class {
    start() { window.recognition = this; }
    abort() { this.onend(); }
};"""


def test_phone_reads_answers_aloud_once_it_is_switched_on(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.page.add_init_script(SPEECH)
    phone.pair()
    phone.write("before")
    phone.is_answered(1)
    assert phone.page.get_by_role("button", name="Dictate").count() == 0, "no microphone on plain http"
    with phone.more():
        phone.page.get_by_role("button", name="Read answers aloud").click()
    phone.write("after")
    phone.is_answered(2)
    phone.page.wait_for_function("() => spoken.length")
    assert phone.page.evaluate("spoken") == ["fake-llm: after"]
    phone.page.reload()
    phone.is_connected()
    phone.is_answered(2)
    phone.write("again")
    phone.is_answered(3)
    phone.page.wait_for_function("() => spoken.length")
    assert phone.page.evaluate("spoken") == ["fake-llm: again"], "what was said before is not read again"
    with phone.more():
        phone.page.get_by_role("button", name="Stop reading aloud").click()
    phone.write("quiet")
    phone.is_answered(4)
    assert phone.page.evaluate("spoken") == ["fake-llm: again"]
    assert phone.errors == []


def test_phone_dictates_where_the_page_is_secure(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.page.add_init_script(SPEECH)
    phone.page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: true});")
    phone.page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined});")
    phone.pair()
    phone.page.get_by_role("textbox", name="Message").fill("Well,")
    phone.page.get_by_role("button", name="Dictate").click()
    phone.page.evaluate(
        "recognition.onresult({results: [[{transcript: 'hello'}], [{transcript: ' there'}]]})"
    )
    expect(phone.page.get_by_role("textbox", name="Message")).to_have_value("Well, hello there")
    expect(phone.page.get_by_role("button", name="Stop dictating")).to_have_attribute("aria-pressed", "true")
    phone.page.get_by_role("button", name="Send").click()
    phone.is_answered(1)
    assert phone.bubbles(".mine") == ["Well, hello there"]
    expect(phone.page.get_by_role("button", name="Dictate")).to_have_attribute("aria-pressed", "false")
    assert phone.errors == []


def test_home_screen_icon_finds_its_pictures(place: Place) -> None:
    phone = Phone(place.browser, place.desk)
    phone.page.goto(place.desk.ask("POST", "/devices/window", {"session": True})["short_links"][0])
    sizes = phone.page.evaluate(
        """async () => {
            const manifest = await (await fetch(document.querySelector("link[rel=manifest]").href)).json();
            const touch = document.querySelector("link[rel=apple-touch-icon]").getAttribute("href");
            const sizes = [manifest.start_url, manifest.display];
            for (const src of [touch, ...manifest.icons.map(icon => icon.src)]) {
                const image = new Image();
                image.src = src;
                await image.decode();
                sizes.push(`${src.split(".").pop()} ${image.naturalWidth}`);
            }
            return sizes;
        }"""
    )
    assert sizes[:3] == ["/t", "browser", "png 180"]
    assert {"png 192", "png 512"} <= set(sizes[3:])


def test_qr_code_in_the_terminal_is_the_link(place: Place) -> None:
    link = place.desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in as_text(link)]
    assert max(map(len, lines)) <= 80
    halves = {" ": (255, 255), "▀": (0, 255), "▄": (255, 0), "█": (0, 0)}
    rows = [[halves[cell][half] for cell in line] for line in lines for half in (0, 1)]
    larger = [bytes(point for point in row for _ in range(4)) for row in rows for _ in range(4)]
    assert qr_codes(larger) == [link]


FOREIGN = {
    "another host": ({"Host": "evil.example"}, 403),
    "another origin": ({"Origin": "http://evil.example"}, 403),
    "no json": ({"Content-Type": "text/plain"}, 415),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_offer_from_elsewhere_is_refused(place: Place, case: str) -> None:
    headers, status = FOREIGN[case]
    address = place.desk.ask("POST", "/devices/window", {"session": True})["short_links"][0].removesuffix(
        "/t"
    )
    options = [
        word
        for key, value in {"Content-Type": "application/json", **headers}.items()
        for word in ("-H", f"{key}: {value}")
    ]
    command = [
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        *options,
        "-d",
        "{}",
        f"{address}/tether/v2/offer",
    ]
    assert place.machine.run(command).stdout == str(status)


def test_listener_serves_nothing_else_and_closes_again(place: Place) -> None:
    address = place.desk.ask("POST", "/devices/window", {"ttl": 3})["short_links"][0].removesuffix("/t")

    def status(path: str) -> str:
        return place.machine.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{address}{path}"]
        ).stdout

    assert [status(path) for path in ("/t", "/t/main.js", "/", "/chat", "/health", "/t/../secret", "/tether/agent")] == [
        "200", "200", "404", "404", "404", "404", "404",
    ]  # fmt: skip
    place.desk.wait_for(lambda: status("/t") == "000", what="the listener to close")


def test_unknown_device_is_refused_like_any_other(place: Place) -> None:
    address = place.desk.ask("POST", "/devices/window", {"session": True})["short_links"][0].removesuffix(
        "/t"
    )
    phone = Phone(place.browser, place.desk)
    phone.page.goto(f"{address}/t")
    body = {"device": "ab" * 32, "commit": "A" * 43}
    found = phone.page.evaluate(
        """async body => {
            const peer = new RTCPeerConnection();
            peer.createDataChannel("rapp");
            await peer.setLocalDescription(await peer.createOffer());
            const transport = (await import("/t/webrtc-parameters.js")).ownFields(peer.localDescription.sdp);
            const response = await fetch("/tether/v2/offer", {method: "POST", headers: {"Content-Type": "application/json"},
                body: JSON.stringify({...body, transport})});
            return [response.status, await response.text()];
        }""",
        body,
    )
    assert found[0] == 403
    assert json.loads(found[1])["code"] == "unknown_device"
