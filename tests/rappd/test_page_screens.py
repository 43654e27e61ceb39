"""Every page and view of the operator, with something on each: axe-core, headings, nothing sideways, nothing covered.

Pictures for people to look at are written to the folder that ``RAPPD_SHOTS`` names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.axe import STILL, THEMES, VIOLATIONS, axe_core
from fixtures.chromium import keep_picture, needs_chromium
from fixtures.free_ports import free_port
from fixtures.machines import Machine, acquaint
from fixtures.page_questions import (
    BEHIND_TOAST,
    COVERED,
    LONGEST_LINE,
    NAMELESS,
    SIDEWAYS,
    SKIPPED,
    SMALL,
    TOAST,
)
from fixtures.running_daemon import agent_source
from playwright.sync_api import Browser, Page, expect

from twins.trust.quarantine import QuarantineList

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    needs_chromium,
]

SIZES = ((1280, 800), (390, 844))
OTHER_SIZES = {1280: [(1920, 500)], 390: [(320, 700), (390, 500)]}
"""By the width that is photographed: what is wider, narrower or lower is asked what needs no picture."""
LOW = 500
"""Pixels: in a window so low, a conversation has no room left beside a toast."""
LONG_LINE = 100
"""Characters that one still reads well in a line."""
PAGES = """async () => {
    const { pages } = await import(new URL("pages/pages.js", document.querySelector("script[type=module]").src));
    return pages.map(({ id }) => id);
}"""
VIEWS = "[...document.querySelectorAll('nav.views a')].map(link => link.hash.slice(2))"
ANSWER = """What I know:

| month | rain |
|---|---|
| May | 61 mm |

```python
for month in year:
    print(rain(month))
```

The mean is $$\\frac{1}{n}\\sum_i x_i$$."""


def remember(workspace: Path, *texts: str) -> None:
    folder = workspace / ".brainstem_data/shared_memories"
    folder.mkdir(parents=True, exist_ok=True)
    rows = {f"m{at}": {"message": text, "type": "fact"} for at, text in enumerate(texts)}
    (folder / "memory.json").write_text(json.dumps(rows))


def hold(home: Path, name: str, source: str) -> None:
    place = home / "brainstem/agents" / name
    place.write_text(source)
    digest = hashlib.sha256(source.encode()).hexdigest()
    QuarantineList(home / "held.json", home).hold(place, digest, "Nobody signed it.", "kitchen.egg")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with something of everything, and a call for the paired one, which is away."""
    folder = tmp_path_factory.mktemp("lived-in")
    tether = {"RAPPD_TETHER_ADDRESS": "127.0.0.1", "RAPPD_TETHER_PORT": str(free_port())}
    desk, pi = (
        Machine(folder / "desk", "desk", LLM_FAKE="1", **tether),
        Machine(folder / "pi", "pi", LLM_FAKE="1"),
    )
    place = '{"place": {"type": "string", "description": "The town."}, "days": {"type": "integer"}}'
    desk.drop("weather_agent.py", agent_source("Weather", 'return "rain"', "Tells of rain and wind.", place))
    desk.drop("broken_agent.py", "class A(:\n")
    hold(desk.home, "oven_agent.py", agent_source("Oven"))
    remember(desk.home / "brainstem", "The boiler was serviced in May.", "Anna likes rye bread.")
    pi.start()
    desk.start()
    acquaint(desk, pi)
    rose, old = (desk.owner("POST", "/twins", {"name": name})["key"] for name in ("Rose", "Old"))
    desk.owner("POST", f"/twins/{old}/archive", {})
    remember(desk.home / "twins" / rose, "Roses hate frost.")
    desk.owner("POST", f"/twins/{rose}/checkpoints", {"note": "before the frost"})
    assert desk.post(f"/twins/{rose}/chat", {"user_input": "how are the roses?"}).status == 200
    for text in ("will it rain in May?", ANSWER):
        assert desk.post("/chat", {"user_input": text, "session_id": "rain"}, control=True).status == 200
    assert desk.cli("egg", "pack", "Rose").returncode == 0
    desk.owner("POST", "/sessions", {})
    desk.owner("POST", "/sessions/current/say", {"text": "who waters the roses?", "wait": True})
    pi.stop()
    desk.misses("pi")
    desk.call("pi", text="read the rain gauge", wait=0)
    yield desk
    desk.stop()


