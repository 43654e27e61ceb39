"""Devices in Chromium: the list of phones, a QR code, the digits, how it ends, and what a phone may do."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from fixtures.axe import axe_core, violations_of
from fixtures.page_questions import SIDEWAYS, SMALL
from playwright.async_api import Page, expect

from rappd.tether.qr_code import as_svg
from tests.rappd.page.machine_rows import bodies, sent

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

ANNA, ID = "a1" * 32, "c2Vzc2lvbi0"
LINK = f"http://192.168.1.12:7072/t#v=2&s={ID}&k=AAAAAAAAAAAAAAAAAAAAAA"
CLOSED = {"state": "closed"}
EQUAL = """buttons => new Set(buttons.map(it => {
    const {width, height} = it.getBoundingClientRect();
    const {backgroundColor, color, fontWeight} = getComputedStyle(it);
    return [Math.round(width), height, backgroundColor, color, fontWeight].join();
})).size"""

APPEARING = """() => new MutationObserver((_, observer) => {
    const buttons = [...document.querySelectorAll(".verdicts button")];
    if (!buttons.length) return;
    window.appeared = buttons.map(one => one.disabled);
    observer.disconnect();
}).observe(document.querySelector("dialog"), {subtree: true, childList: true})"""


def phone(name: str = "Anna", id: str = ANNA, **more: Any) -> dict[str, Any]:
    row = {
        "id": id,
        "name": name,
        "scope": "talk",
        "workflows": False,
        "eggs": False,
        "kind": "guest",
        "invited": False,
        "user": "shared",
        "session": "",
    }
    row |= {"created_at": time.time() - 90_000, "seen_at": time.time() - 7300, "seen_from": "192.168.1.31"}
    return row | {"connected": False, "way": ""} | more


def window(state: str = "open", **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"state": state, "id": ID, "remaining": 118.4}
    if state == "open":
        row |= {"visited": False, "port": 7072, "port_taken": 0, "links": [LINK], "code": "ABCD-EFGH"}
        row |= {"short_links": ["http://192.168.1.12:7072/t"]}
    elif state in ("compare", "waiting"):
        row |= {"digits": "482 913", "name": "Android"}
    return row | more


def shown(site: Any, *rows: dict[str, Any], pairing: dict[str, Any] = CLOSED) -> None:
    sent(site, "GET", "/devices", 200, {"devices": list(rows)})
    sent(site, "GET", "/devices/window", 200, pairing)


def begins(site: Any) -> None:
    """The daemon shows a code as soon as it is asked for one."""

    def opened() -> Any:
        sent(site, "GET", "/devices/window", 200, window())
        return window()

    shown(site)
    sent(site, "POST", "/devices/window", 200, opened)
    sent(site, "GET", "/devices/window/qr", 200, {"svg": as_svg(LINK)})


def answers(site: Any, *rows: dict[str, Any]) -> None:
    """The daemon answers the owner's word with each of the rows' last, and shows it from then on."""

    def answered() -> Any:
        sent(site, "GET", "/devices/window", 200, rows[-1])
        return rows[-1]

    sent(site, "POST", "/devices/window/answer", 200, answered)


async def test_devices_are_listed_and_counted(site: Any) -> None:
    here = phone(
        "Ben", "b2" * 32, connected=True, way="websocket", scope="listen", workflows=True, kind="mine"
    )
    shown(site, here, phone())
    async with site.opened("#/devices") as page:
        ben, anna = page.locator(f"[data-device='{'b2' * 32}']"), page.locator(f"[data-device='{ANNA}']")
        await expect(ben).to_contain_text("● connected, over a WebSocket")
        await expect(ben).to_contain_text("your own phone · may only listen, and start workflows")
        await expect(anna).to_contain_text("○ last seen 2 h ago")
        await expect(anna).to_contain_text("a guest's · may talk and listen · 192.168.1.31")
        await expect(page.locator("nav a[href='#/devices'].place")).to_contain_text("2 devices")
        await expect(page.locator(".no-twins")).to_be_hidden()


async def test_no_devices_offer_to_add_a_phone(site: Any) -> None:
    shown(site)
    async with site.opened("#/devices") as page:
        await expect(page.locator("#main")).to_contain_text("No phone yet.")
        await expect(page.get_by_role("button", name="Add a phone")).to_have_count(1)


async def test_devices_without_operator_are_one_line(site: Any) -> None:
    site.daemon.operator = False
    shown(site, phone())
    async with site.opened("#/devices") as page:
        await expect(page.locator("#main .operator-line")).to_contain_text("To see phones and let one join")
        await expect(page.locator("#main button")).to_have_count(0)
    assert site.daemon.requests("/devices") == []


async def test_phone_joins_after_same_is_clicked(site: Any) -> None:
    begins(site)
    answers(site, window("waiting"))
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        dialog = page.get_by_role("dialog", name="Add a phone")
        await expect(dialog.get_by_role("img", name="QR code of the link below")).to_be_visible()
        assert await drawn(page), "the policy lets the picture be seen"
        await expect(dialog).to_contain_text("Open http://192.168.1.12:7072/t and type")
        await expect(dialog.locator(".shown-code")).to_have_text("ABCD-EFGH")
        await dialog.locator("summary").click()
        await expect(dialog.locator(".links")).to_have_text(LINK)
        await expect(dialog.locator(".countdown")).to_have_text(re.compile(r"Closes in 1:5\d"))
        await page.evaluate(APPEARING)
        sent(site, "GET", "/devices/window", 200, window(visited=True))
        await expect(dialog).to_contain_text("A phone opened the page.")
        sent(site, "GET", "/devices/window", 200, window("compare"))
        await expect(dialog).to_contain_text("Android is here. Does the phone show this number?")
        await expect(dialog.locator(".six-digits")).to_contain_text("482 913")
        await expect(dialog.locator(".dialog-inside [aria-live=polite]")).to_contain_text("4 8 2 9 1 3")
        await expect(dialog.locator(".verdicts :focus")).to_have_count(0)
        assert await page.evaluate("appeared") == [True, True, True], (
            "a click meant for the code is no answer"
        )
        await expect(dialog.get_by_role("button", name="Same, mine")).to_be_enabled()
        assert await dialog.locator(".verdicts button").evaluate_all(EQUAL) == 1
        await dialog.get_by_role("button", name="Same, mine").click()
        await expect(dialog).to_contain_text("Now tap “Same number” on Android.")
        shown(site, phone("Android"), pairing=window("paired", device=phone("Android")))
        await expect(dialog.locator(".outcome")).to_have_text("✓ Android joined.")
        await expect(dialog).to_contain_text("It may talk and listen.")
        await dialog.get_by_role("button", name="Close").last.click()
        await expect(page.locator("dialog")).to_have_count(0)
        await expect(page.locator(f"[data-device='{ANNA}']")).to_contain_text("Android")
    assert bodies(site, "/devices/window/answer") == [{"id": ID, "same": True, "kind": "mine"}]


COMPLETE = """() => {
    const { src, complete } = document.querySelector(".qr-code");
    return src && complete;
}"""


async def drawn(page: Page) -> bool:
    # Without an address a picture counts as complete, too.
    await page.wait_for_function(COMPLETE)
    found: bool = await page.evaluate("document.querySelector('.qr-code').naturalWidth > 0")
    return found


async def test_phone_with_another_number_is_refused(site: Any) -> None:
    begins(site)
    answers(site, window("differs"))
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
        sent(site, "GET", "/devices/window", 200, window("compare"))
        await page.get_by_role("button", name="Different").click()
        dialog = page.locator("dialog")
        await expect(dialog).to_contain_text("✗ Stopped: the numbers differ. Nothing was shared.")
        await expect(dialog).to_contain_text("Try a new QR code; if it happens again, change the Wi-Fi.")
        await dialog.get_by_role("button", name="New QR code").click()
        await expect(dialog.get_by_role("img")).to_be_visible()
    assert bodies(site, "/devices/window/answer") == [{"id": ID, "same": False, "kind": "guest"}]


async def test_phone_that_waits_survives_a_reload(site: Any) -> None:
    shown(site, pairing=window("compare"))
    answers(site, window("waiting"))
    async with site.opened("#/devices") as page:
        await expect(page.locator("dialog .six-digits")).to_contain_text("482 913")
        await page.reload()
        await expect(page.locator("dialog .six-digits")).to_contain_text("482 913")
        await page.keyboard.press("Escape")
        card = page.locator(".pairing-card")
        await expect(card).to_contain_text("Android wants to join.")
        await card.get_by_role("button", name="Compare").click()
        await page.get_by_role("button", name="Same, mine").click()
        await expect(page.locator("dialog")).to_contain_text("Now tap “Same number” on Android.")
        await page.reload()
        await expect(page.locator("dialog")).to_contain_text("Now tap “Same number” on Android.")


async def test_phone_that_asks_is_told_on_every_page(site: Any) -> None:
    shown(site, pairing=window("compare"))
    async with site.opened("#/agents") as page:
        await page.click(".toast:has-text('Android wants to join.') >> text=Compare")
        await expect(page.get_by_role("dialog", name="Add a phone")).to_contain_text("482 913")


async def changed(page: Any, what: str) -> None:
    """The daemon says that something changed."""
    await page.evaluate(
        f"""import('/web/lib/event-stream.js').then(({{daemonEvents}}) =>
            daemonEvents.dispatchEvent(new CustomEvent('{what}')))"""
    )


async def test_notice_of_a_phone_goes_once_it_is_answered_elsewhere(site: Any) -> None:
    shown(site, pairing=window("compare"))
    site.daemon.news = [{"type": "devices"}]
    async with site.opened("#/agents") as page:
        await expect(page.locator(".toast")).to_contain_text("Android wants to join.")
        shown(site, phone(connected=True, way="webrtc"))
        await changed(page, "devices")
        await expect(page.locator(".toast")).to_have_count(0)


async def test_devices_change_when_the_daemon_says_so(site: Any) -> None:
    shown(site)
    site.daemon.news = [{"type": "devices"}]
    async with site.opened("#/chat") as page:
        async with page.expect_request("**/devices"):
            await page.evaluate("location.hash = '#/devices'")
        await expect(page.locator("#main")).to_contain_text("No phone yet.")
        shown(site, phone(connected=True, way="webrtc"))
        await changed(page, "devices")
        await expect(page.locator(f"[data-device='{ANNA}']")).to_contain_text("● connected")


async def test_dialog_closed_takes_its_code_back(site: Any) -> None:
    begins(site)
    sent(site, "DELETE", "/devices/window", 200, CLOSED)
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_contain_text("Stopped; no phone joined.")
    assert len(site.daemon.requests("/devices/window")) > 2


@pytest.mark.parametrize(
    ("state", "says"),
    [("expired", "✗ The QR code has expired."), ("closed", "✗ The code was cancelled.")],
)
async def test_code_that_ends_says_why(site: Any, state: str, says: str) -> None:
    begins(site)
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
        sent(site, "GET", "/devices/window", 200, {"state": state})
        await expect(page.locator("dialog .outcome")).to_have_text(says)
        await expect(page.locator("dialog .countdown")).to_be_hidden()


async def test_add_a_phone_says_why_it_cannot(site: Any) -> None:
    shown(site)
    refusal = {
        "error": "This computer is on no network that a phone could reach.",
        "do": "Connect it.",
        "code": "x",
    }
    sent(site, "POST", "/devices/window", 409, refusal)
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.locator("#main .problem")).to_contain_text("on no network that a phone could reach")
        await expect(page.locator("dialog")).to_have_count(0)


async def test_code_without_qrcode_shows_link_and_advice(site: Any) -> None:
    begins(site)
    why = {
        "error": "The QR code cannot be drawn.",
        "do": "pip install 'rappd[tether]'",
        "code": "tether_unavailable",
    }
    sent(site, "GET", "/devices/window/qr", 409, why)
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.locator("dialog .problem")).to_contain_text("pip install 'rappd[tether]'")
        await expect(page.locator("dialog .qr-code")).to_be_hidden()


async def test_code_nobody_scans_names_wifi_and_port(site: Any) -> None:
    begins(site)
    script = (
        "const now = performance.now.bind(performance); performance.now = () => now() + (window.later || 0);"
    )
    async with site.opened("#/devices", script) as page:
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.get_by_role("dialog").get_by_role("img")).to_be_visible()
        await expect(page.locator(".dialog-inside [role=status]")).to_have_text("")
        await page.evaluate("window.later = 30_000")
        await expect(page.locator("dialog")).to_contain_text("Nobody came yet.")
        await expect(page.locator("dialog")).to_contain_text("mobile data")
        await expect(page.locator("dialog")).to_contain_text("block port 7072?")
        sent(
            site, "GET", "/devices/window", 200, window("open") | {"id": "another", "code": "NEW1-2345-6789"}
        )
        await expect(page.locator("dialog")).to_contain_text("NEW1-2345-6789")
        await expect(page.locator(".dialog-inside [role=status]")).to_have_text("")


async def test_device_is_renamed_restricted_and_removed(site: Any) -> None:
    shown(site, phone())
    path = f"/devices/{ANNA}"
    sent(site, "POST", path, 200, phone("Ben"))
    async with site.opened("#/devices") as page:
        await page.get_by_role("button", name="Rename Anna").click()
        await page.get_by_role("textbox", name="Name").fill("Ben")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast")).to_contain_text("It is called Ben now.")
        await page.get_by_role("button", name="Permissions of Anna").click()
        dialog = page.get_by_role("dialog", name="What Anna may do")
        await expect(dialog.get_by_role("radio", name="Talk and listen")).to_be_checked()
        await dialog.get_by_role("radio", name="Only listen").check()
        await dialog.get_by_role("switch", name="Start workflows").check()
        sent(site, "POST", path, 200, phone("Anna", scope="listen", workflows=True))
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.locator(".toast").last).to_contain_text(
            "Anna may only listen, and start workflows."
        )
        await page.get_by_role("button", name="Remove Anna").click()
        dialog = page.get_by_role("dialog", name="Remove Anna?")
        await expect(dialog).to_contain_text("It is out at once")
        removed = [asked for asked, _, _ in site.daemon.asked if asked == path]
        sent(site, "DELETE", path, 200, {"removed": phone()})
        await dialog.get_by_role("button", name="Remove", exact=True).click()
        await expect(page.locator(".toast").last).to_contain_text("Anna was removed.")
        assert len([asked for asked, _, _ in site.daemon.asked if asked == path]) == len(removed) + 1
    assert bodies(site, path) == [
        {"name": "Ben"},
        {
            "scope": "listen",
            "workflows": True,
            "eggs": False,
            "notices": False,
            "kind": "guest",
            "session": False,
        },
    ]


async def test_names_of_phones_are_text_and_tamed(site: Any) -> None:
    shown(site, phone("<img src=x onerror=alert(1)>\u202egro.live"))
    async with site.opened("#/devices") as page:
        title = page.locator(f"[data-device='{ANNA}'] h3")
        await expect(title).to_have_text("<img src=x onerror=alert(1)>gro.live")
        await expect(title.locator("img")).to_have_count(0)


async def test_devices_have_no_faults_of_accessibility(site: Any) -> None:
    begins(site)
    shown(site, phone("Ben", "b2" * 32, connected=True, way="webrtc"), phone())
    async with site.opened("#/devices") as page:
        await expect(page.locator("[data-device]")).to_have_count(2)
        await page.evaluate(axe_core())
        await faultless(page)
        for name in ("Rename Anna", "Permissions of Anna", "Remove Anna"):
            await page.get_by_role("button", name=name).click()
            await faultless(page)
            await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Add a phone").click()
        await expect(page.locator("dialog .qr-code")).to_be_visible()
        await page.locator("dialog summary").click()
        await faultless(page)
        for state in ("compare", "waiting", "differs", "expired"):
            sent(site, "GET", "/devices/window", 200, window(state))
            await expect(page.locator("dialog")).to_contain_text(SAYS[state])
            await faultless(page)


SAYS = {
    "compare": "show this number?",
    "waiting": "Now tap “Same number”",
    "differs": "differ.",
    "expired": "expired.",
}


async def faultless(page: Page) -> None:
    """The page, or a dialog in it, fits wide and small screens, and axe-core finds nothing wrong in it."""
    for width in (1280, 320):
        await page.set_viewport_size({"width": width, "height": 700})
        assert await page.evaluate(SIDEWAYS) == [], width
        assert await page.evaluate(SMALL) == [], width
    assert await violations_of(page) == []


WORKFLOW = {
    "name": "gardener/story", "title": "Story", "path": "workflows/story.json", "sha256": "ab", "steps": 1,
    "participants": ["Ann"], "shipped": False, "foreign": "Its signer is unknown.", "twin": "gardener",
    "origin": "gardener.egg", "problem": None,
}  # fmt: skip


async def test_foreign_workflow_is_read_then_approved_exactly_as_shown(site: Any) -> None:
    shown(site, phone())
    steps = {"about": "", "steps": [{"participant": "Ann", "cue": "Tell <b>it</b>"}]}
    sent(site, "GET", "/workflows", 200, {"workflows": [WORKFLOW], "runs": []})
    sent(site, "GET", "/workflows/gardener/story", 200, WORKFLOW | {"workflow": steps})

    def approved() -> Any:
        sent(site, "GET", "/workflows", 200, {"workflows": [WORKFLOW | {"foreign": ""}], "runs": []})
        return WORKFLOW

    sent(site, "POST", "/workflows/gardener/story/approve", 200, approved)
    async with site.opened("#/devices") as page:
        card = page.locator("[data-workflow='gardener/story']")
        await expect(card).to_contain_text("of gardener · foreign, not run · 1 step")
        await expect(card).to_contain_text("It came in gardener.egg.")
        await expect(card.get_by_role("button", name="Start")).to_have_count(0)
        await card.get_by_role("button", name="Read and approve").click()
        dialog = page.get_by_role("dialog", name="Story")
        await expect(dialog).to_contain_text("Tell <b>it</b>")
        await dialog.get_by_role("button", name="Approve exactly this").click()
        await expect(card.get_by_role("button", name="Start")).to_have_count(1)
    assert bodies(site, "/workflows/gardener/story/approve") == [{"sha256": "ab"}]
