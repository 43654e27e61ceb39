"""Files attached to a sentence: read and sent as text, shown folded, refused by name before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest
from fixtures.axe import axe_core, violations_of
from playwright.async_api import FilePayload, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
NOTES = "milk\n~~~~\n<b>eggs</b>\n"


def payload(name: str, content: bytes, kind: str = "application/octet-stream") -> FilePayload:
    return {"name": name, "mimeType": kind, "buffer": content}


async def choose(page: Any, *files: FilePayload) -> None:
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Attach files").click()
    await (await chooser.value).set_files(list(files))


async def test_attached_text_is_sent_and_shown_folded(site: Any) -> None:
    async with site.opened() as page:
        await choose(page, payload("notes.txt", NOTES.encode()), payload("list.csv", b"a,b\n1,2"))
        chips = page.get_by_role("list", name="Attached files").locator("li")
        await expect(chips).to_have_count(2)
        await page.get_by_role("button", name="Remove list.csv").click()
        await expect(chips).to_have_count(1)
        await expect(page.locator("#write")).to_be_focused()
        await page.keyboard.type("what is missing?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_have_text("fine")
        await expect(chips).to_have_count(0)
        await expect(page.locator(".written")).to_have_text("what is missing?")
        fold = page.locator(".attached")
        await expect(fold.locator("summary")).to_have_text("notes.txt")
        await fold.locator("summary").click()
        assert await fold.locator("pre").inner_text() == NOTES.rstrip("\n")
    (_, body), *_ = site.daemon.requests("/chat/stream")
    assert body["user_input"] == f"what is missing?\n\nAttached file notes.txt:\n\n~~~~~\n{NOTES}~~~~~"


async def test_unfit_files_are_refused_by_name_and_nothing_is_sent(site: Any) -> None:
    async with site.opened() as page:
        await choose(
            page,
            payload("photo.png", b"\x89PNG", "image/png"),
            payload("film.mp4", b"\x00\x01\x02\xff"),
            payload("book.txt", b"x" * 100_001),
            payload("nothing.txt", b""),
            payload("latin.txt", "é".encode("latin-1")),
        )
        refused = page.locator(".attachments-refused p")
        await expect(refused).to_have_count(5)
        await expect(refused).to_contain_text(
            [
                "photo.png was not attached: this browser cannot open it",
                "film.mp4 was not attached: it is neither a text nor a picture",
                "book.txt was not attached: it is 100 kB large, and 100 kB is the most",
                "nothing.txt was not attached: it is empty",
                "latin.txt was not attached: it is neither a text nor a picture",
            ]
        )
        await page.press("#write", "Enter")
        await expect(page.locator(".turn")).to_have_count(0)
    assert site.daemon.requests("/chat/stream") == []


async def test_attachments_pass_axe_and_fit_a_phone(site: Any) -> None:
    async with site.opened(viewport={"width": 320, "height": 700}) as page:
        await choose(page, payload("n" * 80 + ".txt", b"a"), payload("photo.png", b"x", "image/png"))
        await expect(page.locator(".attachments li")).to_have_count(1)
        wide = "document.documentElement.scrollWidth > innerWidth"
        assert not await page.evaluate(wide)
        await page.evaluate(axe_core())
        assert await violations_of(page) == []
        await site.ask(page, "look")
        await expect(page.locator(".attached")).to_have_count(1)
        assert not await page.evaluate(wide)
        assert await violations_of(page) == []
