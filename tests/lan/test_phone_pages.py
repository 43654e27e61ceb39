"""The computer's page and the phone's: from "Add a phone" to the conversation, and every screen's accessibility."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fixtures.axe import RULES, VIOLATIONS, axe_core
from playwright.sync_api import Browser, Page, expect

from lan.daemons import Daemon
from lan.network import Lan, require
from lan.phones import Phone, browsers_on, paired_device, seen_by_a_camera

pytestmark = pytest.mark.browser


class Pages(NamedTuple):
    """A computer with its own browser, and the phone's browser on another machine."""

    desk: Daemon
    own: Browser
    phone: Browser

    def devices(self) -> Page:
        """The computer's page, at Devices, with the operator's session."""
        page = self.own.new_context(viewport={"width": 1280, "height": 800}).new_page()
        page.set_default_timeout(60_000)
        page.goto(self.desk.ask("GET", "/operator/status")["url"])
        page.get_by_role("link", name="Devices").click()
        return page


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[Pages]:
    require()
    with Lan() as lan:
        desk, other = Daemon(lan.machine("desk"), tmp_path), lan.machine("phone")
        desk.start()
        with browsers_on(tmp_path, desk.machine, other) as (own, phone):
            yield Pages(desk, own, phone)


def test_phone_joins_from_the_page_and_chats(pages: Pages) -> None:
    page = pages.devices()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.get_by_role("button", name="Add a phone").click()
    page.wait_for_function("() => document.querySelector('.qr-code')?.naturalWidth > 0")
    [link] = seen_by_a_camera(page)
    assert link == pages.desk.ask("GET", "/devices/window")["links"][0]
    phone = Phone(pages.phone, pages.desk)
    digits = phone.shows_digits(link)
    dialog = page.get_by_role("dialog", name="Add a phone")
    dialog.get_by_text("Does the phone show this number?").wait_for()
    expect(dialog.locator(".six-digits > [aria-hidden]")).to_have_text(digits)
    page.reload()
    dialog.get_by_text("Does the phone show this number?").wait_for()
    dialog.get_by_role("button", name="Same, a guest's").click()
    dialog.locator(".waiting", has_text="Now tap “Same number” on Android, Chrome.").wait_for()
    phone.page.get_by_role("button", name="Same number").click()
    dialog.locator(".outcome", has_text="Android, Chrome joined.").wait_for()
    dialog.get_by_role("button", name="Close").last.click()
    phone.page.get_by_role("button", name="Start talking").click()
    phone.asks("hello")
    expect(phone.page.locator(".written, .answer")).to_have_text(["hello", "fake-llm: hello"])
    card = page.locator("[data-device]")
    card.get_by_text("● connected").wait_for()
    phone.page.close()
    card.get_by_text("○ last seen").wait_for()
    assert (errors, phone.errors) == ([], [])
    page.get_by_role("button", name="Remove Android, Chrome").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    page.get_by_text("No phone yet.").wait_for()
    assert pages.desk.ask("GET", "/devices")["devices"] == []


def test_open_pages_are_told_of_codes_and_phones(pages: Pages) -> None:
    stream = pages.desk.stream("/activity/stream")

    def told(kind: str) -> None:
        news = (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
        assert any(one["type"] == kind for one in news)

    pages.desk.chat("hello")
    told("event")  # from now on it is looked
    window = pages.desk.ask("POST", "/devices/window", {"session": True})
    told("devices")
    phone = Phone(pages.phone, pages.desk)
    phone.shows_digits(window["links"][0])
    told("devices")
    pages.desk.ask("DELETE", "/devices/window")
    told("devices")
    stream.close()


def test_page_says_they_differ_and_nobody_joins(pages: Pages) -> None:
    page = pages.devices()
    page.get_by_role("button", name="Add a phone").click()
    page.locator(".qr-code").wait_for()
    phone = Phone(pages.phone, pages.desk)
    phone.shows_digits(pages.desk.ask("GET", "/devices/window")["links"][0])
    page.get_by_role("button", name="Different").click()
    page.locator(".outcome", has_text="Stopped: the numbers differ. Nothing was shared.").wait_for()
    phone.page.get_by_text("Stopped: the numbers differ. Nothing was shared.").wait_for()
    assert pages.desk.ask("GET", "/devices")["devices"] == []


def test_phone_screens_have_no_faults_of_accessibility(pages: Pages) -> None:
    phone, other = Phone(pages.phone, pages.desk), Phone(pages.phone, pages.desk)
    window = pages.desk.ask("POST", "/devices/window", {"session": True})
    phone.page.goto(window["short_links"][0])
    phone.page.get_by_role("textbox", name="Code").wait_for()
    faultless(phone)
    digits = phone.shows_digits(window["links"][0])
    faultless(phone)
    phone.page.get_by_role("button", name="Same number").click()
    phone.page.get_by_text("Now say yes on").wait_for()
    assert phone.page.inner_text(".digits") == digits, "the owner still compares it"
    faultless(phone)
    pages.desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
    phone.page.get_by_role("button", name="Start talking").wait_for()
    faultless(phone)
    phone.page.get_by_role("button", name="Start talking").click()
    phone.is_connected()
    phone.write("hello")
    phone.is_answered(1)
    faultless(phone)
    other.page.goto(window["links"][0])
    other.page.get_by_text("That QR code has expired.").wait_for()
    faultless(other)
    window = pages.desk.ask("POST", "/devices/window", {"session": True})
    other.shows_digits(window["links"][0])
    other.page.get_by_role("button", name="Different").click()
    other.page.get_by_text("Stopped: the numbers differ.").wait_for()
    faultless(other)
    pages.desk.ask("DELETE", f"/devices/{paired_device(pages.desk)['id']}")
    phone.page.get_by_text("This phone was removed.").wait_for()
    faultless(phone)


def faultless(phone: Phone) -> None:
    """axe-core finds nothing wrong on the phone's screen, in either theme."""
    phone.page.evaluate(axe_core())
    for scheme in ("dark", "light"):
        phone.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert phone.page.evaluate(VIOLATIONS, RULES) == []
