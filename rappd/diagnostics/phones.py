"""Checks of phones: the list of them, the network, the port, and the library for WebRTC."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neighborhoods.discovery.address_text import listening_hosts
from rappd.cli.formatting import phones
from rappd.daemon.ports import another, holder, is_free
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.diagnostics.own_addresses import pages_missing
from rappd.tether.addresses import reachable_addresses
from rappd.tether.devices import DeviceRegistry
from rappd.tether.webrtc import webrtc_installed


def check_phones(visit: CheckContext) -> Iterator[Finding]:
    """Finds obstacles for phones that join or come back. Raises ``StoreError`` when the list is damaged."""
    registered = len(DeviceRegistry(visit.home.root / "devices.json").all())
    status = visit.status.get("phones", {})
    found = [*_library(status), *_network(visit), *_port(visit, status, registered), *_tried(visit, status)]
    yield from found
    if not found:
        yield Finding("Phones", "good", phones(registered, status.get("connected", 0)))


def _library(status: dict[str, Any]) -> Iterator[Finding]:
    if not status.get("webrtc", webrtc_installed()):
        what = "aiortc is missing: phones talk over a WebSocket, which others on the Wi-Fi can read"
        yield Finding("Phones", "note", what, "pip install 'rappd[tether]', then start rappd anew")


def _network(visit: CheckContext) -> Iterator[Finding]:
    if not reachable_addresses(listening_hosts(visit.settings.text("tether.address")), 0):
        what = "this computer is on no network that a phone could reach"
        yield Finding("Phones", "note", what, "connect it to the Wi-Fi, then: rappd pair")


def _tried(visit: CheckContext, status: dict[str, Any]) -> Iterator[Finding]:
    """Asks for the page at each address that a QR code would show, as a phone would."""
    for address in pages_missing(status.get("addresses", ()), tls=visit.settings.on("tether.tls")):
        what = f"no page for phones answers at {address}"
        yield Finding("Phones", "bad", what, f"allow port {status['port']} in the firewall of this computer")


def _port(visit: CheckContext, status: dict[str, Any], registered: int) -> Iterator[Finding]:
    """A taken port never stops a start, but phones that joined look for the one before."""
    wanted, port = visit.settings.number("tether.port"), status.get("port", 0)
    if status and registered and not port:
        yield Finding("Phones", "bad", "the listener for phones is closed", "`rappd logs` says why")
    elif port not in (0, wanted):
        reason = "was taken" if is_free(wanted) else f"is held by {holder(wanted)}"
        what = f"phones reach this computer at port {port}: {wanted} {reason}"
        do = "nothing" if not registered else f"free port {wanted} and start rappd anew"
        yield Finding(
            "Phones", "bad" if registered else "note", what, f"{do}, or rappd config set tether.port {port}"
        )
    elif not status and not is_free(wanted):
        what = f"port {wanted} for phones is held by {holder(wanted)}; another will be used"
        yield Finding("Phones", "note", what, f"nothing, or rappd config set tether.port {another(wanted)}")
