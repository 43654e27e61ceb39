"""Telling eggs apart by what is in them, never by a file's name; each family has a module that reads it.

A ZIP archive is known by its first bytes, and by the manifest it holds; anything else must be one JSON object.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from twins.eggs.parsed_egg import ParsedEgg
from twins.eggs.readers.detected_egg import DetectedEgg, damaged, inside, parse_object
from twins.eggs.readers.formats import SCALES, no_egg, quoted, unknown
from twins.eggs.readers.hash_check import signed_beside
from twins.errors import BadEggError, BadFileError, NoSuchFileError
from twins.fs.untrusted_names import shown
from twins.work_progress import CHECK, PhaseCounter, Progress
from twins.zip.archive_bounds import Limits
from twins.zip.ordered_pool import beside
from twins.zip.reader import Archive

MAX_JSON = 64 << 20
"""Most bytes of an egg in JSON."""

_FILES_AT_ONCE = 400  # a small egg of more files takes long to be read, too
_SMALL = 8 << 20  # bytes of an egg that are hashed before a thread has begun
_LOCAL, _EMPTY = b"PK\x03\x04", b"PK\x05\x06"
_HERE = "twins.eggs.readers"

Reader = Callable[[DetectedEgg], ParsedEgg]

_IN_ZIP = {
    "brainstem-egg/2.0": "rapplications:merged",
    "brainstem-egg/2.1": "workspaces:twin_2_1",
    "brainstem-egg/2.2-organism": "workspaces:organism",
    "brainstem-egg/2.2-rapplication": "rapplications:rapplication",
    "brainstem-egg/2.3-neighborhood": "inert_formats:gate",
    "brainstem-egg/2.3-cubby": "inert_formats:cubby",
    "brainstem-egg/2.3-estate": "inert_formats:estate",
    "rapp-egg/1.0": "rapplications:binder",
    "rapp/1-egg": "rapp1:rapp1",
}
_SCALES = {
    "agent": "workspaces:agent",
    "twin": "workspaces:twin",
    "brainstem": "workspaces:brainstem",
    "neighborhood": "neighborhood_snapshot:neighborhood",
}
_IN_JSON = {
    "brainstem-egg/2.3-session": "sessions:session",
    "rappterbox-cart/0.1": "sessions:old_session",
    "brainstem-egg/2.3-neighborhood": "rapp1:invitation",
    "rapp/1-egg": "rapp1:rapp1",
    "rapp-egg/1.0": "rapp1:seeds",
    "rappter-egg/1.0": "cartridges:buddy_seed",
    "neighborhood-egg/1.0": "neighborhood_file:neighborhood_file",
}
_META_TYPES = {"rappter.egg": "cartridges:buddy", "lispy-cartridge": "cartridges:lispy"}


def open_egg(
    path: Path,
    *,
    check_up_to: int | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> ParsedEgg:
    """Opens an egg of any known kind. Writes nothing; close it after use, it is a context manager.

    Every file of it becomes a part, but for its manifest, which is ``ParsedEgg.manifest``, and the layer that
    holds its hashes.

    Every file of it is read and every hash it carries compared, unless it unpacks to more than
    ``check_up_to`` bytes or is of many files: then only what it says of itself is read, which takes
    milliseconds whatever its size. Its seal says which; ``digest`` is "" when not all was read.
    ``progress`` is told of the phase ``check``.

    Raises ``unknown_egg`` (no known kind, with the family table), ``HostileEggError`` (made to do harm),
    ``BadEggError`` (damaged), ``NoSuchFileError``, ``BadFileError`` (no regular file, or unreadable).
    """
    head, status = _look(path)
    if head == _LOCAL:
        return _open_zip(path, status, check_up_to, limits, progress)
    if head == _EMPTY:
        raise BadEggError(f"{path.name} is an empty archive; nothing was written.", do="Get it again.")
    opened = _open_json(path, status.st_size)
    PhaseCounter(progress, CHECK, status.st_size).finish()
    return opened


def _open_zip(
    path: Path,
    status: os.stat_result,
    check_up_to: int | None,
    limits: Limits | None,
    progress: Progress | None,
) -> ParsedEgg:
    archive = Archive.open(path, limits=limits, glance=check_up_to is not None)
    try:
        name = _manifest_name(archive)
        if not name:
            raise unknown(path.name, "holds no manifest")
        octets = archive.read(name)
        manifest = parse_object(octets, f"{path.name}, {shown(name)},")
        check = check_up_to is None or (
            max(archive.total, status.st_size) <= check_up_to and len(archive.names) <= _FILES_AT_ONCE
        )
        if check:
            archive.look_through()
        found = DetectedEgg(path.name, status.st_size, "", manifest, octets, check, archive, name)
        found.progress = progress
        reader = _reader_of_zip(found)
        if reader != "rapp1:rapp1":
            found.notes += archive.deviations
        opened = (
            _read_through(found, reader, partial(_digest, path, status))
            if check
            else _imported(reader)(found)
        )
        opened.seal = signed_beside(found, path, opened.seal, by_hand=False)
        opened.closing = archive.close
        if check:
            PhaseCounter(progress, CHECK, sum(archive.sizes.values())).finish()
    except BaseException:
        archive.close()
        raise
    return opened


def _read_through(found: DetectedEgg, reader: str, digest: Callable[[], str]) -> ParsedEgg:
    """The egg with all its files read, and the whole file's digest.

    What is wrong with the file as a whole is told before what is wrong within.
    """
    if found.size <= _SMALL:
        found.digest = digest()
        return _imported(reader)(found)
    with beside(digest) as whole:
        try:
            opened = _imported(reader)(found)
        finally:
            found.digest = whole()
    opened.digest = found.digest
    return opened


def _open_json(path: Path, size: int) -> ParsedEgg:
    if size > MAX_JSON:
        raise BadEggError(
            f"{path.name} has {size} bytes and is no archive; at most {MAX_JSON} are read.",
            do="Don't use it.",
        )
    octets = _read(path)
    if octets.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
        raise no_egg(path.name, octets)
    seeds = _is_about_seeds(octets)
    document = parse_object(octets, path.name, wide=seeds)
    digest = hashlib.sha256(octets).hexdigest()
    found = DetectedEgg(path.name, len(octets), digest, document, octets)
    reader = _reader_of_json(found)
    if seeds and reader != "rapp1:seeds":
        parse_object(octets, path.name)
    opened = _imported(reader)(found)
    opened.seal = signed_beside(found, path, opened.seal, by_hand=reader != "rapp1:rapp1")
    return opened


def _manifest_name(archive: Archive) -> str:
    """The place of the manifest; "" for none."""
    for name in ("manifest.json", "egg-manifest.json", "egg.json", "repo/manifest.json"):
        if name in archive:
            return name
    return ""


def _reader_of_zip(found: DetectedEgg) -> str:
    manifest = found.manifest
    schema = manifest.get("schema")
    if found.manifest_name == "egg-manifest.json":
        if schema == "rapp-egg/1.0":
            return "inert_formats:old_swarm"
    elif schema == "rapp-egg/2.0":
        scale = manifest.get("scale", "twin")
        if not isinstance(scale, str) or scale not in SCALES:
            raise unknown(found.file, f'says schema "{schema}", scale {quoted(scale)}')
        return _SCALES.get(scale, "inert_formats:container")
    elif schema == "rapp-application/1.0" and "EGG.json" in found:
        return "rapplications:application"
    elif isinstance(schema, str) and schema in _IN_ZIP:
        return _IN_ZIP[schema]
    if schema == "rapp-application/1.0":
        raise BadEggError(
            f"{found.file} is a rapplication and no egg; nothing was written.",
            do=f"rappd rapps install ./{found.file}",
        )
    kind = manifest.get("type")
    raise unknown(found.file, f"says schema {quoted(schema)}, type {quoted(kind)}", schema=schema)


def _reader_of_json(found: DetectedEgg) -> str:
    document = found.manifest
    schema = document.get("schema")
    meta = inside(document, "_meta")
    if isinstance(schema, str) and schema in _IN_JSON and (schema != "rapp-egg/1.0" or "seeds" in document):
        return _IN_JSON[schema]
    if document.get("_format") == "egg":
        kind = inside(document, "organism").get("kind")
        if kind == "neighborhood" or "_content_sha256" in document:
            return "neighborhood_file:neighborhood_file"
        return "cartridges:organism_file"
    kind = meta.get("type")
    if isinstance(kind, str) and kind in _META_TYPES:
        return _META_TYPES[kind]
    if meta.get("format") == "phylogeny.v1":
        return "cartridges:phylogeny"
    if document.get("format") == "orappter-cartridge/1.0":
        return "cartridges:game"
    if isinstance(schema, str) and schema.startswith("rappd-integrity/"):
        raise BadEggError(
            f"{found.file} is only a signature; nothing was written.",
            do="Open the file that it is of, and keep both together.",
        )
    kind = document.get("type", document.get("_format", kind))
    raise unknown(found.file, f"says schema {quoted(schema)}, type {quoted(kind)}", schema=schema)


def _imported(name: str) -> Reader:
    """The function that opens a family; its module is imported when the first egg of it comes."""
    module, _, function = name.partition(":")
    return cast(Reader, getattr(importlib.import_module(f"{_HERE}.{module}"), function))


def _is_about_seeds(octets: bytes) -> bool:
    """True when integers may be larger than elsewhere: seeds of a registry need 66 bits."""
    return b'"seeds"' in octets[:65536]


def _look(path: Path) -> tuple[bytes, os.stat_result]:
    """The first four bytes, and what the disk says about the file."""
    handle = _open(path)
    try:
        return os.read(handle, 4), os.fstat(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> bytes:
    with os.fdopen(_open(path), "rb") as file:
        octets = file.read(MAX_JSON + 1)
    if len(octets) > MAX_JSON:
        raise damaged(path.name, "it grew while it was read")
    return octets


def _digest(path: Path, status: os.stat_result) -> str:
    """SHA-256 of the file that had ``status`` when its archive was opened."""
    with os.fdopen(_open(path), "rb", buffering=0) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if _stamp(os.fstat(file.fileno())) != _stamp(status):
            raise BadEggError(
                f"{path.name} was changed while it was read; nothing was written.", do="Try again."
            )
    return digest


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _open(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NoSuchFileError(f"There is no file {path}.", do="Look at the path.") from None
    except OSError as error:
        raise BadFileError(
            f"{path.name} cannot be read: {error.strerror}.", do="Look at the file."
        ) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise BadFileError(f"{path.name} is not a file.", do="Name an egg.")
    return handle
