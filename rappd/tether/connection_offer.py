"""An offer of a phone: the form in which it comes, and the record of what was found about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from rappd.tether import proofs
from rappd.tether.devices import Device
from rappd.tether.errors import BadOfferError
from rappd.tether.host_key import HostKey
from rappd.tether.webrtc_parameters import TransportParameters

MOST_BYTES = 16 << 10
"""Bytes of an offer: 32 candidates are 3 KB."""

_Id = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{0,64}\Z")]
_Promise = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{43}\Z")]


class Offer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An offer: the window or device, and the promise; ``transport`` comes over WebRTC and not over a WebSocket.

    ``window`` is empty with a typed code, ``device`` empty when pairing.
    """

    commit: _Promise
    window: _Id = ""
    device: _Id = ""
    transport: TransportParameters | None = None


def read_offer(body: object, *, transport: bool) -> Offer:
    """The offer that decoded JSON holds, with or without ``transport``. Raises ``BadOfferError``."""
    try:
        offer = msgspec.convert(body, Offer)
    except msgspec.ValidationError as error:
        raise BadOfferError("This is no offer of one data channel.") from error
    if (offer.transport is not None) is not transport or (offer.window and offer.device):
        raise BadOfferError("This is no offer of one data channel.")
    return offer


@dataclass(frozen=True, slots=True)
class CheckedOffer:
    """Names the window or the device, with the keys that prove it."""

    subject: str
    promise: bytes
    nonce: bytes
    host: HostKey
    device: Device | None
    keys: tuple[bytes, ...]

    @property
    def shown(self) -> dict[str, str]:
        """The fields for the phone."""
        return {
            "subject": self.subject,
            "nonce": proofs.b64(self.nonce),
            "host_key": proofs.b64(self.host.public),
        }
