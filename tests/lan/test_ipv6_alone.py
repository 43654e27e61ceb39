"""A network without IPv4: machines find each other, pair and call, and a phone joins; the world stays outside.

The desk and the pi are in ``fd77::/64`` and, with addresses that the world can reach, in ``2001:470:1::/64``. The
stranger is somewhere else in the world: packets get here from there, as over a router that lets everything in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lan.daemons import Daemon, new_key, pair
from lan.network import Lan, Machine, require
from lan.phones import Phone, chromium_on, paired_device, seen_by_a_camera

pytestmark = [pytest.mark.needs_root, pytest.mark.timeout(900)]

SITE = "2001:470:1::"
ELSEWHERE = "2001:470:2::9"


SHOWS_ADDRESSES = "--disable-features=WebRtcHideLocalIpsWithMdns"
"""Without IPv4, Chromium waits for the names of its addresses for ever, and offers none."""


class Place(NamedTuple):
    """Two machines, a third one for a phone, and one of somebody else far away."""

    desk: Daemon
    pi: Daemon
    phone: Machine
    stranger: Machine


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    require()
    with Lan("fd77::") as lan:
        desk, pi = (Daemon(lan.machine(name), tmp_path_factory.mktemp(name)) for name in ("desk", "pi"))
        phone, stranger = lan.machine("phone"), lan.machine("stranger", address=ELSEWHERE)
        for number, machine in enumerate((desk.machine, pi.machine, phone), 1):
            machine.add_address(f"{SITE}{number}")
            way = ["ip", "-6", "route", "add", "default", "via", stranger.link_local(), "dev", "eth0"]
            machine.run(way, check=True)
        stranger.run(["ip", "-6", "route", "add", f"{SITE}/64", "dev", "eth0"], check=True)
        for one in (desk.launch(), pi.launch()):
            one.wait_ready()
        yield Place(desk, pi, phone, stranger)


REACHES = """
import socket, ssl, sys
host, port = sys.argv[1:3]
context = ssl._create_unverified_context()
try:
    with socket.create_connection((host, int(port)), 5) as plain, context.wrap_socket(plain) as line:
        print(bool(line.getpeercert(True)))
except OSError as error:
    print(type(error).__name__, error.errno)
