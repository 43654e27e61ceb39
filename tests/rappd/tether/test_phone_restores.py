"""The plan of a snapshot's restore that is open on the computer, answered on a phone: by its hash, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.running_daemon import RunningDaemon, agent_source
from playwright.sync_api import expect

from rappd.features.snapshots.restoring import OpenRestores
from tests.rappd.tether.aiortc_client import AiortcClient
from tests.rappd.tether.conftest import reachable
from tests.rappd.tether.phone_browser import PhonePage
from tests.rappd.tether.test_phone_approvals import answer, approver, read
from tests.rappd.tether.test_phone_plans import Approver

NEVER = "never-opened"


class Desk:
    """A daemon with one snapshot, and an agent that it would bring back."""

    def __init__(self, folder: Path) -> None:
        self.daemon = RunningDaemon(folder / "home", LLM_FAKE="1", RAPPD_TETHER_TLS="on", **reachable())
        self.daemon.drop("clock_agent.py", agent_source("Clock"))
        self.daemon.start()
        self.snapshot = self.asks("POST", "/neighborhood/snapshot", {"drill": False})[1]["snapshot"]["path"]

    def asks(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        found = self.daemon.request(method, path, body, control=True)
        return found.status, found.json()

    @property
    def agent(self) -> Path:
        return self.daemon.agents / "clock_agent.py"

    def opens(self, id: str) -> dict[str, Any]:
        """The plan as the computer's page asks for it: an agent is gone, and would come back."""
        self.agent.unlink(missing_ok=True)
        status, found = self.asks("POST", "/neighborhood/plan", {"snapshot": self.snapshot, "id": id})
        assert status == 200, found
        return dict(found["plan"])

    def restores(self, id: str, digest: str) -> tuple[int, Any]:
        body = {"snapshot": self.snapshot, "approved": digest, "id": id}
        return self.asks("POST", "/neighborhood/restore", body)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A daemon that serves phones over https."""
    found = Desk(tmp_path_factory.mktemp("restores"))
    yield found
    found.daemon.stop()


@pytest.fixture
async def phones(desk: Desk) -> AsyncIterator[Approver]:
    """``await phones("Anna")``: the owner's own phone, which may approve."""
    made: list[AiortcClient] = []

    async def one(name: str) -> AiortcClient:
        made.append(await approver(desk.daemon, name))  # type: ignore[arg-type]
        return made[-1]

    await asyncio.to_thread(desk.opens, NEVER)  # something waits, which an approver is shown
    yield one
    for phone in made:
        await phone.leave()
        await asyncio.to_thread(desk.asks, "DELETE", f"/devices/{phone.name}")
    await asyncio.to_thread(desk.asks, "DELETE", f"/neighborhood/plan/{NEVER}")


@pytest.mark.parametrize("yes", [True, False])
async def test_restore_that_is_open_on_the_computer_is_answered_once_by_its_hash(
    desk: Desk, phones: Approver, yes: bool
) -> None:
    anna, ben = await phones("Anna"), await phones("Ben")
    plan = await asyncio.to_thread(desk.opens, "tab")
    matter = await read(anna, "restore:tab")
    assert matter["kind"] == "restore" and matter["sha256"] == plan["digest"] == matter["plan"]["digest"]
    assert matter["plan"]["categories"]["agents"]["created"] == 1
    name = Path(desk.snapshot).name
    assert matter["what"] == f"Restoring {name} is open on the computer; nothing of it is written yet."
    for sha256 in ("", "0" * 64, "tab"):
        assert not (await answer(anna, "restore:tab", sha256, yes=yes))["done"]
    assert not desk.agent.exists()
    done = await answer(anna, "restore:tab", matter["sha256"], yes=yes)
    assert done["done"], done
    assert done["text"] == (
        f"{matter['plan']['egg']['name']} is restored."
        if yes
        else f"{name} is not restored; nothing was written."
    )
    assert desk.agent.exists() == yes
    late = await answer(ben, "restore:tab", matter["sha256"])
    assert not late["done"]
    assert late["text"].startswith(f"Anna {'restored' if yes else 'refused to restore'} {name} on a phone")
    status, told = await asyncio.to_thread(desk.restores, "tab", plan["digest"])
    assert (status, told["code"]) == (404, "not_found"), "answered once, on the computer, too"
    assert desk.agent.exists() == yes


