"""Errors of pairing, besides ``PairingStoppedError``."""

from __future__ import annotations

from neighborhoods.errors import NeighborhoodError


class BadStepError(NeighborhoodError):
    """A body that is no step of a pairing, or comes out of turn."""

    code = "bad_pairing"
    status = 400
    exit_code = 5


class NoSuchPairingError(NeighborhoodError):
    """No attempt of that id is known here, or no code is shown."""

    code = "no_pairing"
    status = 404
    exit_code = 4


class PairingBusyError(NeighborhoodError):
    """As many are asking as this machine keeps at a time."""

    code = "pairing_busy"
    status = 429
    exit_code = 8
