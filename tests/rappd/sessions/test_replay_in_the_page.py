"""Session eggs in a real browser: replayed with a scrubber, continued, and kept from everything around them."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import keep_picture, needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, FrameLocator, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    needs_chromium,
]

SIZES = [(390, 844), (1280, 800)]


def opened(browser: Browser, desk: RunningDaemon, egg: Path, size: tuple[int, int] = (1280, 800)) -> Page:
    """The page with the replay of an egg, by the link that the command line prints."""
    told = desk.cli("sessions", "open", str(egg), "--json")
    assert told.returncode == 0, told.stderr
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(json.loads(told.stdout)["egg"]["url"])
    return page


def recorded(desk: RunningDaemon, folder: Path) -> Path:
    """An egg of a session of two questions."""
    for words in (("open",), ("say", "first words"), ("say", "second words")):
        assert desk.cli("sessions", *words).returncode == 0
    egg = folder / "session.egg"
    done = desk.cli("sessions", "export", "--format", "egg", "--output", str(egg))
    assert done.returncode == 0, done.stderr
    return egg


def frame_of(page: Page) -> FrameLocator:
    return page.frame_locator(".replay-frame iframe")


@pytest.mark.parametrize("size", SIZES)
def test_replay_scrubs_through_the_session(
    browser: Browser, desk: RunningDaemon, tmp_path: Path, size: tuple[int, int]
) -> None:
    page = opened(browser, desk, recorded(desk, tmp_path), size)
    events = frame_of(page).locator(".events li:visible")
    expect(page.get_by_text("Page and transcript are what their hashes say.")).to_be_visible()
    expect(events.last).to_have_text("deskfake-llm: second words")  # at the captured event
    keep_picture(page, f"replay-{size[0]}")
    slider = page.get_by_role("slider", name="Event")
    slider.press("Home")
    expect(page.get_by_text("1 of 7")).to_be_visible()
    expect(events).to_have_count(0)  # the beginning of a session has no words
    slider.press("ArrowRight")
    expect(events).to_have_text(["Ownerfirst words"])
    keep_picture(page, f"replay-{size[0]}-scrubbed")
    inside = next(frame for frame in page.frames if frame != page.main_frame)
    for place in (page.main_frame, inside):
        place.evaluate(axe_core())
        assert violations(page, place) == [], place
    slider.press("Home")
    page.get_by_role("button", name="Play").click()
    expect(events.last).to_have_text("deskfake-llm: second words")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_replay_goes_on_as_a_live_session(browser: Browser, desk: RunningDaemon, tmp_path: Path) -> None:
    page = opened(browser, desk, recorded(desk, tmp_path))
    slider = page.get_by_role("slider", name="Event")
    slider.press("Home")
    for _ in range(3):
        slider.press("ArrowRight")
    expect(page.get_by_text("4 of 7")).to_be_visible()
    page.get_by_role("button", name="Go on from here").click()
    expect(page.locator(".session-events")).to_contain_text("Branches from the session egg")
    expect(page.locator(".session-events")).to_contain_text("fake-llm: first words")
    expect(page.locator(".session-events")).not_to_contain_text("second words")
    page.close()


class Collector:
    """Counts everything that reaches one TCP and one UDP port of this machine."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", 0))
        self.udp_port = self._udp.getsockname()[1]
        for work in (self._take_tcp, self._take_udp):
            threading.Thread(target=work, daemon=True).start()

    def _take_tcp(self) -> None:
        while True:
            try:
                line, _ = self._tcp.accept()
            except OSError:
                return
            self.came.append("TCP")
            line.close()

    def _take_udp(self) -> None:
        while True:
            try:
                self._udp.recv(2000)
            except OSError:
                return
            self.came.append("UDP")

    def close(self) -> None:
        for one in (self._tcp, self._udp):
            one.close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def cart(page: str, **more: Any) -> dict[str, Any]:
    return {
        "schema": "brainstem-egg/2.3-session",
        "type": "session",
        "title": "From elsewhere",
        "participants": [{"rappid": "x", "role": "operator", "name": "Kody"}],
        "runtime": {"type": "html", "sha256": hashlib.sha256(page.encode()).hexdigest(), "payload": page},
        "transcript": [
            {"event": n, "event_id": f"p:{n}", "kind": "operator_input", "ts": "2026-05-10T00:00:00Z", "by": "x",
             "data": {"text": f"word {n}"}} for n in range(3)
        ],
        **more,
    }  # fmt: skip


