"""Eggs on the phone's page, in a real browser: asked first where http is plain, and with progress."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import CHROMIUM, chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon
from fixtures.screen_reader import HEARD, LISTEN, assert_as_shown
from playwright.async_api import async_playwright
from playwright.sync_api import expect

from tests.rappd.tether.test_phone_eggs import MakePhone, carrier, owner
from twins.eggs.readers.sessions import read_session

pytestmark = [
    pytest.mark.browser,
    needs_chromium,
]


BIG = 6 << 20
WATCH = """() => {
    window.far = [];
    const look = () => {
        const bar = document.querySelector(".transfer progress");
        if (bar?.parentElement.innerText.includes("%"))
            window.far.push([bar.value, bar.parentElement.querySelector("p").textContent]);
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
}"""
"""Writes down each state of the bar that says how far an egg is, and the words above it."""


def test_phone_page_asks_saves_and_sends(desk: RunningDaemon, tmp_path: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        window = desk.post("/devices/window", {"name": "Anna", "session": True}, control=True).json()
        page.goto(window["links"][0])
        page.get_by_role("button", name="Same number").wait_for()
        page.evaluate(LISTEN)
        page.get_by_role("button", name="Same number").click()
        desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
        expect(page.locator("#live")).to_contain_text("You're in.")
        page.get_by_role("button", name="Start talking").click()
        page.get_by_label("Message").fill("what can you do?")
        page.keyboard.press("Enter")
        answer = page.locator(".events .other p").last
        answer.wait_for()
        expect(page.locator("#live")).to_contain_text("desk: ")
        desk.post("/devices/Anna", {"eggs": True}, control=True)
        page.get_by_label("Conversations and more").click()
        page.get_by_role("button", name="Save this conversation as an egg").click()
        page.get_by_text("files are not encrypted on this Wi-Fi").wait_for()
        page.evaluate(axe_core())
        assert violations(page) == []
        if folder := os.environ.get("RAPPD_SHOTS"):
            page.screenshot(path=f"{folder}/phone-egg.png")
        with page.expect_download() as download:
            page.get_by_role("button", name="Send anyway").click()
        egg = tmp_path / "saved.egg"
        download.value.save_as(egg)
        assert read_session(egg).transcript_pinned
        page.get_by_text("is on this phone.").wait_for()
        page.get_by_label("Conversations and more").click()
        page.get_by_label("Egg to send").set_input_files(egg)
        page.get_by_role("button", name="Send anyway").click()
        page.get_by_text("saved.egg is sent. It waits for approval on the computer.").wait_for()
        assert [row["from"] for row in desk.get("/eggs/arrived", control=True).json()["arrived"]] == ["Anna"]
        page.evaluate(WATCH)
        big = tmp_path / "big.egg"
        big.write_bytes(bytes(BIG))
        slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": BIG}
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        network.send("Network.emulateNetworkConditions", slow)
        page.get_by_label("Conversations and more").click()
        page.get_by_label("Egg to send").set_input_files(big)
        page.get_by_role("button", name="Send anyway").click()
        page.get_by_role("button", name="OK", exact=True).wait_for()
        far = page.evaluate("window.far")
        heard = page.evaluate(HEARD)
    values = [value for value, _ in far]
    assert (
        values == sorted(values) and values[-1] == 1 and far[-1][1].startswith("Sending big.egg: 100 %, ")
    ), far
    assert any(0 < value < 1 and f": {int(100 * value)} %, " in words for value, words in far), far
    assert any("You're in." in one["text"] for one in heard), heard
    assert any("desk: " in one["text"] for one in heard), "the answer, once it is whole"
    assert_as_shown(heard)


async def test_owner_sends_a_twin_to_a_phone_from_the_page(desk: RunningDaemon, phone: MakePhone) -> None:
    await owner(desk, "POST", "/twins", {"name": "Rose"})
    anna = await carrier(desk, phone)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        link = (await owner(desk, "POST", "/operator/key"))["url"]
        await page.goto(link)
        await page.goto(f"{link.partition('#')[0]}#/devices")
        await page.get_by_role("button", name="Send a twin to Anna").click()
        dialog = page.get_by_role("dialog", name="Send a twin to Anna")
        await dialog.get_by_label("Twin").select_option("Rose")
        if folder := os.environ.get("RAPPD_SHOTS"):
            await page.screenshot(path=f"{folder}/send-twin.png")
        await dialog.get_by_role("button", name="Send", exact=True).click()
        await page.get_by_text("waits for Anna").wait_for()
        await browser.close()
    await anna.sees(lambda: anna.eggs["offers"])  # the owner's page knows of it before she is told
    (offer,) = anna.eggs["offers"]
    status, body = await anna.fetch(offer["id"], await anna.egg_token())
    assert status == 200 and body.startswith(b"PK")
