"""A phone in Chromium: from the scan to the first streamed word, with both people as quick as they can be; where the time goes."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.daemon import BenchDaemon
from benchmarks.phones import missing as missing_for_phones
from benchmarks.phones import phone_daemon

if TYPE_CHECKING:
    from playwright.sync_api import Browser

_RUNS = 7
_BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
MOST_SECONDS = 1.0
_STEPS = ("modules", "offer", "answer", "digits", "joined", "talk", "asked", "word")
_WORDS = ("page and modules", "certificate and candidates", "the computer's answer", "the private line and digits",
          "both say yes", "the talk is drawn", "connected and asked", "the first word")  # fmt: skip
_DRIVE = """
window.marks = {};
const mark = name => (window.marks[name] ??= performance.now());
const fetching = window.fetch;
window.fetch = async function (url, how) {
    if (!String(url).includes("offer")) return fetching.call(this, url, how);
    mark("offer");
    const answer = await fetching.call(this, url, how);
    mark("answer");
    return answer;
};
const making = RTCPeerConnection.generateCertificate;
RTCPeerConnection.generateCertificate = function (...how) { mark("modules"); return making.apply(this, how); };
const press = (words, name) => {
    const button = [...document.querySelectorAll("main button")].find(one => one.textContent === words && !one.pressed);
    if (!button) return;
    button.pressed = true;
    mark(name);
    button.click();
};
new MutationObserver(() => {
    press("Same number", "digits");
    press("Start talking", "joined");
    const field = document.querySelector("#write");
    if (field) mark("talk");
    if (field && !field.used && document.querySelector(".bar .state.connected")) {
        field.used = true;
        field.value = "hello";
        field.form.requestSubmit();
        mark("asked");
    }
    if (document.querySelector(".turn .answer")?.textContent) mark("word");
}).observe(document, {subtree: true, childList: true, characterData: true, attributes: true});
"""
"""Taps what a person taps, at once, and notes when."""


def missing() -> str:
    """The name of what it needs and lacks."""
    from benchmarks import page

    return page.missing() or missing_for_phones()


def run() -> list[tuple[str, str]]:
    """Medians of several phones that join, each in a browser context of its own."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, phone_daemon(Path(folder) / "desk") as daemon:
        daemon.start()
        daemon.chat("hello")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=_BROWSER, args=_FLAGS)
            found = [_joins(browser, daemon, number) for number in range(_RUNS)]
            browser.close()
    word = statistics.median(one["word"] for one in found) / 1000
    told = ", ".join(
        f"{words} {statistics.median(one[step] - one.get(before, 0.0) for one in found):.0f}"
        for words, step, before in zip(_WORDS, _STEPS, ("", *_STEPS), strict=False)
    )
    return [
        ("scan to the first streamed word", f"{word * 1000:.0f} ms; {word / MOST_SECONDS:.2f} of what it may take"),
        ("of it, in ms", told),
    ]  # fmt: skip


def _joins(browser: Browser, daemon: BenchDaemon, number: int) -> dict[str, float]:
    """Milliseconds from the link to each step, of one phone."""
    window = daemon.control("POST", "/devices/window", {"name": f"phone {number}"})
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.add_init_script(_DRIVE)
    owner = threading.Thread(target=_says_yes, args=(daemon, window["id"]))
    owner.start()
    page.goto(window["links"][0], wait_until="commit")
    page.wait_for_function("() => window.marks.word")
    owner.join()
    marks: dict[str, Any] = page.evaluate("marks")
    context.close()
    return marks


def _says_yes(daemon: BenchDaemon, id: str) -> None:
    while daemon.control("GET", "/devices/window", None)["state"] != "compare":
        time.sleep(0.002)
    daemon.control("POST", "/devices/window/answer", {"id": id, "same": True, "kind": "mine"})
