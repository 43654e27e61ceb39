"""Every screen of the phone's page: accessibility in both themes, 320 px, large targets; pictures for people to look at.

The pictures are written to the folder that ``RAPPD_SHOTS`` names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.axe import THEMES, VIOLATIONS, axe_core
from fixtures.chromium import keep_picture
from playwright.sync_api import Browser, Page

from lan.daemons import Daemon
from lan.network import Lan, require
from lan.phones import Phone, chromium_on, paired_device

pytestmark = pytest.mark.browser

SIZES = ((390, 844), (1280, 800))
SIDEWAYS = """[document.documentElement, ...document.querySelectorAll("body :not(#live, .visually-hidden, .who, .conversation-title, .bar h1)")]
    .filter(box => box.clientWidth > 0 && (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible"
        || box.getBoundingClientRect().right > Math.min(innerWidth, screen.width) + 1 || box.getBoundingClientRect().left < -1))
    .map(box => box.outerHTML.slice(0, 120))"""
SMALL = """[...document.querySelectorAll("button, summary, select, textarea, input")]
    .filter(it => it.checkVisibility() && (it.getBoundingClientRect().height < 44 || it.getBoundingClientRect().width < 44))
    .map(it => it.outerHTML)"""
WITHOUT_UDP = """RTCPeerConnection.prototype.setRemoteDescription = async () => {};
const real = setTimeout; window.setTimeout = (f, ms, ...more) => real(f, ms === 8000 ? 200 : ms, ...more);"""
WITHOUT_STORAGE = (
    "Object.defineProperty(window, 'indexedDB', {get() { throw new DOMException('blocked'); }});"
)
OTHER_CERTIFICATE = "RTCDtlsTransport.prototype.getRemoteCertificates = () => [new ArrayBuffer(3)];"
OFFER = "**/tether/v2/offer"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Daemon]:
    require()
    with Lan() as lan:
        made = Daemon(lan.machine("desk"), tmp_path)
        made.phone = lan.machine("phone")  # type: ignore[attr-defined]
        made.start()
        yield made


@pytest.fixture
def browser(desk: Any, tmp_path: Path) -> Iterator[Browser]:
    with chromium_on(desk.phone, tmp_path) as found:
        yield found


def seen(phone: Phone, name: str) -> None:
    """The screen is faultless in both themes and at 320 px; ``RAPPD_SHOTS`` gets its pictures."""
    page = phone.page
    page.evaluate(axe_core())
    for theme, rules in THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        for width, height in ((320, 640), *SIZES):
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate(SIDEWAYS) == [], (name, width)
            assert page.evaluate(SMALL) == [], (name, width)
            if width != 320:
                keep_picture(page, f"{name}-{width}-{theme}")
        assert page.evaluate(VIOLATIONS, rules) == [], (name, theme)
    page.set_viewport_size({"width": 390, "height": 844})


def window(desk: Daemon) -> Any:
    return desk.ask("POST", "/devices/window", {"session": True})


def says(page: Page, text: str) -> None:
    page.get_by_text(text).first.wait_for()


def test_screens_from_the_code_to_the_conversation(desk: Daemon, browser: Browser) -> None:
    phone, shown = Phone(browser, desk), window(desk)
    page = phone.page
    page.goto(shown["short_links"][0])
    says(page, "Point your camera at the QR code on the computer.")
    seen(phone, "scan")
    page.get_by_text("Why “Not secure”?").click()
    says(page, "Others on this Wi-Fi can't read your conversation.")
    seen(phone, "plain-http")
    held: list[Any] = []
    page.route(OFFER, lambda route: held.append(route))
    page.goto(shown["links"][0])
    says(page, "Finding your computer…")
    says(page, "If this phone asks about devices on your network, allow it")
    seen(phone, "checking")
    says(page, "Still looking. Same Wi-Fi as the computer?")
    seen(phone, "checking-long")
    held[0].continue_()
    page.locator(".digits").wait_for()
    page.unroute(OFFER)
    seen(phone, "digits")
    page.get_by_role("button", name="Same number").click()
    says(page, "Now say yes on")
    seen(phone, "waiting")
    desk.ask("POST", "/devices/window/answer", {"id": shown["id"], "same": True})
    says(page, "You're in.")
    seen(phone, "connected")
    page.get_by_text("Keep it on the home screen").click()
    seen(phone, "home-screen")
    page.get_by_role("button", name="Start talking").click()
    phone.is_connected()
    desk.ask("POST", "/devices/" + paired_device(desk)["id"], {"workflows": True})
    phone.write("hello " + "averylongword" * 12)
    phone.is_answered(1)
    seen(phone, "chat")
    with phone.more():
        seen(phone, "menu")
        page.get_by_text("Workflows").click()
        seen(phone, "workflows")
        page.get_by_text("Workflows").click()
        page.get_by_text("Why “Not secure”?").click()
        seen(phone, "menu-why")
    desk.crash()
    says(page, "Lost desk. Trying again. What you write is kept.")
    phone.write("kept")
    seen(phone, "lost")
    desk.start()
    phone.is_answered(2)
    desk.ask("DELETE", "/devices/" + paired_device(desk)["id"])
    says(page, "This phone was removed. To come back, ask for a new QR code.")
    seen(phone, "revoked")
    assert phone.errors == []


def test_screens_of_what_goes_wrong(desk: Daemon, browser: Browser) -> None:
    phone, shown = Phone(browser, desk), window(desk)
    phone.shows_digits(shown["links"][0])
    phone.page.get_by_role("button", name="Different").click()
    says(phone.page, "Stopped: the numbers differ. Nothing was shared.")
    seen(phone, "wrong-code")
    desk.wait_for(lambda: desk.ask("GET", "/devices/window")["state"] == "differs")
    other = Phone(browser, desk)
    other.page.goto(shown["links"][0])
    says(other.page, "That QR code has expired. Ask for a new one.")
    seen(other, "expired")
    forgetful = Phone(browser, desk)
    forgetful.page.add_init_script(WITHOUT_STORAGE)
    shown = window(desk)
    forgetful.shows_digits(shown["links"][0])
    forgetful.page.get_by_role("button", name="Same number").click()
    desk.ask("POST", "/devices/window/answer", {"id": shown["id"], "same": True})
    says(forgetful.page, "This browser forgets. Next time you need a new QR code.")
    seen(forgetful, "storage-blocked")
    forgetful.page.get_by_role("button", name="Start talking").click()
    forgetful.is_connected()
    forgetful.write("hello")
    forgetful.is_answered(1)
    with forgetful.more():
        forgetful.page.get_by_role("button", name="Disconnect this phone").click()
    says(forgetful.page, "Disconnect this phone?")
    seen(forgetful, "leaving")
    forgetful.page.get_by_role("button", name="Disconnect", exact=True).click()
    says(forgetful.page, "You left.")
    seen(forgetful, "left")
    assert phone.errors == other.errors == forgetful.errors == []


def test_phone_believes_the_certificate_that_its_browser_verified(desk: Daemon, browser: Browser) -> None:
    deceived = Phone(browser, desk)
    deceived.page.add_init_script(OTHER_CERTIFICATE)
    deceived.page.goto(window(desk)["links"][0])
    says(deceived.page, "Stopped: the numbers differ. Nothing was shared.")


def test_screens_without_a_private_line(desk: Daemon, browser: Browser) -> None:
    phone, shown = Phone(browser, desk), window(desk)
    phone.page.add_init_script(WITHOUT_UDP)
    phone.page.goto(shown["links"][0])
    says(phone.page, "This Wi-Fi blocks the private line. Others on it could read what is said.")
    seen(phone, "websocket")
    phone.page.get_by_role("button", name="Stop").click()
    says(phone.page, "Stopped. Nothing was shared.")
    seen(phone, "stopped")
    phone.page.get_by_role("button", name="Try again").click()
    phone.page.get_by_role("button", name="Talk anyway").click()
    phone.page.get_by_role("button", name="Same number").click()
    desk.ask("POST", "/devices/window/answer", {"id": shown["id"], "same": True})
    phone.page.get_by_role("button", name="Start talking").click()
    phone.page.get_by_text("● connected, not private").wait_for()
    with phone.more():
        seen(phone, "menu-websocket")
    assert phone.errors == []
