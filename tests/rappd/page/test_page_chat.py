"""Chat in Chromium: sending, stopping, lost connections, scrolling back, voice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_answer_shows_closed_call_and_text(site: Any) -> None:
    site.daemon.script["time?"] = site.answer("It is **noon**.", *site.call())
    async with site.opened() as page:
        await site.ask(page, "time?")
        await expect(page.locator(".answer strong")).to_have_text("noon")
        await expect(page.locator(".call-inside")).to_be_hidden()
        await page.click(".call summary")
        await expect(page.locator(".call-inside")).to_contain_text("Tokyo")
        await expect(page.locator(".call-inside a")).to_have_text("thread 7c1e")
        await expect(page.locator("#write")).to_have_value("")
        await site.ask(page, "and now?")
        await expect(page.locator(".answer").nth(1)).to_have_text("fine")
    _, body = site.daemon.requests("/chat/stream")[-1]
    assert [turn["content"] for turn in body["conversation_history"]] == ["time?", "It is **noon**."]


async def test_failures_stand_where_they_arose(site: Any) -> None:
    away = {"type": "error", "error": "The model doesn't answer.", "do": "start `ollama`", "code": "away"}
    site.daemon.script["time?"] = [*site.call(ok=False), away]
    async with site.opened() as page:
        await site.ask(page, "time?")
        await expect(page.locator(".call-inside")).to_be_visible()
        await expect(page.locator(".turn .problem")).to_contain_text("The model doesn't answer.")
        await expect(page.locator(".turn .problem code")).to_have_text("ollama")
        await expect(page.locator(".toast")).to_have_count(0)


async def test_stop_cancels_on_the_daemon_and_keeps_what_came(site: Any) -> None:
    site.daemon.script["long"] = [{"type": "delta", "text": "so far"}, site.HOLD]
    async with site.opened() as page:
        await site.ask(page, "long")
        await expect(page.locator(".answer")).to_have_text("so far")
        await page.get_by_role("button", name="Stop", exact=True).click()
        await expect(page.locator(".after")).to_contain_text("Stopped.")
        await expect(page.locator(".answer")).to_have_text("so far")
    (turn,) = site.daemon.turns
    assert [body for _, body in site.daemon.requests("/chat/cancel")] == [{"turn_id": turn}]


@pytest.mark.parametrize("how", ["reload", "cut"])
async def test_interrupted_answer_resumes_and_is_sent_once(site: Any, how: str) -> None:
    first_parts = [{"type": "delta", "text": "one "}, {"type": "delta", "text": "two "}]
    site.daemon.script["count"] = [
        *first_parts,
        site.HOLD,
        {"type": "delta", "text": "three"},
        site.HOLD,
        site.ending("one two three"),
    ]
    site.daemon.cut = how == "cut"
    async with site.opened() as page:
        await site.ask(page, "count")
        await expect(page.locator(".answer")).to_have_text("one two")
        if how == "reload":
            await page.reload()
        site.daemon.released.set()
        await expect(page.locator(".answer")).to_have_text("one two three")
        await expect(page.locator(".written")).to_have_text("count")
    (first, body), (again, same) = site.daemon.requests("/chat/stream")[:2]
    assert "Last-Event-ID" not in first
    assert again["Last-Event-ID"] == "2"
    assert same == body


async def test_two_tabs_show_one_turn(site: Any) -> None:
    site.daemon.script["once"] = [{"type": "delta", "text": "on its "}, site.HOLD, site.ending("on its way")]
    async with site.opened() as page:
        await site.ask(page, "once")
        await expect(page.locator(".answer")).to_have_text("on its")
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(other.locator(".written")).to_have_text("once")
        site.daemon.released.set()
        await expect(page.locator(".answer")).to_have_text("on its way")
        await expect(other.locator(".answer")).to_have_text("on its way")
    assert len(site.daemon.requests("/chat/stream")) == 1


async def test_while_the_daemon_is_away_nothing_is_lost(site: Any) -> None:
    async with site.opened("#/agents") as page:
        await expect(page.locator("[data-file]")).to_have_count(3)
        await site.close()
        await page.click("text=Chat")
        await page.fill("#write", "unfinished")
        await expect(page.locator("#banner")).to_have_text(
            "desk isn't answering. Trying again; your text is kept."
        )
        await page.press("#write", "Enter")
        await page.fill("#write", "a draft")
        await page.click("nav >> text=Agents")
        await expect(page.locator(".old [data-file]")).to_have_count(3)
        await expect(page.locator(".as-of")).to_have_text(re.compile(r"^as of \d\d:\d\d$"))
        await site.open()
        await expect(page.locator("#banner")).to_have_text("")
        await expect(page.locator(".old")).to_have_count(0)
        await page.click("text=Chat")
        await expect(page.locator(".answer")).to_have_text("fine")
        await expect(page.locator("#write")).to_have_value("a draft")
    assert len(site.daemon.turns) == 1


async def test_reading_back_is_not_disturbed(site: Any) -> None:
    site.daemon.script["more"] = [
        {"type": "delta", "text": "line\n\n" * 60},
        site.HOLD,
        site.ending("line\n\n" * 90),
    ]
    top = "document.querySelector('.chat-scroll').scrollTop"
    async with site.opened() as page:
        await site.ask(page, "more")
        await expect(page.locator(".answer p")).to_have_count(60)
        await page.wait_for_function(f"() => {top} > 500")
        await page.evaluate(
            f"async () => {{ {top} = 100; for (const _ of '12') await new Promise(requestAnimationFrame) }}"
        )
        site.daemon.released.set()
        await expect(page.get_by_text("New below")).to_be_visible()
        assert await page.evaluate(top) == 100
        await page.click("text=New below")
        await expect(page.get_by_text("New below")).to_be_hidden()
        await page.wait_for_function(f"() => {top} > 500")


async def test_end_is_followed_when_a_turn_gets_its_height_later(site: Any) -> None:
    """A turn out of sight has the height it had two frames ago, also in the moment in which an answer is drawn in it."""
    site.daemon.script["grow"] = site.answer("short")
    async with site.opened() as page:
        await site.ask(page, "grow")
        await expect(page.locator(".turn.measured")).to_have_count(1)
        left = await page.evaluate(
            """async () => {
              const frame = () => new Promise((done) => requestAnimationFrame(done));
              const scroller = document.querySelector(".chat-scroll");
              const turn = scroller.querySelector(".turn");
              turn.classList.remove("measured");
              await frame();
              await frame();
              const long = document.createElement("p");
              long.style.height = "3000px";
              turn.querySelector(".answer").append(long);
              turn.classList.add("measured");
              scroller.dispatchEvent(new Event("grew"));
              await frame();
              await frame();
              return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
            }"""
        )
        assert left < 80


async def test_answer_html_cannot_run_or_fetch(site: Any) -> None:
    site.daemon.script["evil"] = site.answer(
        "<img src=x onerror='window.bad=1'><script>window.bad=1</script><style>*{display:none}</style>"
        "[in](javascript:window.bad=1) [out](https://example.org) ![cat](http://127.0.0.1:1/spy.png) "
        "<form action='/agents/undo'><button>go</button></form> <iframe src='http://localhost:1'></iframe>"
    )
    asked: list[str] = []
    async with site.opened() as page:
        page.on("request", lambda request: asked.append(request.url))
        await site.ask(page, "evil")
        await expect(page.locator(".foot")).to_have_count(1)
        assert await page.evaluate("window.bad") is None
        assert await page.locator(".answer").locator("script, style, form, button, iframe").count() == 0
        out = page.locator(".answer a", has_text="out")
        assert "noopener" in str(await out.get_attribute("rel"))
        assert await page.locator(".answer a", has_text=re.compile("^in$")).get_attribute("href") is None
        await expect(page.locator(".answer")).to_contain_text("cat http://127.0.0.1:1/spy.png")
    assert not [url for url in asked if "spy.png" in url]


async def test_voice_in_and_out(site: Any) -> None:
    site.daemon.voice = True
    site.daemon.script["what time is it"] = site.answer("It is noon.", voice_response="Noon.")
    async with site.opened(script=SPEECH) as page:
        await page.click("[aria-label=Speak]")
        await expect(page.locator(".answer")).to_have_text("It is noon.")
        await page.wait_for_function("() => said.length")  # at the end of the answer, after its words
        assert await page.evaluate("window.said") == ["Noon."]
    async with site.opened(
        script="delete window.webkitSpeechRecognition; delete window.SpeechRecognition"
    ) as page:
        await expect(page.locator("[aria-label=Speak]")).to_have_count(0)


SPEECH = """
window.said = [];
speechSynthesis.speak = saying => said.push(saying.text);
window.SpeechRecognition = class {
    start() {
        const heard = Object.assign([{transcript: "what time is it"}], {isFinal: true});
        setTimeout(() => { this.onresult({results: [heard]}); this.onend(); });
    }
    stop() {}
};
"""


async def test_the_stream_reader_takes_any_pieces(site: Any) -> None:
    async with site.opened() as page:
        same = await page.evaluate(
            r"""async () => {
                const { sse } = await import("/web/lib/api.js");
                const bytes = new TextEncoder().encode(": hi\r\nid: 1\r\ndata: é\r\ndata:  b\r\n\r\nid: 2\ndata: c\n\nid: 3\ndata: cut");
                const wanted = JSON.stringify([{id: "1", event: "message", data: "é\n b"}, {id: "2", event: "message", data: "c"}]);
                for (let size = 1; size <= bytes.length; size += 1) {
                    const pieces = Array.from({length: Math.ceil(bytes.length / size)}, (_, at) => bytes.slice(at * size, (at + 1) * size));
                    const events = [];
                    for await (const event of sse(ReadableStream.from ? ReadableStream.from(pieces) : new Blob(pieces).stream())) events.push(event);
                    if (JSON.stringify(events) !== wanted) return [size, events];
                }
                return "same";
            }"""
        )
        assert same == "same"
