"""The session description (RFC 8829) of one data channel, written from checked fields for the library at hand."""

from __future__ import annotations

from rappd.tether.transport_parameters import TransportParameters, hex_pairs

_MESSAGE_BYTES = 1 << 16
_SCTP_PORT = 5000


def description(parameters: TransportParameters, *, mid: str = "0") -> str:
    """The only text that a library gets; ``mid`` is the name that the library itself gave the data channel.

    It holds one section, and one fingerprint: that of ``parameters``.
    """
    lines = [
        "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", f"a=group:BUNDLE {mid}",
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "c=IN IP4 0.0.0.0", f"a=mid:{mid}",
        f"a=ice-ufrag:{parameters.ufrag}", f"a=ice-pwd:{parameters.pwd}",
        f"a=fingerprint:sha-256 {hex_pairs(parameters.print)}", f"a=setup:{parameters.setup}",
        f"a=sctp-port:{_SCTP_PORT}", f"a=max-message-size:{_MESSAGE_BYTES}",
        *(
            f"a=candidate:{number} 1 udp {one.priority} {one.address} {one.port} typ host"
            for number, one in enumerate(parameters.candidates, 1)
        ),
    ]  # fmt: skip
    return "\r\n".join(lines) + "\r\n"
