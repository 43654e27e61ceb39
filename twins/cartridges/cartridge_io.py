"""A cartridge's file: loaded with what is known of its maker, saved whole or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agents.storage.atomic_write import write_atomically
from agents.storage.safe_fs import SafeTree
from agents.storage.safe_open import UnsafeFileError
from envelopes.identity.keys import IdentityKey
from twins.cartridges import egg_spec, lispy_file, shapes
from twins.cartridges.json_documents import MAX_BYTES, Document, encode, parse
from twins.cartridges.shapes import Shape
from twins.eggs import integrity
from twins.errors import BadCartridgeError, BadEggError, NoSuchFileError
from twins.workspace.identity_file import utc

_MAX_SIGNATURE = 64 << 10
_ZIP = b"PK\x03\x04"


@dataclass(slots=True, frozen=True)
class LoadedCartridge:
    """A cartridge that was read and checked. ``shape`` is None for a ``.lispy.json``.

    ``signer``: fingerprint (64 hex) of the key that signed exactly these bytes, "" without one.
    ``notes``: what a person should know, each one sentence.
    """

    document: Document
    shape: Shape | None
    signer: str
    notes: tuple[str, ...]


def load(path: Path, *, force: bool = False) -> LoadedCartridge:
    """Reads the file and, if there is one, the ``.sig`` beside it.

    One that was changed since it was signed loads as unsigned, with a note. A body that does not match its
    own hash is refused, unless ``force``. Raises ``NoSuchFileError``, ``BadCartridgeError``.
    """
    return load_with_bytes(path, force=force)[1]


def load_with_bytes(
    path: Path, *, force: bool = False, files: SafeTree | None = None
) -> tuple[bytes, LoadedCartridge]:
    """The same, and the bytes that it was read from. ``files``: the tree of the workspace that it lies in."""
    octets = _read(path, MAX_BYTES, files)
    if octets is None:
        raise NoSuchFileError(f'There is no file "{path}".', do="Look at the path.")
    if octets.startswith(_ZIP):
        raise BadCartridgeError(f"{path.name} is a packed egg.", do=f"rappd egg inspect {path.name}")
    signer, notes = _signer(path, octets, files)
    return octets, loaded(octets, name=path.name, signer=signer, notes=notes, force=force)


def loaded(
    octets: bytes, *, name: str, signer: str = "", notes: tuple[str, ...] = (), force: bool = False
) -> LoadedCartridge:
    """The same for bytes that came another way. Raises ``BadCartridgeError``."""
    document = parse(octets, name=name)
    if lispy_file.is_lispy(document):
        if shapes.shape_of(document) is not None:
            raise BadCartridgeError(
                f"{name} cannot be two kinds at once; nothing was loaded.", do="Get it again."
            )
        lispy_file.checked(document, name=name)
        return LoadedCartridge(document, None, signer, notes)
    shape = shapes.checked(document, name=name)
    if shape is Shape.SPEC:
        try:
            egg_spec.verify(document, name=name)
        except BadCartridgeError:
            if not force:
                raise
            notes = (*notes, f"{name} does not match its own hash; it was loaded all the same.")
    return LoadedCartridge(document, shape, signer, notes)


def save(
    path: Path, document: Document, *, key: IdentityKey | None = None, at: datetime | None = None
) -> None:
    """Writes the file; signed with a key, and then with a ``.sig`` beside it.

    A ``.sig`` of what lay there before goes first: at no moment does one lie beside what it is not of,
    except that a file of the same bytes keeps its own.
    """
    octets = encode(document)
    beside = _beside(path)
    if key is None and beside.exists() and _signer(path, octets)[0]:
        write_atomically(path, octets)
        return
    beside.unlink(missing_ok=True)
    write_atomically(path, octets)
    if key is not None:
        moment = utc(at or datetime.now(UTC))
        digest = hashlib.sha256(octets).hexdigest()
        write_atomically(beside, integrity.seal({path.name: digest}, at=moment, key=key))


def signer_of(digest: str, signature: bytes, *, name: str) -> tuple[str, tuple[str, ...]]:
    """The signer of the file ``name`` of that SHA-256, and what a person should know."""
    try:
        sealed = integrity.check(signature)
        sealed.covers(digest)
    except BadEggError:
        return "", (f"{name} was changed after it was signed; it counts as unsigned.",)
    return sealed.signer, ()


def _signer(path: Path, octets: bytes, files: SafeTree | None = None) -> tuple[str, tuple[str, ...]]:
    signature = _read(_beside(path), _MAX_SIGNATURE, files)
    if signature is None:
        return "", ()
    return signer_of(hashlib.sha256(octets).hexdigest(), signature, name=path.name)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + integrity.SIGNATURE_SUFFIX)


def _read(path: Path, limit: int, files: SafeTree | None) -> bytes | None:
    """The file; None without one. A pipe, a folder or too large a file is ``BadCartridgeError``."""
    if files is not None:
        try:
            return files.read_if_there(path, limit)
        except UnsafeFileError as error:
            raise BadCartridgeError(str(error), do=error.do) from error
    try:
        if path.exists() and not path.is_file():
            raise BadCartridgeError(f"{path.name} is not a file.", do="Look at the path.")
        with path.open("rb") as file:
            octets = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadCartridgeError(
            f"{path.name} cannot be read: {error.strerror}.", do="Look at the file."
        ) from error
    if len(octets) > limit:
        raise BadCartridgeError(
            f"{path.name} is larger than {limit:,} bytes; nothing was loaded.", do="Get it again."
        )
    return octets
