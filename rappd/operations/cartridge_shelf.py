"""Cartridges for the page: those beside the agents, and whose signature goes with one."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agents.discovery import CARTRIDGE, AgentFile, find_agent_files
from envelopes.problem import Problem
from rappd.errors import Mistyped, NotFound
from rappd.home import Home
from rappd.operations.cartridge_showing import name_of, standing
from twins.cartridges.loading import Loaded, load, loaded, signer_of
from twins.eggs import integrity
from twins.errors import BadCartridge
from twins.identity_file import utc

_DIGEST = re.compile(r"[0-9a-f]{64}")


class CartridgeShelf:
    """LisPy cartridges below ``agents``, and signatures with the home's own key. Blocks on the disk."""

    def __init__(self, home: Home, agents: Path) -> None:
        self._home = home
        self._agents = agents

    def listing(self) -> dict[str, Any]:
        """Each ``.lispy.json`` that lies there; one that cannot be read says why in ``problem``."""
        return {"cartridges": [self._row(file) for file in self._files()]}

    def read(self, name: str) -> dict[str, Any]:
        """The ``text`` of one, and whose it is. Raises ``NotFound``, ``BadCartridge``."""
        for file in self._files():
            if file.rel == name:
                found = load(file.path)
                text = file.path.read_bytes().decode()
                return {"cartridge": {"file": name, "text": text, **self._signed(found.signer, found.notes)}}
        raise NotFound(f'There is no cartridge "{name[:80]}".', do="Look at the list anew.")

    def signer(self, digest: str, signature: str, *, name: str) -> dict[str, Any]:
        """Who signed a file of that SHA-256, as the signature that came with it says."""
        if not _DIGEST.fullmatch(digest):
            raise Mistyped("That is no SHA-256.", do="Send its 64 hex digits.")
        return self._signed(*signer_of(digest, signature.encode(), name=name))

    def sign(self, octets: bytes, *, name: str) -> dict[str, Any]:
        """What belongs into ``FILE.sig`` beside a cartridge of these bytes. Raises ``BadCartridge``."""
        if loaded(octets, name=name).shape is not None:
            raise BadCartridge(f"{name} is no LisPy cartridge; nothing was signed.", do="rappd cartridge")
        digest = hashlib.sha256(octets).hexdigest()
        sealed = integrity.seal({name: digest}, at=utc(datetime.now(UTC)), key=self._home.identity())
        return {"file": name + integrity.SIGNATURE_SUFFIX, "signature": sealed.decode()}

    def _files(self) -> list[AgentFile]:
        return [file for file in find_agent_files(self._agents) if file.rel.endswith(CARTRIDGE)]

    def _row(self, file: AgentFile) -> dict[str, Any]:
        row: dict[str, Any] = {"file": file.rel, "size": file.stamp[1]}
        try:
            found = load(file.path)
            if found.shape is not None:
                raise BadCartridge(f"{file.rel} is a buddy, no LisPy cartridge.", do="rappd egg hatch")
            return {**row, **_about(found), **self._signed(found.signer, found.notes), "problem": ""}
        except Problem as problem:
            return {**row, "name": file.rel, "problem": str(problem)}

    def _signed(self, fingerprint: str, notes: tuple[str, ...]) -> dict[str, Any]:
        signer = {"fingerprint": fingerprint, **standing(self._home, fingerprint)}
        return {"signer": signer, "notes": list(notes)}


def _about(found: Loaded) -> dict[str, Any]:
    continuation = found.document.get("continuation", {})
    return {
        "name": name_of(found.document, found.shape),
        "description": str(found.document["_meta"].get("description") or ""),
        "frame": continuation.get("frame", 0),
        "frozen": continuation.get("image") is not None,
    }
