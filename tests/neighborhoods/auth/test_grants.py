from __future__ import annotations

from typing import Any

import pytest

from envelopes.errors import BadTokenError
from envelopes.identity.capability_tokens import mint_root, narrow
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.authorization import Authorizer, effective, permits
from neighborhoods.errors import UsedUpError

HERE, ANNA, BERT, CARL = (IdentityKey.generate() for _ in range(4))
NOW = 1_700_000_000


class Counted:
    """Uses as the table of them counts."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.moments: list[int] = []

    async def use(self, jti: str, limit: int, at: int) -> bool:
        self.moments.append(at)
        if self.rows.get(jti, 0) >= limit:
            return False
        self.rows[jti] = self.rows.get(jti, 0) + 1
        return True


class Machine:
    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.ended: set[str] = set()
        self.uses = Counted()
        self.grants = Authorizer(HERE.public, self.revoked, self.ended.__contains__)

    def refused(self, value: Any, caller: IdentityKey, now: float = NOW) -> str:
        with pytest.raises(BadTokenError) as caught:
            self.grants.accept(value, caller=caller.fingerprint, now=now)
        return caught.value.reason

    async def may(self, wanted: str, value: Any, caller: IdentityKey, now: float = NOW) -> bool:
        grant = self.grants.accept(value, caller=caller.fingerprint, now=now)
        return await permits(wanted, scopes=("EGG",), grants=[grant], uses=self.uses, now=now)


@pytest.fixture
def here() -> Machine:
    return Machine()


def root(to: IdentityKey = ANNA, **more: Any) -> str:
    given: dict[str, Any] = {"caps": ["HELP.brainstem.*"], "now": NOW, "seconds": 3600, "jti": "one"}
    return mint_root(HERE, to=to.fingerprint, **{**given, **more})


def chain(**more: Any) -> list[str]:
    """From here to Anna, from her to Bert, from him to Carl."""
    to_anna = root(**more)
    to_bert = narrow(to_anna, ANNA, to=BERT.fingerprint, caps=["HELP.*"], now=NOW, jti="two")
    return narrow(to_bert, BERT, to=CARL.fingerprint, caps=["HELP.brainstem.Clock"], now=NOW, jti="three")


def test_the_holder_shows_a_chain_and_nobody_else(here: Machine) -> None:
    grant = here.grants.accept(chain(), caller=CARL.fingerprint, now=NOW)
    assert grant.caps == ("HELP.brainstem.Clock",)
    for thief in (ANNA, BERT, HERE):
        assert here.refused(chain(), thief) == "holder"
    assert here.refused(root(), CARL) == "holder"


@pytest.mark.parametrize("link", ["one", "two", "three"])
def test_a_link_that_is_taken_back_ends_all_that_hangs_on_it(here: Machine, link: str) -> None:
    value = chain()
    here.grants.accept(value, caller=CARL.fingerprint, now=NOW)
    here.revoked.add(link)
    assert here.refused(value, CARL) == "revoked"
    here.grants.forget(link)
    assert here.refused(value, CARL) == "revoked"


def test_what_a_machine_passed_on_ends_with_the_trust_in_it(here: Machine) -> None:
    value = chain()
    here.grants.accept(value, caller=CARL.fingerprint, now=NOW)
    here.ended.add(BERT.fingerprint)
    assert here.refused(value, CARL) == "revoked"
    here.ended.clear()
    assert here.grants.accept(value, caller=CARL.fingerprint, now=NOW)
    here.ended.add(CARL.fingerprint)
    assert here.refused(value, CARL) == "revoked"


def test_a_chain_that_was_seen_before_still_runs_out(here: Machine) -> None:
    value = chain()
    here.grants.accept(value, caller=CARL.fingerprint, now=NOW)
    assert here.refused(value, CARL, now=NOW + 3600) == "expired"
    assert here.refused("nonsense", CARL) == "malformed"
    assert here.refused(["x"] * 9, CARL) == "malformed"
    assert here.refused("x" * 100_000, CARL) == "malformed"


def test_what_a_caller_may_do_is_its_scopes_and_its_grants(here: Machine) -> None:
    grant = here.grants.accept(root(), caller=ANNA.fingerprint, now=NOW)
    assert effective(("EGG", "HELP.brainstem.Clock"), [grant]) == ("EGG", "HELP.brainstem.*")
    assert effective(("*",), [grant]) == ("*",)
    assert effective(()) == ()


async def test_a_grant_allows_what_it_covers_and_nothing_else(here: Machine) -> None:
    assert await here.may("HELP.brainstem.Clock", chain(), CARL)
    assert await here.may("STREAM.brainstem.Clock", chain(), CARL)
    assert not await here.may("HELP.brainstem", chain(), CARL)
    assert await here.may("EGG", chain(), CARL)
    assert not await permits("HELP", scopes=("EGG",), uses=here.uses, now=NOW)
    assert here.uses.rows == {}


async def test_uses_are_counted_and_run_out(here: Machine) -> None:
    value = root(uses=2)
    assert await here.may("HELP.brainstem", value, ANNA)
    assert await here.may("HELP.brainstem.Clock", value, ANNA, now=NOW + 5)
    with pytest.raises(UsedUpError):
        await here.may("HELP.brainstem", value, ANNA)
    assert not await here.may("PAIR", value, ANNA)
    assert here.uses.rows == {"one": 2}
    assert here.uses.moments[:2] == [NOW * 10**6, (NOW + 5) * 10**6]


async def test_what_is_passed_on_uses_up_what_it_was_made_from(here: Machine) -> None:
    to_anna = root(uses=3)
    to_bert = narrow(to_anna, ANNA, to=BERT.fingerprint, caps=["*"], now=NOW, uses=2)
    to_carl = narrow(to_anna, ANNA, to=CARL.fingerprint, caps=["*"], now=NOW, uses=2)
    for _ in range(2):
        assert await here.may("HELP.brainstem", to_bert, BERT)
    with pytest.raises(UsedUpError):
        await here.may("HELP.brainstem", to_bert, BERT)
    assert here.uses.rows["one"] == 2
    assert await here.may("HELP.brainstem", to_carl, CARL)
    for value, caller in ((to_carl, CARL), (to_anna, ANNA)):
        with pytest.raises(UsedUpError):
            await here.may("HELP.brainstem", value, caller)


async def test_a_jti_that_another_holder_chose_uses_nothing_up(here: Machine) -> None:
    precious = root(to=CARL, uses=1, jti="precious")
    copy = narrow(root(), ANNA, to=ANNA.fingerprint, caps=["*"], now=NOW, uses=1, jti="precious")
    assert await here.may("HELP.brainstem", copy, ANNA)
    assert await here.may("HELP.brainstem", precious, CARL)


async def test_scopes_and_unlimited_grants_are_used_first(here: Machine) -> None:
    limited = here.grants.accept(root(uses=1), caller=ANNA.fingerprint, now=NOW)
    free = here.grants.accept(root(jti="free"), caller=ANNA.fingerprint, now=NOW)
    wanted = "HELP.brainstem"
    for _ in range(3):
        assert await permits(wanted, scopes=(), grants=[limited, free], uses=here.uses, now=NOW)
        assert await permits(wanted, scopes=(wanted,), grants=[limited], uses=here.uses, now=NOW)
    assert here.uses.rows == {}


async def test_a_second_grant_counts_when_the_first_is_used_up(here: Machine) -> None:
    grants = [
        here.grants.accept(root(uses=1, jti=jti), caller=ANNA.fingerprint, now=NOW) for jti in ("a", "b")
    ]
    for _ in range(2):
        assert await permits("HELP.brainstem", scopes=(), grants=grants, uses=here.uses, now=NOW)
    with pytest.raises(UsedUpError):
        await permits("HELP.brainstem", scopes=(), grants=grants, uses=here.uses, now=NOW)


async def test_a_grant_that_ended_in_the_meantime_allows_nothing(here: Machine) -> None:
    grant = here.grants.accept(root(), caller=ANNA.fingerprint, now=NOW)
    assert not await permits("HELP.brainstem", scopes=(), grants=[grant], uses=here.uses, now=NOW + 3600)
