"""The namespace of privileged messages, and the refusal of them at every listener but the control socket."""

from __future__ import annotations

import logging

from envelopes.errors import EnvelopeError

log = logging.getLogger(__name__)

NAMESPACE = "https://xml-pipeline.org/privileged-msg"
_CARRIERS = ("data", "params", "args", "arguments", "payload", "message", "input", "parts")
"""Keys of foreign codecs below which a payload can stand."""
_LEVELS = 5
_MOST_PARTS = 64


class PrivilegedMessageError(EnvelopeError):
    """A privileged message at a listener that takes none; the words are those of any refusal."""

    code = "refused"
    status = 403

    def __init__(self) -> None:
        super().__init__("Not allowed.", do="Ask this machine's owner to share it.")


def refuse_privileged(found: object, *, listener: str, octets: bytes | None = None) -> None:
    """Raises ``PrivilegedMessageError`` for JSON that is such a payload, or carries one; text that mentions it is text.

    ``octets`` are those that it was read from, where they are at hand: most cannot name that namespace.
    """
    if octets is not None and b"privileged" not in octets and b"\\u" not in octets:
        return
    if _is_privileged(found, _LEVELS):
        log.warning("security: a privileged message came to the listener %s, and was dropped", listener)
        raise PrivilegedMessageError


def refuse_privileged_text(raw: bytes, *, listener: str) -> None:
    """The same for a body that is no JSON: XML of that namespace."""
    if raw.lstrip()[:1] == b"<" and NAMESPACE.encode() in raw:
        refuse_privileged({"ns": NAMESPACE}, listener=listener)


def is_privileged(namespace: object) -> bool:
    """True for that namespace and any version of it."""
    return isinstance(namespace, str) and namespace.strip().startswith(NAMESPACE)


def _is_privileged(found: object, levels: int) -> bool:
    if isinstance(found, dict):  # what JSON is read into: this is asked of each request
        if is_privileged(found.get("ns")):
            return True
        return levels > 0 and any(_is_privileged(found[key], levels - 1) for key in _CARRIERS if key in found)
    if isinstance(found, list) and levels > 0:
        return any(_is_privileged(one, levels - 1) for one in found[:_MOST_PARTS])
    return False
