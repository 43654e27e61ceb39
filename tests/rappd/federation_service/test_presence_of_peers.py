"""Presence of paired machines, between two real daemons: a goodbye, a crash, a failed call, an ended trust, round trips."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fixtures.chromium import chromium, needs_chromium
from fixtures.machines import Machine, acquaint
from playwright.sync_api import expect

from envelopes.envelope import HELLO
from rappd.federation.greetings import Greetings, HelloSender
from rappd.federation.startup_state import Availability, Deferred
from twins.background_tasks import BackgroundTasks

Two = tuple[Machine, Machine]
AT_ONCE = 10.0
"""Seconds; without the goodbye a peer counts as here for 15 s after its last answer."""
ENDED = "vm does not trust this machine any more"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    """Desk and vm, which trust each other and are here."""
    desk, vm = Machine(tmp_path / "desk", "desk", LLM_FAKE="1"), Machine(tmp_path / "vm", "vm", LLM_FAKE="1")
    try:
        desk.start(), vm.start()
        acquaint(desk, vm)
        yield desk, vm
    finally:
        desk.stop(), vm.stop()


def is_away(machine: Machine, name: str) -> bool:
    return bool(machine.row(name)["presence"] == "away")


def listed(machine: Machine) -> str:
    return machine.cli("peers", "list").stdout


def test_clean_stop_is_seen_at_once_by_both_sides(two: Two) -> None:
    desk, vm = two
    for leaving, staying in ((vm, desk), (desk, vm)):
        leaving.stop()
        stopped = time.monotonic()
        staying.wait_for(partial(is_away, staying, leaving.name), AT_ONCE, "the goodbye to count")
        assert time.monotonic() - stopped < AT_ONCE
        leaving.start()
        staying.knows(leaving.name)
        leaving.knows(staying.name)


def test_peer_not_here_is_shown_with_last_seen_only(two: Two) -> None:
    desk, vm = two
    assert re.search(r"^vm +here, \d+ ms", listed(desk), re.MULTILINE)
    vm.stop()
    desk.wait_for(partial(is_away, desk, "vm"), AT_ONCE)
    assert desk.row("vm")["ms"] is None
    assert re.search(r"^vm +last seen \d+ s ago ", listed(desk), re.MULTILINE), listed(desk)
    shown = desk.cli("peers", "show", "vm").stdout
    assert re.match(r"vm +mine, last seen \d+ s ago\n", shown), shown
    assert " ms" not in listed(desk) + shown


@pytest.mark.own_process
def test_failed_call_counts_at_once_for_presence(two: Two) -> None:
    desk, vm = two
    vm.kill()
    assert desk.call("vm", text="hello", wait=2)["state"] == "queued"
    assert is_away(desk, "vm")


@pytest.mark.own_process
def test_crash_is_noticed_before_the_next_probe(two: Two) -> None:
    desk, vm = two
    vm.kill()
    desk.wait_for(partial(is_away, desk, "vm"), what="the lost connection to count")


def test_one_sided_revoke_is_told_by_the_command_line(two: Two) -> None:
    desk, vm = two
    vm.owner("POST", "/peers/desk/revoke")
    desk.wait_for(lambda: desk.row("vm")["trouble"], what="the end of the trust")
    assert is_away(desk, "vm")
    for text in (listed(desk), desk.cli("peers", "show", "vm").stdout):
        assert f"✗ {ENDED}" in text, text
        assert re.search(r"→ pair anew: \S*rappd peers pair vm$", text, re.MULTILINE), text
    refused = desk.cli("call", "vm", "hello", "--json")
    assert refused.returncode == 5
    assert json.loads(refused.stderr)["error"] == f"{ENDED}."
    assert f"{ENDED}." in desk.row("vm")["trouble"], "a failed call leaves the reason"
    vm.trusts(desk)
    desk.wait_for(lambda: not desk.row("vm")["trouble"], what="the trust anew")
    assert ENDED not in listed(desk)


@pytest.mark.browser
@needs_chromium
def test_page_tells_ended_trust_and_last_seen(two: Two) -> None:
    desk, vm = two
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(desk.post("/operator/key", control=True).json()["url"])
        page.get_by_role("link", name="Machines").click()
        card = page.locator(".machine", has_text="vm")
        expect(card).to_contain_text("● here")
        vm.owner("POST", "/peers/desk/revoke")
        expect(card).to_contain_text(f"✗ {ENDED}. Pair anew")
        expect(card).to_contain_text(re.compile(r"○ last seen \d+ s ago"))
        expect(card).not_to_contain_text(" ms")
        card.get_by_role("button", name="Pair anew with vm").click()
        expect(page.locator("dialog .four-words li")).to_have_count(4)


async def test_probe_tells_the_round_trip_of_an_open_connection() -> None:
    async def hello(*_: Any, **__: Any) -> Any:
        await asyncio.sleep(0.1)  # with the handshake of a new connection
        return SimpleNamespace(verb=HELLO, data={})

    async def recorded(*_: Any) -> None:
        return None

    pi = SimpleNamespace(name="pi", called="pi", fingerprint="4f2a" * 16)
    catalogue: Any = SimpleNamespace(hello=lambda _: {})
    client: Any = SimpleNamespace(probe=hello, round_trip=lambda _: 0.0042)
    peer_client: Deferred[Any] = Deferred(Availability())
    peer_client.set(client)
    quiet: Any = SimpleNamespace(
        offer=lambda _: {}, offered=lambda *_: None, heard=lambda *_: None, of=lambda _: None, troubles={}
    )
    rosters: Any = SimpleNamespace(offer=lambda _: {}, offered=recorded, heard=lambda *_: None)
    peers: Any = SimpleNamespace(get=lambda _: pi)
    hellos = HelloSender("desk", quiet, catalogue, peer_client)
    greetings = Greetings(hellos, peers, {}, quiet, rosters, quiet, BackgroundTasks("failed"))
    assert await greetings.probe(pi.fingerprint) == pytest.approx(4.2)
    assert greetings.is_known(pi.fingerprint)
