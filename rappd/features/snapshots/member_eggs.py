"""Makes the egg that another machine's rappd hatches, out of the checked archive of one twin."""

from __future__ import annotations

import secrets
import shutil
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from envelopes.identity.keys import IdentityKey
from neighborhoods.snapshot.member_transport import AGENTS, EggMaker
from neighborhoods.snapshot.transports.twin_folder import unpack_archive
from twins.workspace.identity_file import indented, utc

_EARLIEST, _LATEST = 315_619_200, 4_354_819_199
"""The moments that a ZIP can name: 1980 to 2107."""


def egg_maker(scratch: Path, key: IdentityKey, machine: str) -> EggMaker:
    """Makes eggs in ``scratch``, signed by ``key``. Secrets that the snapshot let pass may pass here, too."""

    def make(archive: Path, twin: str, *, archived: bool = False, is_signed: bool = True) -> Path:
        from twins.eggs.writers.formats import EggMaker as Maker
        from twins.eggs.writers.pack import pack
        from twins.eggs.writers.secret_scan import SecretsFoundError
        from twins.workspace.workspace import Workspace

        folder = scratch / f".{secrets.token_hex(8)}"
        target = folder / "twin.egg"
        folder.mkdir(mode=0o700, parents=True)
        try:
            unpack_archive(archive, folder / "twin", twin)
            signing = key if is_signed else None
            if twin == AGENTS:
                _pack_agents(folder / "twin", target, signing, machine)
                return target.rename(scratch / f"{folder.name}.egg")
            write = partial(
                pack,
                Workspace.at(folder / "twin"),
                target,
                key=signing,
                maker=Maker(host=machine),
                at=_last_change(folder / "twin"),
                archived=archived,
            )
            try:
                write()
            except SecretsFoundError as found:
                write(allow=[one.id for one in found.findings])
            return target.rename(scratch / f"{folder.name}.egg")
        finally:
            shutil.rmtree(folder)

    return make


def _pack_agents(folder: Path, target: Path, key: IdentityKey | None, machine: str) -> None:
    """``rapp-egg/2.0``, scale agent, with several of them."""
    from twins.eggs import integrity
    from twins.zip.writer import ArchiveWriter

    at = _last_change(folder)
    manifest = {
        "schema": "rapp-egg/2.0",
        "scale": "agent",
        "id": "brainstem_agents",
        "name": "agents of a brainstem",
        "exported_at": utc(at),
        "host": machine,
    }
    with target.open("xb") as file, ArchiveWriter(file, at=at) as writer:
        hashes = {path.name: writer.add(path.name, path).sha256 for path in sorted(folder.iterdir())}
        hashes["manifest.json"] = writer.add("manifest.json", indented(manifest)).sha256
        writer.add(integrity.MEMBER, integrity.seal(hashes, at=utc(at), key=key))
        writer.finish()


def _last_change(folder: Path) -> datetime:
    """The time of the newest file: a twin that is sent again is the same egg again."""
    newest = max((path.lstat().st_mtime for path in folder.rglob("*") if path.is_file()), default=0.0)
    return datetime.fromtimestamp(min(max(newest, _EARLIEST), _LATEST), UTC)
