"""The host's side of the handshake, as a state table without I/O.

A pairing goes ``opening → proof → compare → done``, a resumption ``opening → proof → done``; anything unexpected goes
to ``ended``. The caller sends what it is told to send, asks the operator when told to ask, and closes the connection at
``End``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import Any, Literal

from rappd.daemon.request_signatures import signed_by
from rappd.tether import proofs
from rappd.tether.proofs import Parts

State = Literal["opening", "proof", "compare", "done", "ended"]
Reason = Literal["bad_proof", "certificate", "differs", "refused", "protocol", "left", "late"]
NAME_LENGTH = 40

_BEFORE_DONE = frozenset({"auth", "confirm", "ping", "bye"})


@dataclass(frozen=True, slots=True)
class Send:
    """A frame for the phone."""

    frame: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """The operator must compare these digits and answer."""

    digits: str
    name: str


@dataclass(frozen=True, slots=True)
class Accept:
    """Both sides agree: the session may begin."""

    name: str


@dataclass(frozen=True, slots=True)
class End:
    """The connection is over."""

    reason: Reason


Action = Send | Ask | Accept | End


@dataclass(frozen=True, slots=True)
class HostProof:
    """Proves this machine: ``sign`` uses its P-256 key, ``certificate`` is the identity's endorsement of it."""

    sign: Callable[[bytes], bytes]
    certificate: bytes


class Handshake:
    """One connection's handshake.

    ``keys`` are the proof keys that count: the window's token and typed code, or a device's secret. ``resumes``:
    the device is registered and nobody is asked. ``registered`` is the fingerprint that DTLS must verify for it;
    empty over a WebSocket, and where nobody resumes. ``parts.guest_print`` is what the phone said of itself.
    """

    def __init__(
        self,
        parts: Parts,
        commitment: bytes,
        keys: Sequence[bytes],
        host: HostProof,
        *,
        resumes: bool = False,
        registered: bytes = b"",
    ) -> None:
        self.state: State = "opening"
        self.name = ""
        self.key = ""
        """The public key of which the phone proved that it has the private half; "" without one."""
        self._parts = parts
        self._commitment = commitment
        self._keys = tuple(keys)
        self._host = host
        self._resumes = resumes
        self._registered = registered
        self._guest_agrees = self._operator_agrees = False

    def on_open(self, verified: bytes) -> list[Action]:
        """The channel is open, and DTLS has verified the certificate of this fingerprint: it alone counts from now on.

        Nothing that was said before decides who this is. Without DTLS ``verified`` is empty.
        """
        if self.state != "opening":
            return self._end("protocol")
        if verified != self._parts.guest_print or (self._registered and verified != self._registered):
            return [Send({"type": "stopped", "reason": "differs"}), *self._end("certificate")]
        self._parts = changed(self._parts, guest_print=verified)
        self.state = "proof"
        return []

    def on_frame(self, frame: dict[str, Any]) -> list[Action]:
        """A frame of the phone, as decoded JSON."""
        kind = frame.get("type")
        if self.state in ("done", "ended"):
            return []
        if self.state == "opening" or not isinstance(kind, str) or kind not in _BEFORE_DONE:
            return self._end("protocol")
        if kind == "ping":
            return [Send({"type": "pong"})]
        if kind == "bye":
            return self._end("left")
        if kind == "auth" and self.state == "proof":
            return self._on_proof(frame)
        if kind == "confirm" and self.state == "compare":
            return self._on_confirm(frame)
        return self._end("protocol")

    def on_operator(self, same: bool) -> list[Action]:
        """The operator's answer to ``Ask``."""
        if self.state != "compare":
            return []
        if not same:
            return [Send({"type": "stopped", "reason": "differs"}), *self._end("differs")]
        self._operator_agrees = True
        return self._both()

    def on_timeout(self) -> list[Action]:
        """The window's time is over before both sides agreed."""
        if self.state in ("done", "ended"):
            return []
        return [Send({"type": "stopped", "reason": "late"}), *self._end("late")]

    def _on_proof(self, frame: dict[str, Any]) -> list[Action]:
        try:
            nonce = proofs.unb64(frame.get("nonce"), proofs.NONCE_BYTES)
            mac = proofs.unb64(frame.get("mac"))
        except ValueError:
            return self._end("protocol")
        if not proofs.same(proofs.commitment(nonce), self._commitment):
            return [Send({"type": "stopped", "reason": "differs"}), *self._end("differs")]
        digest = changed(self._parts, guest_nonce=nonce).digest()
        key = next((one for one in self._keys if proofs.same(proofs.proof(one, "guest", digest), mac)), None)
        if key is None:
            return [Send({"type": "stopped", "reason": "expired"}), *self._end("bad_proof")]
        if "key" in frame and not self._proves(frame, digest):
            return [Send({"type": "stopped", "reason": "differs"}), *self._end("bad_proof")]
        self.name = tame_name(frame.get("name"))
        answer = Send(
            {
                "type": "auth_ok",
                "mac": proofs.b64(proofs.proof(key, "host", digest)),
                "signature": proofs.b64(self._host.sign(digest)),
                "certificate": proofs.b64(self._host.certificate),
            }
        )
        if self._resumes:
            self.state = "done"
            return [answer, Accept(self.name)]
        self.state = "compare"
        return [answer, Ask(proofs.six_digits(digest), self.name)]

    def _proves(self, frame: dict[str, Any], digest: bytes) -> bool:
        """True where the frame's key signed the digest."""
        key = frame["key"]
        try:
            signature = proofs.unb64(frame.get("key_signature"), proofs.SIGNATURE_BYTES)
        except ValueError:
            return False
        if not (isinstance(key, str) and signed_by(key, signature, proofs.key_text(digest))):
            return False
        self.key = key
        return True

    def _on_confirm(self, frame: dict[str, Any]) -> list[Action]:
        if frame.get("same") is not True:
            return self._end("differs")
        self._guest_agrees = True
        return self._both()

    def _both(self) -> list[Action]:
        if not (self._guest_agrees and self._operator_agrees):
            return []
        self.state = "done"
        return [Accept(self.name)]

    def _end(self, reason: Reason) -> list[Action]:
        self.state = "ended"
        return [End(reason)]


def tame_name(found: object) -> str:
    """The name that a phone gives itself, made safe to show; never empty."""
    text = found if isinstance(found, str) else ""
    plain = "".join(letter for letter in text if letter.isprintable())
    return " ".join(plain.split())[:NAME_LENGTH] or "phone"
