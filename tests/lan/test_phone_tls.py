"""Phones over https with the computer's own certificate, and in a browser that guards local networks."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lan.daemons import Daemon
from lan.network import Lan
from lan.phones import Phone, chromium_on, paired_device

pytestmark = pytest.mark.browser

LISTENS = """
const real = crypto.subtle.verify.bind(crypto.subtle);
crypto.subtle.verify = async (...given) => (window.verified = await real(...given));
"""
GUARDS = "--enable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebRTC"


@contextmanager
def phone_on(lan: Lan, folder: Path, *flags: str, **environment: str) -> Iterator[Phone]:
    """A phone on a network with a computer."""
    desk, machine = Daemon(lan.machine("desk"), folder, **environment), lan.machine("phone")
    desk.start()
    with chromium_on(machine, folder, *flags) as browser:
        yield Phone(browser, desk, ignore_https_errors=True)


def test_phone_over_https_checks_the_computers_signature(lan: Lan, tmp_path: Path) -> None:
    with phone_on(lan, tmp_path, RAPPD_TETHER_TLS="on") as phone:
        phone.page.add_init_script(LISTENS)
        phone.pair()
        assert phone.page.url.startswith("https://10.")
        phone.page.wait_for_function("() => isSecureContext && window.verified")
        phone.write("hello")
        phone.is_answered(1)
        phone.page.reload()
        phone.is_connected()
        phone.page.wait_for_function("() => window.verified")
        assert paired_device(phone.daemon)["way"] == "webrtc"
        assert phone.errors == []


def test_pairing_over_https_shows_the_certificate(lan: Lan, tmp_path: Path) -> None:
    desk, machine = Daemon(lan.machine("desk"), tmp_path, RAPPD_TETHER_TLS="on"), lan.machine("phone")
    window = desk.start().request("POST", "/devices/window", {"session": True}).json()
    address, port = window["links"][0].split("/")[2].split(":")
    command = ["openssl", "s_client", "-connect", f"{address}:{port}", "-showcerts"]
    shown = machine.run(command, input="", timeout=100).stdout
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    served = ssl.PEM_cert_to_DER_cert(begin + shown.partition(begin)[2].partition(end)[0] + end)
    assert hashlib.sha256(served).digest().hex(":").upper() == window["certificate"]


def test_phone_in_a_browser_that_guards_local_networks_chats(lan: Lan, tmp_path: Path) -> None:
    with phone_on(lan, tmp_path, GUARDS) as phone:
        phone.pair()
        phone.write("hello")
        phone.is_answered(1)
        assert paired_device(phone.daemon)["way"] == "webrtc"
        assert phone.errors == []
