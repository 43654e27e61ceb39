"""A relay that ends the encryption between a phone and the computer, from two pairs of aiortc connections."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Route

from lan.daemons import Daemon
from lan.network import Lan
from lan.phones import Phone, chromium_on
from rappd.tether.webrtc_parameters import checked, description
from tests.rappd.tether.hostile_fields import GOOD, hostile

ATTACK = Path(__file__).with_name("relay_attack.py")


def test_relay_between_phone_and_computer_is_noticed(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    ran = relay.run([sys.executable, ATTACK, link], timeout=100)
    assert json.loads(ran.stdout) == {"computer": "stopped", "reason": "expired"}, ran.stderr
    assert desk.ask("GET", "/devices/window")["state"] == "open"
    assert desk.ask("GET", "/devices")["devices"] == []


def test_relay_that_knows_the_code_shows_other_digits(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    attack = relay.start(
        [sys.executable, ATTACK, link, "--knows"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert attack.stdout is not None
    found = json.loads(attack.stdout.readline())
    assert found["computer"] == "auth_ok"
    assert found["phone accepts its proof"] is False
    assert desk.ask("GET", "/devices/window")["digits"] != found["phone"]


def test_relay_that_claims_each_sides_certificate_gets_no_connection(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    ran = relay.run([sys.executable, ATTACK, link, "--claims"], timeout=100)
    assert json.loads(ran.stdout) == {"opened": []}, ran.stderr
    state = desk.ask("GET", "/devices/window")
    assert state["state"] == "open" and "digits" not in state


def test_relay_that_hides_its_certificate_is_refused(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    ran = relay.run([sys.executable, ATTACK, link, "--forms"], timeout=100)
    assert json.loads(ran.stdout) == {"statuses": [400]}, ran.stderr


STOPPED = "Stopped: the numbers differ. Nothing was shared."
HIDDEN = ["none", "ufrag line 1", "fingerprint '\\u2028' line", "name line 0", "fingerprint of the computer"]


@pytest.mark.browser
@pytest.mark.parametrize("form", HIDDEN)
def test_relay_before_a_browser_shows_other_digits_or_none(lan: Lan, tmp_path: Path, form: str) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path), lan.machine("relay")
    desk.start()
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    pipe = subprocess.PIPE
    attack = relay.start([sys.executable, ATTACK, link, "--page"], stdin=pipe, stdout=pipe, text=True)
    assert attack.stdin is not None and attack.stdout is not None

    def between(route: Route) -> None:
        attack.stdin.write(f"{route.request.post_data}\n")
        attack.stdin.flush()
        answer = json.loads(attack.stdout.readline())
        own, computer = answer["transport"]["fingerprint"], answer.pop("computer")
        claimed = {**answer["transport"], "fingerprint": computer}
        if form != "none":
            answer["transport"] = {"fingerprint of the computer": claimed, **hostile(claimed, own)}[form]
        route.fulfill(json=answer)

    with chromium_on(lan.machine("phone"), tmp_path) as browser:
        phone = Phone(browser, desk)
        phone.page.route("**/tether/v2/offer", between)
        phone.page.goto(link)
        if form == "none":  # the relay knows the code: only the person notices it
            digits = phone.page.inner_text(".digits")
            computer = desk.wait_for(lambda: desk.ask("GET", "/devices/window").get("digits"))
            assert digits != computer
        elif (
            form == "fingerprint of the computer"
        ):  # well formed: the browser itself finds the other certificate
            phone.page.get_by_text("This Wi-Fi blocks the private line.").wait_for()
        else:
            phone.page.get_by_text(STOPPED).wait_for()
        assert phone.errors == []
    attack.stdin.close()


@pytest.mark.browser
def test_page_refuses_every_hostile_answer_and_offers_what_the_computer_takes(
    lan: Lan, tmp_path: Path
) -> None:
    desk = Daemon(lan.machine("desk"), tmp_path)
    desk.start()
    forms = hostile()
    with chromium_on(lan.machine("phone"), tmp_path) as browser:
        phone = Phone(browser, desk)
        phone.page.goto(desk.ask("POST", "/devices/window", {"session": True})["short_links"][0])
        taken, own, text = phone.page.evaluate(CHECKS, [GOOD, json.dumps(forms), ADDED])
    assert taken == ["good"]
    assert checked(own).setup == "actpass"
    found = [(one.address, one.port, one.priority) for one in checked(own).candidates]
    assert found == [("3c1d-4e.local", 50000, 2113937151), ("fd00::2", 50001, 2122252543)]
    assert text == description(checked(GOOD))


ADDED = (
    "a=candidate:1 1 udp 2113937151 3c1d-4e.local 50000 typ host generation 0 network-cost 999\r\n"
    "a=candidate:2 1 UDP 2122252543 fd00::2 50001 typ host\r\n"
    "a=candidate:3 1 tcp 1518280447 3c1d-4e.local 9 typ host tcptype active\r\n"
    "a=candidate:4 2 udp 2113937151 10.0.0.5 50002 typ host\r\n"
    "a=candidate:5 1 udp 1677729535 203.0.113.5 50003 typ srflx raddr 0.0.0.0 rport 0\r\n"
    "a=end-of-candidates\r\na=fingerprint:sha-384 00:11\r\n"
)
"""Lines as browsers add them; on a network without a route Chromium itself has no address to offer."""
CHECKS = """async ([good, forms, more]) => {
    const page = await import("/t/webrtc-parameters.js");
    const peer = new RTCPeerConnection();
    peer.createDataChannel("rapp");
    await peer.setLocalDescription(await peer.createOffer());
    const {sdp} = peer.localDescription;
    const taken = Object.entries({good, ...JSON.parse(forms)}).filter(([name, fields]) => {
        try { return page.checked(fields); } catch (error) { return !(error instanceof page.ForeignAnswerError); }
    });
    return [taken.map(([name]) => name), page.ownFields(sdp + more), page.described(good, sdp)];
}"""


def test_five_bad_proofs_shut_out_their_machine_and_leave_the_code(lan: Lan, tmp_path: Path) -> None:
    desk, relay = Daemon(lan.machine("desk"), tmp_path).start(), lan.machine("relay")
    link = desk.ask("POST", "/devices/window", {"session": True})["links"][0]
    tried = [relay.run([sys.executable, ATTACK, link], timeout=100) for _ in range(6)]
    assert ["HTTP Error 403" in one.stderr for one in tried] == [False] * 5 + [True]
    assert desk.ask("GET", "/devices/window")["state"] == "open"
