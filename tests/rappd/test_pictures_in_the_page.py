"""Pictures in a real browser, from the file to the model's server and back: sent, kept, sent again, refused by name."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.axe import axe_core, violations
from fixtures.chromium import needs_chromium
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon
from playwright.sync_api import Browser, FilePayload, Page, expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(900),
    needs_chromium,
]

SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
DRAWN = """() => [...document.querySelectorAll(".sent-picture img")]
    .every(image => image.complete && image.naturalWidth > 0)"""
"""A picture is read after its element is there."""
DROP = """([name, type, data]) => {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([bytes], name, { type }));
    return dataTransfer;
}"""


def png(width: int, height: int, text: str = "") -> bytes:
    """A real picture: a red and blue gradient; ``text`` is what a camera would write into it."""

    def part(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    row = bytearray(1 + 3 * width)
    row[1::3] = bytes(x * 255 // width for x in range(width))
    row[2::3] = bytes([40]) * width
    rows = bytearray()
    for y in range(height):
        row[3::3] = bytes([y * 255 // height]) * width
        rows += row
    said = part(b"tEXt", b"Comment\0" + text.encode()) if text else b""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    end = part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + said + end


PLACE = "48.2082 N 16.3738 E"
LARGE: FilePayload = {"name": "large.png", "mimeType": "image/png", "buffer": png(2000, 600, PLACE)}
SMALL: FilePayload = {"name": "small.png", "mimeType": "image/png", "buffer": png(40, 30)}


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the operator's page; scripts that throw, and what the policy blocks, fail the test."""
    wrong: list[str] = []
    opened: list[Page] = []

    def open_(daemon: RunningDaemon, **more: Any) -> Page:
        page = browser.new_page(**more)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(daemon.post("/operator/key", control=True).json()["url"])
        expect(page.locator("#write")).to_be_visible()
        opened.append(page)
        return page

    yield open_
    for page in opened:
        page.close()
    assert [text for text in wrong if "Failed to load" not in text] == []


@pytest.fixture
def daemon(make_daemon: Callable[..., RunningDaemon], fake_model: FakeModel) -> RunningDaemon:
    return make_daemon(OPENAI_BASE_URL=fake_model.url, OPENAI_MODEL="small").start()


def choose(page: Page, *files: FilePayload) -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files(list(files))


def ask(page: Page, text: str) -> None:
    page.locator("#write").fill(text)
    page.locator("#write").press("Enter")


def sent(model: FakeModel) -> list[bytes]:
    """Pictures of the last request, in their order."""
    urls = [url for one in model.pictures() for url in one]
    return [base64.b64decode(url.split(",", 1)[1]) for url in urls]


def size(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG")
    return struct.unpack(">II", picture[16:24])


def test_picture_is_made_smaller_seen_and_kept_over_reload_edit_and_second_answer(
    daemon: RunningDaemon, fake_model: FakeModel, open_page: Callable[..., Page], browser: Browser
) -> None:
    page = open_page(daemon)
    choose(page, LARGE)
    expect(page.locator(".attachments .thumbnail")).to_have_count(1)
    expect(page.get_by_text("Pictures go to")).to_contain_text("to no other machine")
    fake_model.will(says("a gradient"), says("red to blue"), says("still a gradient"), says("as before"))
    ask(page, "what is this?")
    expect(page.locator(".answer")).to_have_text("a gradient")
    (first,) = sent(fake_model)
    assert size(first) == (1568, 470)
    assert PLACE.encode() not in first, "what a camera wrote into it stays here"
    expect(page.locator(".attachments .thumbnail")).to_have_count(0)

    page.reload()
    expect(page.locator(".sent-picture img")).to_have_count(1)
    page.wait_for_function(DRAWN)
    ask(page, "which colours?")
    expect(page.locator(".answer").nth(1)).to_have_text("red to blue")
    assert sent(fake_model) == [first], "an earlier picture goes along"

    page.locator(".turn").first.get_by_role("button", name="Edit what you wrote").click()
    page.get_by_role("textbox", name="What you wrote").fill("what is this really?")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".answer")).to_have_text("still a gradient")
    assert sent(fake_model) == [first]
    page.get_by_role("button", name="Answer again").click()
    expect(page.locator(".answer")).to_have_text("as before")
    assert sent(fake_model) == [first]
    assert "iVBOR" not in page.evaluate("JSON.stringify(localStorage)")

    other = open_page(daemon, viewport={"width": 320, "height": 700})  # a browser that never had the picture
    thread = daemon.get("/conversations", control=True).json()["conversations"][0]["id"]
    other.goto(f"http://127.0.0.1:{daemon.port}/#/chat/conversation/{thread}")
    expect(other.locator(".sent-picture img")).to_have_count(1)
    other.wait_for_function(DRAWN)
    assert not other.evaluate(SIDEWAYS)
    other.get_by_role("button", name="Show large.png large").click()
    expect(other.get_by_role("dialog")).to_be_visible()
    assert not other.evaluate(SIDEWAYS)
    other.goto(f"http://127.0.0.1:{daemon.port}/#/activity/thread/{thread}")
    expect(other.locator(".sent-picture img").first).to_be_visible()
    assert daemon.cli("threads", "verify").returncode == 0


