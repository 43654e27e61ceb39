"""``voice.zip``: voice settings in an AES-encrypted zip that holds ``voice.json``."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import orjson

from agents.storage.safe_fs import SafeTree
from twins.errors import BadFileError, NoSuchFileError, TwinError

_NAME = "voice.zip"
_MEMBER = "voice.json"
_MAX = 1 << 20
_MAX_FILE = 2 * _MAX


class WrongPasswordError(TwinError):
    """The password does not open the file."""

    code = "wrong_password"
    status = 403
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("voice.zip password incorrect", do="Set voice_zip_password.")


def read(root: Path, password: str) -> dict[str, Any]:
    """The settings; {} when there is no file. Raises ``WrongPasswordError``."""
    found = SafeTree(root).read_if_there(_NAME, _MAX_FILE)
    return {} if found is None else _open(found, password)


def write(root: Path, password: str, settings: dict[str, Any]) -> None:
    """Replaces the settings. A password is required: the file holds a speech service's key."""
    if not password:
        raise BadFileError("A password is needed to keep voice settings.", do="Send _password.")
    if len(orjson.dumps(settings)) > _MAX:
        raise BadFileError(f"The voice settings have more than {_MAX} bytes.", do="Keep fewer.")
    SafeTree(root).write_durably(_NAME, _pack(settings, password))


def content(root: Path) -> bytes:
    """The encrypted file itself. Raises ``NoSuchFileError``."""
    found = SafeTree(root).read_if_there(_NAME, _MAX_FILE)
    if found is None:
        raise NoSuchFileError("There is no voice.zip.", do="POST /voice/config first.")
    return found


def take(root: Path, password: str, found: bytes) -> dict[str, Any]:
    """Checks an incoming file and keeps it; returns its settings."""
    settings = _open(found, password)
    SafeTree(root).write_durably(_NAME, found)
    return settings


def _open(found: bytes, password: str) -> dict[str, Any]:
    import zipfile

    import pyzipper

    damaged = (  # the library's own words for a file with a wrong byte
        zipfile.BadZipFile, pyzipper.BadZipFile, zlib.error, struct.error,
        NotImplementedError, KeyError, ValueError, EOFError,
    )  # fmt: skip
    try:
        with pyzipper.AESZipFile(io.BytesIO(found)) as archive:
            info = archive.getinfo(_MEMBER)
            if info.file_size > _MAX:
                raise BadFileError("voice.json is too large.", do="Make the file anew.")
            settings = orjson.loads(archive.read(info, pwd=password.encode("utf-8", "replace")))
    except damaged as error:
        raise BadFileError("That is no voice.zip.", do="Export it again.") from error
    except RuntimeError as error:  # and for a wrong or missing password
        raise WrongPasswordError from error
    if not isinstance(settings, dict):
        raise BadFileError("voice.json is not an object.", do="Export it again.")
    return settings


def _pack(settings: dict[str, Any], password: str) -> bytes:
    import pyzipper

    packed = io.BytesIO()
    with pyzipper.AESZipFile(
        packed, "w", compression=pyzipper.ZIP_DEFLATED, encryption=pyzipper.WZ_AES
    ) as archive:
        archive.setpassword(password.encode())
        archive.writestr(_MEMBER, orjson.dumps(settings))
    return packed.getvalue()
