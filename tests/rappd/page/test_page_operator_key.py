"""The operator's key in Chromium: one for all tabs, kept from scripts, and plain words where there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from rappd.daemon.operator_sessions import link_proof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TRADE = """async at => {
    const {linkProof} = await import("/web/lib/operator-key.js");
    while (Date.now() < at) await new Promise((go) => setTimeout(go));
    return linkProof("key");
}"""

FORGET = """async () => {
    const {signAnew} = await import("/web/lib/operator-key.js");
    signAnew(0);
    return new Promise((done) => (indexedDB.deleteDatabase("rappd").onsuccess = () => done(1)));
}"""

STORED = """async () => {
    const database = await new Promise((found) => {
        const opening = indexedDB.open("rappd");
        opening.onsuccess = () => found(opening.result);
    });
    const pair = await new Promise((found) => {
        const asked = database.transaction("keys").objectStore("keys").getAll();
        asked.onsuccess = () => found(asked.result);
    });
    const key = pair[0].privateKey;
    const read = (form) => crypto.subtle.exportKey(form, key).then(() => "read", ({name}) => name);
    database.close();
    return [pair.length, key.extractable, key.usages, await read("jwk"), await read("pkcs8")];
}"""

NO_DATABASE = "Object.defineProperty(window, 'indexedDB', {value: undefined});"
REFUSES = "IDBObjectStore.prototype.put = () => { throw new DOMException('', 'DataCloneError'); };"
SILENT = "IDBFactory.prototype.open = () => ({});"


async def _trades(page: Page, at: float) -> dict[str, str]:
    found: dict[str, str] = await page.evaluate(TRADE, at)
    return found


async def test_tabs_that_sign_in_at_once_have_one_key_that_no_script_reads(site: Any) -> None:
    async with site.opened("#/chat") as page:
        for _ in range(5):
            await page.evaluate(FORGET)
            tabs = [page, await page.context.new_page(), await page.context.new_page()]
            for tab in tabs[1:]:
                await tab.goto(f"http://127.0.0.1:{site.port}/web/css/base.css")
            at = await page.evaluate("Date.now() + 300")
            made = await asyncio.gather(*(_trades(tab, at) for tab in tabs))
            assert len({one["public_key"] for one in made}) == 1
            assert {one["proof"] for one in made} == {link_proof("key", made[0]["public_key"])}
            assert await page.evaluate(STORED) == [1, False, ["sign"], *["InvalidAccessError"] * 2]
            for tab in tabs[1:]:
                await tab.close()


async def test_page_signs_anew_when_its_key_or_clock_changed(site: Any) -> None:
    """Another tab made the key anew, or the daemon's clock is another: refused unread, and sent once more."""
    site.daemon.scripted["POST /settings"] = [
        (403, {"error": "x", "code": "late_signature", "now": 1_000}),
        (403, {"error": "That is no name.", "code": "not_signed"}),
    ]
    site.daemon.scripted["GET /outbox"] = [(403, {"error": "x", "code": "used_signature"})]
    async with site.opened("#k=key") as page:
        said = await page.evaluate(
            """async () => {
                const {get, post} = await import("/web/lib/api.js");
                const words = ({message}) => message;
                return [await post("/settings", {}).catch(words), await get("/outbox").catch(words)];
            }"""
        )
        assert said == ["That is no name.", "x"]
    signatures = [headers["X-Rappd-Signature"] for headers, _ in site.daemon.requests("/settings")]
    assert len(signatures) == 2, "once more, and not for ever"
    assert [len(one.split(".")[0]) > 5 for one in signatures] == [True, False], "by the daemon's clock"
    assert len(site.daemon.requests("/outbox")) == 1, "what was done is not done again"


async def test_requests_leave_in_the_order_in_which_they_were_made(site: Any) -> None:
    async with site.opened("#k=key") as page:
        left = await page.evaluate(
            """async () => {
                const {post} = await import("/web/lib/api.js");
                const padding = (at) => "x".repeat(at % 3 ? 1 : 900_000);
                const [real, left] = [window.fetch, []];
                window.fetch = (path, options) => {
                    if (path === "/voice/toggle") left.push(JSON.parse(new TextDecoder().decode(options.body)).at);
                    return real(path, options);
                };
                await Promise.all([...Array(9).keys()].map((at) => post("/voice/toggle", {at, padding: padding(at)})));
                return left;
            }"""
        )
    assert left == [*range(9)]


@pytest.mark.parametrize("script", [NO_DATABASE, REFUSES, SILENT])
async def test_window_that_keeps_no_key_says_so_and_uses_up_no_link(site: Any, script: str) -> None:
    site.daemon.operator = False
    async with site.opened("#k=key", script=f"if (!window.closed) {{ {script} }}") as page:
        await expect(page.locator(".failed-files .problem")).to_have_count(1)
        await expect(page.locator(".failed-files")).to_contain_text(
            "This window keeps no key for the operator's session"
        )
        await site.ask(page, "hello")
        await expect(page.locator(".answer")).to_have_text("fine")
    assert not [body for _, body in site.daemon.requests("/operator/session") if body]


@pytest.mark.parametrize("former", ["'rappd.proof', '\"half\"'", "'x', ''"])
async def test_ended_session_is_told_in_one_sentence(site: Any, former: str) -> None:
    """A page of the earlier form has a proof in its storage; any page, a cookie that the daemon no longer takes."""
    site.daemon.operator = False
    if "proof" not in former:
        answers = [(200, {"operator": False, "ended": True}), (200, {"operator": False})]
        site.daemon.scripted["GET /operator/session"] = answers
    async with site.opened(
        "#/chat", script=f"sessionStorage.once ?? localStorage.setItem({former}); sessionStorage.once = 1;"
    ) as page:
        sentence = page.locator(".failed-files .problem")
        await expect(sentence).to_have_text(
            "✗ The operator's session of this browser has ended: open the page by the link of rappd open again."
        )
        assert await page.evaluate("localStorage.getItem('rappd.proof')") is None
        await page.reload()
        await expect(page.locator("#write")).to_be_visible()
        await page.wait_for_function("() => fetch('/health').then(() => true)")
        await expect(sentence).to_have_count(0)


async def test_link_followed_before_the_page_started_loses_no_key(site: Any) -> None:
    context = await site.browser.new_context()
    page = await context.new_page()
    started = asyncio.Event()

    async def later(route: Route) -> None:
        await started.wait()
        await route.continue_()

    await page.route("**/web/main.js", later)
    await page.goto(f"http://127.0.0.1:{site.port}/#k=key", wait_until="commit")
    for selector in (".skip", "nav a[href='#/devices']"):
        await page.wait_for_selector(selector, state="attached")
        box = await page.locator(selector).bounding_box()
        await page.mouse.click(box["x"] + 5, box["y"] + 5)
        await page.locator(selector).evaluate("link => link.focus()")
        await page.keyboard.press("Enter")
        assert page.url.endswith("#k=key")
    started.set()
    await page.get_by_role("link", name="Devices").click()
    await expect(page.get_by_role("heading", name="Devices", exact=True)).to_be_visible()
    assert len(site.daemon.requests("/operator/session")) >= 1
    await context.close()
