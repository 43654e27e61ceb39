"""Announcing and hearing by real multicast DNS, kept to 127.0.0.1."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from zeroconf import IPVersion
from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf

from neighborhoods.discovery.announcement import A2A_SERVICE, SERVICE
from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
from neighborhoods.discovery.interfaces import Interface
from neighborhoods.discovery.mdns_service import MdnsService

RUN = str(time.time_ns())  # other runs on this machine announce on the same loopback


def fingerprint(name: str) -> str:
    return hashlib.sha256(f"{RUN} {name}".encode()).hexdigest()


Make = Callable[..., MdnsService]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[MdnsService] = []

    def start(name: str, **more: Any) -> MdnsService:
        options = {"port": 7443, **more}
        nearby = MdnsService(
            DiscoveredNodes(), name=name, fingerprint=fingerprint(name), loopback=True, **options
        )
        nearby.start()
        made.append(nearby)
        return nearby

    yield start
    for nearby in made:
        await nearby.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(100):
        while not holds():
            await asyncio.sleep(0.02)


async def test_two_find_each_other_and_say_goodbye(make: Make) -> None:
    desk, pi = make("desk"), make("pi", port=7500)
    await until(lambda: bool(desk.discovered.of(fingerprint("pi")) and pi.discovered.of(fingerprint("desk"))))
    found = desk.discovered.of(fingerprint("pi"))[0]
    assert (found.name, found.addresses, found.port, found.source) == ("pi", ("127.0.0.1",), 7500, "nearby")
    assert pi.instance == f"pi_{fingerprint('pi')[:16]}.{SERVICE}"
    assert desk.trouble == pi.trouble == ""
    assert not desk.discovered.of(fingerprint("desk"))
    await pi.close()
    await until(lambda: not desk.discovered.of(fingerprint("pi")))


@pytest.mark.parametrize("hosts", [("::",), ("192.0.2.7",)], ids=["the other family", "another address"])
async def test_nothing_is_announced_that_is_not_listened_on(make: Make, hosts: tuple[str, ...]) -> None:
    desk, pi = make("desk"), make("pi", hosts=hosts)
    await until(lambda: bool(pi.discovered.of(fingerprint("desk"))))  # it looks all the same
    await until(lambda: bool(pi.trouble))
    assert pi.trouble == f"Not announced: this machine listens at {hosts[0]}, and has no such address here."
    assert pi.instance == "" and not desk.discovered.of(fingerprint("pi"))


async def test_a_new_name_and_a_new_port_are_announced(make: Make) -> None:
    desk, pi = make("desk"), make("pi")
    await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
    pi.announce(port=7600)
    await until(lambda: desk.discovered.of(fingerprint("pi"))[0].port == 7600)
    pi.announce(name="Zoë's <pi>")
    await until(lambda: [one.name for one in desk.discovered.of(fingerprint("pi"))] == ["Zoë's pi"])
    assert desk.discovered.of(fingerprint("pi"))[0].port == 7600


async def test_closed_listener_only_discovers(make: Make) -> None:
    desk, shy = make("desk"), make("shy", port=0)
    await until(lambda: bool(shy.discovered.of(fingerprint("desk"))))
    assert shy.instance == ""
    assert not desk.discovered.of(fingerprint("shy"))
    shy.announce(port=7443)
    await until(lambda: bool(desk.discovered.of(fingerprint("shy"))))
    shy.announce(port=0)
    await until(lambda: not desk.discovered.of(fingerprint("shy")))


async def test_an_a2a_agent_is_announced_while_a2a_is_answered(make: Make) -> None:
    on = [True]
    pi = make("tea pi", port=7600, a2a=lambda: on[0], poll=0.05)
    await until(lambda: bool(pi.instance))
    name = f"{pi.instance.removesuffix(SERVICE)}{A2A_SERVICE}"
    browser = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    try:

        async def found() -> AsyncServiceInfo | None:
            info = AsyncServiceInfo(A2A_SERVICE, name)
            return info if await info.async_request(browser.zeroconf, 500) else None

        async with asyncio.timeout(100):
            while (info := await found()) is None:
                await asyncio.sleep(0.02)
        assert (info.port, info.properties[b"path"]) == (7600, b"/.well-known/agent-card.json")
        assert info.server == f"{fingerprint('tea pi')[:12]}.local."
        on[0] = False
        async with asyncio.timeout(100):
            while await found() is not None:
                await asyncio.sleep(0.02)
        assert pi.instance, "the machine is announced still"
    finally:
        await browser.async_close()


async def test_looking_again_finds_the_same(make: Make) -> None:
    desk, pi = make("desk"), make("pi")
    await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
    await desk.look_again()
    await asyncio.sleep(0.5)
    assert len(desk.discovered.of(fingerprint("pi"))) == 1
    assert pi.instance


async def test_hostile_announcements_are_read_without_harm(make: Make) -> None:
    desk = make("desk")
    ghost = fingerprint("ghost")
    texts: list[bytes | dict[str, str | bytes]] = [
        b"",
        b"\xff" * 255,
        b"\x00" * 900,
        {"v": "1", "id": ghost, "name": "\x1b[2J\u202egnp" + "x" * 200, "port": "7443"},
        {"v": "1", "id": ghost, "name": b"\xff\xfe", "port": b"\xff"},
        {"v": "1", "id": ghost.upper(), "name": "a", "port": "7443"},
        {"v": "1", "id": ghost, "port": "99999"},
        {"v": "1"},
    ]
    hostile = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    try:
        for number, text in enumerate(texts):
            info = AsyncServiceInfo(
                SERVICE,
                f"a strange one {RUN[-6:]} {number}.{SERVICE}",
                port=(0, 1, 65535)[number % 3],
                properties=text,
                server=f"strange{RUN[-6:]}-{number}.local.",
                parsed_addresses=["127.0.0.1", "224.0.0.251", "0.0.0.0", "fe80::1"],
            )
            await hostile.async_register_service(info, cooperating_responders=True)
        pi = make("pi")
        await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
        await until(lambda: len(desk.discovered.of(ghost)) == 2)
        for one in desk.discovered.of(ghost):
            assert one.name.isprintable() and 0 < len(one.name) <= 63
            assert one.addresses == ("127.0.0.1",)
        assert pi.trouble == desk.trouble == ""
    finally:
        await hostile.async_close()


async def test_announcement_of_own_id_is_not_a_peer(make: Make) -> None:
    desk = make("desk")
    hostile = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    try:
        properties = {"v": "1", "id": fingerprint("desk"), "name": "desk", "port": "1"}
        info = AsyncServiceInfo(
            SERVICE,
            f"imposter{RUN[-6:]}.{SERVICE}",
            port=1,
            properties=properties,
            server=f"imposter{RUN[-6:]}.local.",
            parsed_addresses=["127.0.0.1"],
        )
        await hostile.async_register_service(info, cooperating_responders=True)
        pi = make("pi")
        await until(lambda: bool(pi.discovered.of(fingerprint("desk"))))
        await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
        assert not desk.discovered.of(fingerprint("desk"))
    finally:
        await hostile.async_close()


async def test_who_fell_silent_is_asked_after_and_gone(make: Make) -> None:
    desk = make("desk", poll=0.5, silent=3)
    pi = make("pi")
    hostile = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    info = AsyncServiceInfo(
        SERVICE,
        f"brief{RUN[-6:]}.{SERVICE}",
        port=1,
        properties={"v": "1", "id": fingerprint("brief"), "name": "brief", "port": "1"},
        server=f"brief{RUN[-6:]}.local.",
        parsed_addresses=["127.0.0.1"],
        host_ttl=2,
    )
    await hostile.async_register_service(info, cooperating_responders=True)
    await until(
        lambda: bool(desk.discovered.of(fingerprint("brief")) and desk.discovered.of(fingerprint("pi")))
    )
    hostile.zeroconf.registry.async_remove(info)  # no goodbye, as when the power goes
    await hostile.async_close()
    await until(lambda: not desk.discovered.of(fingerprint("brief")))
    assert desk.discovered.of(fingerprint("pi"))
    assert pi.trouble == ""


async def test_after_a_sleep_it_announces_itself_anew(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, pi = make("desk"), make("pi")
    await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
    await asyncio.sleep(2)
    heard: list[str] = []
    desk.discovered.listen(lambda change, one: heard.append(one.fingerprint))
    monkeypatch.setattr("neighborhoods.discovery.mdns_service.slept", lambda: 1e9)
    await until(lambda: fingerprint("pi") in heard)
    assert pi.trouble == desk.trouble == ""


async def test_an_address_heard_just_before_the_next_one_is_forgotten(make: Make) -> None:
    desk, pi = make("desk"), fingerprint("pi")
    mover = AsyncZeroconf(interfaces=["127.0.0.1"], ip_version=IPVersion.V4Only)
    try:
        info = _at(pi, "127.0.0.2")
        await mover.async_register_service(info, cooperating_responders=True)
        await until(lambda: bool(desk.discovered.of(pi)))
        # Less than a second after the first: by RFC 6762 section 10.2 that stays in the cache.
        await (await mover.async_update_service(_at(pi, "127.0.0.3")))
        await until(lambda: "127.0.0.3" in desk.discovered.of(pi)[0].addresses)
        await asyncio.sleep(1.6)
        # The same once more, now that a second has passed: nothing of it is new, and yet something goes.
        await (await mover.async_update_service(_at(pi, "127.0.0.3")))
        await until(lambda: desk.discovered.of(pi)[0].addresses == ("127.0.0.3",))
    finally:
        await mover.async_close()


async def test_peer_moving_after_announcement_has_new_address(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make("desk")
    where = Interface("lo", 1, ("127.0.0.1",))
    monkeypatch.setattr(
        MdnsService, "_look", lambda self: (where if self is pi else Interface("lo", 1, ("127.0.0.1",)),)
    )
    pi = make("pi")
    await until(lambda: bool(desk.discovered.of(fingerprint("pi"))))
    where = Interface("lo", 1, ("127.0.0.9",))
    pi.announce()
    await until(lambda: "127.0.0.9" in desk.discovered.of(fingerprint("pi"))[0].addresses)
    await until(lambda: desk.discovered.of(fingerprint("pi"))[0].addresses == ("127.0.0.9",))


def _at(who: str, address: str) -> AsyncServiceInfo:
    return AsyncServiceInfo(
        SERVICE,
        f"mover_{who[:16]}.{SERVICE}",
        port=7443,
        properties={"v": "1", "id": who, "name": "mover"},
        server=f"{who[:16]}.local.",
        parsed_addresses=[address],
    )


async def test_closing_is_safe_at_any_moment(make: Make) -> None:
    for wait in (0, 0.05, 0.4, 1.0):
        nearby = make(f"brief{wait}")
        await asyncio.sleep(wait)
        await nearby.close()
        await nearby.close()
    never = MdnsService(DiscoveredNodes(), name="never", fingerprint=fingerprint("never"), port=1)
    await never.close()


def test_the_library_is_not_imported_before_it_starts() -> None:
    asked = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nimport neighborhoods.discovery.mdns_service, neighborhoods.discovery.peer_address_order, "
            "neighborhoods.discovery.presence\nprint([m for m in ('zeroconf', 'ifaddr') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
    )
    assert asked.stdout.strip() == "[]", asked.stderr
