"""Secrets of authenticators, in ``keys/codes``, and who may come in by which code."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from agents.storage.atomic_write import write_atomically
from envelopes.ip_addresses import source_text
from neighborhoods.auth.totp import Guessers, WrongCodeError, accepted
from neighborhoods.discovery.address_text import network_of

log = logging.getLogger(__name__)

_SECRET_BYTES = 20


class _Kept(msgspec.Struct):
    """The content of a file. ``used`` is the last step whose code was accepted: it never counts again."""

    secret: bytes
    used: int = -1


class CodeAccess:
    """Secrets of authenticators by the id of the access. No egg, snapshot or answer but the first holds one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, _Kept] = {}
        self._guessers = Guessers()
        self._deciding = asyncio.Lock()

    def load(self) -> None:
        """Reads what is kept. Blocks."""
        for file in self._folder.glob("*.json") if self._folder.is_dir() else ():
            try:
                self._kept[file.stem] = msgspec.json.decode(file.read_bytes(), type=_Kept)
            except (OSError, msgspec.DecodeError) as error:
                log.error("the secret of an authenticator cannot be read: %s: %s", file.name, error)

    def __bool__(self) -> bool:
        """True while there is an access with a code."""
        return bool(self._kept)

    def __contains__(self, jti: str) -> bool:
        return jti in self._kept

    async def add(self, jti: str) -> bytes:
        """The new secret of an access, once it is on the disk."""
        kept = _Kept(os.urandom(_SECRET_BYTES))
        await asyncio.to_thread(self._write, jti, kept)
        self._kept[jti] = kept
        return kept.secret

    async def remove(self, jti: str) -> None:
        """Forgets a secret."""
        if self._kept.pop(jti, None) is not None:
            await asyncio.to_thread(self._file(jti).unlink, missing_ok=True)

    async def admit(self, name: str, code: str, address: str, valid: Iterable[str]) -> str:
        """The id of the access among those ``valid`` ones of a name that the code is of, once it is used up.

        Raises ``WrongCodeError`` and ``CodeBanError``.
        """
        address = network_of(source_text(address))
        async with self._deciding:  # a code counts once, also when it comes twice at the same moment
            now = time.time()
            self._guessers.check(name, address, now)
            known = {jti: self._kept[jti] for jti in valid if jti in self._kept}
            found = accepted(_secrets(known), {jti: one.used for jti, one in known.items()}, code, now)
            if found is None:
                self._guessers.wrong(name, address, now)
                log.warning("security: a wrong code for an access came from %s", address)
                raise WrongCodeError
            kept = known[found.jti]
            await asyncio.to_thread(self._write, found.jti, _Kept(kept.secret, found.step))
            kept.used = found.step
            self._guessers.right(name, address)
            return found.jti

    def _file(self, jti: str) -> Path:
        return self._folder / f"{jti}.json"

    def _write(self, jti: str, kept: _Kept) -> None:
        with suppress(FileExistsError):
            self._folder.mkdir(mode=0o700)
        write_atomically(self._file(jti), msgspec.json.encode(kept))


def _secrets(known: Mapping[str, _Kept]) -> dict[str, bytes]:
    return {jti: one.secret for jti, one in known.items()}
