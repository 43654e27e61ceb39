"""A talk on a phone, over https as a household has it: folds, voice, camera, the count behind the button, taps."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import Browser, Page, expect

from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage
from tests.rappd.tether.test_phone_approvals import hold

pytestmark = [pytest.mark.browser, needs_chromium]

LANTERN = {
    "name": "lantern",
    "title": "Lantern",
    "participants": [{"name": "Keeper"}],
    "steps": [{"participant": "Keeper", "cue": "light it"}],
}
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"
)


@pytest.fixture(scope="module")
def model() -> Iterator[FakeModel]:
    server = FakeModel()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    """A daemon that serves phones over https, with a model that says what the test wants."""
    folder = tmp_path_factory.mktemp("talk")
    thinking = {"OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "small", "RAPPD_TETHER_TLS": "on"}
    found = RunningDaemon(folder / "home", **reachable(), **thinking)
    found.drop("weather_agent.py", agent_source("Weather", 'return "sunny"', "Tells the weather."))
    workflows = found.home / "brainstem/workflows"
    workflows.mkdir(parents=True)
    (workflows / "lantern.json").write_text(json.dumps(LANTERN))
    yield found.start()
    found.stop()
    shutil.rmtree(folder, ignore_errors=True)


def phone_of(browser: Browser, desk: RunningDaemon) -> PhonePage:
    return PhonePage(browser, desk, ignore_https_errors=True)


def test_thoughts_and_calls_are_folded(browser: Browser, desk: RunningDaemon, model: FakeModel) -> None:
    phone = phone_of(browser, desk)
    page = phone.pair("Anna")
    thinking = {**says("It will be **sunny**."), "reasoning_content": "They want to garden."}
    model.will(calls(("Weather", {}), text="I look outside."), thinking)
    phone.ask("how will it be?")
    expect(page.locator(".turn .answer strong")).to_have_text("sunny")
    folded = page.locator(".turn details.call")
    expect(folded).to_have_count(2)
    thoughts, call = page.locator("details.thoughts"), page.locator("details.call:not(.thoughts)")
    assert [one.get_attribute("open") for one in (thoughts, call)] == [None, None]
    expect(call.locator("summary")).to_contain_text("Weather")
    phone.looks_right("phone-folded")
    thoughts.locator("summary").click()
    expect(thoughts).to_contain_text("They want to garden.")
    call.locator("summary").click()
    expect(call).to_contain_text("sunny")
    phone.looks_right("phone-unfolded")
    assert phone.errors == []


SPEECH = """window.spoken = [];
speechSynthesis.speak = words => spoken.push(words.text);
window.SpeechRecognition = window.webkitSpeechRecognition = class {
    start() { window.recognition = this; }
    stop() { this.onend(); }
};"""


def test_what_is_dictated_is_sent_and_an_answer_is_read_aloud(
    browser: Browser, desk: RunningDaemon, model: FakeModel
) -> None:
    phone = phone_of(browser, desk)
    phone.page.add_init_script(SPEECH)
    page = phone.pair("Ben")
    page.locator("#write").fill("Well,")
    page.get_by_role("button", name="Speak").click()
    page.wait_for_function("() => window.recognition")
    page.evaluate(
        "recognition.onresult({results: [Object.assign([{transcript: 'hello there'}], {isFinal: true})]})"
    )
    page.get_by_role("button", name="Stop listening").click()
    expect(page.locator("#write")).to_have_value("Well, hello there")
    model.will(says("Good *morning*."))
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".turn .answer")).to_have_text("Good morning.")
    page.get_by_role("button", name="Read aloud").click()
    (spoken,) = page.evaluate("spoken")
    assert "Good" in spoken and "morning" in spoken
    assert phone.errors == []


def test_picture_from_the_camera_goes_along(browser: Browser, desk: RunningDaemon, model: FakeModel) -> None:
    phone = phone_of(browser, desk)
    page = phone.pair("Carl")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Take a picture").click()
    taken = page.locator("input[capture]")
    assert (taken.get_attribute("capture"), taken.get_attribute("accept")) == ("environment", "image/*")
    chooser.value.set_files({"name": "IMG_0001.png", "mimeType": "image/png", "buffer": PICTURE})
    expect(page.locator(".attachments .thumbnail")).to_have_count(1)
    phone.looks_right("phone-camera")
    model.will(says("A red square."))
    phone.ask("what is it?")
    expect(page.locator(".turn .answer")).to_have_text("A red square.")
    assert len(model.pictures()[0]) == 1
    assert phone.errors == []


def test_count_covers_people_a_workflow_eggs_and_what_waits(
    browser: Browser, desk: RunningDaemon, model: FakeModel, tmp_path: Path
) -> None:
    desk.post("/twins", {"name": "Violet"}, control=True)
    owner, guest = phone_of(browser, desk), phone_of(browser, desk)
    page = owner.pair("Dora", "mine")
    expect(page.get_by_label("Conversations and more", exact=True)).to_be_visible()
    expect(page.locator(".bar .count")).to_be_hidden()
    guest.pair("Emil", session=True)
    label = "Conversations and more, 1 person here"
    expect(page.get_by_label(label, exact=True)).to_be_visible()
    egg = tmp_path / "desk.egg"
    assert desk.post("/eggs/pack", {"into": str(egg)}, control=True).status == 200
    assert desk.post("/devices/Dora/eggs", {"path": str(egg)}, control=True).status == 200
    label += ", 1 egg for you"
    expect(page.get_by_label(label, exact=True)).to_be_visible()
    model.hang = True
    assert desk.post("/workflows/lantern/run", {}, control=True).status == 200
    label = "Conversations and more, 1 person here, 1 workflow under way, 1 egg for you"
    expect(page.get_by_label(label, exact=True)).to_be_visible()
    expect(page.locator(".bar .count")).to_have_text("3")
    hold(desk)
    expect(page.get_by_label(f"{label}, 1 waiting", exact=True)).to_be_visible()
    owner.looks_right("phone-count")
    owner.opens().locator(".room-row").click()
    expect(page.get_by_role("button", name="Interrupt")).to_be_visible()
    expect(page.get_by_label("Whom to ask")).to_be_visible()
    below = page.locator(".compose > :is(button, select):visible")
    expect(below).to_have_count(4)
    tops = below.evaluate_all("all => all.map(one => one.getBoundingClientRect().top)")
    assert max(tops) - min(tops) < 12, "Interrupt and Send stand in one line"
    owner.looks_right("phone-interrupt")
    model.hang = False
    desk.post("/workflows/abort", {}, control=True)
    assert owner.errors == [] and guest.errors == []


CUT = """const {send} = RTCDataChannel.prototype, fetched = window.fetch;
const {set} = Object.getOwnPropertyDescriptor(RTCDataChannel.prototype, "onmessage");
RTCDataChannel.prototype.send = function(text) { if (!window.cut) send.call(this, text); };
Object.defineProperty(RTCDataChannel.prototype, "onmessage", {
    set(take) { set.call(this, event => { this.dead ||= window.cut; if (!this.dead) take(event); }); },
});
window.fetch = (...given) => window.cut ? Promise.reject(new TypeError("cut")) : fetched(...given);"""
"""A line on which nothing moves while ``window.cut``."""


def test_what_cannot_be_done_while_the_line_is_cut_is_said_and_can_be_done_afterwards(
    browser: Browser, desk: RunningDaemon, model: FakeModel
) -> None:
    hold(desk, "Toaster")
    phone = phone_of(browser, desk)
    phone.page.add_init_script(CUT)
    page = phone.pair("Fay", "mine")
    state, sheet = page.locator(".bar .state"), page.locator("dialog.more")
    phone.opens()
    page.get_by_text("Waiting for you:").click()
    page.get_by_role("button", name="Read and answer: agents/toaster_agent.py").click()
    asked = page.locator("dialog.waiting")
    expect(asked).to_contain_text("class Toaster")
    page.evaluate("window.cut = true")
    approve = asked.get_by_role("button", name="Approve")
    approve.click()  # what nobody hears
    expect(asked).to_contain_text("The connection was cut.")
    approve.click()
    expect(asked).to_contain_text("That was not done: the computer is not connected.")
    asked.get_by_role("button", name="Close").click()
    expect(sheet.locator(".notice").first).to_contain_text("desk is not connected.")
    page.get_by_text("Workflows", exact=True).click()
    page.get_by_role("button", name="Start Lantern").click()
    start = page.locator("dialog.starting")
    start.get_by_role("button", name="Start").click()
    expect(start).to_contain_text("That was not done: the computer is not connected.")
    page.evaluate("window.cut = false")
    expect(state).to_have_text("● connected")
    start.get_by_role("button", name="Start").click()
    expect(page.locator(".events")).to_contain_text("Lantern is done.")
    phone.opens()
    page.get_by_role("button", name="Read and answer: agents/toaster_agent.py").click()
    approve.click()
    expect(asked).to_contain_text("is approved, and runs")
    assert phone.errors == []


BLOCKED = """for (const name of ["localStorage", "sessionStorage", "indexedDB"])
    Object.defineProperty(window, name, {get() { throw new DOMException("Access is denied", "SecurityError"); }});"""
"""A browser that is told to keep nothing does so."""


def test_browser_that_keeps_nothing_warns_in_yellow_and_says_how_to_allow_it(
    browser: Browser, desk: RunningDaemon, model: FakeModel
) -> None:
    phone = phone_of(browser, desk)
    phone.page.add_init_script(BLOCKED)
    page = phone.pair("Fred")
    warning = page.locator(".lines .forgets")
    expect(warning.locator("summary")).to_have_text("This browser forgets. Next time you need a new QR code.")
    yolk = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--yolk').trim()")
    shown = warning.evaluate("(one, yolk) => { const two = document.createElement('i'); two.style.background = yolk;"
        "document.body.append(two); const same = getComputedStyle(two).backgroundColor === getComputedStyle(one).backgroundColor;"
        "two.remove(); return same; }", yolk)  # fmt: skip
    assert shown, "yellow"
    warning.locator("summary").click()
    expect(warning).to_contain_text("On-device site data, Allowed to save data")
    expect(warning).to_contain_text(f"add {page.evaluate('location.host')}.")
    phone.looks_right("phone-forgets")
    model.will(says("I am here."))
    phone.ask("hello?")
    expect(page.locator(".turn .answer")).to_have_text("I am here.")
    page.reload()
    expect(page.get_by_role("textbox", name="Code")).to_be_visible()
    assert phone.errors == []


TAPS = "addEventListener('click', ({isTrusted, detail}) => { if (isTrusted && detail) window.taps = (window.taps ?? 0) + 1; }, true);"
"""Counts what a person clicks."""


@pytest.mark.parametrize("how", ["removed", "left"])
def test_phone_that_is_out_is_not_told_that_it_lost_the_computer(
    browser: Browser, desk: RunningDaemon, how: str
) -> None:
    """By the screen and by what a screen reader says."""
    phone = phone_of(browser, desk)
    page = phone.pair(f"Anna {how}")
    page.evaluate(
        """() => {
            window.said = [];
            const live = document.getElementById("live");
            const heard = () => live.textContent && window.said.push(live.textContent);
            new MutationObserver(heard).observe(live, {childList: true, characterData: true, subtree: true});
        }"""
    )
    if how == "removed":
        listed = desk.request("GET", "/devices", control=True).json()["devices"]
        (id,) = [one["id"] for one in listed if one["name"] == f"Anna {how}"]
        assert desk.request("DELETE", f"/devices/{id}", control=True).status == 200
        sentence = "This phone was removed. To come back, ask for a new QR code."
    else:
        phone.opens().get_by_role("button", name="Disconnect this phone").click()
        page.get_by_role("button", name="Disconnect", exact=True).click()
        sentence = "You left."
    expect(page.get_by_text(sentence).first).to_be_visible()
    page.wait_for_function("() => window.said.some(one => /removed|left/.test(one))")
    page.wait_for_timeout(500)  # nothing comes after it
    assert not [one for one in page.evaluate("window.said") if "Lost" in one]


def test_joining_takes_three_taps_on_the_phone_and_two_on_the_computer(
    browser: Browser, desk: RunningDaemon, model: FakeModel
) -> None:
    computer: Page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    computer.goto(desk.post("/operator/key", control=True).json()["url"])
    computer.get_by_role("link", name="Devices").click()
    computer.get_by_role("button", name="Add a phone").wait_for()
    computer.evaluate(TAPS)
    computer.get_by_role("button", name="Add a phone").click()
    desk.wait_for(lambda: desk.get("/devices/window", control=True).json().get("links"), what="the code")
    link = desk.get("/devices/window", control=True).json()["links"][0]
    phone = phone_of(browser, desk)
    phone.page.add_init_script(TAPS)
    phone.page.goto(link)  # the first tap, on what the camera shows
    phone.page.get_by_role("button", name="Same number").click()
    computer.get_by_role("button", name="Same, mine").click()
    phone.page.get_by_role("button", name="Start talking").click()
    expect(phone.page.locator(".bar .state")).to_have_text("● connected")
    assert 1 + phone.page.evaluate("taps") == 3 and computer.evaluate("taps") == 2
    (row,) = [
        one
        for one in desk.get("/devices", control=True).json()["devices"]
        if one["kind"] == "mine" and one["name"].startswith("Pixel")
    ]
    assert row["workflows"] and row["eggs"] and row["notices"] and row["approve"], "nothing is left to be set"
    computer.context.close()
    assert phone.errors == []
