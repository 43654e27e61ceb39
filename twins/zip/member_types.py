"""Types of members: only files and folders are taken, in the notation of any system."""

from __future__ import annotations

import stat

from twins.zip.file_slice import FileSlice
from twins.zip.names import shown

_DOS_VOLUME, _DOS_FOLDER, _DOS_DEVICE, _NTFS_REPARSE = 0x08, 0x10, 0x40, 0x400
_WORDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def refuse_kind(attributes: int, name: str, folder: bool, window: FileSlice) -> None:
    """Raises ``HostileEggError`` when external attributes make a member anything but a file or a folder.

    Both halves are read whatever system the archive names, as extractors differ in whom they believe.
    """
    kind = stat.S_IFMT(attributes >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise window.hostile(f"{shown(name)} is {_WORDS.get(kind, 'neither file nor folder')}")
    if attributes & _NTFS_REPARSE:
        raise window.hostile(f"{shown(name)} is a symbolic link")
    if attributes & (_DOS_VOLUME | _DOS_DEVICE):
        raise window.hostile(f"{shown(name)} is a device")
    if not folder and (kind == stat.S_IFDIR or attributes & _DOS_FOLDER):
        raise window.hostile(f"{shown(name)} is a file and a folder in this egg")
