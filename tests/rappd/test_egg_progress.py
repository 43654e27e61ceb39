"""Progress of packing and hatching: told in bytes while they last, on the wire and in the page."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import expect

EVENTS = {"Accept": "text/event-stream"}
BIG = 48 << 20

WATCH = """() => {
    window.seen = [];
    const look = () => {
        for (const bar of document.querySelectorAll(".progress progress")) {
            const amount = bar.parentElement.querySelector("p").innerText;
            const label = `${bar.ariaLabel} ${bar.dataset.phase}`;
            if (bar.position > 0 && window.seen.at(-1)?.[1] !== bar.value)
                window.seen.push([label, bar.value, bar.max, amount]);
        }
    };
    new MutationObserver(look).observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
}"""


def rose(daemon: RunningDaemon) -> tuple[str, Path]:
    """A twin with much to carry: its key, and its workspace."""
    key = str(daemon.post("/twins", {"name": "Rose"}, control=True).json()["key"])
    workspace = daemon.home / "twins" / key
    (workspace / ".brainstem_data").mkdir(exist_ok=True)
    (workspace / ".brainstem_data" / "seeds.bin").write_bytes(random.Random(1).randbytes(BIG))
    return key, workspace


def events(daemon: RunningDaemon, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = daemon.request("POST", path, body, control=True, headers=EVENTS)
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = answer.body.decode().split("\n\n")
    return [json.loads(line.removeprefix("data: ")) for line in lines if line]


def far(told: list[dict[str, Any]], phase: str) -> list[tuple[int, int]]:
    return [(one["done"], one["whole"]) for one in told if one.get("phase") == phase]


def test_packing_and_hatching_show_progress_and_result(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    key, workspace = rose(daemon)
    *moved, done = events(daemon, "/eggs/pack", {"twin": key})
    amounts = far(moved, "pack")
    assert len(amounts) == len(moved) >= 1
    assert amounts == sorted(amounts) and amounts[-1][0] == amounts[-1][1] >= BIG
    assert done["type"] == "done" and done["packed"]["size"] >= BIG
    egg = Path(done["packed"]["path"])
    (workspace / ".brainstem_data" / "seeds.bin").unlink()
    *moved, done = events(daemon, "/eggs/hatch", {"path": str(egg)})
    for phase in ("check", "stage"):
        amounts = far(moved, phase)
        assert len(amounts) >= 1 and amounts == sorted(amounts) and amounts[-1][0] == amounts[-1][1] >= BIG
    assert done["hatched"]["create"]["count"] == 1
    plain = daemon.post("/eggs/pack", {"twin": key}, control=True)
    assert "type" not in plain.json() and plain.json()["packed"]["size"] >= BIG, "who asks for JSON gets JSON"


def test_what_is_refused_is_refused_in_the_one_shape(fake_daemon: RunningDaemon) -> None:
    (told,) = events(fake_daemon, "/eggs/pack", {"twin": "nobody"})
    plain = fake_daemon.post("/eggs/pack", {"twin": "nobody"}, control=True)
    assert told == {"type": "error", "status": plain.status, **plain.json()}
    bad = fake_daemon.request("POST", "/eggs/hatch", {}, control=True, headers=EVENTS)
    assert bad.status == 400 and bad.json()["code"] == "bad_body"


@pytest.mark.browser
@pytest.mark.timeout(1200)
@needs_chromium
def test_the_page_shows_the_bytes_that_moved(
    make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    _, workspace = rose(daemon)
    with chromium() as browser:
        page = browser.new_page()
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Twins").click()
        page.get_by_role("button", name="Pack Rose").wait_for()
        page.evaluate(WATCH)
        page.get_by_role("button", name="Pack Rose").click()
        with page.expect_download() as download:
            page.get_by_role("button", name="Save Rose.egg").click(timeout=120_000)
        egg = tmp_path / "rose.egg"
        download.value.save_as(egg)
        (workspace / ".brainstem_data" / "seeds.bin").unlink()
        page.locator("#main input[type=file]").first.set_input_files(egg)
        page.get_by_role("button", name="Hatch 1 file").click(timeout=120_000)
        expect(page.locator(".toast")).to_contain_text("Rose hatched", timeout=120_000)
        seen: list[tuple[str, float, float, str]] = page.evaluate("window.seen")
    for words in (
        "Packing Rose.egg… pack",
        "Reading rose.egg… upload",
        "Reading rose.egg… check",
        "Hatching 1 file… check",
        "Hatching 1 file… stage",
    ):
        told = [(value, most, text) for label, value, most, text in seen if label == words]
        values = [value for value, _, _ in told]
        assert values == sorted(values) and told, (words, seen)
        assert all(0 < value <= most and most >= BIG for value, most, _ in told), (words, told)
        assert all(" %, " in text and " of 50 MB" in text for _, _, text in told), (words, told)
