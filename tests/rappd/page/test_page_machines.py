"""Machines in Chromium: cards, the pairing sheet, one peer, calls, the outbox, and names that mean harm."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.async_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PI, SHED, KITCHEN = "91c3" * 16, "5ed0" * 16, "c0de" * 16
RUNGS = [
    {"rung": "nearby", "found": 1, "trouble": ""},
    {"rung": "last address", "found": 2, "trouble": ""},
    {"rung": "list", "found": 0, "trouble": ""},
    {"rung": "typed", "found": 0, "trouble": ""},
]
ATTEMPT = "8c9ff8a2-94d2-4c1a-9b6e-0123456789ab"
OTHER = "1d9ff8a2-94d2-4c1a-9b6e-0123456789ab"
THREAD = "7c1e0000-0000-4000-8000-000000000000"


def paired(name: str, key: str, **more: Any) -> dict[str, Any]:
    row = {"name": name, "fingerprint": key, "short": key[:4], "paired": True, "legacy": False}
    row |= {"whose": "mine", "presence": "here", "ms": 2.1, "since": time.time() - 60, "reached": "nearby"}
    row |= {"address": "192.168.1.31:7443", "agents": 3, "waiting": 0, "trouble": "", "scopes": ["*"]}
    row |= {"offered": False, "called": name, "paired_at": time.time() - 90_000, "seen_at": time.time()}
    return row | more


def found(name: str, key: str = KITCHEN, **more: Any) -> dict[str, Any]:
    row = {"name": name, "fingerprint": key, "short": key[:4], "paired": False, "legacy": False}
    row |= {"presence": "found", "reached": "nearby", "address": "192.168.1.40:7443", "since": time.time()}
    return row | more


def legacy(name: str) -> dict[str, Any]:
    row = {"name": name, "fingerprint": "", "short": "", "paired": False, "legacy": True, "reached": "typed"}
    return row | {"presence": "written down", "address": "http://192.168.1.50:7071"}


def listing(*peers: dict[str, Any], **more: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"peers": list(peers), "asking": [], "rungs": RUNGS}
    whole |= {"door": {"port": 7443, "open": True}}
    return whole | {"self": {"name": "desk", "fingerprint": "4f2a" * 16, "short": "4f2a"}} | more


def attempt(state: str = "words", **more: Any) -> dict[str, Any]:
    row = {"attempt": ATTEMPT, "role": "asks", "peer": "kitchen", "short": "c0de", "state": state}
    row |= {"address": "192.168.1.40:7443", "words": ["copper", "lantern", "otter", "violin"]}
    return row | {"seconds_left": 118} | more


def asks(**more: Any) -> dict[str, Any]:
    who = {"attempt": OTHER, "role": "answers", "peer": "pi", "short": "91c3"}
    return attempt(**who, address="192.168.1.12:7443", **more)


def ended(state: str, trouble: str, do: str = "") -> tuple[int, Any]:
    return 200, {"pairing": attempt(state, trouble=trouble, do=do, seconds_left=0)}


def waiting(id: str = "81aa", state: str = "queued", **more: Any) -> dict[str, Any]:
    row = {"id": id, "to": "shed", "peer": SHED, "what": "read the rain gauge", "state": state, "tries": 3}
    row |= {"next": time.time() + 30, "expires": time.time() + 79_300, "created": time.time() - 60}
    return row | {"thread": THREAD, "trouble": ""} | more


def bodies(site: Any, path: str) -> list[Any]:
    return [body for _, body in site.desk.requests(path) if body is not None]


def sent(site: Any, method: str, path: str, status: int, answer: Any) -> None:
    site.desk.scripted[f"{method} {path}"] = [(status, answer)]


async def test_each_machine_has_a_card_and_the_rail_counts_the_peers(site: Any) -> None:
    away = paired("shed", SHED, presence="away", since=1_000_000_000.0, reached="last address", waiting=4)
    rows = (paired("pi", PI), away, found("kitchen"), legacy("barn"))
    sent(site, "GET", "/peers", 200, listing(*rows))
    sent(site, "POST", "/peers/forget", 200, {"removed": {}})
    async with site.opened("#/machines") as page:
        pi, shed = page.locator(f"[data-key='{PI}']"), page.locator(f"[data-key='{SHED}']")
        await expect(pi).to_contain_text("● here, 2 ms")
        await expect(pi.locator("code")).to_contain_text("91c3")
        await expect(pi).to_contain_text("nearby · yours · 3 agents")
        await expect(shed).to_contain_text("○ away since 9 Sept")
        await expect(shed).to_contain_text("last address · yours · 4 in the outbox")
        await expect(page.locator(f"[data-key='{KITCHEN}']")).to_contain_text("· found")
        await expect(page.get_by_role("button", name="Pair with kitchen")).to_have_count(1)
        await expect(page.get_by_role("button", name="Pair with pi")).to_have_count(0)
        await expect(page.locator("nav a[href='#/machines'].place")).to_contain_text("2 machines")
        await page.get_by_role("button", name="Forget barn").click()
        await expect(page.locator(".toast")).to_contain_text("barn is forgotten.")
    assert bodies(site, "/peers/forget") == [{"address": "http://192.168.1.50:7071"}]


async def test_without_machines_it_says_what_to_do_and_where_it_looked(site: Any) -> None:
    rungs = [{**RUNGS[0], "found": 0, "trouble": "A VPN (tun0) hides this machine."}, *RUNGS[1:]]
    sent(site, "GET", "/peers", 200, listing(rungs=rungs, door={"port": 0, "open": False}))
    refusal = {"error": '"ftp://x" is no address.', "do": "192.168.1.31", "code": "mistyped"}
    sent(site, "POST", "/peers", 400, refusal)
    async with site.opened("#/machines") as page:
        await expect(page.locator("#main")).to_contain_text("Run make start on another machine")
        await expect(page.locator(".no-twins .ways")).to_contain_text("! A VPN (tun0) hides this machine.")
        await expect(page.locator(".no-twins .ways")).to_contain_text("no address was typed")
        await expect(page.locator("#main")).to_contain_text("The door for other machines is closed")
        await page.get_by_role("button", name="Add address").click()
        await page.get_by_role("textbox", name="Address").fill("ftp://x")
        await page.keyboard.press("Enter")
        await expect(page.locator("dialog .problem")).to_contain_text("is no address")
        added = {"address": "192.168.1.31:7443", "legacy": False, "name": "pi", "fingerprint": PI}
        sent(site, "POST", "/peers", 200, {"added": added})
        await page.get_by_role("textbox", name="Address").fill(" 192.168.1.31 ")
        await page.get_by_role("button", name="Add it").click()
        await expect(page.locator(".toast")).to_contain_text("pi answers at 192.168.1.31:7443.")
    assert bodies(site, "/peers")[-1] == {"address": "192.168.1.31"}


HELD_PEERS = """
const { fetch: send } = window;
const asked = new Promise((resolve) => (window.letPeersAnswer = resolve));
window.fetch = async (path, ...more) => (path === "/peers" && (await asked), send(path, ...more));
"""


async def test_no_button_comes_and_goes_nor_a_menu_closes_by_itself(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing())
    async with site.opened("#/machines", script=HELD_PEERS) as page:
        buttons = page.get_by_role("button", name=re.compile("Pair by code|Add address"))
        await page.wait_for_timeout(300)
        await expect(buttons).to_have_count(0)
        await expect(page.locator("#main")).not_to_contain_text("No other machine yet.")
        await page.evaluate("letPeersAnswer()")
        await expect(buttons).to_have_count(2)
        await page.get_by_role("button", name="Pair by code").click()
        rungs = [{**RUNGS[0], "trouble": "A VPN (tun0) hides this machine."}, *RUNGS[1:]]
        sent(site, "GET", "/peers", 200, listing(rungs=rungs, door={"port": 0, "open": False}))
        await page.evaluate("import('/web/parts/machines.js').then(({ machines }) => machines.touch())")
        await expect(page.locator(".no-twins .ways")).to_contain_text("A VPN (tun0) hides this machine.")
        await expect(page.locator(".no-twins .hindrance")).to_contain_text("The door for other machines")
        await expect(page.get_by_role("menuitem", name="Show a code")).to_be_focused()


async def test_what_hinders_stands_above_the_list(site: Any) -> None:
    rungs = [{**RUNGS[0], "trouble": "A VPN (tun0) hides this machine."}, *RUNGS[1:]]
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), rungs=rungs))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".hindrance")).to_have_text("! Nearby: A VPN (tun0) hides this machine.")
        await expect(page.locator(".ways")).to_be_hidden()
        await page.click("text=How machines are found")
        await expect(page.locator(".ways")).to_contain_text("2 machines")


async def test_pairing_shows_four_words_and_chooses_nothing_for_anybody(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt("asking", words=[])})
    site.desk.scripted[f"GET /pairings/{ATTEMPT}"] = [
        (200, {"pairing": attempt(words=[], state="asking")}),
        (200, {"pairing": attempt()}),
    ]
    sent(site, "POST", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt("waiting")})
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        sheet = page.get_by_role("dialog", name="Pair with kitchen")
        await expect(sheet).to_contain_text("Asking kitchen…")
        await expect(sheet.locator(".four-words li")).to_have_text(["copper", "lantern", "otter", "violin"])
        heard = sheet.locator("[aria-live=polite]")
        await expect(heard).to_contain_text("copper. lantern. otter. violin.")
        await expect(sheet).to_contain_text(re.compile(r"Closes in 1:5\d"))
        assert (
            await sheet.get_by_role("radio").evaluate_all("all => all.some(({checked}) => checked)") is False
        )
        await expect(sheet.locator(".verdicts :focus")).to_have_count(0)
        differ, same = (sheet.get_by_role("button", name=name) for name in ("They differ", "Same"))
        looks = """it => {
            const {width, height} = it.getBoundingClientRect();
            const {backgroundColor, color, fontWeight} = getComputedStyle(it);
            return [Math.round(width), height, backgroundColor, color, fontWeight];
        }"""
        await page.mouse.move(0, 0)
        assert await differ.evaluate(looks) == await same.evaluate(looks)
        said = (await sheet.inner_text()).lower()
        assert not re.search(r"token|certificate|node|fingerprint|handshake|tenant|envelope|endpoint", said)
        await same.click()
        await expect(sheet.get_by_role("alert")).to_contain_text("Choose one of the two")
        await expect(sheet.get_by_label("Mine")).to_be_focused()
        await sheet.get_by_label("A friend's").check()
        site.desk.scripted[f"GET /pairings/{ATTEMPT}"] = [(200, {"pairing": attempt("waiting")})]
        await same.click()
        await expect(sheet).to_contain_text("Now say yes on kitchen.")
        await expect(sheet.locator("h2")).to_be_focused()
        site.desk.scripted[f"GET /pairings/{ATTEMPT}"] = [ended("paired", "")]
        await expect(sheet).to_contain_text("kitchen is paired.")
        await expect(sheet).not_to_contain_text("Closes in")
        peer_shown(site, paired("kitchen", KITCHEN))
        await sheet.get_by_role("button", name="See it").click()
        await expect(page).to_have_url(re.compile(f"#/machines/peer/{KITCHEN}$"))
    assert bodies(site, "/pairings") == [{"peer": KITCHEN}]
    assert bodies(site, f"/pairings/{ATTEMPT}") == [{"same": True, "whose": "friend"}]


async def test_words_that_differ_pair_nothing(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt()})
    says = "The words differ; nothing was paired.", "Retry once, then change network."
    site.desk.scripted[f"POST /pairings/{ATTEMPT}"] = [ended("differ", *says)]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await page.get_by_role("button", name="They differ").click()
        await expect(page.locator("dialog")).to_contain_text("✗ The words differ; nothing was paired.")
        await expect(page.locator("dialog")).to_contain_text("→ Retry once, then change network.")
        await expect(page.locator("dialog [aria-live=polite]")).to_contain_text("The words differ")
        await page.get_by_role("button", name="Close", exact=True).last.press("Enter")
        await expect(page.locator("dialog")).to_have_count(0)
    assert bodies(site, f"/pairings/{ATTEMPT}") == [{"same": False}]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("expired", "Time is up; nothing was paired."),
        ("stopped", "The pairing was stopped; nothing was paired."),
    ],
)
async def test_a_pairing_that_ended_elsewhere_says_so(site: Any, state: str, says: str) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    site.desk.scripted[f"GET /pairings/{ATTEMPT}"] = [ended(state, says, "Start anew on both machines.")]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator("dialog .outcome")).to_have_text(f"✗ {says}")
        await expect(page.locator(".verdicts")).to_have_count(0)


@pytest.mark.parametrize("mark", [60, 30, 10])
async def test_the_countdown_is_spoken(site: Any, mark: int) -> None:
    row = attempt(seconds_left=mark + 2)
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    sent(site, "POST", "/pairings", 200, {"pairing": row})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": row})
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator("dialog [aria-live=polite]")).to_have_text(f"{mark} seconds left.")


async def test_closing_stops_what_was_begun_here_and_leaves_what_was_asked(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen"), asking=[asks()]))
    sent(site, "POST", "/pairings", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": attempt()})
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    for one in (ATTEMPT, OTHER):
        site.desk.scripted[f"DELETE /pairings/{one}"] = [ended("stopped", "Stopped.")]

    def told_no() -> Any:
        # From then on the list is without it, and not before: the page looks by itself, too.
        sent(site, "GET", "/peers", 200, listing(found("kitchen")))
        return ended("stopped", "Stopped.")[1]

    async with site.opened("#/machines") as page:
        first = page.locator("#main .cards li").first
        await expect(first).to_have_text(re.compile(r"^pi \(192\.168\.1\.12\) is asking\."))
        await page.get_by_role("button", name="Pair with pi").click()
        await expect(page.locator(".four-words")).to_be_visible()
        await expect(page.locator("dialog")).to_contain_text("pi (192.168.1.12) is asking.")
        await page.keyboard.press("Escape")
        await expect(first).to_contain_text("pi (192.168.1.12) is asking.")
        await expect(page.locator(".toast")).to_have_count(0)
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator(".four-words")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_contain_text("Stopped; nothing was paired.")
        sent(site, "DELETE", f"/pairings/{OTHER}", 200, told_no)
        await page.get_by_role("button", name="Not now, pi").click()
        await expect(page.locator(".toast").last).to_contain_text("pi was told no; nothing was paired.")
        await expect(first).not_to_contain_text("is asking")


async def test_who_asks_is_told_wherever_one_is(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(asking=[asks()]))
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    async with site.opened("#/agents") as page:
        await page.click(".toast:has-text('pi (192.168.1.12) is asking to pair.') >> text=Look")
        await expect(page.get_by_role("dialog", name="Pair with pi")).to_contain_text("lantern")


@pytest.mark.parametrize("width", [320, 1280])
async def test_hostile_names_stay_words(site: Any, width: int) -> None:
    names = [
        "<img src=x onerror=alert(1)><b>bold</b>",
        "\u202egnp.exe\u2066 pi\u2069\u200b",
        "n" * 60,
        "🥧👩‍👩‍👧 \U000e0041pi",
        "\u0007\u001b[31m",
    ]
    rows = [found(name, f"{at}" * 64) for at, name in enumerate(names, 1)]
    sent(site, "GET", "/peers", 200, listing(*rows, asking=[asks() | {"peer": names[0] + names[1]}]))
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks() | {"peer": names[1]}})
    async with site.opened("#/machines", viewport={"width": width, "height": 700}) as page:
        await expect(page.locator(".machine")).to_have_count(6)
        assert await page.locator("main :is(img, b, script)").count() == 0
        text = await page.locator("#main").inner_text()
        assert "<b>bold</b>" in text
        assert not re.search("[\u0000-\u0008\u001b\u200b\u202a-\u202e\u2066-\u2069]", text)
        assert "n" * 50 not in text
        await expect(page.locator(".machine", has_text="a machine")).to_have_count(0)
        await expect(page.locator(f"[data-key='{'2' * 64}'] bdi")).to_have_text("gnp.exe pi")
        assert await page.evaluate(SIDEWAYS) == []
        await page.locator(".asks").get_by_role("button", name="Pair with").click()
        await expect(page.locator(".four-words")).to_be_visible()
        assert await page.evaluate(SIDEWAYS) == []
        assert "\u202e" not in await page.locator("dialog").inner_text()


async def test_a_thousand_machines_come_in_pieces(site: Any) -> None:
    rows = [paired(f"peer-{at:04}", f"{at:064x}", presence="away") for at in range(1000)]
    sent(site, "GET", "/peers", 200, listing(*rows))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".machine").first).to_contain_text("peer-0000")
        assert await page.locator(".machine").count() <= 240
        await page.get_by_label("Find a machine").fill("peer-0777")
        await expect(page.locator(".machine")).to_have_count(1)
        await expect(page.locator("[role=status]", has_text="1 of 1000")).to_have_count(1)
        await page.get_by_label("Find a machine").fill("")
        before = await page.locator(".machine").count()
        await page.locator(".more-rows:visible").press("Enter")
        await expect(page.locator(".machine a:focus")).to_have_count(1)
        assert await page.locator(".machine").count() > before
        while await page.locator(".more-rows:visible").count():
            await page.locator(".more-rows:visible").evaluate("more => more.scrollIntoView()")
            await page.wait_for_timeout(50)
        await expect(page.locator(".machine", has_text="peer-0999")).to_have_count(1)


def peer_shown(site: Any, row: dict[str, Any], **more: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(row))
    sent(
        site,
        "GET",
        f"/peers/{row['fingerprint']}",
        200,
        {"peer": row | {"agents_here": [], "twins_here": []} | more},
    )


async def test_what_a_peer_may_do_is_chosen_and_undone(site: Any) -> None:
    row = paired("pi", PI, scopes=["EGG", "HELP.gardener.*"])
    peer_shown(site, row)
    site.desk.files[0]["cards"].append(site.desk.files[0]["cards"][0] | {"name": "Twin", "structural": True})
    sent(site, "POST", f"/peers/{PI}/scopes", 200, {"peer": row})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        part = page.locator(".scopes")
        await expect(part.get_by_label("What is ticked")).to_be_checked()
        await expect(part.get_by_label("HELP.gardener.*")).to_be_checked()
        await expect(part.get_by_role("button", name="Save")).to_be_disabled()
        await expect(part.get_by_label("Twin")).to_have_count(0)  # nobody's from elsewhere
        await part.get_by_label("Clock").check()
        await part.get_by_label("Send eggs").uncheck()
        await part.get_by_role("button", name="Save").click()
        await page.click(".toast >> text=Undo")
        await part.get_by_label("Everything approved").check()
        await expect(part.get_by_label("Clock")).to_be_hidden()
        await part.get_by_role("button", name="Save").click()
        await expect(page.locator(".toast").last).to_contain_text("pi may use everything approved here.")
    first, undone, second = (sorted(body["scopes"]) for body in bodies(site, f"/peers/{PI}/scopes"))
    assert first == ["HELP.brainstem.Clock", "HELP.gardener.*"]
    assert undone == ["EGG", "HELP.gardener.*"]
    assert second == ["*"]


async def test_a_peer_is_asked_and_its_answer_is_text(site: Any) -> None:
    agents = [{"name": "Thermo<b>meter", "description": "<img src=x onerror=alert(1)>\u202eWarm."}]
    peer_shown(site, paired("pi", PI), agents_here=agents, twins_here=["Gardener"])
    call = {"id": "x", "peer": "pi", "state": "done", "thread": THREAD, "seconds": 0.2}
    sent(site, "POST", "/call", 200, {"call": call | {"result": "<script>alert(1)</script>\n18.4 °C\u202e"}})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await expect(page.locator(".peer-agents")).to_contain_text("<img src=x onerror=alert(1)>Warm.")
        await page.get_by_label("Who answers").select_option(label="Thermo<b>meter")
        await page.get_by_label("What to ask").fill("how warm is it?")
        await page.keyboard.press("Enter")
        result = page.locator(".peer-result")
        await expect(result).to_have_text("<script>alert(1)</script>\n18.4 °C")
        await expect(page.locator(".peer-call")).to_contain_text("done on pi in 0.2 s, thread 7c1e")
        await expect(page.locator("#live")).to_have_text("pi answered.")
        await expect(page.locator(".peer-call a")).to_have_attribute("href", f"#/activity/thread/{THREAD}")
        refused = {"state": "failed", "error": "pi refused this call.", "code": "scope", "thread": THREAD}
        refused["do"] = "Its owner can allow it: `rappd peers show desk`."
        sent(site, "POST", "/call", 200, {"call": call | refused})
        await page.get_by_label("Who answers").select_option(label="Gardener, a twin")
        await page.get_by_label("What to ask").fill("water?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator(".peer-call .problem")).to_contain_text("✗ pi refused this call.")
        await expect(page.locator(".peer-call .problem code")).to_have_text("rappd peers show desk")
        assert await page.locator("main :is(img, script, b)").count() == 0
    first, second = bodies(site, "/call")
    assert (first["peer"], first["agent"], first["text"]) == (PI, "Thermo<b>meter", "how warm is it?")
    assert (second["twin"], second["id"] != first["id"]) == ("Gardener", True)


async def test_a_call_that_waits_is_answered_later(site: Any) -> None:
    peer_shown(site, paired("shed", SHED, presence="away"))
    call = {"id": "x", "peer": "shed", "state": "queued", "thread": THREAD, "seconds": 0.1}
    sent(site, "POST", "/call", 200, {"call": call})
    async with site.opened(f"#/machines/peer/{SHED}") as page:
        await page.get_by_label("What to ask").fill("rain?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".peer-call")).to_contain_text("Queued: shed is away. Goes by itself.")
        id = bodies(site, "/call")[0]["id"]
        done = {"id": id, "verb": "DONE", "from": "x", "to": "y", "data": {"result": "12 mm"}}
        site.desk.scripted[f"GET /threads/{THREAD}"] = [(200, {"events": [done | {"thread": THREAD}]})]
        await site.close()
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.get_by_label("What to ask").fill("x")
        await page.keyboard.press("Enter")
        await site.open()
        await expect(page.locator(".peer-result")).to_have_text("12 mm")


async def test_its_agents_are_used_here_or_not(site: Any) -> None:
    peer_shown(site, paired("pi", PI))
    refusal = {"error": "It cannot be.", "do": "Wait.", "code": "no"}
    site.desk.scripted[f"POST /peers/{PI}/offer"] = [(409, refusal), (200, {"peer": {}})]
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await page.get_by_role("switch", name="Use its agents here").click()
        await expect(page.locator("#main .problem")).to_contain_text("It cannot be.")
        await expect(page.get_by_role("switch", name="Use its agents here")).not_to_be_checked()
        await page.get_by_role("switch", name="Use its agents here").press("Space")
        await expect(page.locator(".toast")).to_contain_text("desk may use pi's agents now.")
    assert bodies(site, f"/peers/{PI}/offer") == [{"on": True}, {"on": True}]


async def test_a_peer_is_renamed_and_revoked_after_a_question(site: Any) -> None:
    peer_shown(site, paired("pi", PI))
    sent(site, "POST", f"/peers/{PI}/rename", 200, {"peer": paired("raspi", PI)})
    sent(site, "POST", f"/peers/{PI}/revoke", 200, {"revoked": {"name": "pi", "fingerprint": PI}})
    async with site.opened(f"#/machines/peer/{PI}") as page:
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_label("Name here")).to_be_focused()
        await page.keyboard.type("raspi")
        await page.keyboard.press("Enter")
        await expect(page.locator(".toast")).to_contain_text("It is called raspi here.")
        await page.get_by_role("button", name="Revoke…").click()
        sheet = page.get_by_role("dialog", name="End the trust in pi?")
        await expect(sheet).to_contain_text("may do nothing here any more, at once")
        await page.keyboard.press("Escape")
        assert bodies(site, f"/peers/{PI}/revoke") == []
        await page.get_by_role("button", name="Revoke…").click()
        sent(site, "GET", "/peers", 200, listing())
        await sheet.get_by_role("button", name="Revoke", exact=True).click()
        await expect(page).to_have_url(re.compile("#/machines$"))
        await expect(page.locator("#main")).to_contain_text("No other machine yet.")
    assert bodies(site, f"/peers/{PI}/rename") == [{"name": "raspi"}]


async def test_the_outbox_in_words_retried_and_dropped(site: Any) -> None:
    rows = [
        waiting("1", "done", what="old one"),
        waiting("2", "failed", what="bad one", trouble="shed refused."),
        waiting("3", "accepted", what="long one"),
        waiting(),
    ]
    sent(site, "GET", "/peers", 200, listing(paired("shed", SHED, presence="away", waiting=2)))
    sent(site, "GET", "/outbox", 200, {"outbox": rows})
    sent(site, "POST", "/outbox/81aa/retry", 200, {"retried": rows[3]})
    async with site.opened("#/machines") as page:
        await page.get_by_role("link", name="Outbox 2").click()
        queued = page.locator("[data-id='81aa']")
        await expect(queued).to_contain_text(re.compile("shed is away; your call waits until (tomorrow|\\d)"))
        await expect(queued).to_contain_text("3 tries · goes by itself · ends in 22 h · thread 7c1e")
        await expect(page.locator("[data-id='3']")).to_contain_text("shed works on it")
        await expect(page.locator("[data-id='2']")).to_contain_text("✗ failed: shed refused.")
        await expect(page.locator("[data-id='1']")).to_contain_text("✓ done")
        await expect(page.locator("[data-id='1'] button")).to_have_count(0)
        await page.get_by_role("button", name="Retry read the rain gauge").click()
        await expect(page.locator(".toast")).to_contain_text('Tried now: "read the rain gauge" to shed.')
        sent(site, "DELETE", "/outbox/3", 409, {"error": "That is over already.", "code": "conflict"})
        await page.get_by_role("button", name="Drop long one").click()
        await expect(page.locator("[data-id='3'] .problem")).to_contain_text("That is over already.")
        sent(site, "DELETE", "/outbox/81aa", 200, {"dropped": rows[3]})
        sent(site, "GET", "/outbox", 200, {"outbox": rows[:3]})
        await page.get_by_role("button", name="Drop read the rain gauge").click()
        await expect(queued).to_have_count(0)
        await page.evaluate("location.hash = '#/activity'")
        await expect(page.locator(".under-way")).to_contain_text(["long one"])
    assert len(site.desk.requests("/outbox/81aa/retry")) == 1


async def test_eggs_in_the_outbox_are_told_apart_from_calls(site: Any) -> None:
    egg = {"kind": "egg", "what": "garden.egg", "thread": ""}
    rows = [waiting("1", "done", **egg), waiting("2", "delivered", **egg), waiting(**egg)]
    sent(site, "GET", "/peers", 200, listing(paired("shed", SHED, presence="away", waiting=2)))
    sent(site, "GET", "/outbox", 200, {"outbox": rows})
    sent(site, "POST", "/outbox/81aa/retry", 200, {"retried": rows[2]})
    async with site.opened("#/machines/outbox") as page:
        queued = page.locator("[data-id='81aa']")
        await expect(queued).to_contain_text("Egg garden.egg to shed")
        await expect(queued).to_contain_text(
            re.compile("waiting: shed is away; it keeps until (tomorrow|\\d)")
        )
        await expect(page.locator("[data-id='2']")).to_contain_text("on its way")
        await expect(page.locator("[data-id='1']")).to_contain_text(
            "✓ delivered; it waits on shed to be hatched"
        )
        await queued.get_by_role("button", name="Retry Egg garden.egg").click()
        await expect(page.locator(".toast")).to_contain_text("Tried now: Egg garden.egg to shed.")


@pytest.mark.parametrize(
    ("rung", "words"),
    [
        ("nearby", "nearby"),
        ("last address", "last address"),
        ("list", "the list in peers.json"),
        ("typed", "a typed address"),
    ],
)
async def test_each_peer_says_by_which_rung_it_was_reached(site: Any, rung: str, words: str) -> None:
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI, reached=rung)))
    async with site.opened("#/machines") as page:
        await expect(page.locator(f"[data-key='{PI}'] .soft").last).to_contain_text(words)


async def test_the_legacy_door_says_to_whom_it_is_open(site: Any) -> None:
    door = {"open": True, "listening": ["x"], "addresses": ["192.168.1.20", "192.168.1.21"], "scopes": []}
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI)))
    sent(site, "GET", "/legacy", 200, {"legacy": door})
    sent(site, "DELETE", "/legacy", 200, {"legacy": door | {"open": False}})
    async with site.opened("#/machines") as page:
        await expect(page.locator(".legacy")).to_contain_text("open to 192.168.1.20, 192.168.1.21.")
        sent(site, "GET", "/legacy", 200, {"legacy": door | {"open": False}})
        await page.get_by_role("button", name="Close the legacy door").click()
        await expect(page.locator(".legacy")).to_be_hidden()


async def test_a_code_is_shown_and_typed(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(found("kitchen")))
    code = attempt("asking", role="answers", peer="", words=[], code="417-copper-otter-violin")
    sent(site, "POST", "/pairings", 200, {"pairing": code})
    sent(site, "GET", f"/pairings/{ATTEMPT}", 200, {"pairing": code})
    site.desk.scripted[f"DELETE /pairings/{ATTEMPT}"] = [ended("stopped", "Stopped.")]
    async with site.opened("#/machines") as page:
        await page.get_by_role("button", name="Pair by code").press("Enter")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Show it").click()
        await expect(page.locator("dialog")).to_contain_text("Choose one of the two")
        await page.get_by_label("Mine").check()
        await page.get_by_role("button", name="Show it").click()
        await expect(page.locator(".shown-code")).to_have_text("417-copper-otter-violin")
        await page.keyboard.press("Escape")
        await expect(page.locator(".toast")).to_contain_text("Stopped; nothing was paired.")
        typed = attempt("asking", words=[], code="417-copper-otter-violin")
        sent(site, "POST", "/pairings", 200, {"pairing": typed})
        wrong = "That was not the code; nothing was paired."
        site.desk.scripted[f"GET /pairings/{ATTEMPT}"] = [ended("stopped", wrong)]
        await page.get_by_role("button", name="Pair by code").click()
        await page.get_by_role("menuitem", name="Type a code").click()
        await page.get_by_label("Machine", exact=True).fill("192.168.1.40")
        await page.get_by_role("textbox", name="Code").fill("417 copper otter violin")
        await page.get_by_label("A friend's").check()
        await page.get_by_role("button", name="Pair", exact=True).click()
        await expect(page.locator("dialog .outcome")).to_contain_text(wrong)
    shown, given = bodies(site, "/pairings")
    assert shown == {"offer_code": True, "whose": "mine"}
    assert given == {"peer": "192.168.1.40", "code": "417 copper otter violin", "whose": "friend"}


async def test_a_phone_has_five_tabs_and_the_rest_under_more(site: Any) -> None:
    async with site.opened(viewport={"width": 320, "height": 700}) as page:
        await page.get_by_role("button", name="More places").click()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.locator("main h1")).to_have_text("Settings")
        await page.locator("nav a.place", has_text="Machines").click()
        await expect(page.locator("main h1")).to_have_text("Machines")
        assert await page.evaluate(SIDEWAYS) == []
    async with site.opened() as page:
        await page.keyboard.press("Escape")
        await page.keyboard.press("g")
        await page.keyboard.press("m")
        await expect(page.locator("main h1")).to_have_text("Machines")
        await expect(page.get_by_role("button", name="More places")).to_be_hidden()


async def test_only_the_operator_sees_machines(site: Any) -> None:
    site.desk.operator = False
    async with site.opened("#/machines") as page:
        await expect(page.locator(".operator-line")).to_contain_text("To see and pair other machines")
        assert site.desk.requests("/peers") == []


async def test_while_the_daemon_is_away_the_list_stays_dimmed(site: Any) -> None:
    sent(site, "GET", "/peers", 200, listing(paired("pi", PI), found("kitchen")))
    async with site.opened("#/machines") as page:
        await expect(page.locator(".machine")).to_have_count(2)
        await site.close()
        await page.get_by_role("button", name="Pair with kitchen").click()
        await expect(page.locator(".old .machine")).to_have_count(2)
        await expect(page.locator(".machine .problem")).to_contain_text("isn't answering")
        await site.open()
        await expect(page.locator(".old")).to_have_count(0)


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_everything_fits_and_can_be_hit(site: Any, width: int, scheme: str) -> None:
    long = "a-very-long-name-of-a-machine-that-goes-on"
    row = paired(long[:40], PI, trouble="pi's key has changed; nothing was sent.")
    agents = [{"name": "W" * 64, "description": "d" * 400}]
    sent(site, "GET", f"/peers/{PI}", 200, {"peer": row | {"agents_here": agents}})
    rows = (row, found(long + long), legacy("barn"))
    sent(site, "GET", "/peers", 200, listing(*rows, asking=[asks() | {"peer": long}]))
    sent(site, "GET", "/outbox", 200, {"outbox": [waiting(what="w" * 120, trouble="t" * 200)]})
    sent(site, "GET", f"/pairings/{OTHER}", 200, {"pairing": asks()})
    door = {"open": True, "listening": ["x"], "addresses": ["192.168.1.20"] * 9, "scopes": []}
    sent(site, "GET", "/legacy", 200, {"legacy": door})
    options = {
        "viewport": {"width": width, "height": 640},
        "color_scheme": scheme,
        "reduced_motion": "reduce",
    }
    async with site.opened("#/machines", **options) as page:
        await expect(page.locator(".machine")).to_have_count(4)
        await page.click("text=How machines are found")
        await fits(page, "all")
        for opening in ("Pair with a-very", "Add address", "Ask barn"):
            await page.get_by_role("button", name=opening).first.click()
            await expect(page.locator("dialog h2")).to_be_visible()
            await fits(page, opening)
            await page.keyboard.press("Escape")
            await expect(page.locator("dialog")).to_have_count(0)
        for place in ("outbox", f"peer/{PI}"):
            await page.evaluate("place => { location.hash = `#/machines/${place}` }", place)
            await page.wait_for_timeout(300)
            if place != "outbox":
                await page.get_by_label("What is ticked").check()
            await fits(page, place)


async def fits(page: Page, where: str) -> None:
    assert await page.evaluate(SIDEWAYS) == [], where
    assert await page.evaluate(SMALL) == [], where
    assert await page.evaluate(NAMELESS) == [], where
    assert await page.evaluate("document.getAnimations({subtree: true}).length") == 0, where


SIDEWAYS = """[document.documentElement, ...document.querySelectorAll("main, .page, dialog, .sheet-body")]
    .filter(box => box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0).map(box => box.className || box.tagName)"""
SMALL = """[...document.querySelectorAll("button, .button, nav a, summary, select, textarea, label.switch, " +
    "input[type=text], input[type=search], .choice-line")]
    .filter(it => it.checkVisibility() && it.getBoundingClientRect().height < 43.5).map(it => it.outerHTML)"""
NAMELESS = """[...document.querySelectorAll("button, a[href], input:not([type=file]), select, textarea, dialog, nav")]
    .filter(it => it.checkVisibility() && !(it.textContent.trim() || it.ariaLabel || it.title || it.labels?.[0]?.textContent.trim()))
    .map(it => it.outerHTML)"""
