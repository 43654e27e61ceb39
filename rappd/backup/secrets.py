"""Keys and tokens in a backup: sealed under a passphrase (scrypt, AES-256-GCM), or not in it at all."""

from __future__ import annotations

import contextlib
import os
import unicodedata
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from rappd.errors import RefusedError, UsageProblemError

SCHEMA = "rappd-sealed/1.0"
LEAST_CHARACTERS = 8
MAX_BYTES = 64 << 20
_N, _R, _P = 1 << 16, 8, 1  # 64 MB and a fifth of a second for each guess
_MOST_WORK = 1 << 18  # with the most memory for each step, a quarter of a gigabyte


class WrongPassphraseError(RefusedError):
    """The passphrase does not open the backup's keys."""

    code = "wrong_passphrase"

    def __init__(self) -> None:
        super().__init__("That passphrase does not open the keys; nothing was restored.", do="Try another.")


def check_passphrase(passphrase: str) -> None:
    """Raises ``UsageProblemError`` for one that is too short to keep anything, or no text; spaces around it do not count."""
    if not passphrase.isascii() and any(unicodedata.category(one) == "Cs" for one in passphrase):
        raise UsageProblemError("The passphrase is no text in UTF-8.", do="Type it in another terminal.")
    if len(unicodedata.normalize("NFC", passphrase.strip())) < LEAST_CHARACTERS:
        raise UsageProblemError(
            f"The passphrase needs {LEAST_CHARACTERS} characters or more.", do="Use a few words."
        )


def seal(content: bytes, passphrase: str) -> bytes:
    """``content`` as JSON that only the passphrase opens. Raises ``UsageProblemError`` for a short one."""
    check_passphrase(passphrase)
    salt, nonce = os.urandom(16), os.urandom(12)
    head = {
        "schema": SCHEMA,
        "kdf": "scrypt",
        "n": _N,
        "r": _R,
        "p": _P,
        "salt": salt.hex(),
        "nonce": nonce.hex(),
    }
    bound = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
    key = _key(unicodedata.normalize("NFC", passphrase), salt, _N, _R, _P)
    sealed = AESGCM(key).encrypt(nonce, content, bound)
    return orjson.dumps({**head, "sealed": sealed.hex()})


def unseal(octets: bytes, passphrase: str) -> bytes:
    """Returns the data that ``seal`` was given. Raises ``WrongPassphraseError``, also for a changed seal."""
    try:
        head: dict[str, Any] = orjson.loads(octets)
        sealed = bytes.fromhex(head.pop("sealed"))
        n, r, p = int(head["n"]), int(head["r"]), int(head["p"])
        salt, nonce = bytes.fromhex(head["salt"]), bytes.fromhex(head["nonce"])
        if head["schema"] != SCHEMA or not (1 < n <= _MOST_WORK and 0 < r <= 8 and 0 < p <= 4):
            raise ValueError("another seal")
        bound = orjson.dumps(head, option=orjson.OPT_SORT_KEYS)
        for spelling in _spellings(passphrase):
            with contextlib.suppress(InvalidTag):
                return AESGCM(_key(spelling, salt, n, r, p)).decrypt(nonce, sealed, bound)
        raise WrongPassphraseError
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WrongPassphraseError from error


def _spellings(passphrase: str) -> dict[str, None]:
    """The passphrase as ``seal`` takes it, then as earlier versions took it: some systems type ü as u and two dots."""
    forms = (unicodedata.normalize("NFC", passphrase), passphrase, unicodedata.normalize("NFD", passphrase))
    return dict.fromkeys(forms)


def _key(passphrase: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(passphrase.encode())
