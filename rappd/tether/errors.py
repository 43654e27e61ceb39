"""Errors of phones."""

from __future__ import annotations

from rappd.errors import RappdError


class TetherError(RappdError):
    """Root of this package's errors."""

    code = "tether"
    status = 400


class BadOfferError(TetherError):
    """An offer that is not one data channel of a browser."""

    code = "bad_offer"

    def __init__(self, message: str) -> None:
        super().__init__(message, do="Open the page anew.")


class OfferTooLongError(BadOfferError):
    """An offer longer than any browser's."""

    code = "offer_too_long"
    status = 413

    def __init__(self) -> None:
        super().__init__("The offer is longer than 16 KiB.")


class OtherCertificateError(TetherError):
    """A phone that resumes over WebRTC without the certificate that it joined with: it may use the WebSocket."""

    code = "other_certificate"
    status = 409
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            "This browser cannot prove that it is the phone that joined.",
            do="Use the WebSocket; for the private line, pair it anew.",
        )


class WindowClosedError(TetherError):
    """No QR code is good now: it expired, was used, or was never shown."""

    code = "code_expired"
    status = 403
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("That QR code has expired.", do="Ask for a new one: rappd pair")


class UnknownDeviceError(TetherError):
    """A device that is not registered here, or was removed."""

    code = "unknown_device"
    status = 403
    exit_code = 4

    def __init__(self) -> None:
        super().__init__("This phone was removed.", do="To come back, ask for a new QR code.")


class TetherUnavailableError(TetherError):
    """The listener for phones cannot open, or a window is in the way."""

    code = "tether_unavailable"
    status = 409
    exit_code = 9


class BadEggTokenError(TetherError):
    """A phone's request for an egg without a token that is good for it now."""

    code = "egg_token"
    status = 401
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("This phone may not do that any more.", do="Try again from the conversation.")


class EggTooLargeError(TetherError):
    """An egg of a phone that is larger than one may be."""

    code = "egg_too_large"
    status = 413
    exit_code = 5

    def __init__(self, most: int) -> None:
        super().__init__(f"The egg has more than {most >> 20} MB.", do="Carry it by hand.")
