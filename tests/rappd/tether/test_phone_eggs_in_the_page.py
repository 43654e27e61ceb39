"""Eggs on the phone's page, in a real browser: asked first where http is plain, and with progress."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import sync_playwright

from twins.eggs.readers.sessions import read_session

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed"),
]


def test_phone_page_asks_saves_and_sends(desk: RunningDaemon, tmp_path: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.set_default_timeout(20_000)
        window = desk.post("/devices/window", {"name": "Anna"}, control=True).json()
        page.goto(window["links"][0])
        page.get_by_role("button", name="Yes").click()
        desk.post("/devices/window/answer", {"id": window["id"], "same": True}, control=True)
        page.get_by_role("button", name="Start talking").click()
        desk.post("/devices/Anna", {"eggs": True}, control=True)
        page.locator("summary[aria-label=More]").click()
        page.get_by_role("button", name="Save this conversation as an egg").click()
        page.get_by_text("eggs cross this Wi-Fi unprotected").wait_for()
        if folder := os.environ.get("RAPPD_SHOTS"):
            page.screenshot(path=f"{folder}/phone-egg.png")
        with page.expect_download() as download:
            page.get_by_role("button", name="Send anyway").click()
        egg = tmp_path / "saved.egg"
        download.value.save_as(egg)
        assert read_session(egg).transcript_pinned
        page.get_by_text("is on this phone.").wait_for()
        page.locator("input[type=file]").set_input_files(egg)
        page.get_by_role("button", name="Send anyway").click()
        page.get_by_text("saved.egg is on the computer. Its owner decides about it.").wait_for()
        assert [row["from"] for row in desk.get("/eggs/arrived", control=True).json()["arrived"]] == ["Anna"]
        browser.close()
