from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.errors import BadCapabilityError, BadTokenError
from envelopes.identity.caller_tokens import read_token
from envelopes.identity.capabilities import attenuate, covers
from envelopes.identity.capability_tokens import MOST_LINKS, Grant, links, mint_root, narrow, verify_chain
from envelopes.identity.keys import IdentityKey

HERE, ANNA, BERT, CARL, MALLORY = (IdentityKey.generate() for _ in range(5))
NOW = 1_700_000_000


def verified(value: Any, now: float = NOW, at: IdentityKey = HERE) -> Grant:
    return verify_chain(value, audience=at.fingerprint, now=now, root=at.public)


def refused(value: Any, now: float = NOW, at: IdentityKey = HERE) -> str:
    with pytest.raises(BadTokenError) as caught:
        verified(value, now, at)
    return caught.value.reason


def root(to: IdentityKey = ANNA, **more: Any) -> str:
    given: dict[str, Any] = {"caps": ["HELP.brainstem.*", "EGG"], "now": NOW, "seconds": 3600, "uses": 10}
    return mint_root(HERE, to=to.fingerprint, **{**given, **more})


def passed_on(chain: Any, holder: IdentityKey, to: IdentityKey, **more: Any) -> list[str]:
    given: dict[str, Any] = {"caps": ["HELP.brainstem.Clock"], "now": NOW}
    return narrow(chain, holder, to=to.fingerprint, **{**given, **more})


def three() -> list[str]:
    return passed_on(passed_on(root(), ANNA, BERT, caps=["HELP.*"]), BERT, CARL, uses=2)


def part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def said(text: str, at: int = 1) -> dict[str, Any]:
    piece = text.split(".")[at]
    return json.loads(base64.urlsafe_b64decode(piece + "=" * (-len(piece) % 4)))


def forged(text: str, signer: IdentityKey, shown: IdentityKey | None = None, **claims: Any) -> str:
    """``text`` with other claims, signed by ``signer`` who shows the key of ``shown``; None leaves one out."""
    shown = shown or signer
    header = {"alg": "EdDSA", "typ": "JWT", "key": shown.public.hex()}
    body = {key: value for key, value in {**said(text), **claims}.items() if value is not None}
    message = f"{part(json.dumps(header).encode())}.{part(json.dumps(body).encode())}"
    return f"{message}.{part(signer.sign(message.encode()))}"


def test_a_root_gives_its_holder_what_it_says() -> None:
    grant = verified(root(jti="one"))
    assert grant == Grant(
        holder=ANNA.fingerprint,
        caps=("HELP.brainstem.*", "EGG"),
        jtis=("one",),
        signers=(HERE.fingerprint,),
        uses={"one": 10},
        expires=NOW + 3600,
    )
    assert verified([root(jti="one")]) == grant


def test_a_chain_narrows_and_its_last_holder_has_what_is_left() -> None:
    chain = passed_on(root(jti="one"), ANNA, BERT, caps=["HELP.*"], expires=NOW + 60, jti="two")
    chain = passed_on(chain, BERT, CARL, caps=["HELP.brainstem.Clock", "PAIR"], uses=2, jti="three")
    grant = verified(chain)
    assert grant.holder == CARL.fingerprint
    assert grant.caps == ("HELP.brainstem.Clock",)
    assert grant.jtis == ("one", "two", "three")
    assert grant.signers == (HERE.fingerprint, ANNA.fingerprint, BERT.fingerprint)
    assert grant.expires == NOW + 60
    assert grant.uses == {
        "one": 10,
        f"{ANNA.fingerprint[:16]}.two": 10,
        f"{BERT.fingerprint[:16]}.three": 2,
    }


def test_prefixes_of_a_chain_hold_and_nothing_else() -> None:
    chain = three()
    assert [verified(chain[:size]).holder for size in (1, 2, 3)] == [
        ANNA.fingerprint,
        BERT.fingerprint,
        CARL.fingerprint,
    ]
    for wrong in (chain[1:], chain[2:], [chain[0], chain[2]], chain[::-1], [chain[0], *chain], chain[2]):
        assert refused(wrong) == "chain"


def test_the_child_of_another_parent_is_refused() -> None:
    first, other = root(), root()
    child = passed_on(first, ANNA, BERT)[1]
    assert verified([first, child])
    assert refused([other, child]) == "chain"


