"""Checks of other machines: the listener, discovery and peers."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence

from rappd.cli.console import strip_control
from rappd.cli.formatting import ago, count
from rappd.daemon.ports import another, holder, is_free
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.diagnostics.own_addresses import keys_at, listened_addresses
from rappd.features.peers.text import trouble_of, way_out
from rappd.features.programs.text import shown

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
        keys_at(listened_addresses(visit.status.get("machines", {}).get("hosts", ()), port)) if own else {}
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
