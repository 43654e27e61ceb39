"""Cartridges that lie here, and their signers, as screens get them."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class Signed(TypedDict):
    """The signer of a file: its ``fingerprint`` and its standing here in words; ``notes`` on the signature."""

    signer: dict[str, str]
    notes: list[str]


class CartridgeRow(TypedDict):
    """A cartridge that lies here; one that cannot be read has its ``problem`` alone."""

    file: str
    path: str
    size: int
    twin: str
    of: str
    name: str
    problem: str
    description: NotRequired[str]
    frame: NotRequired[int]
    frozen: NotRequired[bool]
    signer: NotRequired[dict[str, str]]
    notes: NotRequired[list[str]]


class CartridgeText(Signed):
    """The text of a cartridge, and who signed it."""

    file: str
    text: str


class SignatureMade(TypedDict):
    """The text of a signature, and the name of the file that it belongs into."""

    file: str
    signature: str
