from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from fixtures.peer_tokens import mint_peer_token
from hypothesis import given, settings
from hypothesis import strategies as st

from envelopes.errors import BadCapabilityError, BadTokenError
from envelopes.identity.caller_tokens import (
    LONGEST,
    Claims,
    mint_issued_token,
    read_token,
    thumbprint,
)
from envelopes.identity.keys import IdentityKey

HERE = IdentityKey.generate()
PEER = IdentityKey.generate()
STRANGER = IdentityKey.generate()
NOW = 1_700_000_000.5
KEYS = {key.fingerprint: key.public for key in (HERE, PEER)}


def read(text: Any, now: float = NOW, audience: str = HERE.fingerprint) -> Claims:
    return read_token(text, key_of=KEYS.get, audience=audience, now=now)


def refused(text: Any, now: float = NOW, audience: str = HERE.fingerprint) -> str:
    with pytest.raises(BadTokenError) as caught:
        read(text, now, audience)
    assert caught.value.status == 401
    assert str(caught.value).endswith(".")
    return caught.value.reason


def peer_token(seconds: int = 300, **more: Any) -> str:
    return mint_peer_token(
        PEER, subject="brainstem", audience=HERE.fingerprint, now=NOW, seconds=seconds, **more
    )


def issued(**more: Any) -> str:
    given: dict[str, Any] = {"name": "thermostat", "caps": ["HELP.brainstem.Clock"], "seconds": 86400}
    return mint_issued_token(HERE, now=NOW, jti="jti-1", **{**given, **more})


def foreign(claims: dict[str, Any] | bytes, key: IdentityKey = PEER, /, **header: Any) -> str:
    """A token as another program, or an attacker who has ``key``, would write it."""
    head = _part(json.dumps({"alg": "EdDSA", "typ": "JWT", **header}).encode())
    body = _part(claims if isinstance(claims, bytes) else json.dumps(claims).encode())
    return f"{head}.{body}.{_part(key.sign(f'{head}.{body}'.encode()))}"


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def claims_of(text: str) -> dict[str, Any]:
    part = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_peer_says_who_it_is() -> None:
    claims = read(peer_token())
    assert (claims.iss, claims.aud) == (PEER.fingerprint, HERE.fingerprint)
    assert claims.sub == f"brainstem_{PEER.fingerprint[:16]}"
    assert (claims.iat, claims.exp) == (1_700_000_000, 1_700_000_300)
    assert claims.caps is None and claims.cnf is None
    assert claims.jti != read(peer_token()).jti


def test_a_peer_token_may_be_bound_to_a_certificate() -> None:
    claims = read(peer_token(certificate=b"der"))
    assert claims.cnf is not None
    assert claims.cnf.x5t == thumbprint(b"der") == _part(hashlib.sha256(b"der").digest())


def test_a_whole_agent_id_stays_as_it_is() -> None:
    whole = f"clock_{PEER.fingerprint[:16]}"
    text = mint_peer_token(PEER, subject=whole, audience=HERE.fingerprint, now=NOW, seconds=9)
    assert read(text).sub == whole


def test_issued_token_limits_its_bearer() -> None:
    claims = read(issued())
    assert (claims.iss, claims.sub, claims.jti) == (HERE.fingerprint, "thermostat", "jti-1")
    assert claims.caps == ("HELP.brainstem.Clock",)
    assert claims.exp - claims.iat == 86400


def test_an_ordinary_jwt_library_reads_and_writes_them() -> None:
    secret = load_pem_private_key(PEER.to_pem(), None)
    told = jwt.decode(
        peer_token(),
        secret.public_key(),  # type: ignore[arg-type]
        algorithms=["EdDSA"],
        audience=HERE.fingerprint,
        options={"verify_exp": False},
    )
    assert told["iss"] == PEER.fingerprint
    claims = read(jwt.encode({**told, "jti": "theirs", "more": [1]}, secret, "EdDSA", {"x-own": 1}))  # type: ignore[arg-type]
    assert claims.jti == "theirs"


def test_the_window_of_a_token() -> None:
    text = peer_token(300)
    assert read(text, now=1_700_000_299.9)
    assert refused(text, now=1_700_000_300) == "expired"
    assert read(text, now=1_699_999_940)
    assert refused(text, now=1_699_999_939) == "not_yet"
    later = {**claims_of(text), "nbf": int(NOW) + 200}
    assert refused(foreign(later)) == "not_yet"
    assert read(foreign(later), now=NOW + 200)