ATTACK = Path(__file__).with_name("hostile_page.html").read_text()


def test_page_of_an_egg_reaches_nothing(
    browser: Browser, desk: RunningDaemon, tmp_path: Path, collector: Collector
) -> None:
    attack = ATTACK.replace("COLLECTOR", str(collector.port)).replace("DAEMON", str(desk.port))
    attack = attack.replace("UDP", str(collector.udp_port))
    egg = tmp_path / "attack.egg"
    egg.write_text(json.dumps(cart(attack)))
    page = opened(browser, desk, egg)
    page.get_by_role("button", name="Show the page it brought").click()
    out = frame_of(page).locator("#out")
    expect(out).to_contain_text('"end"')
    told: dict[str, str] = json.loads(out.text_content() or "{}")
    reached = [name for name, words in told.items() if words.startswith("REACHED")]
    assert (reached, collector.came) == ([], [])
    assert page.url.startswith(f"http://127.0.0.1:{desk.port}/")
    page.close()


def test_frame_within_the_page_of_an_egg_reaches_nothing(
    browser: Browser, desk: RunningDaemon, tmp_path: Path, collector: Collector
) -> None:
    script = f"""<script>const peer = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{collector.udp_port}'}}]}});
        peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer));</script>"""
    egg = tmp_path / "nested.egg"
    egg.write_text(json.dumps(cart(f'<!doctype html><iframe srcdoc="{script}"></iframe>')))
    page = opened(browser, desk, egg)
    with page.expect_response("**/own"):
        page.get_by_role("button", name="Show the page it brought").click()
    time.sleep(2)  # Chromium 156 may end the tab over it; nothing leaves it
    assert collector.came == []
    page.close()


@pytest.mark.parametrize(
    "leaves",
    ["location = 'http://127.0.0.1:COLLECTOR/'", "location = 'http://localhost:DAEMON/health'",
     "location = 'data:text/html,<p>elsewhere'"],
)  # fmt: skip
def test_page_of_an_egg_that_leaves_its_frame_is_closed_or_kept(
    browser: Browser, desk: RunningDaemon, tmp_path: Path, collector: Collector, leaves: str
) -> None:
    script = leaves.replace("COLLECTOR", str(collector.port)).replace("DAEMON", str(desk.port))
    egg = tmp_path / "leaves.egg"
    egg.write_text(
        json.dumps(cart(f"<!doctype html><p>begun</p><script>setTimeout(() => {{ {script} }}, 300)</script>"))
    )
    page = opened(browser, desk, egg)
    page.get_by_role("button", name="Show the page it brought").click()
    expect(page.get_by_text("The egg's page tried to go elsewhere; it was closed.")).to_be_visible()
    assert collector.came == []
    page.close()


def test_page_of_an_egg_gets_its_transcript_up_to_the_scrubber(
    browser: Browser, desk: RunningDaemon, tmp_path: Path
) -> None:
    shows = """<!doctype html><p id="out"></p><script>addEventListener("message", ({ data }) => {
      out.textContent = data.transcript.map((one) => one.data.text).join();
    }); parent.postMessage({ kind: "cart_ready" }, "*");</script>"""
    egg = tmp_path / "shows.egg"
    egg.write_text(json.dumps(cart(shows)))
    page = opened(browser, desk, egg)
    expect(page.get_by_text("Unpinned: it carries no hash of its transcript.")).to_be_visible()
    expect(frame_of(page).locator(".events li:visible").last).to_have_text("Kodyword 2")
    page.get_by_role("button", name="Show the page it brought").click()
    expect(frame_of(page).locator("#out")).to_have_text("word 0,word 1,word 2")
    page.get_by_role("slider", name="Event").press("Home")
    expect(frame_of(page).locator("#out")).to_have_text("word 0")
    page.close()
