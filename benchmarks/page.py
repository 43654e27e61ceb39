"""A cold page in Chromium behind a round trip of 60 ms: until it paints and until one can write."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.daemon import BenchDaemon

_RUNS = 5
_ROUND_TRIP_MS = 60
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
_PAINTED = """() => new Promise(resolve => new PerformanceObserver(
  list => resolve(list.getEntriesByName("first-contentful-paint")[0].startTime)
).observe({type: "paint", buffered: true}))"""

_DRAWN = """(() => {
  const look = () => {
    const link = document.querySelector("header nav a");
    if (link?.getClientRects().length) requestAnimationFrame(() => (window.navigationDrawn = performance.now()));
    else requestAnimationFrame(look);
  };
  look();
})()"""
"""Notes the first frame after the one with the navigation: asked from outside, a busy page answers later."""


def missing() -> str:
    """The program or package that this needs and does not find."""
    if shutil.which("chromium") is None:
        return "chromium"
    try:
        import playwright  # noqa: F401
    except ImportError:
        return "playwright"
    return ""


def run() -> list[tuple[str, str]]:
    """Medians of several visits, each with an empty cache, and of the same page once more."""
    from playwright.sync_api import sync_playwright

    cold, again = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        BenchDaemon(Path(folder) / "home", LLM_FAKE="1") as daemon,
        sync_playwright() as playwright,
    ):
        daemon.start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        for _ in range(_RUNS):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            cold.append(_visit(context.new_page(), daemon.port))
            again.append(_visit(context.new_page(), daemon.port))
            context.close()
        browser.close()
    return [
        ("first contentful paint, cold", _shown(cold, "paint")),
        ("until the navigation is drawn, cold", _shown(cold, "drawn")),
        ("until one can write, cold", _shown(cold, "ready")),
        ("requests until then, cold", _shown(cold, "requests", "")),
        ("first contentful paint, second visit", _shown(again, "paint")),
        ("until one can write, second visit", _shown(again, "ready")),
    ]


def _visit(page: Any, port: int) -> dict[str, float]:
    protocol = page.context.new_cdp_session(page)
    protocol.send("Network.enable")
    conditions = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    protocol.send("Network.emulateNetworkConditions", {**conditions, "latency": _ROUND_TRIP_MS})
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.add_init_script(_DRAWN)
    page.goto(f"http://127.0.0.1:{port}/", wait_until="commit")
    page.locator("#write:focus").wait_for()
    drawn = page.evaluate("navigationDrawn")
    ready = page.evaluate("performance.now()")
    requests = len(asked)
    painted = page.evaluate(_PAINTED)
    page.close()
    return {"paint": painted, "drawn": drawn, "ready": ready, "requests": requests}


def _shown(visits: list[dict[str, float]], key: str, unit: str = " ms") -> str:
    values = [visit[key] for visit in visits]
    return f"{statistics.median(values):.0f}{unit} (min {min(values):.0f}, max {max(values):.0f})"
