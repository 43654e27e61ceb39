"""Checks of the network: the listener, discovery, peers, and phones; each address is tried as others would."""

from __future__ import annotations

import asyncio
import http.client
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from neighborhoods.discovery.address_text import is_listened_on, join, listening_hosts, split
from rappd.cli.console import strip_control
from rappd.cli.formatting import ago, count, phones
from rappd.daemon.ports import another, holder, is_free
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.features.peers.text import trouble_of, way_out
from rappd.features.programs.text import shown
from rappd.tether.addresses import reachable_addresses
from rappd.tether.devices import DeviceRegistry
from rappd.tether.webrtc import webrtc_installed

_VPNS = ("tun", "tap", "wg", "utun", "ppp", "tailscale", "zt")
_MOST_CLIENTS = 5
_LATELY = 7 * 86400.0


def check_listener(visit: CheckContext) -> Iterator[Finding]:
    """The listener for other machines; a taken port never stops a start."""
    wanted = visit.settings.number("peers.port")
    open_at = visit.status.get("machines", {}).get("port", 0)
    if not visit.settings.on("peers.listen"):
        yield Finding("Listener", "good", "closed for other machines")
    elif visit.status and not open_at:
        what = f"the listener for other machines cannot open at {visit.settings.text('peers.address')}"
        yield Finding("Listener", "bad", what, "`rappd logs` says why")
    elif visit.status and open_at != wanted:
        what = f"other machines find this one at port {open_at}: {wanted} was taken"
        yield Finding("Listener", "note", what, f"nothing, or rappd config set peers.port {open_at}")
        yield from _tried(visit, open_at)
    elif visit.status:
        found = list(_tried(visit, open_at))
        yield from found
        if not found:
            yield Finding("Listener", "good", f"open on port {open_at}; strangers may only say hello")
    elif is_free(wanted):
        yield Finding("Listener", "good", f"port {wanted} is free for other machines")
    else:
        what = f"port {wanted} for other machines is held by {holder(wanted)}; another will be used"
        yield Finding("Listener", "note", what, f"nothing, or rappd config set peers.port {another(wanted)}")


def _tried(visit: CheckContext, port: int) -> Iterator[Finding]:
    """Asks the listener at each of this machine's addresses, as others would."""
    own = visit.peers.get("self", {}).get("fingerprint", "")
    found = (
        _keys_at(_listened_addresses(visit.status.get("machines", {}).get("hosts", ()), port)) if own else {}
    )
    for address, key in found.items():
        if not key:
            what = f"nothing answers at {address}, where other machines look for this one"
            yield Finding("Listener", "bad", what, f"allow port {port} in the firewall of this computer")
        elif key != own:
            what = f"another machine answers at {address}: both have that address"
            yield Finding("Listener", "bad", what, "give one of them another address")


def check_nearby(visit: CheckContext) -> Iterator[Finding]:
    from neighborhoods.discovery.interfaces import interfaces, multicast_trouble

    settings = visit.settings
    if not (settings.on("peers.nearby") and settings.on("peers.listen")):
        yield Finding("Nearby", "good", "this machine is not announced")
        return
    sources = [source for source in visit.peers.get("sources", ()) if source["source"] == "nearby"]
    seen = sum(source["found"] for source in sources)
    found = interfaces(loopback=settings.on("peers.loopback"))
    vpn = "" if seen else _vpn_in_between([(one.name, one.addresses) for one in found])
    # the running daemon has tried it; a link that says no and yet brings machines does no harm
    trouble = "" if seen else multicast_trouble(found) or next((source["trouble"] for source in sources), "")
    if vpn:
        do = "allow local network in it, or rappd peers add ADDRESS"
        yield Finding("Nearby", "note", f"a VPN ({vpn}) hides this machine", do)
    elif trouble:
        what = trouble[0].lower() + trouble[1:].rstrip(".")
        yield Finding("Nearby", "note", what, "join a network, or rappd peers add ADDRESS")
    else:
        ways = [one for one in found if not multicast_trouble((one,))]
        where = ", ".join(one.name for one in ways or found)
        heard = f"; {count(seen, 'machine')} seen" if visit.peers else ", once rappd runs"
        yield Finding("Nearby", "good", f"announced on {where}{heard}")


def _vpn_in_between(found: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The VPN that takes what is meant for everybody nearby, or the only link there is; "" for none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("224.0.0.251", 5353))  # sends nothing; asks the kernel which link it would take
            own = asking.getsockname()[0]
        except OSError:
            own = ""
    private = [name for name, addresses in found if name.startswith(_VPNS)]
    chosen = [name for name, addresses in found if own in addresses and name in private]
    return (chosen or (private if len(private) == len(found) else []) or [""])[0]


