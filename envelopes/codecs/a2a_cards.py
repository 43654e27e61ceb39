"""Agent cards of A2A 1.0: written and signed (JWS over RFC 8785), and read as somebody else wrote them. No I/O."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from envelopes.codecs.a2a import EVENTS, REPLAY, VERSION
from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.canonical import canonical
from envelopes.envelope import HELP
from envelopes.identity.keys import IdentityKey

PATH = "/.well-known/agent-card.json"
JSON_RPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"

LARGEST = 1 << 20
MOST_SKILLS = 500
LONGEST_NAME = 120
LONGEST_TEXT = 2000
_MODES = ["text/plain", "application/json"]
_PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"]


class Skill(NamedTuple):
    """A skill of an agent: its id, what people call it, what it does, and the kind that it is tagged as."""

    id: str
    name: str
    description: str
    tag: str = "agent"


class ForeignCard(NamedTuple):
    """Another agent's card as far as it is used: what it says of itself, and where and how it is asked."""

    name: str
    description: str
    skills: tuple[Skill, ...]
    url: str
    binding: str
    tenant: str
    streams: bool


def card(
    name: str, description: str, url: str, skills: Iterable[Skill], version: str, *, remote: bool
) -> dict[str, Any]:
    """A card of this machine: both bindings at ``url``.

    ``remote``: at the listener for other machines, where a token or a certificate is asked for. Nothing in it is empty:
    readers differ in which empty values a signature covers.
    """
    rows: list[dict[str, Any]] = [
        {"id": one.id, "name": one.name, "description": one.description or one.name, "tags": [one.tag]}
        for one in skills
    ]
    found: dict[str, Any] = {
        "name": name,
        "description": description,
        "version": version,
        "supportedInterfaces": [
            {"url": f"{url}/", "protocolBinding": JSON_RPC, "protocolVersion": VERSION},
            {"url": url, "protocolBinding": HTTP_JSON, "protocolVersion": VERSION},
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": True,
            "extensions": [
                {"uri": REPLAY, "description": "Stream events have ids; Last-Event-ID goes on after one."},
                {"uri": EVENTS, "description": "All events of a turn as metadata of status updates."},
            ],
        },
        "defaultInputModes": [*_MODES, *_PICTURES],
        "defaultOutputModes": _MODES,
        "skills": rows,
    }
    if remote:
        bearer = {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}}
        certificate = {"mtlsSecurityScheme": {"description": "The certificate of a paired machine."}}
        found["securitySchemes"] = {"bearer": bearer, "certificate": certificate}
        may = {"list": [f"{HELP}.brainstem"]}
        found["securityRequirements"] = [{"schemes": {one: may}} for one in ("bearer", "certificate")]
    return found


def signed(found: Mapping[str, Any], key: IdentityKey) -> dict[str, Any]:
    """The card with a signature of ``key``: ``kid`` is its fingerprint, the header beside it has the key itself."""
    header = {"alg": "EdDSA", "kid": key.fingerprint, "typ": "JOSE"}
    protected = _base64url(canonical(header))
    signature = _base64url(key.sign(_signing_input(protected, found)))
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": _base64url(key.public), "kid": key.fingerprint}
    return {**found, "signatures": [{"protected": protected, "signature": signature, "header": {"jwk": jwk}}]}


def read_card(raw: bytes, asked: str) -> ForeignCard:
    """The card in ``raw``, fetched from ``asked``. Raises ``ValueError`` with a clause about what is wrong.

    Only an interface at the host that was asked is used: a card leads to no other machine, and from TLS to nothing less.
    """
    found = bounded_json(raw, most_bytes=LARGEST)
    if not isinstance(found, dict):
        raise ValueError("it is no card")
    name = tame(found.get("name"), LONGEST_NAME)
    if not name:
        raise ValueError("it has no name")
    interfaces = [one for one in _list(found.get("supportedInterfaces")) if isinstance(one, dict)]
    if not interfaces:
        version = found.get("protocolVersion")
        old = isinstance(version, str) and version.startswith("0.")
        raise ValueError(
            f"it speaks A2A {tame(version, 20)}; {VERSION} is spoken here" if old else "it has no interface"
        )
    usable = [one for one in interfaces if _speaks(one)]
    if not usable:
        raise ValueError(f"it has no interface of A2A {VERSION} over JSON-RPC or HTTP+JSON")
    near = [one for one in usable if _is_at(one["url"], asked)]
    if not near:
        raise ValueError(f"it leads to another machine ({tame(usable[0]['url'], LONGEST_NAME)})")
    chosen = near[0]
    abilities = found.get("capabilities")
    return ForeignCard(
        name,
        tame(found.get("description"), LONGEST_TEXT),
        tuple(_skills(found.get("skills"))),
        chosen["url"],
        chosen["protocolBinding"],
        tame(chosen.get("tenant"), LONGEST_NAME),
        isinstance(abilities, dict) and abilities.get("streaming") is True,
    )


def tame(found: object, most: int) -> str:
    """A foreign text on one line of at most ``most`` characters, without what a terminal would obey."""
    if not isinstance(found, str):
        return ""
    plain = "".join(one if one.isprintable() else " " for one in found[: 4 * most])
    return " ".join(plain.split())[:most]


def _skills(found: object) -> Iterable[Skill]:
    for one in _list(found)[:MOST_SKILLS]:
        if isinstance(one, dict) and (ident := tame(one.get("id"), LONGEST_NAME)):
            name = tame(one.get("name"), LONGEST_NAME) or ident
            yield Skill(ident, name, tame(one.get("description"), LONGEST_TEXT))


def _speaks(one: Mapping[str, Any]) -> bool:
    version, url = one.get("protocolVersion"), one.get("url")
    is_spoken = isinstance(version, str) and (version == VERSION or version.startswith(f"{VERSION}."))
    return is_spoken and isinstance(url, str) and one.get("protocolBinding") in (JSON_RPC, HTTP_JSON)


def _is_at(url: str, asked: str) -> bool:
    try:
        there, here = urlsplit(url), urlsplit(asked)
        _ = there.port  # a wrong one raises
    except ValueError:
        return False
    secure = there.scheme == "https" or (there.scheme == "http" and here.scheme == "http")
    plain = "@" not in there.netloc and not there.query and not there.fragment
    return secure and plain and there.hostname is not None and there.hostname == here.hostname


def _signing_input(protected: str, found: Mapping[str, Any]) -> bytes:
    payload = canonical(_filled({key: value for key, value in found.items() if key != "signatures"}))
    return f"{protected}.{_base64url(payload)}".encode()


def _filled(found: Any) -> Any:
    """The value without empty texts, lists and objects, at any depth, as A2A signs it; None where nothing is left."""
    if isinstance(found, dict):
        return {key: kept for key, one in found.items() if (kept := _filled(one)) is not None} or None
    if isinstance(found, list):
        return [kept for one in found if (kept := _filled(one)) is not None] or None
    return None if found == "" else found


def _list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _base64url(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()
