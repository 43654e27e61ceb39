"""Picture files that go with a sentence: read and checked before anything is sent."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

from envelopes.codecs.picture_metadata import without_metadata
from envelopes.codecs.pictures import MOST_BYTES, Picture, check_count, check_together, checked_picture
from envelopes.errors import MalformedError
from rappd.errors import NotFoundError

_OPTION = "--picture"


def read_pictures(files: Sequence[Path]) -> list[Picture]:
    """The files as a request takes them, by their bytes.

    Raises ``NotFoundError`` for a missing one, and ``MalformedError`` naming the one that cannot go.
    """
    check_count(files, _OPTION)
    pictures = [_read(file) for file in files]
    check_together(pictures, _OPTION)
    return pictures


def _read(file: Path) -> Picture:
    if not file.is_file():
        raise NotFoundError(
            f'No file "{file}".', do="Nothing was sent. Give --picture a PNG, JPEG, GIF or WebP file."
        )
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)  # enough to be refused
    except OSError as error:
        raise MalformedError(f"{file} cannot be read: {error.strerror}", do="Nothing was sent.") from error
    if not content:
        raise MalformedError(f"{file.name} is empty", do="Send a PNG, JPEG, GIF or WebP picture.")
    if len(content) <= MOST_BYTES:
        try:
            content = without_metadata(content)
        except MalformedError as error:
            raise MalformedError(f"{file.name}: {error}", do=error.do) from error
    return checked_picture({"data": base64.b64encode(content).decode(), "name": file.name}, file.name)
