from __future__ import annotations

from typing import Any

import pytest

from envelopes.errors import BadTokenError
from envelopes.identity.capabilities import covers
from envelopes.identity.capability_tokens import mint_root, narrow
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.caller_auth import Authorizer, effective

HERE, ANNA, BERT, CARL = (IdentityKey.generate() for _ in range(4))
NOW = 1_700_000_000


class Machine:
    def __init__(self) -> None:
        self.revoked: set[str] = set()
        self.ended: set[str] = set()
        self.grants = Authorizer(HERE.public, self.revoked, self.ended.__contains__)

    def refused(self, value: Any, caller: IdentityKey, now: float = NOW) -> str:
        with pytest.raises(BadTokenError) as caught:
            self.grants.accept(value, caller=caller.fingerprint, now=now)
        return caught.value.reason

    def may(self, wanted: str, value: Any, caller: IdentityKey) -> bool:
        grant = self.grants.accept(value, caller=caller.fingerprint, now=NOW)
        return covers(effective(("EGG",), [grant]), wanted)


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


def test_a_grant_allows_what_it_covers_and_nothing_else(here: Machine) -> None:
    assert here.may("HELP.brainstem.Clock", chain(), CARL)
    assert here.may("STREAM.brainstem.Clock", chain(), CARL)
    assert not here.may("HELP.brainstem", chain(), CARL)
    assert here.may("EGG", chain(), CARL)
