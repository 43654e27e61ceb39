"""Reading a backup back into an empty home: checked whole, laid out beside it, then moved into place."""

from __future__ import annotations

import glob
import os
import secrets as random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agents.storage.atomic_write import sync_folder, sync_tree
from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from rappd.backup.create import HOME, MANIFEST, SCHEMA, SEALED
from rappd.backup.manifest import ANCHORS, DATABASE, IDENTITY, is_secret
from rappd.backup.secrets import unseal
from rappd.errors import ConflictError, RefusedError
from rappd.store.anchor_file import AnchorFile
from twins.eggs import integrity
from twins.errors import BadEggError
from twins.workspace.new_twin_staging import remove_leftovers
from twins.workspace.workspace import exclusive_lock
from twins.zip.archive_bounds import Allowance, FileSlice, Limits
from twins.zip.extracting import extract
from twins.zip.reader import Archive

_MANIFEST_BYTES = 64 << 20  # it names each executable file
_KEYS_BYTES = 256 << 20
_KEY_BYTES = 1 << 16


@dataclass(slots=True)
class RestoreReport:
    """A home that came back. ``notes``: what the person ought to know."""

    home: Path
    machine: str
    backed_up_at: str
    files: int
    with_keys: bool
    notes: list[str] = field(default_factory=list)


def verify(path: Path, *, passphrase: str = "") -> dict[str, Any]:
    """The manifest of a backup, after every byte was read and compared.

    With a ``passphrase`` its keys were opened, too. Raises ``BadEggError``, ``WrongPassphraseError``.
    """
    with Archive.open(path) as archive:
        manifest, sealed = _verified(archive)
        if manifest["with_keys"] and passphrase:
            with _opened_keys(archive, sealed.signer, passphrase):
                pass
        return manifest


def _verified(archive: Archive) -> tuple[dict[str, Any], integrity.SignedManifest]:
    manifest = _manifest(archive)
    sealed = integrity.check(archive.read(integrity.MEMBER, limit=64 << 20))
    names = [member.name for member in archive.members if member.name != integrity.MEMBER]
    sealed.compare({name: archive.digest(name) for name in names})
    if manifest["with_keys"] and SEALED not in archive:
        raise BadEggError("The backup's keys are missing; nothing was restored.", do="Use another.")
    if sealed.signer != manifest["fingerprint"]:
        raise BadEggError(
            "The backup is not signed by the machine it names; nothing was restored.", do="Use another."
        )
    return manifest, sealed


def restore(path: Path, home: Path, *, passphrase: str = "") -> RestoreReport:
    """Brings a backup's home back, whole or not at all. ``home`` must be empty or not exist.

    Raises ``ConflictError``, ``BadEggError``, ``WrongPassphraseError``, and ``RefusedError`` when the backup has keys and no
    passphrase was given. Blocks on the disk.
    """
    home = home.resolve()  # a link to an empty folder of another disk is a home, too
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise ConflictError(
            f"{home} is no empty folder; nothing was restored.", do="RAPP_HOME=~/.rapp2 rappd restore …"
        )
    with Archive.open(path) as archive:
        manifest, sealed = _verified(archive)
        if manifest["with_keys"] and not passphrase:
            raise RefusedError(
                "This backup's keys are sealed; nothing was restored.", do="Give its passphrase."
            )
        return _restored(archive, manifest, sealed, home, passphrase)


def _restored(
    archive: Archive,
    manifest: dict[str, Any],
    sealed: integrity.SignedManifest,
    home: Path,
    passphrase: str,
) -> RestoreReport:
    """Lays out what was verified, from the same open file: another may take its name meanwhile."""
    try:
        with _staging(home) as staged:
            files = _lay_out(archive, manifest, sealed, staged, passphrase)
            if home.exists():
                home.rmdir()
            staged.rename(home)
        sync_folder(home.parent)
    except OSError as error:
        raise ConflictError(
            f"{home.name} cannot be written: {error.strerror or error}; nothing was restored.",
            do="Make room there, or restore it elsewhere.",
        ) from error
    notes = []
    if not manifest["with_keys"]:
        notes.append("It had no keys: this machine gets a new one, and peers have to be paired anew.")
    return RestoreReport(
        home, manifest["machine"], manifest["backed_up_at"], files, manifest["with_keys"], notes
    )


