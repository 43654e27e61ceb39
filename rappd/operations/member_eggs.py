"""Makes the egg that another machine's rappd hatches, out of the checked archive of one twin."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from envelopes.identity.keys import IdentityKey
from neighborhoods.snapshot.member_transport import EggMaker
from neighborhoods.snapshot.transports.twin_folder import unpack_archive


def egg_maker(scratch: Path, key: IdentityKey, machine: str) -> EggMaker:
    """Makes eggs in ``scratch``, signed by ``key``. Secrets that the snapshot let pass may pass here, too."""

    def make(archive: Path, twin: str) -> Path:
        from twins.eggs.writers.formats import EggMaker as Maker
        from twins.eggs.writers.pack import pack
        from twins.eggs.writers.secret_scan import SecretsFoundError
        from twins.workspace.workspace import Workspace

        folder = scratch / f".{secrets.token_hex(8)}"
        target = folder / "twin.egg"
        folder.mkdir(mode=0o700, parents=True)
        try:
            unpack_archive(archive, folder / "twin", twin)
            workspace = Workspace.at(folder / "twin")
            try:
                pack(workspace, target, key=key, maker=Maker(host=machine))
            except SecretsFoundError as found:
                allowed = [one.id for one in found.findings]
                pack(workspace, target, key=key, maker=Maker(host=machine), allow=allowed)
            return target.rename(scratch / f"{folder.name}.egg")
        finally:
            shutil.rmtree(folder)

    return make
