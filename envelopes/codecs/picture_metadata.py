"""Pictures without what a camera wrote into them: place, time, device, comments, previews.

JPEG, PNG and WebP are cut at their own boundaries; nothing is decoded. The direction that a JPEG is held in stays,
or it would be shown lying on its side.
"""

from __future__ import annotations

import re
import struct

from envelopes.errors import MalformedError

_KEPT_SEGMENTS = frozenset(
    {0xE0, 0xE2, 0xEE}
)  # JFIF, colour profile (and previews, see below), Adobe's colours
_PROFILE = b"ICC_PROFILE\0"
_DROPPED_CHUNKS = frozenset({b"eXIf", b"tEXt", b"zTXt", b"iTXt", b"tIME"})
_EXIF = b"Exif\0\0"
_ORIENTATION = 0x0112
_MARKER = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]")  # within a scan: what is no data and no restart
_SOS, _EOI, _COMMENT = 0xDA, 0xD9, 0xFE
_VP8X_EXIF_XMP = 0x08 | 0x04
_TELLING = (_EXIF, b"eXIf", b"http://ns.adobe.com/xap/", b"GPS", b"EXIF", b"XMP ")


def without_metadata(content: bytes) -> bytes:
    """The picture without metadata; GIF, which no camera writes, as it is.

    Raises ``MalformedError`` for one that cannot be taken apart and may hold some.
    """
    try:
        if content.startswith(b"\xff\xd8\xff"):
            return _jpeg(content)
        if content.startswith(b"\x89PNG\r\n\x1a\n"):
            return _png(content)
        if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
            return _webp(content)
    except (ValueError, IndexError, struct.error):
        if any(word in content for word in _TELLING):
            raise MalformedError(
                "This picture is damaged, and what the camera wrote into it cannot be taken out",
                do="Open it in a program for pictures and save it anew.",
            ) from None
    return content


def _jpeg(content: bytes) -> bytes:
    parts, at, direction = [content[:2]], 2, 1
    while True:
        if content[at] != 0xFF:
            raise ValueError("no marker")
        while content[at + 1] == 0xFF:  # padding
            at += 1
        kind = content[at + 1]
        if kind == _EOI:
            break
        end = at + 2 + struct.unpack_from(">H", content, at + 2)[0]
        if end > len(content):
            raise ValueError("cut off")
        segment = content[at:end]
        at = end
        if kind == 0xE1 and segment[4:].startswith(_EXIF):
            direction = _direction(segment[4 + len(_EXIF) :])
        elif _stays(kind, segment[4:]):
            parts.append(segment)
        if kind == _SOS:
            found = _MARKER.search(content, at)
            if found is None:
                raise ValueError("cut off")
            parts.append(content[at : found.start()])
            at = found.end() - 2
    if direction != 1:
        parts.insert(2 if parts[1][1] == 0xE0 else 1, _exif_of(direction))
    return b"".join((*parts, b"\xff\xd9"))  # what lies behind is a film, or a second picture


def _stays(kind: int, body: bytes) -> bool:
    if kind == 0xE2:
        return body.startswith(_PROFILE)
    return kind in _KEPT_SEGMENTS or not (0xE0 <= kind <= 0xEF or kind == _COMMENT)


def _direction(tiff: bytes) -> int:
    """The orientation in a block of Exif, 1 (upright) where it tells none."""
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return 1
    try:
        start = struct.unpack_from(f"{order}I", tiff, 4)[0]
        count = struct.unpack_from(f"{order}H", tiff, start)[0]
        for at in range(start + 2, start + 2 + 12 * count, 12):
            if struct.unpack_from(f"{order}H", tiff, at)[0] == _ORIENTATION:
                found = int(struct.unpack_from(f"{order}H", tiff, at + 8)[0])
                return found if 1 <= found <= 8 else 1
    except struct.error:
        pass
    return 1


def _exif_of(direction: int) -> bytes:
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, _ORIENTATION, 3, 1, direction, 0, 0)
    return b"\xff\xe1" + struct.pack(">H", 2 + len(_EXIF) + len(tiff)) + _EXIF + tiff


def _png(content: bytes) -> bytes:
    parts, at = [content[:8]], 8
    while True:
        end = at + 12 + struct.unpack_from(">I", content, at)[0]
        kind = content[at + 4 : at + 8]
        if end > len(content):
            raise ValueError("cut off")
        if kind not in _DROPPED_CHUNKS:
            parts.append(content[at:end])
        at = end
        if kind == b"IEND":
            return b"".join(parts)


def _webp(content: bytes) -> bytes:
    whole = 8 + struct.unpack_from("<I", content, 4)[0]
    if whole > len(content):
        raise ValueError("cut off")
    parts, at = [b"WEBP"], 12
    while at + 8 <= whole:
        kind, size = content[at : at + 4], struct.unpack_from("<I", content, at + 4)[0]
        end = at + 8 + size + size % 2
        chunk = content[at:end]
        if end > whole:
            raise ValueError("cut off")
        if kind == b"VP8X":
            chunk = chunk[:8] + bytes((chunk[8] & ~_VP8X_EXIF_XMP,)) + chunk[9:]
        if kind not in (b"EXIF", b"XMP "):
            parts.append(chunk)
        at = end
    body = b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body
