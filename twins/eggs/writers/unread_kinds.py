"""Kinds of files that the secret scan does not read, counted so that the owner hears of them before packing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_KINDS = {
    "picture": "png jpg jpeg gif webp bmp tiff tif heic avif ico psd",
    "sound or video": "mp3 wav ogg flac m4a opus aac mp4 mov mkv webm avi",
    "archive": "zip gz tgz bz2 xz zst 7z rar tar jar whl egg apk iso br lz4 deb rpm",
    "document": "pdf docx xlsx pptx odt ods odp epub pages numbers doc xls",
    "encrypted file": "gpg pgp age enc asc aes vault",
    "binary database": "mdb accdb parquet pkl pickle npy npz lmdb rdb leveldb dat",
}
"""File name endings by kind."""
_BY_ENDING = {ending: kind for kind, endings in _KINDS.items() for ending in endings.split()}
_MANY = {"sound or video": "sound and video files", "encrypted file": "encrypted files"}
NEVER_READ = (
    "The secret scan cannot read pictures, sound, documents, encrypted files and most archives and databases; "
    "it understands English and German."
)
"""The kinds that stay out of reach, as one sentence for people."""


def unread_kinds(names: Iterable[str]) -> dict[str, int]:
    """Kind to number of files, by their names, of what nobody looks into for secrets."""
    found = Counter(_BY_ENDING.get(name.rpartition(".")[2].lower(), "") for name in names)
    del found[""]
    return {kind: found[kind] for kind in _KINDS if found[kind]}


def in_words(kinds: dict[str, int]) -> str:
    """ "12 pictures, 1 archive"; "" for none."""
    return ", ".join(
        f"{count} {kind if count == 1 else _MANY.get(kind, f'{kind}s')}" for kind, count in kinds.items()
    )