def check_peers(visit: CheckContext) -> Iterator[Finding]:
    """Peers that answer and are not talked to, and strangers who go by a peer's name."""
    rows = [row for row in visit.peers.get("peers", ()) if not row["legacy"]]
    paired = [row for row in rows if row["paired"]]
    odd = 0
    for row in paired:
        if trouble := trouble_of(row):
            odd += 1
            yield Finding("Peers", "bad", trouble.rstrip("."), way_out(row["name"], trouble))
    names = {row["called"]: row for row in paired}
    for row in rows:
        if not row["paired"] and (peer := names.get(row["name"])) is not None:
            odd += 1
            what = f"{peer['name']} is {peer['short']}, yet {row['short']} calls itself so too"
            yield Finding("Peers", "note", what, way_out(peer["name"], "key"))
    if paired and not odd:
        here = sum(row["presence"] == "here" for row in paired)
        yield Finding("Peers", "good", f"{len(paired)} paired, {here} here")


def check_clients(visit: CheckContext) -> Iterator[Finding]:
    """Nothing, where no program connected in the last days."""
    now = time.time()
    lately = [one for one in visit.programs.get("programs", ()) if now - one["last"] < _LATELY]
    for one in lately[:_MOST_CLIENTS]:
        refused = one["error"] and one["error_at"] == one["last"]
        last = f"{shown(one)} over {one['title']}, {ago(now - one['last'])}"
        if not one["error"]:
            yield Finding("Clients", "good", last)
            continue
        when = "" if refused else f" ({ago(now - one['error_at'])})"
        what = f"{last}; last refused{when}: {strip_control(one['error'])}"
        yield Finding(
            "Clients", "note" if refused else "good", what, "rappd programs list" if refused else ""
        )


_ANSWER_SECONDS = 4.0


def _listened_addresses(hosts: Sequence[str], port: int) -> list[str]:
    """``host:port`` of this machine on its links, where a listener at ``hosts`` answers; link-local with their link."""
    from neighborhoods.discovery.interfaces import interfaces

    return [
        join(f"{one}%{link.name}" if one.startswith("fe80:") else one, port)
        for link in interfaces()
        for one in link.addresses
        if is_listened_on(one, hosts)
    ]


def _keys_at(addresses: Sequence[str]) -> dict[str, str]:
    """The fingerprint of the machine that answers at each address, "" for nobody. Blocks four seconds at most."""
    from envelopes.errors import BadCertificateError
    from neighborhoods.transport.connector import key_at

    async def key(address: str) -> str:
        try:
            return await key_at(address)
        except (OSError, TimeoutError, BadCertificateError):
            return ""

    async def every() -> list[str]:
        return await asyncio.gather(*map(key, addresses))

    return dict(zip(addresses, asyncio.run(every()), strict=True))


def _pages_missing(addresses: Sequence[str], *, tls: bool) -> list[str]:
    """The addresses at which no page for phones is served. Blocks four seconds at most."""

    from neighborhoods.auth.tls import client_context

    context = client_context(None) if tls else None  # the certificate is this machine's own

    def is_missing(address: str) -> bool:
        host, port = split(address)
        line = (
            http.client.HTTPConnection(host, port, timeout=_ANSWER_SECONDS)
            if context is None
            else http.client.HTTPSConnection(host, port, timeout=_ANSWER_SECONDS, context=context)
        )
        try:
            line.request("GET", "/t/index.html")  # the page at /t would count as a visitor
            return line.getresponse().status != 200
        except (OSError, http.client.HTTPException):
            return True
        finally:
            line.close()

    with ThreadPoolExecutor(max(1, len(addresses))) as pool:
        missing = list(pool.map(is_missing, addresses))
    return [address for address, gone in zip(addresses, missing, strict=True) if gone]


def check_phones(visit: CheckContext) -> Iterator[Finding]:
    """Finds obstacles for phones that join or come back. Raises ``StoreError`` when the list is damaged."""
    registered = len(DeviceRegistry(visit.home.root / "devices.json").all())
    status = visit.status.get("phones", {})
    found = [
        *_phone_library(status),
        *_phone_network(visit),
        *_phone_port(visit, status, registered),
        *_phone_pages(visit, status),
    ]
    yield from found
    if not found:
        yield Finding("Phones", "good", phones(registered, status.get("connected", 0)))


def _phone_library(status: dict[str, Any]) -> Iterator[Finding]:
    if not status.get("webrtc", webrtc_installed()):
        what = "aiortc is missing: phones talk over a WebSocket, which others on the Wi-Fi can read"
        yield Finding("Phones", "note", what, "pip install 'rappd[tether]', then start rappd anew")


def _phone_network(visit: CheckContext) -> Iterator[Finding]:
    if not reachable_addresses(listening_hosts(visit.settings.text("tether.address")), 0):
        what = "this computer is on no network that a phone could reach"
        yield Finding("Phones", "note", what, "connect it to the Wi-Fi, then: rappd pair")


def _phone_pages(visit: CheckContext, status: dict[str, Any]) -> Iterator[Finding]:
    """Asks for the page at each address that a QR code would show, as a phone would."""
    for address in _pages_missing(status.get("addresses", ()), tls=visit.settings.on("tether.tls")):
        what = f"no page for phones answers at {address}"
        yield Finding("Phones", "bad", what, f"allow port {status['port']} in the firewall of this computer")


def _phone_port(visit: CheckContext, status: dict[str, Any], registered: int) -> Iterator[Finding]:
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