def test_a_peer_token_never_lives_longer_than_ten_minutes() -> None:
    claims = read(peer_token(100_000))
    assert claims.exp - claims.iat == 600
    longer = {**claims_of(peer_token()), "exp": int(NOW) + 601}
    assert refused(foreign(longer)) == "malformed"


def test_a_token_for_another_machine_is_refused() -> None:
    assert refused(peer_token(), audience=STRANGER.fingerprint) == "audience"
    both = {**claims_of(peer_token()), "aud": [HERE.fingerprint, STRANGER.fingerprint]}
    assert refused(foreign(both)) == "malformed"
    start = {**claims_of(peer_token()), "aud": HERE.fingerprint[:16]}
    assert refused(foreign(start)) == "malformed"


def test_a_token_by_somebody_unknown_is_refused() -> None:
    text = mint_peer_token(STRANGER, subject="a", audience=HERE.fingerprint, now=NOW, seconds=60)
    assert refused(text) == "issuer"


def test_nobody_signs_for_another() -> None:
    claims = claims_of(peer_token())
    assert refused(foreign(claims, STRANGER)) == "signature"
    assert refused(foreign(claims, STRANGER, key=STRANGER.public.hex())) == "signature"
    assert refused(foreign({**claims_of(issued())}, PEER)) == "signature"


def test_foreign_key_is_refused_though_passed_in() -> None:
    text = foreign(claims_of(peer_token()), STRANGER)
    with pytest.raises(BadTokenError) as caught:
        read_token(text, key_of=lambda issuer: STRANGER.public, audience=HERE.fingerprint, now=NOW)
    assert caught.value.reason == "signature"


def test_no_other_algorithm_counts() -> None:
    claims = claims_of(peer_token())
    head, body, signature = peer_token().split(".")
    for alg in ("none", "None", "HS256", "Ed25519", "eddsa", "RS256", ""):
        other = _part(json.dumps({"alg": alg, "typ": "JWT"}).encode())
        assert refused(f"{other}.{body}.{signature}") == "algorithm"
    none = jwt.encode(claims, None, "none")  # type: ignore[arg-type]
    assert refused(none) == "malformed"  # it ends with a dot
    assert refused(none + "AA") == "algorithm"
    assert refused(f"{head}.{body}.") == "malformed"


@pytest.mark.parametrize("secret", [PEER.public, PEER.public.hex().encode(), PEER.fingerprint.encode()])
def test_the_public_key_is_no_secret_to_sign_with(secret: bytes) -> None:
    head = _part(b'{"alg":"HS256","typ":"JWT"}')
    body = peer_token().split(".")[1]
    mac = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
    assert refused(f"{head}.{body}.{_part(mac)}") == "algorithm"


@pytest.mark.parametrize(
    "header",
    [
        {"crit": ["exp"]},
        {"crit": ["b64"], "b64": False},
        {"crit": ["b64"], "b64": True},
        {"crit": []},
        {"crit": None},
        {"b64": False},
        {"b64": None},
        {"kid": 7},
        {"kid": HERE.fingerprint},
        {"typ": 1},
    ],
)
def test_headers_that_demand_something_are_refused(header: dict[str, Any]) -> None:
    assert refused(foreign(claims_of(peer_token()), **header)) == "malformed"


def test_keys_in_headers_count_for_nothing() -> None:
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": _part(STRANGER.public)}
    text = foreign(claims_of(peer_token()), STRANGER, jwk=jwk, jku="https://example.org", x5u="file:///etc")
    assert refused(text) == "signature"


@pytest.mark.parametrize("missing", ["iss", "sub", "aud", "exp", "iat", "jti"])
def test_every_claim_must_be_there(missing: str) -> None:
    claims = claims_of(peer_token())
    del claims[missing]
    assert refused(foreign(claims)) == "malformed"


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        ("exp", "1700000300"),
        ("exp", 1.7e9),
        ("exp", True),
        ("exp", None),
        ("exp", -1),
        ("exp", 10**400),
        ("iat", "now"),
        ("sub", 5),
        ("sub", ""),
        ("sub", "x" * 5000),
        ("jti", []),
        ("iss", PEER.fingerprint.upper()),
        ("iss", PEER.fingerprint + "\n"),
        ("cnf", "abc"),
        ("cnf", {"kid": "short"}),
        ("caps", "HELP"),
        ("caps", ["HELP"]),
        ("uses", 0),
        ("uses", 3),
        ("parent", "00"),
    ],
)
def test_claims_of_another_type_are_refused(claim: str, value: Any) -> None:
    assert refused(foreign({**claims_of(peer_token()), claim: value})) == "malformed"


