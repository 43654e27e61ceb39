"""Cartridges that lie here: beside the agents of the brainstem and of its twins; and whose signature goes with one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agents.contract.file_discovery import CARTRIDGE, AgentFile, find_agent_files
from agents.storage.safe_fs import SafeTree
from envelopes.errors import ReportableError
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.cartridges.cartridge_rows import (
    CartridgeRow,
    CartridgeText,
    SignatureMade,
    Signed,
)
from rappd.features.cartridges.views import name_of
from rappd.features.eggs.signer_view import standing
from twins.cartridges.cartridge_io import load_with_bytes, loaded, signer_of
from twins.eggs import integrity
from twins.errors import BadCartridgeError
from twins.workspace.identity_file import utc
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout, Workspace

_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(slots=True, frozen=True)
class _Owner:
    """An agents folder with its owner; ``key`` and ``name`` are "" for the brainstem."""

    key: str
    name: str
    agents: Path
    files: SafeTree


class FoundCartridges:
    """LisPy cartridges of the brainstem's workspace ``host`` and those of the home's active twins, and signatures with the home's own key.

    Blocks on the disk.
    """

    def __init__(self, home: Home, host: Workspace) -> None:
        self._home = home
        self._host = host

    def listing(self) -> list[CartridgeRow]:
        """Each ``.lispy.json`` that lies there, the brainstem's first; one that cannot be read says why in ``problem``.

        ``twin`` and ``of`` are key and name of the twin whose it is, "" for the brainstem.
        """
        return [self._row(file, whose) for whose in self._everybody() for file in _files(whose)]

    def read(self, name: str, twin: str = "") -> CartridgeText:
        """The ``text`` of one, and who signed it; ``twin`` is the key of the twin whose it is.

        Raises ``NotFoundError``, ``BadCartridgeError``.
        """
        owners = [whose for whose in self._everybody() if whose.key == twin]
        for file in (file for whose in owners for file in _files(whose)):
            if file.rel == name:
                octets, found = load_with_bytes(file.path, files=file.files)
                signed = self._signed(found.signer, found.notes)
                return {"file": name, "text": octets.decode(), **signed}
        raise NotFoundError(f'There is no cartridge "{name[:80]}".', do="Look at the list anew.")

    def signer(self, digest: str, signature: str, *, name: str) -> Signed:
        """Returns the signer of a file with that SHA-256, according to the signature beside it."""
        if not _DIGEST.fullmatch(digest):
            raise UsageProblemError("That is no SHA-256.", do="Send its 64 hex digits.")
        return self._signed(*signer_of(digest, signature.encode(), name=name))

    def sign(self, octets: bytes, *, name: str) -> SignatureMade:
        """Returns the content of ``FILE.sig`` for a cartridge of these bytes. Raises ``BadCartridgeError``."""
        if loaded(octets, name=name).shape is not None:
            raise BadCartridgeError(
                f"{name} is no LisPy cartridge; nothing was signed.", do="rappd cartridge"
            )
        digest = hashlib.sha256(octets).hexdigest()
        sealed = integrity.seal({name: digest}, at=utc(datetime.now(UTC)), key=self._home.identity())
        return {"file": name + integrity.SIGNATURE_SUFFIX, "signature": sealed.decode()}

    def _everybody(self) -> Iterator[_Owner]:
        yield _Owner("", "", self._host.agents, self._host.files)
        for twin in scan(TwinLayout(self._home.root)).twins:
            yield _Owner(twin.key, twin.name, twin.workspace.agents, twin.workspace.files)

    def _row(self, file: AgentFile, whose: _Owner) -> CartridgeRow:
        row: CartridgeRow = {
            "name": file.rel,
            "problem": "",
            "file": file.rel,
            "path": str(file.path),
            "size": file.stamp[1],
            "twin": whose.key,
            "of": whose.name,
        }
        try:
            found = load_with_bytes(file.path, files=file.files)[1]
            if found.shape is not None:
                raise BadCartridgeError(f"{file.rel} is a buddy, no LisPy cartridge.", do="rappd egg hatch")
            signed, continuation = (
                self._signed(found.signer, found.notes),
                found.document.get("continuation", {}),
            )
            row |= {
                "name": name_of(found.document, found.shape),
                "description": str(found.document["_meta"].get("description") or ""),
                "frame": continuation.get("frame", 0),
                "frozen": continuation.get("image") is not None,
                "signer": signed["signer"],
                "notes": signed["notes"],
            }
        except ReportableError as problem:
            row["problem"] = str(problem)
        return row

    def _signed(self, fingerprint: str, notes: tuple[str, ...]) -> Signed:
        signer = {"fingerprint": fingerprint, **standing(self._home, fingerprint)}
        return {"signer": signer, "notes": list(notes)}


def _files(whose: _Owner) -> list[AgentFile]:
    return [file for file in find_agent_files(whose.agents, whose.files) if file.rel.endswith(CARTRIDGE)]
