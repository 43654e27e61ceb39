"""Envelopes of strangers are limited by address; what proves itself is not, whatever was sent before."""

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
from rappd.listeners.connection_admission import ENTRANCE
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
