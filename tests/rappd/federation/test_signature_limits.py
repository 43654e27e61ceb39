"""Limits by address: connections and envelopes of strangers; what proves itself is not limited, whatever was sent before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from envelopes.envelope import HELLO, HELP, Envelope, new_id
from envelopes.errors import BadTokenError
from rappd.daemon.rate_limit import RateLimitedError
from rappd.dispatch.rights import Caller
from rappd.federation.request_auth import STRANGER
from rappd.listeners.connection_admission import (
    A_SECOND,
    BURST,
    ENTRANCE,
    MOST_PROVEN,
    NETWORK_SHARE,
    ConnectionRate,
)
from rappd.listeners.federation.app import set_limits
from rappd.listeners.federation.callers import FEDERATION, RequestSender

GRANTED = Caller("federation", peer="f" * 64, caps=("HELP.brainstem",))


class Checks:
    """Stands in for the credentials: what ``outcome`` is, comes of every check."""

    outcome: Any = STRANGER

    async def armed(self, envelope: Envelope, caller: Caller) -> Caller:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return cast(Caller, self.outcome)


def _by(checks: Checks, who: Caller = STRANGER, app: Any = None) -> RequestSender:
    if app is None:
        app = {
            FEDERATION: SimpleNamespace(credentials=checks),
            ENTRANCE: SimpleNamespace(mark_authenticated=lambda protocol: None),
        }
        set_limits(app)
    request = SimpleNamespace(app=app, remote="192.0.2.1", protocol=None)
    return RequestSender(cast(web.Request, request), who, "")


def _envelope(verb: str) -> Envelope:
    return Envelope(new_id(), "a", "b", verb, {})


@pytest.mark.parametrize(("verb", "most"), [(HELP, 600), (HELLO, 60)])
@pytest.mark.parametrize("wrong", [STRANGER, BadTokenError("signature")], ids=["nothing", "wrong"])
async def test_right_capability_is_taken_after_wrong_ones(verb: str, most: int, wrong: Any) -> None:
    checks = Checks()
    by = _by(checks)
    checks.outcome = wrong
    for _ in range(most):
        if wrong is STRANGER:
            await by.armed(_envelope(verb))
        else:
            with pytest.raises(BadTokenError):
                await by.armed(_envelope(verb))
    with pytest.raises(RateLimitedError):
        await by.armed(_envelope(verb))
    checks.outcome = GRANTED
    for _ in range(20):
        assert (await by.armed(_envelope(verb)))[1] == GRANTED


async def test_wrong_capability_of_a_peer_does_not_limit_strangers() -> None:
    checks = Checks()
    checks.outcome = BadTokenError("disagree")
    by = _by(checks, GRANTED)
    for _ in range(700):
        with pytest.raises(BadTokenError):
            await by.armed(_envelope(HELP))
    checks.outcome = STRANGER
    await _by(checks, app=by.request.app).armed(_envelope(HELP))


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
