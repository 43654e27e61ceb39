"""Checks that a home folder can be made, read and written, and names what is in the way."""

from __future__ import annotations

import os
import pwd
import shlex
from pathlib import Path
from typing import NamedTuple

_WRITTEN = ("keys", "brainstem", "twins", "eggs", "rappd.db", "rappd.log", "rappd.pid")
_READ = ("rappd.toml", ".env")
_ELSEWHERE = "`RAPP_HOME=FOLDER rappd start`"


class Obstacle(NamedTuple):
    """``what`` is in the way, as a sentence without its stop, and what to ``do``."""

    what: str
    do: str


def find_obstacle(root: Path) -> Obstacle | None:
    """The reason why this account cannot use ``root`` as its home; None when it can. Writes nothing."""
    if not _is_utf8(root):
        return Obstacle(f"{_shown(root)} has a name that is not UTF-8", f"rename it, or {_ELSEWHERE}")
    nearest = next(path for path in (root, *root.parents) if os.path.lexists(path))
    if not nearest.exists():
        return Obstacle(f"{nearest} is a link to nothing", f"remove it, or {_ELSEWHERE}")
    if not nearest.is_dir():
        return Obstacle(f"{nearest} is a file, not a folder", f"move it away, or {_ELSEWHERE}")
    if nearest != root:
        return None if os.access(nearest, os.W_OK | os.X_OK) else _cannot_make(root, nearest)
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        return _closed(root, root)
    for name, mode in (*((one, os.R_OK | os.W_OK) for one in _WRITTEN), *((one, os.R_OK) for one in _READ)):
        path = root / name
        if path.is_symlink() and not path.exists():
            return Obstacle(f"{path} is a link to {path.readlink()}, which is not there", "remove the link")
        if os.path.lexists(path) and not os.access(path, mode | (os.X_OK if path.is_dir() else 0)):
            return _closed(path, root)
    return None


def _cannot_make(root: Path, parent: Path) -> Obstacle:
    if _is_read_only(parent):
        return Obstacle(f"{root} cannot be made: its disk is read-only", f"name a folder: {_ELSEWHERE}")
    whose = f"{parent} belongs to {_owner(parent)}" if _is_foreign(parent) else f"{parent} is not writable"
    return Obstacle(f"{root} cannot be made: {whose}", f"name a folder of your own: {_ELSEWHERE}")


def _closed(path: Path, root: Path) -> Obstacle:
    if _is_read_only(path):
        return Obstacle(f"{path} lies on a disk that is read-only", f"name another folder: {_ELSEWHERE}")
    if _is_foreign(path):
        me = _name(os.geteuid())
        do = f"`sudo chown -R {me} {shlex.quote(str(root))}`, or {_ELSEWHERE}"
        return Obstacle(f"{path} belongs to {_owner(path)}, and rappd runs as {me}", do)
    rights = "u+rwX" if path.is_dir() else "u+rw"
    return Obstacle(
        f"{path} may not be read and written", f"`chmod {rights} {shlex.quote(str(path))}`, or {_ELSEWHERE}"
    )


def _is_utf8(path: Path) -> bool:
    """True when the path's name is text: links, JSON and the tokens of phones carry it."""
    return all(not "\udc80" <= sign <= "\udcff" for sign in str(path))


def _shown(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _is_read_only(path: Path) -> bool:
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def _is_foreign(path: Path) -> bool:
    return path.lstat().st_uid != os.geteuid()


def _owner(path: Path) -> str:
    return _name(path.lstat().st_uid)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"account {uid}"
