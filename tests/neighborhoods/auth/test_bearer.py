from __future__ import annotations

from typing import Any

import pytest
from fixtures.peer_tokens import mint_peer_token
from hypothesis import given
from hypothesis import strategies as st

from envelopes.errors import BadTokenError
from envelopes.identity.caller_tokens import mint_issued_token
from envelopes.identity.capability_tokens import mint_root
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.caller_auth import CallerAuthenticator, PresentedCredentials
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import FRIEND, Peer

HERE, ANNA, BERT, STRANGER = (IdentityKey.generate() for _ in range(4))
NOW = 1_700_000_000.0


def peer(key: IdentityKey, name: str) -> Peer:
    return Peer(
        fingerprint=key.fingerprint,
        name=name,
        whose="friend",
        public_key=key.public,
        certificate=f"certificate of {name}".encode(),
        sealing_key="",
        scopes=FRIEND,
        paired_at=1,
    )


class Machine:
    """A machine's trust as plain rows, and the bearer that reads them."""

    def __init__(self) -> None:
        self.peers = {ANNA.fingerprint: peer(ANNA, "anna"), BERT.fingerprint: peer(BERT, "bert")}
        self.revoked: set[str] = set()
        self.bearer = CallerAuthenticator(HERE.public, self.peers.get, self.by_pin, self.revoked)

    def by_pin(self, pin: bytes) -> Peer | None:
        return next((one for one in self.peers.values() if one.pin == pin), None)

    def who(
        self, token: str = "", certificate: bytes | None = None, now: float = NOW
    ) -> PresentedCredentials | None:
        return self.bearer.who(token, certificate, now)

    def refused(self, token: str, certificate: bytes | None = None, now: float = NOW) -> str:
        with pytest.raises(BadTokenError) as caught:
            self.who(token, certificate, now)
        return caught.value.reason


CERTIFICATE = {name: f"certificate of {name}".encode() for name in ("anna", "bert", "a stranger")}


@pytest.fixture
def here() -> Machine:
    return Machine()


def token(key: IdentityKey = ANNA, certificate: bytes | None = None, now: float = NOW) -> str:
    return mint_peer_token(
        key, subject="brainstem", audience=HERE.fingerprint, now=now, seconds=300, certificate=certificate
    )


def issued(**more: Any) -> str:
    given: dict[str, Any] = {"name": "phone", "caps": ["HELP.brainstem"], "seconds": 86400, "jti": "j1"}
    return mint_issued_token(HERE, now=NOW, **{**given, **more})


def test_a_caller_that_presents_nothing_is_a_stranger(here: Machine) -> None:
    assert here.who() is None
    assert here.who("", CERTIFICATE["a stranger"]) is None


def test_a_pinned_certificate_tells_who_calls(here: Machine) -> None:
    who = here.who("", CERTIFICATE["anna"])
    assert who == PresentedCredentials("peer", "anna", FRIEND, "", here.peers[ANNA.fingerprint])


def test_a_peers_own_token_tells_who_calls(here: Machine) -> None:
    who = here.who(token())
    assert who is not None
    assert (who.kind, who.name, who.caps) == ("peer", "anna", ("EGG",))
    assert who.peer == here.peers[ANNA.fingerprint]
    assert who.jti


def test_issued_token_brings_its_capabilities(here: Machine) -> None:
    assert here.who(issued()) == PresentedCredentials("issued", "phone", ("HELP.brainstem",), "j1", None)


def test_both_may_be_presented_when_they_agree(here: Machine) -> None:
    who = here.who(token(), CERTIFICATE["anna"])
    assert who is not None
    assert who.name == "anna"


def test_token_and_certificate_of_two_callers_are_refused(here: Machine) -> None:
    assert here.refused(token(), CERTIFICATE["bert"]) == "disagree"
    assert here.refused(token(), CERTIFICATE["a stranger"]) == "disagree"
    assert here.refused(issued(), CERTIFICATE["anna"]) == "disagree"
    assert here.refused(token(certificate=CERTIFICATE["anna"]), CERTIFICATE["bert"]) == "disagree"


def test_a_bound_token_counts_only_on_its_connection(here: Machine) -> None:
    bound = token(certificate=CERTIFICATE["anna"])
    assert here.who(bound, CERTIFICATE["anna"]) is not None
    assert here.refused(bound) == "binding"
    assert here.refused(token(certificate=b"an older certificate"), CERTIFICATE["anna"]) == "binding"
    assert here.refused(token(certificate=b"")) == "binding"


def test_a_machine_that_is_not_paired_is_told_so(here: Machine) -> None:
    with pytest.raises(NotPairedError):
        here.who(token(STRANGER))


def test_trust_that_ends_ends_for_the_next_request(here: Machine) -> None:
    text = token()
    assert here.who(text)
    gone = here.peers.pop(ANNA.fingerprint)
    with pytest.raises(NotPairedError):
        here.who(text)
    with pytest.raises(NotPairedError):
        here.who(text, CERTIFICATE["anna"])
    assert here.who("", CERTIFICATE["anna"]) is None
    here.peers[ANNA.fingerprint] = gone
    assert here.who(text)


def test_scopes_that_change_count_for_the_next_request(here: Machine) -> None:
    text = token()
    assert here.who(text)
    fewer = Peer(
        **{**{f: getattr(here.peers[ANNA.fingerprint], f) for f in Peer.__struct_fields__}, "scopes": ()}
    )
    here.peers[ANNA.fingerprint] = fewer
    who = here.who(text)
    assert who is not None
    assert who.caps == ()


def test_a_token_that_is_taken_back_ends_for_the_next_request(here: Machine) -> None:
    text, other = issued(), issued(jti="j2")
    assert here.who(text)
    here.revoked.add("j1")
    assert here.refused(text) == "revoked"
    assert here.who(other)
    who = here.who(own := token())
    assert who is not None
    here.revoked.add(who.jti)
    assert here.refused(own) == "revoked"


def test_time_passes_for_tokens_that_were_seen_before(here: Machine) -> None:
    text = token()
    assert here.who(text)
    assert here.refused(text, now=NOW + 300) == "expired"
    assert here.refused(token(now=NOW + 100)) == "not_yet"


def test_a_token_for_another_machine_is_refused(here: Machine) -> None:
    elsewhere = mint_peer_token(ANNA, subject="a", audience=BERT.fingerprint, now=NOW, seconds=60)
    assert here.refused(elsewhere) == "audience"


def test_nobody_becomes_the_holder_of_a_capability_by_seeing_it(here: Machine) -> None:
    seen = mint_root(HERE, to=ANNA.fingerprint, caps=["*"], now=NOW, seconds=60)
    assert here.refused(seen) == "malformed"
    assert here.refused(seen, CERTIFICATE["anna"]) == "malformed"


def test_a_long_text_is_refused(here: Machine) -> None:
    assert here.refused("\ud800") == "malformed"
    assert here.refused("x" * 100_000) == "malformed"
    assert here.refused(token() + "A" * 100_000) == "malformed"


@given(st.text(min_size=1), st.none() | st.binary() | st.just(CERTIFICATE["anna"]))
def test_other_text_is_refused_without_other_errors(text: str, certificate: bytes | None) -> None:
    assert Machine().refused(text, certificate) == "malformed"
