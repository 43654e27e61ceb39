from __future__ import annotations

import pytest
from fixtures.peer_tokens import mint_peer_token

from envelopes.errors import BadTokenError
from envelopes.identity.keys import IdentityKey
from envelopes.identity.tokens import Claims, read_token
from neighborhoods.auth.token_cache import REFUSED_SECONDS, TokenCache

HERE, PEER, OTHER = (IdentityKey.generate() for _ in range(3))
NOW = 1_700_000_000


class Door:
    """Reads real tokens through the cache and counts how often one was really verified."""

    def __init__(self, cache: TokenCache[Claims] | None = None) -> None:
        self.cache = TokenCache() if cache is None else cache
        self.keys = {key.fingerprint: key.public for key in (PEER, OTHER)}
        self.verified = 0

    def read(self, text: str, now: float = NOW) -> Claims:
        def verify() -> Claims:
            self.verified += 1
            return read_token(text, key_of=self.keys.get, audience=HERE.fingerprint, now=now)

        return self.cache.read(text, now, verify)

    def refused(self, text: str, now: float = NOW) -> str:
        with pytest.raises(BadTokenError) as caught:
            self.read(text, now)
        return caught.value.reason


def token(
    key: IdentityKey = PEER, seconds: int = 300, audience: str = HERE.fingerprint, now: float = NOW
) -> str:
    return mint_peer_token(key, subject="a", audience=audience, now=now, seconds=seconds)


def test_a_token_is_verified_once_until_it_ends() -> None:
    door, text = Door(), token()
    first = door.read(text)
    assert door.read(text, NOW + 299.9) == first
    assert door.verified == 1
    assert door.refused(text, NOW + 300) == "expired"
    assert door.refused(text, NOW + 301) == "expired"
    assert door.verified == 2


def test_another_text_is_another_token() -> None:
    door = Door()
    assert door.read(token()).iss == PEER.fingerprint
    assert door.read(token(OTHER)).iss == OTHER.fingerprint
    assert door.verified == 2


def test_what_will_never_hold_is_not_verified_again_for_a_while() -> None:
    door, whole = Door(), token()
    for text, reason in (
        (whole[:-4] + ("A" if whole[-4] != "A" else "B") + whole[-3:], "signature"),
        ("nonsense", "malformed"),
        ("\ud800", "malformed"),
        (token(now=NOW - 1000), "expired"),
        (token(audience=OTHER.fingerprint), "audience"),
    ):
        door.verified = 0
        assert [door.refused(text) for _ in range(3)] == [reason] * 3
        assert door.verified == 1
        assert door.refused(text, NOW + REFUSED_SECONDS) == reason
        assert door.verified == 2


def test_token_holds_at_once_after_pairing() -> None:
    door, text = Door(), token()
    public = door.keys.pop(PEER.fingerprint)
    assert door.refused(text) == "issuer"
    door.keys[PEER.fingerprint] = public
    assert door.read(text)


def test_a_token_from_the_future_holds_when_its_time_comes() -> None:
    door, text = Door(), token(now=NOW + 100)
    assert door.refused(text) == "not_yet"
    assert door.read(text, NOW + 40)


def test_what_is_taken_back_is_forgotten_at_once() -> None:
    door, one, two, other = Door(), token(), token(), token(OTHER)
    jti = door.read(one).jti
    door.read(two)
    door.read(other)
    door.cache.revoke(jti)
    assert len(door.cache) == 2
    door.cache.revoke(PEER.fingerprint)
    assert len(door.cache) == 1
    del door.keys[PEER.fingerprint]
    assert door.refused(two) == "issuer"
    door.read(other)
    assert door.verified == 4


def test_the_cache_is_bounded_and_keeps_what_is_used() -> None:
    door = Door(TokenCache(most=3, most_refused=2))
    texts = [token() for _ in range(4)]
    for text in texts[:3]:
        door.read(text)
    door.read(texts[0])
    door.read(texts[3])
    door.verified = 0
    door.read(texts[0])
    assert door.verified == 0
    door.read(texts[1])
    assert door.verified == 1
    for number in range(50):
        door.refused(f"nonsense {number}")
    assert len(door.cache) == 5
    door.verified = 0
    door.read(texts[0])
    assert door.verified == 0, "refusals push out nothing that holds"