"""


def reaches(machine: Machine, host: str, port: int) -> str:
    """``True`` where a TLS handshake with that listener comes to its end, else the error."""
    return machine.run([sys.executable, "-c", REACHES, host, str(port)]).stdout.strip()


def test_two_machines_find_each_other_pair_and_call(place: Place) -> None:
    desk, pi, *_ = place
    for one, other in ((desk, pi), (pi, desk)):
        one.wait_for(lambda one=one, other=other: other.name in one.peers(), what="the other")
        assert one.peers()[other.name]["reached"] == "nearby"
    pair(desk, pi)
    for one, other in ((desk, pi), (pi, desk)):
        assert one.call(other.name, new_key())["state"] == "done"
        one.wait_for(lambda one=one, other=other: one.presence(other.name) == "here", what="it to be here")


@pytest.mark.browser
def test_phone_joins_and_is_answered(place: Place, tmp_path: Path) -> None:
    desk = place.desk
    with chromium_on(place.phone, tmp_path, SHOWS_ADDRESSES) as browser:
        phone = Phone(browser, desk)
        phone.pair()
        phone.write("hello")
        phone.is_answered(1)
        assert phone.page.url.startswith("http://[")
        assert phone.errors == []
    assert paired_device(desk)["way"] == "webrtc"


@pytest.mark.browser
def test_phone_whose_browser_offers_no_address_talks_over_the_websocket(place: Place, tmp_path: Path) -> None:
    """Chromium as people have it: it hides its addresses, and without IPv4 it offers none."""
    desk = place.desk
    with chromium_on(place.phone, tmp_path) as browser:
        phone, sockets = Phone(browser, desk), list[str]()
        phone.page.on("websocket", lambda socket: sockets.append(socket.url))
        window = desk.ask("POST", "/devices/window", {"name": "Tablet", "session": True})
        phone.page.set_content(desk.ask("GET", "/devices/window/qr")["svg"])
        (scanned,) = seen_by_a_camera(phone.page)
        assert scanned == window["links"][0]
        assert scanned.startswith("http://[")
        phone.page.goto(scanned)
        phone.page.get_by_role("button", name="Talk anyway").click()
        digits = phone.page.inner_text(".digits")
        assert desk.ask("GET", "/devices/window")["digits"] == digits
        phone.page.get_by_role("button", name="Same number").click()
        desk.ask("POST", "/devices/window/answer", {"id": window["id"], "same": True})
        phone.page.get_by_role("button", name="Start talking").click()
        phone.page.get_by_text("● connected, not private").wait_for()
        phone.write("hello")
        phone.is_answered(1)
        assert phone.bubbles()[-1] == "fake-llm: hello"
        (row,) = (one for one in desk.ask("GET", "/devices")["devices"] if one["name"] == "Tablet")
        assert row["way"] == "websocket"
        phone.page.reload()
        phone.is_connected()
        phone.write("still here?")
        phone.is_answered(2)
        assert sockets == [f"ws://{scanned.split('/')[2]}/tether/v2/socket"] * 2
        assert phone.errors == []
    desk.ask("DELETE", "/devices/Tablet")


def test_published_brainstem_is_let_in_by_its_address(place: Place) -> None:
    desk, pi, phone, _ = place
    opened = desk.cli("peers", "legacy", "open", f"{SITE}2", "--yes")
    assert f"[{SITE}1]:7071" in opened.stdout, opened.stderr
    ask = ["curl", "-sg", f"http://[{SITE}1]:7071/chat", "-d", '{"user_input": "hello"}']
    assert json.loads(pi.machine.run(ask).stdout)["response"] == "fake-llm: hello"
    assert json.loads(phone.run(ask).stdout)["error"] == "Not allowed."


def test_callers_from_elsewhere_in_the_world_are_refused_until_named(place: Place) -> None:
    desk, port = place.desk, place.desk.port_for_peers
    assert reaches(place.phone, f"{SITE}1", port) == "True", "a network of its own"
    assert reaches(place.stranger, f"{SITE}1", port) != "True"
    desk.wait_for_log(f"a connection from {ELSEWHERE} was refused")
    assert desk.cli("config", "set", "listen.networks", "2001:470:2::/48").returncode == 0
    desk.stop()
    desk.start()
    assert reaches(place.stranger, f"{SITE}1", desk.port_for_peers) == "True"


def test_an_address_with_a_zone_is_enough(tmp_path: Path) -> None:
    """Nothing is announced, and neither has more than the address that IPv6 gives every link."""
    require()
    with Lan() as lan:
        desk, pi = (Daemon(lan.machine(name, address=""), tmp_path) for name in ("desk", "pi"))
        for one in (desk, pi):
            one.environment["RAPPD_NEARBY"] = "off"
            for words in (
                "set eth0 down",
                "set eth0 name Lan0",
                "set Lan0 up",
            ):  # links are told apart by case
                one.machine.run(["ip", "link", *words.split()], check=True)
            one.launch()
        for one in (desk, pi):
            one.wait_ready()
            one.machine.address = f"{one.machine.link_local('Lan0')}%Lan0"
        added = desk.cli("peers", "add", f"https://{pi.address.replace('%', '%25')}", "--json")
        assert json.loads(added.stdout)["added"]["fingerprint"] == pi.fingerprint, added.stderr
        pair(desk, pi)
        for one, other in ((desk, pi), (pi, desk)):
            assert one.call(other.name, new_key())["state"] == "done"
        refused = desk.cli("peers", "add", pi.machine.link_local("Lan0"))
        assert refused.returncode == 5
        assert "Say by which link:" in refused.stderr and "%Lan0" in refused.stderr
