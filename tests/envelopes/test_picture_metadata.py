"""Pictures lose what a camera wrote into them, and nothing else."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.picture_metadata import without_metadata
from envelopes.errors import MalformedError

PLACE = b"52.5200 N, 13.4050 E"


def segment(kind: int, body: bytes) -> bytes:
    return bytes((0xFF, kind)) + struct.pack(">H", len(body) + 2) + body


def exif(order: str = ">", direction: int = 6) -> bytes:
    head = (b"MM\0*" if order == ">" else b"II*\0") + struct.pack(f"{order}IH", 8, 2)
    make = struct.pack(f"{order}HHII", 0x010F, 2, 4, 0)
    turned = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, direction, 0)
    return b"Exif\0\0" + head + make + turned + struct.pack(f"{order}I", 0) + PLACE


JFIF = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
PROFILE = segment(0xE2, b"ICC_PROFILE\0\1\1colours")
TABLE = segment(0xDB, b"\0" + bytes(range(64)))
SCAN = segment(0xDA, b"\1\1\0\0\x3f\0") + b"data\xff\x00more\xff\xd0rest"
SECOND = segment(0xC4, b"table") + segment(0xDA, b"\1\1\0\0\x3f\0") + b"second scan"
END = b"\xff\xd9"
TOLD = [
    segment(0xE1, exif(direction=1)),
    segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x>" + PLACE),
    segment(0xED, b"Photoshop 3.0\0" + PLACE),
    segment(0xE2, b"MPF\0" + PLACE),
    segment(0xFE, PLACE),
]


def test_jpeg_keeps_its_picture_and_loses_the_rest() -> None:
    told = b"".join(TOLD)
    content = b"\xff\xd8" + JFIF + told + PROFILE + b"\xff" + TABLE + SCAN + SECOND + END + b"a film " + PLACE
    assert without_metadata(content) == b"\xff\xd8" + JFIF + PROFILE + TABLE + SCAN + SECOND + END


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("direction", [3, 6, 8])
def test_jpeg_keeps_the_direction_it_was_held_in(order: str, direction: int) -> None:
    found = without_metadata(b"\xff\xd8" + JFIF + segment(0xE1, exif(order, direction)) + TABLE + SCAN + END)
    assert PLACE not in found
    kept = found[2 + len(JFIF) :]
    assert kept.startswith(b"\xff\xe1") and b"Exif\0\0MM\0*" in kept[:14]
    assert struct.unpack(">HHIH", kept[20:30]) == (0x0112, 3, 1, direction)
    assert found.endswith(TABLE + SCAN + END)
    assert without_metadata(found) == found


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def test_png_keeps_its_picture_and_loses_the_rest() -> None:
    kept = [chunk(b"IHDR", bytes(13)), chunk(b"gAMA", b"1234"), chunk(b"IDAT", b"data"), chunk(b"IEND", b"")]
    told = [chunk(kind, PLACE) for kind in (b"eXIf", b"tEXt", b"iTXt", b"zTXt", b"tIME")]
    head = b"\x89PNG\r\n\x1a\n"
    content = head + kept[0] + b"".join(told) + b"".join(kept[1:]) + PLACE
    assert without_metadata(content) == head + b"".join(kept)


def test_webp_keeps_its_picture_and_loses_the_rest() -> None:
    def riff(*chunks: tuple[bytes, bytes]) -> bytes:
        body = b"WEBP" + b"".join(
            kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks
        )
        return b"RIFF" + struct.pack("<I", len(body)) + body

    content = riff((b"VP8X", bytes([0x3C]) + bytes(9)), (b"VP8 ", b"odd"), (b"EXIF", PLACE), (b"XMP ", PLACE))
    assert without_metadata(content + PLACE) == riff((b"VP8X", bytes([0x30]) + bytes(9)), (b"VP8 ", b"odd"))


def test_a_damaged_picture_that_may_hold_metadata_is_refused() -> None:
    whole = b"\xff\xd8" + JFIF + segment(0xE1, exif()) + TABLE + SCAN + END
    for length in (len(JFIF) + 20, len(whole) - 3):
        with pytest.raises(MalformedError, match="cannot be taken out"):
            without_metadata(whole[:length])


@given(
    st.binary(max_size=200),
    st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF\x20\0\0\0WEBP", b"GIF89a", b""]),
)
def test_no_bytes_are_an_error_of_ours(content: bytes, beginning: bytes) -> None:
    try:
        found = without_metadata(beginning + content)
    except MalformedError:
        return
    assert len(found) <= len(beginning + content) + 40