async def test_restore_whose_ground_changed_is_refused_and_shown_anew(desk: Desk, phones: Approver) -> None:
    anna = await phones("Anna")
    await asyncio.to_thread(desk.opens, "tab")
    matter = await read(anna, "restore:tab")
    desk.agent.write_text(agent_source("Clock", 'return "mine"'))
    had = len(anna.matters)
    told = await answer(anna, "restore:tab", matter["sha256"])
    assert not told["done"], told
    await anna.sees(lambda: len(anna.matters) > had)
    assert anna.matters[-1]["sha256"] != matter["sha256"] and 'return "mine"' in desk.agent.read_text()
    done = await answer(anna, "restore:tab", anna.matters[-1]["sha256"], yes=False)
    assert done["done"], "it waits until it is answered"


async def test_restore_that_is_answered_or_closed_on_the_computer_waits_no_more(
    desk: Desk, phones: Approver
) -> None:
    anna = await phones("Anna")
    for id, ends in (("tab", "restored"), ("other-tab", "closed")):
        plan = await asyncio.to_thread(desk.opens, id)
        await anna.sees(lambda id=id: f"restore:{id}" in [row["key"] for row in anna.waiting["rows"]])
        if ends == "restored":
            assert (await asyncio.to_thread(desk.restores, id, plan["digest"]))[0] == 200
        else:
            await asyncio.to_thread(desk.asks, "DELETE", f"/neighborhood/plan/{id}")
        told = await answer(anna, f"restore:{id}", plan["digest"])
        assert not told["done"] and told["text"].startswith("That waits no more"), told
        await anna.sees(lambda id=id: f"restore:{id}" not in [row["key"] for row in anna.waiting["rows"]])
        assert desk.agent.exists() == (ends == "restored")


def test_restores_are_taken_once_and_the_oldest_go(tmp_path: Path) -> None:
    open_restores = OpenRestores()
    for number in range(30):
        open_restores.hold(str(number), tmp_path, {}, "digest")
    assert [one.id for one in open_restores.all()] == [str(number) for number in range(10, 30)]
    taken = open_restores.take("29")
    open_restores.put_back(taken)
    assert open_restores.take("29") is taken
    with pytest.raises(Exception, match="does not wait here any more"):
        open_restores.take("29")


@pytest.mark.browser
@needs_chromium
def test_phone_shows_the_plan_as_the_computers_page_does_and_the_page_is_told(desk: Desk) -> None:
    with chromium() as browser:
        desk.agent.unlink(missing_ok=True)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(desk.asks("POST", "/operator/key")[1]["url"])
        expect(page.locator("#write")).to_be_visible()
        page.evaluate("location.hash = '#/machines/neighborhood'")
        page.get_by_role("button", name="Restore ", exact=False).first.click()
        dialog = page.locator("dialog")
        expect(dialog).to_contain_text("Nothing is written yet.")
        phone = PhonePage(browser, desk.daemon, ignore_https_errors=True)
        shown = phone.pair("Anna", "mine")
        phone.opens().locator("details.owners summary").click()
        shown.get_by_role("button", name="Read and answer: Restoring").click()
        asked = shown.locator("dialog.waiting")
        expect(asked.locator("table.nb-plan")).to_contain_text("Agents")
        phone.looks_right("phone-restore")
        asked.get_by_role("button", name="Restore", exact=True).click()
        expect(asked).to_contain_text("is restored.")
        phone.looks_right("phone-restored")
        assert desk.agent.exists()
        dialog.get_by_role("button", name="Hatch 1 part").click()
        expect(dialog).to_contain_text("That plan does not wait here any more.")
        assert phone.errors == []
    desk.asks("DELETE", "/devices/Anna")
