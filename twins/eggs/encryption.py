"""Eggs that one machine alone can open: the file, whole, as an age v1 file for its X25519 key.

Sealing hides an egg from everybody between two machines. It does not say who sealed it; that is what an
egg's integrity layer, and the connection it came over, are for.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO, RawIOBase
from pathlib import Path
from typing import Final

from pyrage import DecryptError, EncryptError, IdentityError, RecipientError, decrypt_io, encrypt_io, x25519

from agents.storage.atomic_write import replacing
from twins.errors import BadEggError, TwinError
from twins.installer.errors import DiskFullError

_MAGIC: Final = b"age-encryption.org/v1\n"
_HEADER_ENDS: Final = b"\n--- "
_LONGEST_HEADER: Final = 65536  # age reads any length into memory
# Five hundred recipients. The library reads a header anew for each line: 20,000 held all threads for 48 s.
_MOST_LINES: Final = 1024
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def make_encryption_key() -> tuple[str, str]:
    """(secret, recipient): ``AGE-SECRET-KEY-1…`` for a file that only its owner reads, ``age1…`` to give away."""
    key = x25519.Identity.generate()
    return str(key), str(key.to_public())


def recipient_of(secret: str) -> str:
    """The ``age1…`` that belongs to a secret. Raises ``bad_sealing_key``."""
    return str(_key(secret).to_public())


def _key(secret: str) -> x25519.Identity:
    try:
        key = x25519.Identity.from_str(secret.strip())
    except IdentityError:
        key = None
    if key is None or not secret.isupper():
        raise TwinError(
            "The key that opens sealed eggs cannot be read.",
            do="Restore keys/ from a backup.",
            code="bad_sealing_key",
        )
    return key


def is_sealed(path: Path) -> bool:
    """True when a file says, by its first bytes, that it is sealed. Raises ``OSError``."""
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def seal_file(source: Path, target: Path, recipient: str) -> None:
    """Writes ``source`` to ``target`` so that only the machine of ``recipient`` can read it.

    Streams, so that size does not matter; run it on a thread. ``target`` (0600) is replaced whole, or stays
    as it was. Raises ``bad_sealing_key``, ``DiskFullError``, ``not_writable``.
    """
    try:
        key = x25519.Recipient.from_str(recipient)
    except RecipientError as error:
        raise TwinError(
            "That machine's key for sealed eggs cannot be read.",
            do="Revoke it, pair again.",
            code="bad_sealing_key",
        ) from error
    with _reading(source) as plain, _replacing(target) as sealed:
        try:
            encrypt_io(plain, sealed, [key])
        except (EncryptError, OSError) as error:
            raise _what_happened(plain, sealed) from error


def open_file(source: Path, target: Path, secret: str) -> None:
    """Writes what is sealed in ``source`` to ``target``, like ``seal_file``; every byte was authenticated before ``target`` is there.

    Raises ``not_for_this_machine``, ``BadEggError`` and what ``seal_file`` raises.
    """
    key = _key(secret)
    with _reading(source) as sealed, _replacing(target) as plain:
        _check_header(sealed)
        try:
            decrypt_io(sealed, plain, [key])
        except DecryptError as error:
            if sealed.trouble is None and "matching keys" in str(error):
                raise TwinError(
                    f"{source.name} is sealed for another machine; nothing was written.",
                    do="Ask for an egg that is sealed for this one.",
                    code="not_for_this_machine",
                ) from error
            raise _what_happened(sealed, plain) from error
        except OSError as error:
            raise _what_happened(sealed, plain) from error


class _Watched:
    """A file that remembers why it failed: age tells damage and a full disk apart by text alone.

    It is not buffered, since each read and write lets other threads run; age itself never does.
    """

    def __init__(self, file: RawIOBase, name: str) -> None:
        self.file = file
        self.name = name
        self.trouble: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            return self.file.read(size) or b""
        except OSError as error:
            self.trouble = error
            raise

    def write(self, chunk: bytes) -> int:
        rest = memoryview(chunk)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            self.trouble = error
            raise
        return len(chunk)

    def flush(self) -> None:
        """There is no buffer."""


@contextmanager
def _reading(path: Path) -> Iterator[_Watched]:
    try:
        opened = FileIO(path, opener=_open_at_once)
    except OSError as error:
        raise _from_disk(error, path.name) from error
    with opened as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise TwinError(
                f"{path.name} is not a file; nothing was written.",
                do="Name an egg's file.",
                code="not_writable",
            )
        yield _Watched(file, path.name)


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe of that name would be waited for without end


@contextmanager
def _replacing(target: Path) -> Iterator[_Watched]:
    """A new file that takes the place of ``target`` once it is whole and on the disk, and is gone otherwise."""
    try:
        with replacing(target) as file:
            yield _Watched(file.raw, target.name)
    except OSError as error:
        raise _from_disk(error, target.name) from error


def _check_header(sealed: _Watched) -> None:
    try:
        begins = sealed.file.read(_LONGEST_HEADER) or b""
        sealed.file.seek(0)
    except OSError as error:
        raise _from_disk(error, sealed.name) from error
    if not begins.startswith(_MAGIC):
        raise BadEggError(f"{sealed.name} is not sealed; nothing was written.", do="Hatch it as it is.")
    header, ends, _ = begins.partition(_HEADER_ENDS)
    if not ends:
        raise _damaged(sealed.name)
    if header.count(b"\n") > _MOST_LINES:
        raise BadEggError(
            f"{sealed.name} is sealed for too many machines; nothing was written.",
            do="Ask for an egg that is sealed for this one alone.",
        )


def _what_happened(source: _Watched, target: _Watched) -> TwinError:
    """The error to raise for one of age's: a file's if there was one, else that the bytes do not hold."""
    for file in (target, source):
        if file.trouble is not None:
            return _from_disk(file.trouble, file.name)
    return _damaged(source.name)


def _damaged(name: str) -> BadEggError:
    return BadEggError(f"{name} is damaged or cut short; nothing was written.", do="Get it again.")


def _from_disk(error: OSError, name: str) -> TwinError:
    if error.errno in _FULL:
        return DiskFullError(
            f"The disk is full; {name} was not written, not even half.", do="Make room, rerun."
        )
    reason = (error.strerror or str(error) or "it failed").lower()
    return TwinError(
        f"{name}: {reason}; nothing was written.",
        do="Look at the folder and its permissions.",
        code="not_writable",
    )
