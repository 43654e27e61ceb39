"""Merging, the Dream Catcher's way: two eggs of one being into one, documents into one, deltas into a state."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envelopes.identity.keys import IdentityKey
from twins.cartridges.json_documents import MAX_BYTES, Document, parse
from twins.eggs.parsed_egg import Destination
from twins.eggs.readers.detect import open_egg
from twins.eggs.writers.formats import EggFormat, EggMaker
from twins.errors import BadCartridgeError, NoSuchFileError
from twins.trust.signers import Signers
from twins.work_progress import Progress

if TYPE_CHECKING:
    from twins.merge.stream_deltas import MergedState


def merge_eggs(
    base: Path | None,
    ours: Path,
    theirs: Path,
    into: Path,
    *,
    key: IdentityKey,
    signers: Signers,
    maker: EggMaker,
    allow: Collection[str] = (),
    overwrite: bool = False,
    at: datetime | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes the egg of both lives ``into`` a file and answers ``{"merged": {…report, path, sha256, …}}``.

    Signed by ``key`` unless it holds code that neither this machine nor a trusted signer has signed: then it is
    whole, unsigned, and its code is read before it runs. Raises ``TwinConflictError`` for two beings, ``BadEggError``,
    ``SecretsFoundError``; nothing is written then.
    """
    from twins.eggs.writers.pack import pack  # brings the archive writer along
    from twins.merge.egg_merge import merge

    moment = (at or datetime.now(UTC)).astimezone(UTC)
    trusted = [key.fingerprint, *(one.fingerprint for one in signers.listing())]
    into.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as open_eggs:
        eggs = [
            None if path is None else open_eggs.enter_context(open_egg(path, progress=_of(side, progress)))
            for side, path in (("base", base), ("ours", ours), ("theirs", theirs))
        ]
        staged = Path(
            open_eggs.enter_context(tempfile.TemporaryDirectory(dir=into.parent, prefix=".merging-"))
        )
        assert eggs[1] is not None
        assert eggs[2] is not None
        merged = merge(eggs[0], eggs[1], eggs[2], staged, at=moment, trusted=trusted, progress=progress)
        signed = not merged.report.foreign_code
        done = pack(
            merged.workspace,
            into,
            form=EggFormat.TWIN if eggs[1].destination is Destination.TWIN else EggFormat.BRAINSTEM,
            at=moment,
            key=key if signed else None,
            maker=maker,
            conversations=merged.conversations,
            ancestors=merged.ancestors,
            allow=allow,
            overwrite=overwrite,
            progress=progress,
        )
    return {
        "merged": {
            **merged.report.as_json(),
            "path": str(done.path),
            "size": done.size,
            "sha256": done.sha256,
            "files": done.files,
            "signed": signed,
        }
    }


def _of(side: str, progress: Progress | None) -> Progress | None:
    """The same, with the side in the phase: the check of each goes from nothing to its end."""
    if progress is None:
        return None
    return lambda phase, done, whole: progress(f"{phase} {side}", done, whole)


def merge_documents(base: Path | None, ours: Path, theirs: Path) -> tuple[Document, list[dict[str, Any]]]:
    """Two versions of a JSON document as one, and its contradictions ``{"at", "lost"}``: the value not taken.

    Raises ``BadCartridgeError`` for what is no object, ``TwinConflictError`` for two beings.
    """
    from twins.merge.json_merge import merge

    joined = merge(None if base is None else _document(base), _document(ours), _document(theirs))
    return joined.document, [{"at": at, "lost": lost} for at, lost in joined.contradictions]


def add_deltas(state: Path, deltas: Sequence[Path]) -> MergedState:
    """The state with the deltas in it, and what of them is not. Raises ``BadCartridgeError``."""
    from twins.merge.stream_deltas import add

    return add(_document(state), [_document(path) for path in deltas])


def _document(path: Path) -> Document:
    try:
        with path.open("rb") as file:
            octets = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise NoSuchFileError(f'There is no file "{path}".', do="Look at the path.") from error
    except OSError as error:
        raise BadCartridgeError(
            f"{path.name} cannot be read: {error.strerror}.", do="Look at the file."
        ) from error
    return parse(octets, name=path.name)