def test_only_the_holder_passes_on() -> None:
    with pytest.raises(BadTokenError) as caught:
        passed_on(root(), MALLORY, BERT)
    assert caught.value.reason == "holder"
    first, child = passed_on(root(), ANNA, BERT)
    assert refused([first, forged(child, MALLORY)]) == "signature"
    assert refused([first, forged(child, MALLORY, shown=ANNA)]) == "signature"
    assert refused([first, forged(child, MALLORY, iss=MALLORY.fingerprint)]) == "chain"


def test_a_replaced_holder_is_refused() -> None:
    text = root()
    head, _, signature = text.split(".")
    body = part(json.dumps({**said(text), "cnf": {"kid": MALLORY.fingerprint}}).encode())
    assert refused(f"{head}.{body}.{signature}") == "signature"
    assert refused(forged(text, HERE, cnf={"kid": MALLORY.fingerprint})) == "malformed"
    assert refused(forged(text, HERE, cnf=None)) == "malformed"
    body = part(json.dumps({**said(text), "sub": MALLORY.fingerprint}).encode())
    assert refused(f"{head}.{body}.{signature}") == "signature"


@pytest.mark.parametrize(
    ("wider", "reason"),
    [
        ({"caps": ["*"]}, "widened"),
        ({"caps": ["HELP.brainstem.Clock", "HELP.other"]}, "widened"),
        ({"caps": ["HELP.*"]}, "widened"),
        ({"caps": None}, "malformed"),
        ({"exp": NOW + 3601}, "widened"),
        ({"uses": 11}, "widened"),
        ({"uses": None}, "widened"),
        ({"parent": "0" * 64}, "chain"),
        ({"parent": None}, "chain"),
        ({"aud": ANNA.fingerprint}, "audience"),
        ({"caps": ["help"]}, "malformed"),
        ({"caps": [f"HELP.brainstem.a{n}" for n in range(33)]}, "malformed"),
        ({"uses": -1}, "malformed"),
        ({"iat": NOW + 61}, "not_yet"),
        ({"exp": NOW}, "expired"),
    ],
)
def test_wider_link_signed_by_holder_is_refused(wider: dict[str, Any], reason: str) -> None:
    first, child = passed_on(root(), ANNA, BERT)
    assert verified([first, forged(child, ANNA)])
    assert refused([first, forged(child, ANNA, **wider)]) == reason


def test_no_link_is_wider_than_one_further_up_either() -> None:
    first, second = passed_on(root(), ANNA, BERT, caps=["HELP.brainstem.Clock"])
    third = passed_on([first, second], BERT, CARL)[2]
    assert refused([first, second, forged(third, BERT, caps=["HELP.brainstem.Lamp"])]) == "widened"


def test_what_comes_along_with_help_may_be_passed_on() -> None:
    chain = passed_on(root(), ANNA, BERT, caps=["STREAM.brainstem.Clock"])
    assert verified(chain).caps == ("STREAM.brainstem.Clock",)
    assert not covers(verified(chain).caps, "HELP.brainstem.Clock")


def test_what_is_passed_on_is_cut_to_what_its_holder_has() -> None:
    chain = passed_on(root(), ANNA, BERT, caps=["*"], uses=99, expires=NOW + 10**6)
    grant = verified(chain)
    assert grant.caps == ("EGG", "HELP.brainstem.*")
    assert set(grant.uses.values()) == {10}
    assert grant.expires == NOW + 3600
    with pytest.raises(BadCapabilityError, match="Nothing"):
        passed_on(root(), ANNA, BERT, caps=["PAIR"])
    with pytest.raises(BadCapabilityError):
        passed_on(root(), ANNA, BERT, caps=["egg"])


def test_the_life_of_a_chain() -> None:
    chain = passed_on(root(), ANNA, BERT, expires=NOW + 60)
    assert verified(chain, now=NOW + 59)
    assert refused(chain, now=NOW + 60) == "expired"
    assert refused(chain, now=NOW - 61) == "not_yet"
    with pytest.raises(BadTokenError) as caught:
        passed_on(root(), ANNA, BERT, now=NOW + 3600)
    assert caught.value.reason == "expired"


def test_a_chain_counts_only_where_it_was_begun() -> None:
    assert refused(three(), at=MALLORY) == "audience"
    own = mint_root(MALLORY, to=ANNA.fingerprint, caps=["*"], now=NOW, seconds=60)
    assert refused(own) == "audience"
    assert refused(forged(own, MALLORY, aud=HERE.fingerprint)) == "chain"
    assert refused(forged(own, MALLORY, iss=HERE.fingerprint, aud=HERE.fingerprint)) == "signature"
    assert refused(forged(own, MALLORY, HERE, iss=HERE.fingerprint, aud=HERE.fingerprint)) == "signature"