def test_pictures_are_dropped_and_pasted(
    daemon: RunningDaemon, fake_model: FakeModel, open_page: Callable[..., Page]
) -> None:
    page = open_page(daemon)
    content = base64.b64encode(SMALL["buffer"]).decode()
    for name, kind in (("dropped.png", "drop"), ("pasted.png", "paste")):
        transfer = page.evaluate_handle(DROP, [name, "image/png", content])
        if kind == "drop":
            page.dispatch_event("#write", "drop", {"dataTransfer": transfer})
        else:
            page.evaluate(
                """clipboardData => document.querySelector("#write").dispatchEvent(
                    new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }))""",
                transfer,
            )
        expect(page.locator(".attachments")).to_contain_text(name)
    fake_model.will(says("two"))
    page.locator("#write").press("Enter")
    expect(page.locator(".answer")).to_have_text("two")
    assert list(map(size, sent(fake_model))) == [(40, 30), (40, 30)]


def test_model_that_takes_no_pictures_refuses_them_by_name_before_sending(
    daemon: RunningDaemon, fake_model: FakeModel, open_page: Callable[..., Page]
) -> None:
    page = open_page(daemon)
    refused = page.locator(".attachments-refused p")
    choose(page, *({**SMALL, "name": f"{number}.png"} for number in range(5)))
    expect(page.locator(".attachments .thumbnail")).to_have_count(4)
    expect(refused).to_contain_text("4.png was not attached: 4 pictures at once are the most")
    page.get_by_role("button", name="Remove 0.png").click()
    fake_model.sees = False
    choose(page, SMALL)
    expect(refused).to_contain_text("small.png was not attached: small cannot see pictures")
    assert fake_model.asked == []


def test_refusal_by_the_server_is_told_and_words_go_on(
    daemon: RunningDaemon, fake_model: FakeModel, open_page: Callable[..., Page]
) -> None:
    page = open_page(daemon)
    fake_model.picture_status = 400
    choose(page, SMALL)
    ask(page, "what is this?")
    expect(page.locator(".turn")).to_contain_text("Model 'small' did not take the picture.")
    fake_model.will(says("hello"))
    ask(page, "never mind")
    expect(page.locator(".answer").nth(1)).to_have_text("hello")


def test_pictures_pass_axe_and_fit_a_phone(
    daemon: RunningDaemon, fake_model: FakeModel, open_page: Callable[..., Page]
) -> None:
    page = open_page(daemon, viewport={"width": 320, "height": 700})
    page.evaluate(axe_core())
    choose(page, LARGE, SMALL)
    expect(page.locator(".attachments .thumbnail")).to_have_count(2)
    for step in ("attached", "sent"):
        if step == "sent":
            ask(page, "look")
            expect(page.locator(".sent-picture img")).to_have_count(2)
            expect(page.locator(".answer")).to_have_text("done")
        assert not page.evaluate(SIDEWAYS), step
        assert violations(page) == [], step
