"""Pictures that go with a sentence: checked by their bytes, and as a record keeps them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from envelopes.envelope import PICTURES, shown
from envelopes.errors import MalformedError

Picture = dict[str, str]
"""``{"type": media type, "data": base64, "name"?}``."""

MOST_PICTURES = 4
MOST_BYTES = 2 << 20
"""Of one picture."""
MOST_TOGETHER = 4 << 20
MOST_OF_A_NAME = 120
ONLY_A_PICTURE = "(a picture)"
"""The sentence of a program's request that has pictures and no words."""

_BEGINNINGS = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_DO = 'Send [{"type": "image/png", "data": "<base64>"}].'


def checked(found: object, field: str = "pictures") -> list[Picture]:
    """The pictures in a field of a request, [] for none. Raises ``MalformedError``.

    The bytes say what a picture is: a ``type`` that they contradict is refused.
    """
    if found is None:
        return []
    if not isinstance(found, list):
        raise MalformedError(f"{field} must be a list", do=_DO)
    check_count(found, field)
    pictures = [checked_picture(one, f"{field}[{index}]") for index, one in enumerate(found)]
    check_together(pictures, field)
    return pictures


def check_count(found: Sequence[object], field: str) -> None:
    """Raises ``MalformedError`` for more pictures than may go together."""
    if len(found) > MOST_PICTURES:
        raise MalformedError(
            f"{field} has {len(found)} pictures; {MOST_PICTURES} are the most", do="Send fewer."
        )


def checked_picture(found: object, where: str) -> Picture:
    """One picture; ``where`` names it in a refusal. Raises ``MalformedError``."""
    if not isinstance(found, dict):
        raise MalformedError(f"{where} must be an object", do=_DO)
    data, name = found.get("data"), found.get("name", "")
    if not isinstance(data, str) or not data:
        raise MalformedError(f"{where}.data must be base64", do=_DO)
    if not isinstance(name, str):
        raise MalformedError(f"{where}.name must be a string", do="Send a name, or leave it out.")
    if len(data) > (MOST_BYTES + 2) // 3 * 4:
        raise MalformedError(f"{where} is larger than {_megabytes(MOST_BYTES)}", do="Make it smaller.")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise MalformedError(f"{where}.data must be base64", do=_DO) from error
    if len(content) > MOST_BYTES:
        raise MalformedError(f"{where} is larger than {_megabytes(MOST_BYTES)}", do="Make it smaller.")
    kind = media_type(content)
    if not kind:
        raise MalformedError(f"{where} is no PNG, JPEG, GIF or WebP picture", do="Send one of these.")
    declared = found.get("type", kind)
    if declared != kind:
        raise MalformedError(
            f"{where} is {kind}, not {shown(declared) if isinstance(declared, str) else 'that'}",
            do="Send its own type.",
        )
    picture = {"type": kind, "data": data}
    name = "".join(one if one.isprintable() else " " for one in name).strip()[:MOST_OF_A_NAME]
    return {**picture, "name": name} if name else picture


def check_together(pictures: Sequence[Picture], field: str) -> None:
    """Raises ``MalformedError`` when checked pictures are too many, or too large together."""
    check_count(pictures, field)
    together = sum(map(size_of, pictures))
    if together > MOST_TOGETHER:
        raise MalformedError(
            f"The pictures of {field} have {_megabytes(together)} together; {_megabytes(MOST_TOGETHER)} are the most",
            do="Send fewer, or smaller ones.",
        )


def recorded(extensions: Mapping[str, Any]) -> list[Picture]:
    """The pictures of a record; [] where it has none, or something that is none."""
    try:
        return checked(extensions.get(PICTURES))
    except MalformedError:
        return []


def media_type(content: bytes) -> str:
    """The media type that bytes begin with, "" for anything but PNG, JPEG, GIF and WebP."""
    for name, beginning in _BEGINNINGS.items():
        if content.startswith(beginning):
            return name
    if content[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else ""


def size_of(picture: Picture) -> int:
    """Bytes of a checked picture."""
    data = picture["data"]
    return len(data) // 4 * 3 - data.count("=", -2)


def data_url(picture: Picture) -> str:
    """A checked picture as a ``data:`` URL."""
    return f"data:{picture['type']};base64,{picture['data']}"


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MiB"
