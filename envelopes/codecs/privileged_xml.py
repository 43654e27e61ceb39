"""Privileged messages (``privileged-msg`` of AgentServer 1.1): signed requests that change structure, and their replies.

Signed is ``rappd/privileged``, a line feed, and the exclusive canonical XML of ``<payload>``, which has the id and the
time. They are taken at the control socket alone. Parsing loads lxml.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import msgspec

from envelopes.codecs.privileged import NAMESPACE
from envelopes.envelope import is_uuid, new_id
from envelopes.errors import BadSignatureError, MalformedError
from envelopes.identity.keys import IdentityKey, verify

MOST_BYTES = 1 << 16
_CONTEXT = b"rappd/privileged\n"
_ALGORITHM = "ed25519"
_ADVICE = "Sign it: rappd organism sign FILE"


class PrivilegedRequest(msgspec.Struct, frozen=True):
    """A request as it came. ``fields`` are the texts of its attributes and elements, a repeated one as a list.

    ``at`` is in seconds since 1970. Nothing of it counts before ``verified``.
    """

    id: str
    at: float
    name: str
    fields: dict[str, str | list[str]]
    signed: bytes
    signature: bytes

    def verified(self, public: bytes) -> PrivilegedRequest:
        """Itself, where the key ``public`` signed it. Raises ``BadSignatureError``."""
        if not self.signature or not verify(public, self.signature, self.signed):
            raise BadSignatureError("This machine's key did not sign that message.", do=_ADVICE)
        return self


def decode(raw: bytes) -> PrivilegedRequest:
    """The request in ``raw``. Raises ``xml_refused``, ``MalformedError`` with what is wrong."""
    from envelopes.codecs.xml_message import canonical, element_of

    if len(raw) > MOST_BYTES:
        raise MalformedError(f"A privileged message has {MOST_BYTES} bytes at most.", do="Send less.")
    try:
        root = element_of(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise MalformedError("The message is not UTF-8.", do="Send UTF-8.") from error
    if root.tag != f"{{{NAMESPACE}}}privileged-msg":
        raise MalformedError("The root is no <privileged-msg>.", do=_ADVICE)
    parts = {one.tag: one for one in root}
    payload, signature = (parts.get(f"{{{NAMESPACE}}}{name}") for name in ("payload", "signature"))
    if payload is None or len(payload) != 1 or len(parts) != len(root) or len(root) > 2:
        raise MalformedError("A privileged message is one <payload>, and its <signature>.", do=_ADVICE)
    ident, at = payload.get("id", ""), _moment(payload.get("timestamp", ""))
    if not is_uuid(ident):
        raise MalformedError("The payload's id is not a UUID.", do=_ADVICE)
    request = payload[0]
    namespace, _, name = request.tag.rpartition("}")
    if namespace[1:] != NAMESPACE:
        raise MalformedError(
            f"<{name[:60]}> is of another namespace.", do="See docs/wire.md for the requests."
        )
    made = b""
    if signature is not None:
        if signature.get("algorithm") != _ALGORITHM:
            raise BadSignatureError("The signature's algorithm is not ed25519.", do=_ADVICE)
        try:
            made = base64.b64decode("".join((signature.text or "").split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadSignatureError("The signature is not base64.", do=_ADVICE) from error
    signed = _CONTEXT + canonical(payload).encode()
    return PrivilegedRequest(ident, at, name, _fields(request), signed, made)


def sign(raw: bytes, key: IdentityKey) -> bytes:
    """The signed message for ``raw``: a request's element, or a whole message without a signature, or with an old one.

    It gets a new id, and the time of now.
    """
    from envelopes.codecs.xml_message import canonical, element_of

    try:
        root = element_of(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise MalformedError("The file is not UTF-8.", do="Save it as UTF-8.") from error
    request = root
    if root.tag == f"{{{NAMESPACE}}}privileged-msg":
        payload = root.find(f"{{{NAMESPACE}}}payload")
        if payload is None or len(payload) != 1:
            raise MalformedError("The message has no <payload> with one request.", do="See docs/wire.md.")
        request = payload[0]
    if request.tag.rpartition("}")[0][1:] != NAMESPACE:
        raise MalformedError(f"The request is not of {NAMESPACE}.", do="See docs/wire.md for the requests.")
    moment = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    inner = canonical(request)
    payload_text = f'<payload xmlns="{NAMESPACE}" id="{new_id()}" timestamp="{moment}">{inner}</payload>'
    octets = canonical(element_of(payload_text))
    signature = base64.b64encode(key.sign(_CONTEXT + octets.encode())).decode()
    return (
        f'<privileged-msg xmlns="{NAMESPACE}">{octets}'
        f'<signature algorithm="{_ALGORITHM}">{signature}</signature></privileged-msg>\n'
    ).encode()


def response(ident: str, *, operation: str = "", result: Mapping[str, Any] | None = None) -> bytes:
    """The reply to a request that was done: ``<ack/>``, or ``<result>`` with JSON text."""
    inner = "<ack/>"
    if result is not None:
        inner = f"<result operation={quoteattr(operation)}>{_json(result)}</result>"
    return _enclosed("privileged-response", inner, ident)


def refusal(ident: str, code: str, message: str, details: str) -> bytes:
    """The reply to a request that was not done."""
    inner = (
        f"<code>{_text(code)}</code><message>{_text(message)}</message><details>{_text(details)}</details>"
    )
    return _enclosed("privileged-response", f"<error>{inner}</error>", ident)


def push(kind: str, event: Mapping[str, Any]) -> bytes:
    """Writes a ``thread-event``, ``listener-event`` or ``system-event``, as JSON text."""
    return _enclosed("privileged-push", f"<{kind}>{_json(event)}</{kind}>", "")


def _enclosed(root: str, inner: str, ident: str) -> bytes:
    to = f" in-reply-to={quoteattr(ident)}" if ident else ""
    return f'<{root} xmlns="{NAMESPACE}"{to}>{inner}</{root}>'.encode()


def _json(value: Mapping[str, Any]) -> str:
    return escape(json.dumps(value, default=str))  # ASCII: whatever XML cannot hold is escaped by JSON


def _text(text: str) -> str:
    from envelopes.codecs.xml_repair import IMPOSSIBLE

    return escape(IMPOSSIBLE.sub("\ufffd", text))


def _fields(request: Any) -> dict[str, str | list[str]]:
    found: dict[str, str | list[str]] = dict(request.attrib)
    for one in request:
        name, text = one.tag.rpartition("}")[2], "".join(one.itertext()).strip()
        before = found.get(name)
        if before is None:
            found[name] = text
        else:
            found[name] = [*(before if isinstance(before, list) else [before]), text]
    return found


def _moment(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise MalformedError("The payload's timestamp is no time with a zone.", do=_ADVICE)
    return found.timestamp()
