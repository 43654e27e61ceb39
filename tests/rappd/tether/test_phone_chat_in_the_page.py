"""The phone's page as a full chat: the page's own components over the phone's connection, in a real browser."""

from __future__ import annotations

import base64

import pytest
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, expect

from tests.rappd.tether.phone_browser import PhonePage

pytestmark = [pytest.mark.browser, needs_chromium]


ANSWER = """Tomorrow will be **sunny**, $20^\\circ$.

| day | sky |
| --- | --- |
| Monday | clear |

```python
print("water them")
```
"""


def test_conversation_of_its_own_is_streamed_as_on_the_page(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.will(says(ANSWER))
    phone.ask("how will the weather be?")
    answer = page.locator(".turn .answer")
    expect(answer.locator("strong")).to_have_text("sunny")
    expect(answer.locator("td").first).to_have_text("Monday")
    expect(answer.locator("math")).to_have_count(1)
    expect(answer.locator(".hljs-built_in")).to_have_text("print")
    phone.looks_right("phone-own")
    page.reload()
    expect(page.locator(".turn .answer strong")).to_have_text("sunny")
    phone.opens()
    expect(page.locator(".conversation-title")).to_have_text("how will the weather be?")
    phone.looks_right("phone-sheet")
    assert phone.errors == []


def test_stop_edit_versions_and_copy_work_on_a_phone(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.hang = True
    phone.ask("take long")
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.locator(".turn .after")).to_contain_text("Stopped.")
    fake_model.hang = False
    fake_model.will(says("It was the first."), says("It was the second."))
    page.get_by_role("button", name="Edit what you wrote").click()
    page.get_by_role("textbox", name="What you wrote").fill("which was it?")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".turn .answer")).to_have_text("It was the first.")
    page.get_by_role("button", name="Answer again").click()
    expect(page.locator(".turn .answer")).to_have_text("It was the second.")
    can_be_done = page.locator(".foot-actions button")
    expect(can_be_done).to_have_count(4)
    for width in (390, 320):
        page.set_viewport_size({"width": width, "height": 844})
        tops = can_be_done.evaluate_all("all => all.map(one => one.offsetTop)")
        assert len(set(tops)) == 1, "what can be done with an answer stands in one line"
    page.get_by_role("button", name="Older version").click()
    expect(page.locator(".turn .answer")).to_have_text("It was the first.")
    page.evaluate("document.execCommand = what => window.copied = what + ' ' + document.activeElement.value")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")  # as on plain http
    page.locator(".foot").get_by_role("button", name="Copy").click()
    page.wait_for_function("() => window.copied === 'copy It was the first.'")
    assert phone.errors == []


