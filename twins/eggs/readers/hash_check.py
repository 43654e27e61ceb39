"""Integrity of an egg: every hash that it carries, of whatever kind, compared in one reading."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twins.eggs.integrity import are_digests
from twins.eggs.parsed_egg import Seal
from twins.eggs.readers.detected_egg import DetectedEgg
from twins.errors import BadEggError
from twins.fs.untrusted_names import shown
from twins.work_progress import CHECK, PhaseCounter
from twins.workspace.identity_file import read_regular
from twins.zip.ordered_pool import OrderedThreadPool, in_tasks

if TYPE_CHECKING:
    from twins.eggs.integrity import SignedManifest
import json
from typing import Any

from twins.eggs.readers.detected_egg import inside

# As in twins.eggs.integrity, which loads what signatures need: many eggs have none.
_LAYER, _SCHEMA, _BESIDE = "integrity.json", b"rappd-integrity/1.", ".sig"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SIGNATURE_BYTES = 1 << 16
_LAYER_BYTES = 64 << 20  # 200 for each of the most files that an archive may hold, and some


class HashCheck:
    """Gathers what an egg says about its files, then reads them all once.

    ``integrity.json`` and the manifest's provenance are taken in from the start, unless ``plain`` says that
    this family has neither. ``wrapping`` are the files that are about the egg, not in it.
    """

    def __init__(self, found: DetectedEgg, *, plain: bool = False) -> None:
        """Raises ``BadEggError`` for an integrity layer that does not hold or is not over just these files."""
        self._found = found
        self._expected: dict[str, list[tuple[bytes, str]]] = {}
        self._lists: list[Set[str]] = []
        self._manifests: set[str] = set()
        self.wrapping: set[str] = set() if found.manifest_name.startswith("repo/") else {found.manifest_name}
        self._sealed: SignedManifest | None = None
        if plain:
            return
        if _LAYER in found:
            self._take_in(found.archive.read(_LAYER, limit=_LAYER_BYTES))
        listed = file_hashes(found)
        self.expect_every(listed)
        if listed:
            self.leave_out(found.manifest_name)

    def expect(self, name: str, digest: object, *, space: bytes = b"") -> None:
        """Expects that the SHA-256 over ``space`` and the file's content is ``digest`` (64 hex).

        Raises ``BadEggError`` when there is no such file or no such hash.
        """
        if name not in self._found:
            raise self._found.damaged(f"{shown(name)} is missing")
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise self._found.damaged(f"what it says about {shown(name)} is no hash")
        self._expected.setdefault(name, []).append((space, digest))

    def expect_every(self, digests: Mapping[str, object], *, space: bytes = b"") -> None:
        """The same of many files, by name."""
        values = digests.values()
        if (
            not self._found.check
            and digests.keys() <= self._found.archive.sizes.keys()
            and are_digests(values)
        ):
            self._lists.append(digests.keys())  # nothing will be compared; how many there are is told
            return
        for name, digest in digests.items():
            self.expect(name, digest, space=space)

    def leave_out(self, name: str) -> None:
        """A file that cannot be in a list, because it holds the list."""
        self._manifests.add(name)

    def settle(self) -> Seal:
        """Reads every file, and compares. Raises ``BadEggError`` naming the first that differs.

        An egg opened for a look is only judged by its lists.
        """
        found, listed = self._found, self._listed()
        number = len(listed - self.wrapping)
        signer = self._sealed.signer if self._sealed else ""
        at = self._sealed.signed_at if self._sealed else ""
        if not found.check:
            return Seal(None, signer, at, number, checked=False)
        counter = PhaseCounter(found.progress, CHECK, sum(found.archive.sizes.values()))
        with OrderedThreadPool[None](meanwhile=counter.tell) as ahead:
            tasks = in_tasks(found.archive.sizes.items())
            for _ in ahead.each(partial(self._compare_all, names, counter, ahead) for names in tasks):
                counter.tell()
        missed = [name for name in found.names if name not in listed and name not in self._manifests]
        if listed and missed:
            found.notes.append(f"Of {len(missed)} files it carries no hash: {_some(missed)}.")
        return Seal(True if listed and not missed else None, signer, at, number)

    def _listed(self) -> Set[str]:
        lists = [*filter(None, self._lists), *([self._expected.keys()] if self._expected else [])]
        return lists[0] if len(lists) == 1 else set().union(*lists)

    def _compare_all(self, names: list[str], progress: PhaseCounter, ahead: OrderedThreadPool[None]) -> None:
        for name in names:
            self._compare(name, progress, ahead)

    def _compare(self, name: str, progress: PhaseCounter, ahead: OrderedThreadPool[None]) -> None:
        expected = self._expected.get(name, ())
        running = {space: hashlib.sha256(space) for space, _ in expected}
        for chunk in ahead.unless_stopped(self._found.archive.chunks(name)):
            for one in running.values():
                one.update(chunk)
            progress.add(len(chunk))
        if any(running[space].hexdigest() != digest for space, digest in expected):
            raise self._found.damaged(shown(name))

    def _take_in(self, layer: bytes) -> None:
        if _SCHEMA not in layer:  # a project's own file may have that name too
            self._found.notes.append(f"Its {_LAYER} is not about its files and says nothing here.")
            return
        from twins.eggs.integrity import check

        self._sealed = check(layer)
        names, files = self._found.archive.sizes.keys(), self._sealed.files
        if len(names) != len(files) + 1 or not files.keys() <= names:  # it does not list itself
            name = min(names - {_LAYER} ^ files.keys())
            what = "is not among those it lists" if name in names else "is missing"
            raise self._found.damaged(f"{shown(name)} {what}")
        self._lists.append(files.keys())
        if self._found.check:
            self._expected = {name: [(b"", digest)] for name, digest in files.items()}
        self.leave_out(_LAYER)
        self.wrapping.add(_LAYER)


def signed_beside(found: DetectedEgg, path: Path, seal: Seal, *, by_hand: bool) -> Seal:
    """``seal`` with what ``FILE.sig`` adds, where one lies beside the egg.

    A signature over other bytes is refused; ``by_hand`` says that people may edit this kind, so that it
    only counts as unsigned, with a note. Raises ``BadEggError``, ``BadFileError``.
    """
    beside = path.with_name(path.name + _BESIDE)
    octets = None if seal.signer or not found.digest else read_regular(beside, _SIGNATURE_BYTES)
    if octets is None:
        return seal
    from twins.eggs.integrity import check

    sealed = check(octets)
    try:
        sealed.covers(found.digest)
    except BadEggError:
        if not by_hand:
            raise
        found.notes.append("It was changed after it was signed, and counts as unsigned.")
        return seal
    return Seal(True, sealed.signer, sealed.signed_at, max(seal.listed, 1), seal.checked)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(shown, names[:3])) + more


def file_hashes(found: DetectedEgg) -> dict[str, Any]:
    """Path to SHA-256 as the manifest's ``provenance`` lists them; empty without one.

    ``manifest_hash`` must hold under one of its two published definitions: over the sorted lines
    ``path TAB hash``, or over the object as Python prints it with sorted keys. Raises ``BadEggError``.
    """
    provenance = inside(found.manifest, "provenance")
    if not provenance:
        return {}
    scheme = provenance.get("scheme", "sha256")
    hashes = provenance.get("file_hashes")
    if scheme != "sha256":
        found.notes.append(f'Its hashes are of the scheme "{shown(str(scheme))}" and were not compared.')
        return {}
    if not isinstance(hashes, dict) or not set(map(type, hashes.values())) <= {str}:
        raise found.damaged("its provenance lists no files")
    declared = provenance.get("manifest_hash")
    if declared is None:
        found.notes.append("Its list of hashes has no hash of its own.")
    elif declared != by_lines(hashes) and declared != by_object(hashes):
        raise found.damaged("the hash of its list of files")
    return hashes


def by_lines(hashes: dict[str, str]) -> str:
    """``manifest_hash`` as the published packer makes it."""
    return _sha256("\n".join(sorted(map("\t".join, hashes.items()))).encode())


def by_object(hashes: dict[str, str]) -> str:
    """``manifest_hash`` as the published conformance test makes it."""
    return _sha256(json.dumps(hashes, sort_keys=True).encode())


def _sha256(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()
