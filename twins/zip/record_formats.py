"""The records that a ZIP file is made of (PKWARE APPNOTE 6.3.10, sections 4.3 and 4.4)."""

from __future__ import annotations

from struct import Struct

LOCAL = Struct("<4sHHHHHIIIHH")
"""Signature, version, flags, method, time, date, CRC, compressed, size, name length, extra length."""
CENTRAL = Struct("<4sHHHHHHIIIHHHHHII")
"""Signature, made by, version, flags, method, time, date, CRC, compressed, size, name length, extra length,
comment length, disk, internal attributes, external attributes, offset of the local header."""
END = Struct("<4sHHHHIIH")
"""Signature, disk, directory's disk, entries here, entries, directory bytes, directory offset, comment."""
END64 = Struct("<4sQHHIIQQQQ")
"""Signature, bytes that follow, made by, version, then as ``END`` without the comment."""
LOCATOR = Struct("<4sIQI")
"""Signature, disk, offset of the ``END64`` record, disks."""
FIELD = Struct("<HH")
"""Head of an extra field: what it is, bytes that follow."""

LOCAL_SIGN = b"PK\x03\x04"
CENTRAL_SIGN = b"PK\x01\x02"
DESCRIPTOR_SIGN = b"PK\x07\x08"
END_SIGN = b"PK\x05\x06"
END64_SIGN = b"PK\x06\x06"
LOCATOR_SIGN = b"PK\x06\x07"

STORED, DEFLATED = 0, 8

ENCRYPTED = 0x0001
SIZES_FOLLOW = 0x0008
PATCHED = 0x0020
STRONGLY_ENCRYPTED = 0x0040
UTF8 = 0x0800
MASKED = 0x2000

FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF
"""A field with this value says: look into the ZIP64 record."""

EPOCH = (0, 0x21)
"""Time and date of 1980-01-01 00:00, the first moment that ZIP knows."""

ZIP64_FIELD = 0x0001
PKWARE_UNIX_FIELD = 0x000D
STRONG_ENCRYPTION_FIELD = 0x0017
ASI_UNIX_FIELD = 0x756E
UNICODE_PATH_FIELD = 0x7075
AES_FIELD = 0x9901