def test_the_root_is_this_machines_own_key() -> None:
    with pytest.raises(BadTokenError) as caught:
        verify_chain(root(), audience=HERE.fingerprint, now=NOW, root=MALLORY.public)
    assert caught.value.reason == "issuer"


def test_a_chain_has_eight_links_at_most() -> None:
    chain = [root(uses=None)]
    holder = ANNA
    for _ in range(MOST_LINKS - 1):
        following = IdentityKey.generate()
        chain = passed_on(chain, holder, following)
        holder = following
    assert len(verified(chain).jtis) == 8
    with pytest.raises(BadTokenError) as caught:
        passed_on(chain, holder, BERT)
    assert caught.value.reason == "chain"
    ninth = forged(
        chain[-1],
        holder,
        iss=holder.fingerprint,
        sub=BERT.fingerprint,
        cnf={"kid": BERT.fingerprint},
        parent=hashlib.sha256(chain[-1].encode()).hexdigest(),
    )
    assert verified(chain).holder == holder.fingerprint
    assert refused([*chain, ninth]) == "malformed"


def test_other_signer_never_counts_under_foreign_name() -> None:
    victim = root(to=CARL, uses=3, jti="precious")
    chain = passed_on(root(uses=None), ANNA, BERT, uses=1, jti="precious")
    assert not set(verified(victim).uses) & set(verified(chain).uses)


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        {},
        [],
        [[]],
        "",
        "a.b.c",
        ["", ""],
        [None],
        [root(), 5],
        [root()] * 9,
        "x" * 100_000,
        {"a": 1},
    ],
    ids=lambda value: str(value)[:12],
)
def test_other_values_are_refused(value: Any) -> None:
    assert refused(value) in ("malformed", "chain")


def test_a_hundred_thousand_characters_are_refused_unread() -> None:
    long = forged(root(), HERE, more="x" * 75_000)
    assert len(long) > 100_000
    assert refused(long) == refused([root(), long]) == "malformed"
    with pytest.raises(BadTokenError):
        links(long)


def test_a_header_without_the_issuers_key_is_refused() -> None:
    text = root()
    _, body, signature = text.split(".")
    for key, reason in (("", "signature"), ("zz", "malformed"), ("00" * 32, "signature")):
        header = part(json.dumps({**said(text, 0), "key": key}).encode())
        assert refused(f"{header}.{body}.{signature}") == reason


def test_a_capability_token_never_says_who_calls() -> None:
    keys = {key.fingerprint: key.public for key in (HERE, ANNA)}
    for text in three()[:2]:
        with pytest.raises(BadTokenError) as caught:
            read_token(text, key_of=keys.get, audience=HERE.fingerprint, now=NOW)
        assert caught.value.reason == "malformed"


@given(
    st.lists(
        st.sampled_from(["*", "HELP.*", "HELP.a", "HELP.a.*", "STREAM.a.b", "EGG"]), min_size=1, max_size=3
    ),
    st.lists(
        st.sampled_from(["*", "HELP.*", "HELP.a", "HELP.a.b", "STREAM.*", "EGG"]), min_size=1, max_size=3
    ),
)
def test_whatever_is_passed_on_holds_and_is_never_wider(have: list[str], asked: list[str]) -> None:
    first = root(caps=have)
    try:
        chain = passed_on(first, ANNA, BERT, caps=asked)
    except BadCapabilityError:
        assert attenuate(have, asked) == ()
        return
    grant = verified(chain)
    assert all(covers(have, one) and covers(asked, one) for one in grant.caps)


@given(st.one_of(st.text(), st.lists(st.text(max_size=60), max_size=9), st.lists(st.none() | st.integers())))
def test_anything_else_is_refused_and_never_raises_another_error(value: Any) -> None:
    assert refused(value) == "malformed"


@given(st.integers(0, 2), st.data())
def test_no_character_of_a_chain_may_be_another(which: int, data: st.DataObject) -> None:
    chain = list(CHAIN)
    at = data.draw(st.integers(0, len(chain[which]) - 1))
    other = data.draw(st.sampled_from("ABCxyz019-_.=").filter(lambda one: one != chain[which][at]))
    chain[which] = chain[which][:at] + other + chain[which][at + 1 :]
    refused(chain)


CHAIN = three()