def test_a_peer_does_not_speak_under_another_machines_name() -> None:
    assert refused(foreign({**claims_of(peer_token()), "sub": f"a_{HERE.fingerprint[:16]}"})) == "binding"
    assert refused(foreign({**claims_of(peer_token()), "sub": "brainstem"})) == "binding"


def test_token_without_valid_capabilities_is_refused() -> None:
    claims = claims_of(issued())
    assert refused(foreign({**claims, "caps": None}, HERE)) == "malformed"
    assert refused(foreign({**claims, "caps": ["HELP.*.Clock"]}, HERE)) == "malformed"
    assert refused(foreign({**claims, "caps": [f"HELP.a{n}" for n in range(33)]}, HERE)) == "malformed"
    assert refused(foreign({**claims, "cnf": {"kid": PEER.fingerprint}}, HERE)) == "malformed"


def test_nothing_is_minted_that_nobody_could_read() -> None:
    with pytest.raises(BadCapabilityError):
        issued(caps=["help"])
    for wrong in ({"name": ""}, {"name": "x" * 200}, {"caps": [f"HELP.{'a' * 100}{n}" for n in range(64)]}):
        with pytest.raises(ValueError):
            issued(**wrong)


def test_a_long_text_is_refused_before_it_is_read() -> None:
    asked: list[str] = []

    def key_of(issuer: str) -> None:
        asked.append(issuer)

    claims = claims_of(peer_token())
    for size in (LONGEST, 100_000, 10_000_000):
        text = foreign({**claims, "more": "x" * size})
        with pytest.raises(BadTokenError) as caught:
            read_token(text, key_of=key_of, audience=HERE.fingerprint, now=NOW)
        assert caught.value.reason == "malformed"
    assert asked == []
    assert read(foreign({**claims, "more": "x" * 5000}))


@pytest.mark.parametrize(
    "body", [b"[" * 5500, b'{"a":' * 1100, b"\xff\xfe", b"null", b"[]", b"{}", b'"\\ud800"']
)
def test_bodies_that_are_no_claims(body: bytes) -> None:
    assert refused(foreign(body)) == "malformed"
    head, _, signature = peer_token().split(".")
    assert refused(f"{_part(body)}.{head}.{signature}") == "malformed"


@given(st.data())
@settings(max_examples=200)
def test_no_character_of_a_token_may_be_another(data: st.DataObject) -> None:
    text = ANY_TOKEN
    at = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.sampled_from("ABCxyz019-_.=+/ \n\0é").filter(lambda one: one != text[at]))
    refused(text[:at] + other + text[at + 1 :])
    refused(text[:at])
    refused(text + other)


@given(st.one_of(st.text(), st.text("eyJ.AB-_=", max_size=200), st.binary(), st.none(), st.integers()))
def test_anything_else_is_refused_and_never_raises_another_error(text: Any) -> None:
    assert refused(text) == "malformed"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from(["alg", "typ", "kid", "key", "crit", "b64", "jwk"]), JSON),
    st.dictionaries(st.sampled_from(["iss", "sub", "aud", "exp", "iat", "nbf", "jti", "cnf", "caps"]), JSON),
)
def test_signed_nonsense_is_refused_without_other_errors(
    header: dict[str, Any], claims: dict[str, Any]
) -> None:
    try:
        read(foreign({**claims_of(ANY_TOKEN), **claims}, **header))
    except BadTokenError:
        return
    assert header.get("alg", "EdDSA") == "EdDSA"


ANY_TOKEN = peer_token(certificate=b"der")


def test_pyjwt_is_not_loaded_until_there_is_a_token() -> None:
    code = "import sys, envelopes.identity.caller_tokens, envelopes.identity.capability_tokens; sys.exit('jwt' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
