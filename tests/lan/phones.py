"""Phones on the network: Chromium in a machine's namespace, driven from outside by its own pipe."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import zxingcpp
from fixtures.chromium import CHROMIUM, FLAGS, driver
from fixtures.time_report import started
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page

from lan.daemons import Daemon
from lan.network import Machine

AGENT = "Mozilla/5.0 (Linux; Android 15; Mobile) AppleWebKit/537.36 Chrome/156.0 Mobile Safari/537.36"
ANSWERED = """count => {
    const marks = [...document.querySelectorAll(".mine .mark")].map(mark => mark.textContent);
    return marks.length === count && marks.every(mark => mark === "answered");
}"""

GREY = """async picture => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const {width, height} = image;
    const canvas = Object.assign(document.createElement("canvas"), {width, height});
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const {data} = context.getImageData(0, 0, width, height);
    let grey = "";
    for (let at = 0; at < data.length; at += 4) grey += String.fromCharCode((data[at] + data[at + 1] + data[at + 2]) / 3);
    return [width, btoa(grey)];
}"""
"""A PNG picture as bytes, one for each point."""


@contextmanager
def chromium_on(machine: Machine, folder: Path, *flags: str) -> Iterator[Browser]:
    """A browser whose network is that machine's."""
    with browsers_on(folder, machine, flags=flags) as (browser,):
        yield browser


@contextmanager
def browsers_on(folder: Path, *machines: Machine, flags: Sequence[str] = ()) -> Iterator[list[Browser]]:
    """A browser on each of the machines."""
    with driver() as playwright, ExitStack() as stack:
        browsers = []
        for machine in machines:
            browsers.append(launched_on(machine, folder, playwright.chromium, *flags))
            stack.callback(browsers[-1].close)
        yield browsers


def launched_on(machine: Machine, folder: Path, chromium: BrowserType, *more: str) -> Browser:
    """The same where Playwright runs already, as it does once for a thread; ``more`` are flags."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    program = folder / f"chromium-on-{machine.name}"
    program.write_text(f'#!/bin/sh\nexec ip netns exec {machine.namespace} {CHROMIUM} "$@"\n')
    program.chmod(0o755)
    started["browsers"] += 1
    return chromium.launch(executable_path=str(program), args=[*FLAGS, *more])


def qr_codes(rows: list[bytes]) -> list[str]:
    """Texts of the QR codes in a grey picture, row by row."""
    joined = b"".join(rows)
    picture = memoryview(joined).cast("B", (len(rows), len(rows[0])))
    codes = zxingcpp.read_barcodes(picture, formats=zxingcpp.BarcodeFormat.QRCode)
    return [found.text for found in codes]  # in the squares of one, other kinds are seen now and then


def seen_by_a_camera(page: Page) -> list[str]:
    """Texts of the QR codes that the screen shows; a camera looks until it sees one, for some seconds."""
    blank = page.context.new_page()
    until = time.monotonic() + 100
    found: list[str] = []
    while not found and time.monotonic() < until:
        width, grey = blank.evaluate(GREY, base64.b64encode(page.screenshot()).decode())
        pixels = base64.b64decode(grey)
        found = qr_codes([pixels[at : at + width] for at in range(0, len(pixels), width)])
    blank.close()
    return found


class Phone:
    """A phone's browser page; what its owner does with it."""

    def __init__(self, browser: Browser, daemon: Daemon, **options: Any) -> None:
        self.daemon = daemon
        self.context: BrowserContext = browser.new_context(
            viewport={"width": 390, "height": 844},
            user_agent=AGENT,
            has_touch=True,
            is_mobile=True,
            **options,
        )
        self.context.set_default_timeout(60_000)
        self.errors: list[str] = []
        self.page = self.new_page()

    def new_page(self) -> Page:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    def shows_digits(self, link: str) -> str:
        """Opens the link and returns the digits on the screen."""
        self.page.goto(link)
        return self.page.inner_text(".digits")

    def pair(self, **asked: Any) -> None:
        """From the QR code to the session of the phones."""
        window = self.daemon.ask("POST", "/devices/window", {"session": True, **asked})
        digits = self.shows_digits(window["links"][0])
        shown = self.daemon.ask("GET", "/devices/window")
        assert (shown["state"], shown["digits"]) == ("compare", digits)
        self.page.get_by_role("button", name="Same number").click()
        self.daemon.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
        self.page.get_by_role("button", name="Start talking").click()
        self.is_connected()

    def is_connected(self) -> None:
        self.page.get_by_text("● connected").wait_for()

    @contextmanager
    def more(self) -> Iterator[None]:
        """The sheet behind ☰, until the block ends; something done there may have closed it."""
        self.page.get_by_label("Conversations and more").click()
        sheet = self.page.locator("dialog.more")
        sheet.wait_for()
        yield
        if sheet.is_visible():
            sheet.get_by_role("button", name="Close").click()
            sheet.wait_for(state="detached")

    def asks(self, text: str) -> None:
        """Writes in a conversation of its own, and waits for the answer."""
        self.page.locator("#write").fill(text)
        self.page.get_by_role("button", name="Send", exact=True).click()
        self.page.locator(".turn .foot").last.wait_for()

    def write(self, text: str) -> None:
        """Writes in the session."""
        self.page.get_by_role("textbox", name="Message").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def is_answered(self, count: int) -> None:
        """Waits until all of that many sentences of its own are answered."""
        self.page.wait_for_function(ANSWERED, arg=count)

    def bubbles(self, kind: str = "li") -> list[str]:
        """Texts of the conversation, in order."""
        return self.page.locator(f".events {kind} p").all_inner_texts()

    def sentence(self) -> str:
        """The sentence on the screen."""
        return self.page.inner_text(".sentence")


def paired_device(daemon: Daemon) -> dict[str, Any]:
    """The only phone that joined."""
    (row,) = daemon.ask("GET", "/devices")["devices"]
    found: dict[str, Any] = row
    return found
