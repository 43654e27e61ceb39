"""Phones in headless Chromium: the page as it is scanned, compared and talked with."""

from __future__ import annotations

import os
from typing import Any

from fixtures.axe import THEMES, VIOLATIONS, axe_core
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, Page, expect

AGENT = "Mozilla/5.0 (Linux; Android 15; Pixel 8) AppleWebKit/537.36 Chrome/156.0 Mobile Safari/537.36"
SIDEWAYS = """[document.documentElement, ...document.querySelectorAll("body :not(#live)")]
    .filter(box => box.clientWidth > 0 && !box.closest(".visually-hidden, .who, .call-given, .conversation-title, .bar h1, pre")
        && (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible"
        || box.getBoundingClientRect().right > Math.min(innerWidth, screen.width) + 1 || box.getBoundingClientRect().left < -1))
    .map(box => box.outerHTML.slice(0, 160))"""


class PhonePage:
    """A phone: a browser context of its own."""

    def __init__(self, browser: Browser, desk: RunningDaemon, **options: Any) -> None:
        self.desk = desk
        size = {"width": 390, "height": 844}
        asked = {"viewport": size, "user_agent": AGENT, "has_touch": True, "is_mobile": True} | options
        self.context = browser.new_context(**asked)
        self.context.set_default_timeout(60_000)
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))

    def pair(self, name: str, kind: str = "guest", **asked: Any) -> Page:
        """From the code to the first screen of the talk."""
        window = self.desk.post("/devices/window", {"name": name, **asked}, control=True).json()
        self.page.goto(window["links"][0])
        self.page.get_by_role("button", name="Same number").click()
        verdict = {"id": window["id"], "same": True, "kind": kind}
        assert self.desk.post("/devices/window/answer", verdict, control=True).status == 200
        self.page.get_by_role("button", name="Start talking").click()
        expect(self.page.locator(".bar .state")).to_have_text("● connected")
        return self.page

    def ask(self, text: str) -> None:
        """Writes in the conversation that is shown."""
        self.page.locator("#write").fill(text)
        self.page.get_by_role("button", name="Send", exact=True).click()

    def opens(self) -> Page:
        """The sheet behind ☰."""
        self.page.locator(".bar button").click()
        return self.page

    def looks_right(self, shot: str) -> None:
        """Nothing sideways, and axe finds nothing, in both themes and sizes; pictures go to RAPPD_SHOTS."""
        page = self.page
        page.evaluate(axe_core())
        for theme, rules in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            for width, height in ((1280, 800), (390, 844)):
                page.set_viewport_size({"width": width, "height": height})
                wide = page.evaluate(SIDEWAYS)
                assert wide == [], (shot, width, wide)
                if folder := os.environ.get("RAPPD_SHOTS"):
                    page.screenshot(path=f"{folder}/{shot}-{width}-{theme}.png")
            assert page.evaluate(VIOLATIONS, rules) == [], (shot, theme)
