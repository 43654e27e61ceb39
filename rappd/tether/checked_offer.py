"""An offer of a phone, after it was checked who asks."""

from __future__ import annotations

from dataclasses import dataclass

from rappd.tether import proofs
from rappd.tether.devices import Device
from rappd.tether.host_key import HostKey


@dataclass(frozen=True, slots=True)
class CheckedOffer:
    """Names the window or the device, with the keys that prove it."""

    subject: str
    promise: bytes
    nonce: bytes
    host: HostKey
    device: Device | None
    keys: tuple[bytes, ...]
    proved: bool

    @property
    def shown(self) -> dict[str, str]:
        """The fields for the phone."""
        return {
            "subject": self.subject,
            "nonce": proofs.b64(self.nonce),
            "host_key": proofs.b64(self.host.public),
        }
