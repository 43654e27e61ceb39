"""The limits on new connections of an address, and of an IPv6 network with all its addresses."""

from __future__ import annotations

from rappd.listeners.connection_admission import A_SECOND, BURST, MOST_PROVEN, NETWORK_SHARE, ConnectionRate

PEER = "2001:470:1::7"


def addresses(count: int, network: str = "2001:470:1") -> list[str]:
    return [f"{network}::{number:x}:1" for number in range(count)]


def test_an_address_has_its_share_and_gets_it_back() -> None:
    now = [0.0]
    rate = ConnectionRate(lambda: now[0])
    for address in ("192.168.1.20", "192.168.1.21", PEER):
        assert sum(rate.take(address) for _ in range(2 * BURST)) == BURST
    now[0] = 1.0
    assert sum(rate.take(PEER) for _ in range(2 * BURST)) == A_SECOND


def test_many_addresses_of_one_ipv6_network_share_and_others_do_not_mind() -> None:
    rate = ConnectionRate(lambda: 0.0)
    flood = addresses(10 * NETWORK_SHARE * BURST)
    assert sum(map(rate.take, flood)) == NETWORK_SHARE * BURST
    assert len(rate._left) == NETWORK_SHARE * BURST + 1, "those refused cost no memory"
    assert not rate.take(PEER)
    assert rate.take("2001:470:2::7") and rate.take("192.168.1.20")


def test_who_proved_itself_comes_through_a_flood_of_its_network() -> None:
    rate = ConnectionRate(lambda: 0.0)
    assert rate.take(PEER)
    rate.prove(PEER)
    for address in addresses(2 * NETWORK_SHARE * BURST):
        rate.take(address)
    assert sum(rate.take(PEER) for _ in range(2 * BURST)) == BURST - 1, "within its own share"


def test_no_more_than_so_many_that_proved_themselves_are_remembered() -> None:
    rate = ConnectionRate(lambda: 0.0)
    for address in (PEER, *addresses(MOST_PROVEN)):
        rate.prove(address)
    for address in addresses(2 * NETWORK_SHARE * BURST)[MOST_PROVEN:]:
        rate.take(address)
    assert not rate.take(PEER)
    assert rate.take(addresses(MOST_PROVEN)[-1])


def test_full_shares_are_forgotten_and_used_ones_are_not() -> None:
    now = [0.0]
    rate = ConnectionRate(lambda: now[0])
    for number in range(2000):
        rate.take(f"10.0.{number // 256}.{number % 256}")
    now[0] = BURST / A_SECOND - 1
    while rate.take(PEER):
        pass
    now[0] += 2
    rate.forget_full()
    assert len(rate._left) == 2
    assert sum(rate.take(PEER) for _ in range(BURST)) == 2 * A_SECOND