def test_own_phone_follows_what_the_page_asked_and_the_reverse(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", "mine")
    fake_model.will(says("At six."), says("At the desk, too."))
    phone.ask("when do I water them?")
    expect(page.locator(".turn .answer")).to_have_text("At six.")
    desk = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    desk.goto(thinking.post("/operator/key", control=True).json()["url"])
    desk.locator(".conversation-link", has_text="when do I water them?").click()
    expect(desk.locator(".turn .answer")).to_have_text("At six.")
    desk.locator("#write").fill("and where?")
    desk.keyboard.press("Enter")
    expect(desk.locator(".turn .answer").last).to_have_text("At the desk, too.")
    phone.opens()
    page.locator(".conversation-link", has_text="when do I water them?").click()
    expect(page.locator(".turn .answer").last).to_have_text("At the desk, too.")
    desk.context.close()
    assert phone.errors == []


def test_new_conversation_asks_for_the_twin_and_both_are_listed(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    thinking.post("/twins", {"name": "Rose"}, control=True)
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    fake_model.will(says("I am the desk."), says("I am Rose."))
    phone.ask("who are you?")
    expect(page.locator(".turn .answer")).to_have_text("I am the desk.")
    phone.opens().get_by_role("button", name="New", exact=True).click()
    phone.looks_right("phone-new")
    page.get_by_role("dialog", name="Talk with").get_by_role("button", name="Rose").click()
    expect(page.locator(".bar h1")).to_have_text("Rose")
    phone.ask("and you?")
    expect(page.locator(".turn .answer")).to_have_text("I am Rose.")
    phone.opens()
    expect(page.locator(".conversation-title")).to_have_text(["and you?", "who are you?"])
    page.get_by_label("Search what was said").fill("desk")
    page.locator(".conversation.found .conversation-link").click()
    expect(page.locator(".bar h1")).to_have_text("desk")
    expect(page.locator(".turn .answer")).to_have_text("I am the desk.")
    assert phone.errors == []


def test_pictures_go_along_and_what_is_none_is_refused_by_name(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna")
    picture = page.evaluate(
        """() => { const canvas = document.createElement("canvas"); canvas.width = canvas.height = 400;
        const draw = canvas.getContext("2d"), points = draw.createImageData(400, 400);
        for (let at = 0; at < points.data.length; at++) points.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
        draw.putImageData(points, 0, 0);
        return canvas.toDataURL("image/png").split(",")[1]; }"""
    )
    files = page.get_by_label("Files to attach")
    page.evaluate(
        """() => { const files = new DataTransfer();
        files.items.add(new File([new Uint8Array(40e6)], "huge.jpg", {type: "image/jpeg"}));
        files.items.add(new File([new Uint8Array(9)], "film.mov", {type: "video/quicktime"}));
        files.items.add(new File([new Uint8Array(9)], "song.mp3", {type: "audio/mpeg"}));
        files.items.add(new File(["no picture"], "photo.heic", {type: "image/heic"}));
        const input = document.querySelector("input[type=file][aria-label='Files to attach']");
        input.files = files.files; input.dispatchEvent(new Event("change")); }"""
    )
    expect(page.locator(".attachments-refused p")).to_contain_text(
        [
            "huge.jpg was not attached: it is 40 MB large, and 30 MB is the most",
            "film.mov was not attached: it is a video",
            "song.mp3 was not attached: it is sound",
            "photo.heic was not attached: this browser cannot open it",
        ]
    )
    phone.looks_right("phone-refused")
    files.set_input_files(
        {"name": "garden.png", "mimeType": "image/png", "buffer": base64.b64decode(picture)}
    )
    expect(page.locator(".attachments .thumbnail")).to_have_count(1)
    fake_model.will(says("Many squares."))
    phone.ask("what is it?")
    expect(page.locator(".turn .answer")).to_have_text("Many squares.")
    shown = [part for part in fake_model.asked[-1]["messages"][-1]["content"] if part["type"] == "image_url"]
    assert len(shown) == 1 and len(shown[0]["image_url"]["url"]) > 100_000
    expect(page.locator(".sent-picture img")).to_have_count(1)
    assert phone.errors == []


CUT = """const sockets = window.WebSocket;
window.WebSocket = class extends sockets {
    constructor(...given) {
        super(...given);
        const {set} = Object.getOwnPropertyDescriptor(sockets.prototype, "onmessage");
        let heard = null;
        Object.defineProperty(this, "onmessage", {set(take) { heard = take; }});
        set.call(this, event => this.isCut() || heard?.(event));
    }
    isCut() { return this.dead ||= window.cut === true; }
    send(text) { if (!this.isCut()) super.send(text); }
};"""
"""A line on which nothing arrives any more, and that nobody closes: no later word of it either, or it would have gaps."""


def test_cut_line_is_shown_within_five_seconds_and_found_again(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    phone.page.add_init_script(
        "delete window.RTCPeerConnection;"
    )  # so that the line is one that can be cut here
    phone.page.add_init_script("sessionStorage.setItem('talks-unprotected', 'yes')")
    phone.page.add_init_script(CUT)
    phone.page.clock.install()
    page = phone.page
    window = thinking.post("/devices/window", {"name": "Anna"}, control=True).json()
    page.goto(window["links"][0])
    page.get_by_role("button", name="Same number").click()
    verdict = {"id": window["id"], "same": True, "kind": "guest"}
    thinking.post("/devices/window/answer", verdict, control=True)
    page.evaluate("window.states = []")
    page.evaluate(
        "new MutationObserver(() => { const now = document.querySelector('.bar .state')?.textContent;"
        "now && states.at(-1) !== now && states.push(now); }).observe(document.body, {subtree: true, childList: true})"
    )
    page.get_by_role("button", name="Start talking").click()
    state = page.locator(".bar .state")
    expect(state).to_have_text("● connected, not private")
    assert page.evaluate("states")[0] in ("○ connecting…", "● connected, not private"), "not Lost at first"
    good = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--good').trim()")
    shown = page.evaluate(
        "good => { const one = document.createElement('i'); one.style.color = good; document.body.append(one);"
        "return [getComputedStyle(one).color, getComputedStyle(document.querySelector('.bar .state')).color]; }",
        good,
    )
    assert shown[0] == shown[1], "connected is never grey"
    page.evaluate("const now = Date.now; Date.now = () => now() - 86_400_000")  # it was a day ahead
    page.evaluate("window.cut = true")
    page.clock.run_for(5000)
    assert state.inner_text() == "○ not connected", "by then, not at some time"
    expect(page.locator(".lines .notice")).to_have_text("Lost desk. Trying again. What you write is kept.")
    fake_model.will(says("I kept it."))
    phone.ask("are you there?")
    page.evaluate("window.cut = false")
    page.clock.run_for(9000)
    expect(state).to_have_text("● connected, not private")
    page.clock.run_for(9000)
    expect(page.locator(".turn .answer")).to_have_text("I kept it.")
    assert phone.errors == []


SLOW = """const sockets = window.WebSocket, held = [];
window.release = () => { window.slow = false; for (const one of held.splice(0)) one(); };
window.WebSocket = class extends sockets {
    constructor(...given) {
        super(...given);
        const {set} = Object.getOwnPropertyDescriptor(sockets.prototype, "onmessage");
        let heard = null;
        Object.defineProperty(this, "onmessage", {set(take) { heard = take; }});
        set.call(this, event => window.slow ? held.push(() => heard?.(event)) : heard?.(event));
    }
};"""
"""A computer that says nothing for a while, on a line that stays."""


def test_sentences_written_while_the_computer_was_slow_are_sent_once_it_is_heard_again(
    browser: Browser, desk: RunningDaemon
) -> None:
    phone = PhonePage(browser, desk)
    for script in (
        "delete window.RTCPeerConnection;",
        "sessionStorage.setItem('talks-unprotected', 'yes')",
        SLOW,
    ):
        phone.page.add_init_script(script)
    page = phone.page
    window = desk.post("/devices/window", {"name": "Anna", "session": True}, control=True).json()
    page.goto(window["links"][0])
    page.get_by_role("button", name="Same number").click()
    desk.post("/devices/window/answer", {"id": window["id"], "same": True, "kind": "guest"}, control=True)
    page.get_by_role("button", name="Start talking").click()
    state = page.locator(".bar .state")
    expect(state).to_have_text("● connected, not private")
    page.evaluate("window.slow = true")
    expect(state).to_have_text("○ not connected")
    page.evaluate(
        """() => { const form = document.querySelector(".compose"), line = form.querySelector("textarea");
        for (let number = 0; number < 60; number++) { line.value = `sentence ${number}`; form.requestSubmit(); } }"""
    )
    page.evaluate("window.release()")
    expect(state).to_have_text("● connected, not private")
    marks = page.locator(".events .mine .mark")
    expect(marks).to_have_text(["answered"] * 60)
    said = page.locator(".events .mine p").all_inner_texts()
    assert said == [f"sentence {number}" for number in range(60)], "each once, in its order"
    assert phone.errors == []


ROUND_TRIP_MS = 60


def test_first_paint_is_small_and_soon(browser: Browser, desk: RunningDaemon) -> None:
    """The figures are printed; only the bytes are asserted, for a time is one of this machine."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": ROUND_TRIP_MS, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    window = desk.post("/devices/window", {}, control=True).json()
    page.goto(window["short_links"][0])
    page.get_by_role("textbox", name="Code").wait_for()
    painted, octets = page.evaluate(
        """() => new Promise(done => new PerformanceObserver(list => {
            const at = list.getEntriesByName("first-contentful-paint")[0]?.startTime;
            const parts = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
            const before = parts.filter(part => part.responseEnd <= at);
            if (at) done([at, before.reduce((sum, part) => sum + part.transferSize, 0)]);
        }).observe({type: "paint", buffered: true}))"""
    )
    page.wait_for_load_state("networkidle")
    everything = page.evaluate(
        """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
            .reduce((sum, part) => sum + part.transferSize, 0)"""
    )
    print(f"first paint {painted:.0f} ms, {octets / 1000:.0f} kB; with the chat {everything / 1000:.0f} kB")
    assert everything < 250_000
    context.close()


def test_long_names_right_to_left_text_and_double_size_stay_readable(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    thinking.post("/twins", {"name": "Rose" + "long" * 12}, control=True)
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", session=True)
    phone.opens()
    gap = page.evaluate(
        """() => { const at = words => [...document.querySelectorAll("dialog.more button")]
            .find(one => one.textContent === words).getBoundingClientRect();
            return at("Disconnect this phone").top - at("Clear the conversation for everyone").bottom; }"""
    )
    assert gap > 48, "a finger that meets one never meets the other"
    page.get_by_role("button", name="New", exact=True).click()
    phone.looks_right("phone-long-name")
    page.get_by_role("dialog", name="Talk with").get_by_role("button", name="Rose").click()
    fake_model.will(says("مرحبا بالعالم.\n\nIn English."))
    phone.ask("מה שלומך?")
    expect(page.locator(".turn .answer p")).to_have_count(2)
    starts = page.evaluate(
        """() => [".turn .written", ".turn .answer p:first-child", ".turn .answer p:last-child"].map(name => {
            const box = document.querySelector(name), words = document.createRange();
            words.selectNodeContents(box);
            const [outer, inner] = [box.getBoundingClientRect(), words.getBoundingClientRect()];
            return outer.right - inner.right < inner.left - outer.left ? "right" : "left"; })"""
    )
    assert starts[1:] == ["right", "left"], starts
    page.set_viewport_size({"width": 195, "height": 422})  # as at 200 %
    send = page.get_by_role("button", name="Send", exact=True)
    assert send.evaluate("one => one.getBoundingClientRect().right <= innerWidth"), "Send is in sight"
    assert page.evaluate("document.documentElement.scrollWidth <= 195")
    assert phone.errors == []


WIDE = f"""|{" column |" * 20}
|{" --- |" * 20}
|{" value |" * 20}

```python
total = {" + ".join(f"value_{n}" for n in range(60))}
```
"""
KEPT = """scroller => { const boxes = [document.documentElement, document.querySelector(scroller)];
    const wide = [...document.querySelectorAll(".scroll-table, .code-block pre")];
    return [boxes.map(box => box.scrollWidth - box.clientWidth), wide.map(box => box.scrollWidth > box.clientWidth)]; }"""
"""Pixels by which the screen moves sideways, and whether wide parts do so in themselves."""


def test_wide_tables_and_long_lines_of_code_move_in_themselves(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", session=True)
    fake_model.will(says(WIDE), says(WIDE))
    page.get_by_role("textbox", name="Message").fill("show it")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".events td")).to_have_count(20)
    assert page.evaluate(KEPT, ".events") == [[0, 0], [True, True]]
    phone.opens().get_by_role("button", name="New", exact=True).click()
    phone.ask("show it")
    expect(page.locator(".turn td")).to_have_count(20)
    assert page.evaluate(KEPT, ".chat-scroll") == [[0, 0], [True, True]]


def test_what_a_program_was_told_is_found_and_the_way_to_it_is_said(
    browser: Browser, thinking: RunningDaemon, fake_model: FakeModel
) -> None:
    phone = PhonePage(browser, thinking)
    page = phone.pair("Anna", "mine")
    asked = {"model": "brainstem", "messages": [{"role": "user", "content": "descale the samovar"}]}
    assert thinking.post("/v1/chat/completions", asked).status == 200
    phone.opens().get_by_label("Search what was said").fill("samovar")
    page.locator(".conversation.found .conversation-link").click()
    expect(page.locator("dialog.more .notice")).to_have_text(
        "That was said to a program. It is read on the computer, under Activity."
    )
    phone.looks_right("phone-found")
    assert phone.errors == []
