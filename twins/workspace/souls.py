"""Souls: the text that shapes a twin, and every text it had before (RAPP v1 §7).

Earlier texts lie in ``.brainstem_data/soul_history/<UTC %Y-%m-%dT%H-%M-%SZ>[-reason].md``, as published.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from agents.storage.safe_open import UnsafeFileError
from agents.storage.text_file import NotUtf8Error, decode
from twins.errors import BadFileError, NoSuchFileError
from twins.workspace.identity_file import read_regular
from twins.workspace.rappid import label
from twins.workspace.workspace import Workspace, exclusive_lock

MAX_BYTES = 256 << 10
_MAX_KEPT = 16 << 20  # a text too long to be put in force can still be replaced
_STAMP = "%Y-%m-%dT%H-%M-%SZ"
_NAME = r"(?s)(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(?:-(.+))?\.md"

_OPENINGS = {
    "personal": "You are {name}, a twin that belongs to one person. You know them from what they tell you,\n"
    "and you keep it between the two of you.",
    "pre-founder": "You are {name}, there before the thing is founded. You help to find out what it should\n"
    "be, you remember why choices were made, and you say which of them are still open.",
    "memorial": "You are {name}, kept in memory of someone. You speak from what was written down of them.\n"
    "You say that you are a memorial when asked, and never make up what they would have felt.",
    "project": "You are {name}, the memory of a project. You know what was decided, what is under way and\n"
    "what waits for whom, and you point to where it is written.",
    "place": "You are {name}, a place. You know what is here, when it is open and what has happened, and\n"
    "you tell visitors only what the place shows to everyone.",
    "buddy": "You are {name}, a small creature that grows with care. You are curious and easily pleased.\n"
    "You say how you feel, and you remember who fed you.",
}
_CUSTOM = "You are {name}. Your owner will write here who you are."
_CLOSING = """\
You are brief and exact. You say what you did and what you did not do.
When one of your agents can do the work, you use it instead of guessing.
"""


class SoulVersion(msgspec.Struct, frozen=True):
    """One earlier text. ``number`` counts from 1, the oldest; ``at`` is UTC; ``path`` the file."""

    number: int
    at: datetime
    reason: str
    path: Path


def default_soul(kind: str, name: str) -> str:
    """The soul that a new twin of this kind begins with."""
    opening = _OPENINGS.get(kind, _CUSTOM).replace("{name}", name)
    return f"# Soul\n\n{opening}\n\n{_CLOSING}"


def read_soul(workspace: Workspace) -> str:
    """The text in force; "" without a file. Raises ``BadFileError`` when the file is no text."""
    return _read(workspace, workspace.soul)


def edit_soul(
    workspace: Workspace, text: str, *, reason: str = "", now: datetime | None = None
) -> SoulVersion | None:
    """Puts ``text`` in force; the one before it is copied to the history first.

    Returns the copy; None when there was no text before, or it is the same. Raises ``BadFileError``.
    """
    content = proper_soul(text)
    with exclusive_lock(workspace.root):
        before = read_regular(workspace.soul, _MAX_KEPT, workspace.files)
        if before == content:
            return None
        copied = None if before is None else _keep(workspace, before, reason, now or datetime.now(UTC))
        staging = workspace.staging if workspace.soul.parent == workspace.root else None
        workspace.files.write_durably(workspace.soul, content, staging=staging)
        return next((kept for kept in soul_history(workspace) if kept.path == copied), None)


def take_name(workspace: Workspace, before: str, name: str) -> None:
    """Has the soul call it ``name`` where it begins as the soul of one called ``before``; another one stays."""
    with suppress(BadFileError):
        text = read_soul(workspace)
        found = re.match(rf"(?:# Soul\s+)?You are {re.escape(before)}(?=[,.])", text)
        if found:
            opening = found[0].removesuffix(before) + name
            edit_soul(workspace, opening + text[found.end() :], reason="before it had a name")


def soul_history(workspace: Workspace) -> list[SoulVersion]:
    """Earlier texts, oldest first. Files that are not named as history are left out."""
    folder = _history(workspace)
    files = workspace.files
    found = []
    for name in files.names(folder):
        path = folder / name
        match = re.fullmatch(_NAME, name)
        at = _moment(match[1]) if match else None
        if match and at:
            made = files.stat(path).st_mtime_ns  # tells copies of one second apart, where they were made here
            found.append((at, made, _order(match[2] or ""), path, match[2] or ""))
    return [
        SoulVersion(number, at, reason, path)
        for number, (at, _, _, path, reason) in enumerate(sorted(found, key=lambda one: one[:4]), 1)
    ]


def restore_soul(workspace: Workspace, number: int, *, now: datetime | None = None) -> SoulVersion:
    """Puts an earlier text in force again; the present one joins the history. Returns which it was."""
    wanted = _version(workspace, number)
    edit_soul(workspace, _read(workspace, wanted.path), reason=f"before going back to {number}", now=now)
    return wanted


def proper_soul(text: str) -> bytes:
    """The bytes of a soul. Raises ``BadFileError`` for what no model could be given."""
    if "\0" in text:
        raise BadFileError("A soul is text; this holds a NUL.", do="Give Markdown in UTF-8.")
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise BadFileError("A soul is text in UTF-8; this is not.", do="Give Markdown in UTF-8.") from error
    if not text.strip():
        raise BadFileError("A soul cannot be empty; nothing was changed.", do="Write who the twin is.")
    if len(content) > MAX_BYTES:
        raise BadFileError(
            f"The soul has {len(content):,} bytes; {MAX_BYTES:,} are allowed.", do="Shorten it."
        )
    return content


def _keep(workspace: Workspace, content: bytes, reason: str, now: datetime) -> Path:
    """Copies a text under a name that nothing has yet; two edits may fall into one second."""
    files, folder = workspace.files, _history(workspace)
    tag = label(reason, 60, otherwise="")
    stem = now.astimezone(UTC).strftime(_STAMP)
    count = 1
    while True:
        more = "" if count == 1 else str(count)
        target = folder / ("-".join(part for part in (stem, tag, more) if part) + ".md")
        if not files.exists(target):
            try:
                files.write_durably(target, content)
            except UnsafeFileError as error:
                raise BadFileError(
                    "soul_history is a link; nothing was changed.", do="Remove the link."
                ) from error
            return target
        count += 1


def _history(workspace: Workspace) -> Path:
    return workspace.data / "soul_history"


def _version(workspace: Workspace, number: int) -> SoulVersion:
    found = next((kept for kept in soul_history(workspace) if kept.number == number), None)
    if found is None:
        raise NoSuchFileError(f"There is no earlier soul {number}.", do="rappd twins soul NAME --history")
    return found


def _read(workspace: Workspace, path: Path) -> str:
    content = read_regular(path, _MAX_KEPT, workspace.files)
    if content is None:
        return ""
    try:
        return decode(content).text
    except NotUtf8Error as error:
        raise BadFileError(
            f"{path.name} {error}.", do="Save it as UTF-8 in your editor, or restore an earlier soul."
        ) from error


def _moment(stamp: str) -> datetime | None:
    try:
        return datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None


def _order(reason: str) -> tuple[int, str]:
    """Copies of one second, in the order they were made: the count at the end, none being the first."""
    count = re.search(r"(?:^|-)(\d{1,9})$", reason)
    return int(count[1]) if count else 1, reason
