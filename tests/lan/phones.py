"""Phones on the network: Chromium in a machine's namespace, driven from outside by its own pipe."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, BrowserType, Page, sync_playwright

from lan.daemons import Daemon
from lan.network import Machine

CHROMIUM = shutil.which("chromium")
AGENT = "Mozilla/5.0 (Linux; Android 15; Mobile) AppleWebKit/537.36 Chrome/156.0 Mobile Safari/537.36"
ANSWERED = """count => {
    const marks = [...document.querySelectorAll(".mine .mark")].map(mark => mark.textContent);
    return marks.length === count && marks.every(mark => mark === "answered");
}"""


@contextmanager
def chromium_on(machine: Machine, folder: Path) -> Iterator[Browser]:
    """A browser whose network is that machine's."""
    with sync_playwright() as playwright:
        browser = launched_on(machine, folder, playwright.chromium)
        try:
            yield browser
        finally:
            browser.close()


def launched_on(machine: Machine, folder: Path, chromium: BrowserType) -> Browser:
    """The same where Playwright runs already, as it does once for a thread."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    program = folder / f"chromium-on-{machine.name}"
    program.write_text(f'#!/bin/sh\nexec ip netns exec {machine.namespace} {CHROMIUM} "$@"\n')
    program.chmod(0o755)
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    return chromium.launch(executable_path=str(program), args=flags)


class Phone:
    """One phone's browser page; what its owner does with it."""

    def __init__(self, browser: Browser, daemon: Daemon) -> None:
        self.daemon = daemon
        self.context: BrowserContext = browser.new_context(
            viewport={"width": 390, "height": 844}, user_agent=AGENT, has_touch=True, is_mobile=True
        )
        self.context.set_default_timeout(20_000)
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
        """From the QR code to the conversation."""
        window = self.daemon.ask("POST", "/devices/window", asked)
        digits = self.shows_digits(window["links"][0])
        shown = self.daemon.ask("GET", "/devices/window")
        assert (shown["state"], shown["digits"]) == ("compare", digits)
        self.page.get_by_role("button", name="Yes").click()
        self.daemon.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
        self.page.get_by_role("button", name="Start talking").click()
        self.is_connected()

    def is_connected(self) -> None:
        self.page.get_by_text("● connected").wait_for()

    def write(self, text: str) -> None:
        self.page.get_by_role("textbox", name="Message").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def is_answered(self, count: int) -> None:
        """Waits until all of that many sentences of its own are answered."""
        self.page.wait_for_function(ANSWERED, arg=count)

    def bubbles(self, kind: str = "li") -> list[str]:
        """Texts of the conversation, in order."""
        return self.page.locator(f".events {kind} p").all_inner_texts()

    def sentence(self) -> str:
        """What the screen says."""
        return self.page.inner_text(".sentence")


def paired_device(daemon: Daemon) -> dict[str, Any]:
    """The only phone that joined."""
    (row,) = daemon.ask("GET", "/devices")["devices"]
    found: dict[str, Any] = row
    return found