def shown_at(desk: Machine) -> dict[str, str]:
    """The sign by which each address is drawn: text of the page, or a selector after ``css=``."""
    [rose] = [row["key"] for row in desk.owner("GET", "/twins")["twins"]]
    [thread] = [
        row["id"] for row in desk.owner("GET", "/conversations")["conversations"] if row["session"] == "rain"
    ]
    session = desk.owner("GET", "/sessions")["sessions"][0]["id"]
    return {
        "chat": "css=#write",
        f"chat/{rose}": "Chat with Rose",
        f"chat/conversation/{thread}": "css=.turn math",
        "chat/conversations": "css=.conversation-link",
        f"chat/session/{session}": "who waters the roses?",
        "agents": "Tells of rain and wind.",
        "agents/Weather": "css=aside.detail:visible, dialog[open]",
        "agents/edit/weather_agent.py": "css=.cm-content",
        "agents/memory": "The boiler was serviced in May.",
        f"agents/memory/{rose}": "Roses hate frost.",
        "twins": "css=.twin h3",
        f"twins/twin/{rose}": "before the frost",
        "twins/lineage": "Rose",
        "twins/eggs": "Open an egg",
        "twins/cartridges": "css=.column",
        "twins/archived": "Old",
        "machines": "css=.machine",
        "machines/peer/pi": "css=.column h2",
        "machines/outbox": "read the rain gauge",
        "machines/neighborhood": "offline, cannot be backed up",
        "devices": "No phone yet.",
        "waiting": "oven_agent.py",
        "activity": "css=.row",
        "activity/threads": "css=.row",
        f"activity/thread/{thread}": "css=.turn .who",
        f"activity/thread/{thread}/tree": "css=.thread-step",
        f"activity/thread/{thread}/records": "css=.row",
        "activity/organism": "css=.organism .part",
        "activity/log": "css=.log-warn",
        "settings": "All settings",
    }


def go(page: Page, place: str, seen: str) -> None:
    if page.locator("dialog[open]").count():
        page.keyboard.press("Escape")
    page.evaluate("place => { location.hash = `#/${place}` }", place)
    found = page.locator(seen[4:]) if seen.startswith("css=") else page.locator("#main").get_by_text(seen)
    expect(found.first).to_be_visible()
    page.evaluate("document.fonts.ready.then(() => undefined)")


def wrong_here(page: Page, size: tuple[int, int], picture: str) -> dict[str, object]:
    """Faults of what is drawn, by kind; in each theme a picture is kept."""
    found: dict[str, object] = {}
    for scheme, rules in THEMES:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(STILL)
        keep_picture(page, f"{picture}-{size[0]}-{scheme}")
        found[f"axe, {scheme}"] = page.evaluate(VIOLATIONS, rules)
    found |= {"nameless": page.evaluate(NAMELESS), "headings": page.evaluate(SKIPPED)}
    for width, height in (size, *OTHER_SIZES[size[0]]):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(TOAST)
        found[f"sideways at {width}"] = page.evaluate(SIDEWAYS)
        found[f"small at {width}"] = page.evaluate(SMALL)
        found[f"behind the toast at {width}"] = page.evaluate(BEHIND_TOAST)
        if height > LOW:
            found[f"covered at {width}"] = page.evaluate(COVERED)
        if width >= 1280 and (line := page.evaluate(LONGEST_LINE)) > LONG_LINE:
            found[f"a line at {width}"] = line
        page.evaluate("document.querySelector('.toast').remove()")
    page.set_viewport_size({"width": size[0], "height": size[1]})
    return {kind: some for kind, some in found.items() if some}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_every_page_is_accessible_readable_and_covered_by_nothing(
    desk: Machine, browser: Browser, size: tuple[int, int]
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    thrown: list[str] = []
    page.on("pageerror", lambda error: thrown.append(str(error)))
    page.goto(desk.owner("POST", "/operator/key")["url"])
    expect(page.locator("#write")).to_be_visible()
    page.evaluate(axe_core())
    wrong, views = {}, set(page.evaluate(PAGES))
    known = shown_at(desk)
    for place, seen in known.items():
        go(page, place, seen)
        views |= set(page.evaluate(VIEWS))
        name = "-".join(part if len(part) < 32 else "one" for part in place.split("/"))
        if found := wrong_here(page, size, name):
            wrong[place] = found
    page.close()
    assert (wrong, thrown) == ({}, [])
    assert views <= set(known), "each page and view is looked at: give it a row in shown_at"