@contextmanager
def _staging(home: Path) -> Iterator[Path]:
    """A new folder beside ``home``, locked while it is filled; those of restores that were killed go, with their keys."""
    home.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(home.parent.glob(f".{glob.escape(home.name)}.*.restoring"))
    staged = home.with_name(f".{home.name}.{random.token_hex(6)}.restoring")
    staged.mkdir(mode=0o700)
    try:
        with exclusive_lock(staged):
            yield staged
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise


def _lay_out(
    archive: Archive,
    manifest: dict[str, Any],
    sealed: integrity.SignedManifest,
    staged: Path,
    passphrase: str,
) -> int:
    """Writes all files of the backup below ``staged``, and returns their number without the keys."""
    targets = {
        member.name: member.name.removeprefix(HOME)
        for member in archive.members
        if member.name.startswith(HOME) and not is_secret(member.name.removeprefix(HOME))
    }
    done = extract(archive, staged, targets=targets)
    for one in done:  # somebody may write to the file, too
        if sealed.files[one.name] != one.sha256:
            raise BadEggError(
                "The backup was changed while it was read; nothing was restored.", do="Run it again."
            )
    if manifest["with_keys"]:
        with _opened_keys(archive, sealed.signer, passphrase) as keys:
            extract(keys, staged)
    _mark_restored(staged, manifest["backed_up_at"])
    for name in set(manifest.get("executable", ())) & set(targets.values()):
        (staged / name).chmod(0o700)
    sync_tree(staged)
    return len(done)


def _mark_restored(staged: Path, backed_up_at: str) -> None:
    """The next anchor of this home says that it was restored: its event log is older than others may know."""
    if (staged / DATABASE).exists():
        with AnchorFile(staged / ANCHORS, writing=True) as file:
            file.mark_restored(backed_up_at)


def _manifest(archive: Archive) -> dict[str, Any]:
    if MANIFEST not in archive or integrity.MEMBER not in archive:
        raise BadEggError(
            "That is no backup of a home; nothing was restored.", do="rappd egg inspect tells what it is."
        )
    try:
        found = orjson.loads(archive.read(MANIFEST, limit=_MANIFEST_BYTES))
        if found["schema"] != SCHEMA or not isinstance(found["with_keys"], bool):
            raise ValueError("another schema")
        executable = found.get("executable", [])
        if not isinstance(executable, list) or not all(isinstance(one, str) for one in executable):
            raise ValueError("names that are no text")
        return {**found, "machine": str(found["machine"]), "backed_up_at": str(found["backed_up_at"]),
                "fingerprint": str(found["fingerprint"])}  # fmt: skip
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise BadEggError(
            "That is no backup of a home; nothing was restored.", do="rappd egg inspect tells what it is."
        ) from error


@contextmanager
def _opened_keys(archive: Archive, signer: str, passphrase: str) -> Iterator[Archive]:
    """The keys in a backup, in a file without a name, of which a kill leaves nothing behind.

    They must be those of the machine that signed the whole: else an attacker who can write to a backup could put
    files of his own, signed by himself, round keys that he cannot open. Raises ``BadEggError``,
    ``WrongPassphraseError``.
    """
    octets = unseal(archive.read(SEALED, limit=_KEYS_BYTES), passphrase)
    with tempfile.TemporaryFile() as file:
        file.write(octets)
        file.flush()
        window = FileSlice(os.dup(file.fileno()), 0, len(octets), "The sealed part")
        with Archive(window, Allowance(Limits(), window.length)) as keys:
            if not all(is_secret(member.name) for member in keys.members):
                raise BadEggError(
                    "The backup's keys hold something else; nothing was restored.", do="Use another."
                )
            if _fingerprint(keys) != signer:
                raise BadEggError(
                    "The keys in this backup are of another machine than the one that signed it; somebody changed it. "
                    "Nothing was restored.",
                    do="Use another.",
                )
            yield keys


def _fingerprint(keys: Archive) -> str:
    """The fingerprint of the identity key among the keys of a home; "" without one."""
    if IDENTITY not in keys:
        return ""
    try:
        return IdentityKey.from_pem(keys.read(IDENTITY, limit=_KEY_BYTES)).fingerprint
    except ReportableError:
        return ""
