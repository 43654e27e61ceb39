"""Answers in Chromium: coloured code and formulas, fetched only when needed, and unable to do anything."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
CODE = 'def area(r):  # of <b>a</b> circle\n    return "3.14" if r else 0'


async def test_code_is_coloured_and_its_library_fetched_when_needed(site: Any) -> None:
    site.daemon.script["plain"] = site.answer("No code, `a = 1`, ```no language```\n\n```\nx = 1\n```")
    site.daemon.script["code"] = site.answer(f"```python\n{CODE}\n```\n\n```nonsense\nleft {{alone}}\n```")
    async with site.opened() as page:
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url))
        await site.ask(page, "plain")
        await expect(page.locator(".foot")).to_have_count(1)
        assert not any("highlight" in url or "katex" in url for url in fetched)
        await site.ask(page, "code")
        answer = page.locator(".answer").nth(1)
        await expect(answer.locator(".hljs-keyword").first).to_have_text("def")
        assert (await answer.locator("pre").first.inner_text()).rstrip() == CODE
        await expect(answer.locator(".hljs-comment")).to_have_text("# of <b>a</b> circle")
        await expect(answer.locator("pre").nth(1).locator("span")).to_have_count(0)
        assert await answer.locator("[lang]").count() == 0
        assert sum("vendor/highlight/" in url for url in fetched) == 1


async def test_formulas_are_drawn_and_money_is_left_alone(site: Any) -> None:
    site.daemon.script["sums"] = site.answer(
        "Inline $E = mc^2$ and \\(a \\le b\\), it costs $5 and $10.\n\n$$\\int_0^1 x\\,dx = \\frac12$$\n\n"
        "\\[\\sqrt{2}\\]\n\nCode `$x$` stays; broken: $\\frac{a$"
    )
    async with site.opened() as page:
        await site.ask(page, "sums")
        answer = page.locator(".answer")
        await expect(answer.locator("math")).to_have_count(4)
        await expect(answer.locator(".formula-block math[display=block]")).to_have_count(2)
        await expect(answer).to_contain_text("it costs $5 and $10.")
        await expect(answer.locator("code")).to_have_text(["$x$", "\\frac{a"])
        assert await answer.locator("math mfrac").count() == 1
        await expect(answer).not_to_contain_text("\\int")


async def test_code_and_formulas_cannot_run_link_fetch_or_leave_their_box(site: Any) -> None:
    site.daemon.script["evil"] = site.answer(
        '```js" onmouseover="window.bad=1\n</code></pre><img src=x onerror="window.bad=1">\n```\n\n'
        '```html\n<img src=x onerror="window.bad=1"><script>window.bad=1</script>\n```\n\n'
        "$\\href{javascript:window.bad=1}{x}$ $\\includegraphics{http://127.0.0.1:1/tracker.png}$ "
        "$\\htmlClass{toast}{x}$ $\\text{<img src=x onerror=window.bad=1>}$ "
        "$\\def\\a{\\a\\a}\\a$ $$\\rule{9999em}{9999em}$$ $\\color{white}{x}$"
    )
    async with site.opened() as page:
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url))
        await site.ask(page, "evil")
        answer = page.locator(".answer")
        await expect(answer.locator("math").first).to_be_visible()
        await expect(answer.locator(".hljs-tag").first).to_be_visible()
        assert await page.evaluate("window.bad") is None
        assert (
            await answer.locator("img, script, a, [style], [href], [onmouseover], [mathcolor]").count() == 0
        )
        assert not any("tracker" in url for url in fetched)
        box, column = await answer.bounding_box(), await page.locator(".chat-scroll").bounding_box()
        assert box is not None and column is not None and box["width"] <= column["width"]


async def test_pictures_load_only_when_asked_and_never_from_elsewhere(site: Any) -> None:
    dot = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    site.daemon.script["look"] = site.answer(
        f"![dot]({dot}) ![cat](https://tracker.example/cat.png) ![egg](/web/icons/mark.svg) ![run](javascript:1)"
    )
    async with site.opened() as page:
        fetched: list[str] = []
        page.on("request", lambda request: fetched.append(request.url))
        await site.ask(page, "look")
        answer = page.locator(".answer")
        await expect(answer.locator("img")).to_have_count(1)
        await expect(answer.locator(".picture")).to_have_count(2)
        cat = answer.locator(".picture", has_text="cat")
        await expect(cat).to_contain_text("https://tracker.example/cat.png")
        assert await cat.get_by_role("link").get_attribute("rel") == "noopener noreferrer"
        await expect(cat.get_by_role("button")).to_have_count(0)
        assert not any("mark.svg" in url or "tracker" in url for url in fetched)
        await answer.get_by_role("button", name="Load egg").click()
        await expect(answer.get_by_role("img", name="egg")).to_be_visible()
        assert sum("mark.svg" in url for url in fetched) == 1
        assert not any("tracker" in url for url in fetched)


async def test_copy_button_never_lies_over_code(site: Any) -> None:
    site.daemon.script["wide"] = site.answer(f"```python\nx = '{'y' * 400}'\n```")
    async with site.opened(viewport={"width": 390, "height": 700}) as page:
        await site.ask(page, "wide")
        code, copy = page.locator(".answer pre"), page.get_by_role("button", name="Copy").first
        await code.evaluate("code => { code.scrollLeft = 9999 }")
        left, right = await code.bounding_box(), await copy.bounding_box()
        assert left is not None and right is not None and left["x"] + left["width"] <= right["x"]


async def test_foot_of_an_answer_names_the_agents_or_says_none(site: Any) -> None:
    site.daemon.script["alone"] = site.answer("Hello.", agents_used=[])
    site.daemon.script["both"] = site.answer("Rain.", agents_used=["Weather", "Clock"])
    site.daemon.script["offline"] = site.answer("(no model) Hello.")
    async with site.opened() as page:
        for sentence, said in (("alone", "Hello."), ("both", "Rain."), ("offline", "(no model) Hello.")):
            await site.ask(page, sentence)  # the next one only then: it is typed over what waits in the field
            await expect(page.get_by_text(said, exact=True).last).to_be_visible()
        await expect(page.locator(".agents-used")).to_have_text(["No agent was used", "Used Weather, Clock"])
