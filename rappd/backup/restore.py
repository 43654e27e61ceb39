"""Reading a backup back into an empty home: checked whole, laid out beside it, then moved into place."""

from __future__ import annotations

import secrets as random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from agents.storage.atomic_write import sync_folder, sync_tree
from rappd.backup.create import HOME, MANIFEST, SCHEMA, SEALED
from rappd.backup.manifest import ANCHORS, DATABASE, is_secret
from rappd.backup.secrets import unseal
from rappd.errors import ConflictError, RefusedError
from rappd.store.anchor_file import AnchorFile
from twins.eggs import integrity
from twins.errors import BadEggError
from twins.zip.extracting import extract
from twins.zip.reader import Archive

Progress = Callable[[int, int], None]
_MANIFEST_BYTES = 64 << 20  # it names each executable file
_KEYS_BYTES = 256 << 20


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
        manifest, _ = _verified(archive)
        if manifest["with_keys"] and passphrase:
            unseal(archive.read(SEALED, limit=_KEYS_BYTES), passphrase)
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
    if home.exists() and any(home.iterdir()):
        raise ConflictError(
            f"{home} is not empty; nothing was restored.", do="RAPP_HOME=~/.rapp2 rappd restore …"
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
    home.parent.mkdir(parents=True, exist_ok=True)
    staged = home.with_name(f".{home.name}.{random.token_hex(6)}.restoring")
    staged.mkdir(mode=0o700)
    try:
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
            _unpack_keys(archive.read(SEALED, limit=_KEYS_BYTES), passphrase, staged)
        _mark_restored(staged, manifest["backed_up_at"])
        for name in set(manifest.get("executable", ())) & set(targets.values()):
            (staged / name).chmod(0o700)
        sync_tree(staged)
        if home.exists():
            home.rmdir()
        staged.rename(home)
        sync_folder(home.parent)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    notes = []
    if not manifest["with_keys"]:
        notes.append("It had no keys: this machine gets a new one, and peers have to be paired anew.")
    return RestoreReport(
        home, manifest["machine"], manifest["backed_up_at"], len(done), manifest["with_keys"], notes
    )


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


def _unpack_keys(octets: bytes, passphrase: str, staged: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=staged, suffix=".tmp") as file:
        file.write(unseal(octets, passphrase))
        file.flush()
        with Archive.open(Path(file.name)) as bundle:
            names = [member.name for member in bundle.members]
            if not all(map(is_secret, names)):
                raise BadEggError(
                    "The backup's keys hold something else; nothing was restored.", do="Use another."
                )
            extract(bundle, staged)
