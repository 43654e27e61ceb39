"""A peer's twin out of an egg: the tar.gz member read with every check, and its files as parts of an egg."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from neighborhoods.snapshot.member_transport import AGENTS
from neighborhoods.snapshot.snapshot_contents import PeerTwin
from neighborhoods.snapshot.spooled_files import Spool
from neighborhoods.snapshot.tar_archive import gunzipped, write_tar_gz
from neighborhoods.snapshot.tar_guard import TarEntry, TarGuard, files_of, read_tar
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.eggs.readers.workspace_paths import in_archived_workspace_of, in_workspace_of
from twins.errors import BadEggError
from twins.workspace.identity_file import Identity


def spooled(twin: PeerTwin, spool: Spool) -> TarGuard:
    """Reads a twin's archive into ``spool``. Raises ``MemberError`` for what is none, or holds too much."""
    assert twin.part is not None
    guard = TarGuard(root=twin.hash)
    for entry, content in files_of(read_tar(gunzipped(twin.part.chunks()), guard)):
        spool.add(entry.path, content, mtime=entry.mtime, executable=entry.executable)
    return guard


def as_egg(snapshot: ParsedEgg, twin: PeerTwin, spool: Spool) -> ParsedEgg:
    """The twin in ``spool`` as an egg of its own. Raises ``BadEggError`` when it is nobody, ``BadFileError``."""
    identity = next((file for file in spool.files if file.name == "rappid.json"), None)
    if identity is None:
        raise BadEggError(f"{twin.name} has no rappid.json; nothing was written.", do="Take it anew.")
    found = Identity.decode(b"".join(spool.chunks(identity)))
    parts = []
    places = in_archived_workspace_of if twin.is_archived else in_workspace_of
    place_of = places([file.name for file in spool.files])
    for file in spool.files:
        place = place_of(file.name) or (Role.OTHER, f".brainstem_data/unplaced/{file.name}")
        parts.append(Part(file.name, place[0], place[1], file.size, partial(spool.chunks, file)))
    return replace(
        snapshot,
        destination=Destination.TWIN,
        key=found.rappid.key,
        rappid=found.rappid,
        name=found.name,
        parts=tuple(parts),
        folder=f"twins/{found.rappid.key}",
        answer="",
        closing=None,
    )


def packed_at(opened: ParsedEgg) -> int:
    """The second in which an egg was packed, as it says; 0 where it does not."""
    try:
        return max(0, int(datetime.fromisoformat(opened.packed_at).timestamp()))
    except (ValueError, OverflowError):
        return 0


def write_agents(handle: int, files: Iterable[tuple[str, Part]], mtime: int) -> None:
    """Writes agent files of a brainstem as the archive that goes to its machine, and closes ``handle``."""
    entries = ((TarEntry(name, part.size, mtime=mtime), part.chunks()) for name, part in sorted(files))
    with os.fdopen(handle, "wb") as target:
        write_tar_gz(target, entries, root=AGENTS)
