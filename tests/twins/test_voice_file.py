"""``voice.zip``: whatever the file holds, reading it gives settings or says what is wrong with it."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import pytest
import pyzipper

from twins.errors import BadFileError, TwinError
from twins.workspace import voice_file


def _zipped(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with pyzipper.AESZipFile(
        packed, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES
    ) as archive:
        archive.setpassword(b"open")
        archive.writestr(name, content)
    return packed.getvalue()


SOUND = _zipped("voice.json", json.dumps({"a": "x" * 300}).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no zip",
        b"PK\x05\x06" + bytes(18),
        _zipped("other.json", b"{}"),
        _zipped("voice.json", b"[1]"),
        _zipped("voice.json", b"{"),
        _zipped("voice.json", b"\xff\xfe"),
        _zipped("voice.json", b'{"a": "' + b"x" * (2 << 20) + b'"}'),
        SOUND[:-30],
        SOUND.replace(b"voice.json", b"voice.jso\xff"),
        SOUND.replace(struct.pack("<I", len(json.dumps({"a": "x" * 300}))), struct.pack("<I", 5)),
    ],
    ids=["empty", "text", "hollow", "other", "list", "half", "no text", "huge", "cut", "name", "size"],
)
def test_a_file_that_is_none_is_refused_and_replaces_nothing(tmp_path: Path, content: bytes) -> None:
    voice_file.write(tmp_path, "open", {"kept": True})
    with pytest.raises(TwinError):
        voice_file.take(tmp_path, "open", content)
    assert voice_file.read(tmp_path, "open") == {"kept": True}


def test_a_flipped_bit_anywhere_is_told_or_harmless(tmp_path: Path) -> None:
    told = 0
    for place in range(len(SOUND)):
        spoilt = bytearray(SOUND)
        spoilt[place] ^= 0x55
        (tmp_path / "voice.zip").write_bytes(spoilt)
        try:
            assert voice_file.read(tmp_path, "open") == {"a": "x" * 300}
        except TwinError:
            told += 1
    assert told > len(SOUND) / 2


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadFileError):
        voice_file.write(tmp_path, "open", {"a": "x" * (1 << 20)})
    assert voice_file.read(tmp_path, "open") == {}
    largest = {"a": "x" * ((1 << 20) - 8)}
    voice_file.write(tmp_path, "open", largest)
    assert voice_file.read(tmp_path, "open") == largest
