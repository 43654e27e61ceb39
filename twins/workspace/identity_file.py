"""``rappid.json``: who lives in a workspace. Read with care, written so that nothing in it is lost.

Keys as published: ``schema, rappid, parent_rappid, parent_repo, parent_commit, born_at, kind, name,
incarnations``; others are kept, in their order. Where a manifest says otherwise, this file is right.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from agents.storage.safe_fs import SafeTree
from agents.storage.safe_open import UnsafeFileError
from twins.errors import BadFileError, BadRappidError, NoSuchTwinError, TwinError
from twins.workspace.rappid import Rappid

FILE = "rappid.json"
MAX_BYTES = 1 << 20
MAX_NAME = 120
_MOST_CONTAINERS = 50_000
DEFAULT_KIND = "personal"

_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_KIND = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class BadNameError(TwinError):
    """A name or kind that a twin cannot have."""

    code = "bad_name"
    status = 400
    exit_code = 2


class Identity(msgspec.Struct, frozen=True):
    """The content of one ``rappid.json``. ``fields`` is all of it, in the file's order."""

    fields: Mapping[str, Any]
    rappid: Rappid

    @classmethod
    def decode(cls, content: bytes, *, where: str = FILE) -> Identity:
        """Reads the file's bytes. Raises ``BadFileError``, naming ``where``, when they hold no identity."""
        try:
            if content.count(b"[") + content.count(b"{") > _MOST_CONTAINERS:
                raise ValueError("it holds too many lists and objects")
            fields = json.loads(
                content.decode("utf-8-sig"), object_pairs_hook=_once, parse_constant=_no_constant
            )
        except (ValueError, RecursionError) as error:
            raise BadFileError(
                f"{where} is damaged: {error}", do="Restore it from an egg or a backup."
            ) from error
        if not isinstance(fields, dict):
            raise BadFileError(f"{where} holds no identity.", do="Restore it from an egg or a backup.")
        text = fields.get("rappid") or fields.get("rappid_uuid")
        try:
            return cls(fields, Rappid.parse(text))  # type: ignore[arg-type]  # parse refuses what is no text
        except BadRappidError as error:
            raise BadFileError(f"{where}: {error}", do="Restore it from an egg or a backup.") from error

    @classmethod
    def read(cls, folder: Path) -> Identity:
        """The identity of the workspace at ``folder``. Raises ``NoSuchTwinError``, ``BadFileError``."""
        content = read_regular(folder / FILE, MAX_BYTES)
        if content is None:
            raise NoSuchTwinError(f"No twin lives at {folder.name[:60]}.", do="rappd twins list")
        return cls.decode(content, where=f"{folder.name[:60]}/{FILE}")

    @classmethod
    def new(
        cls, rappid: Rappid, *, name: str, kind: str, born_at: datetime, parent: Rappid | None = None
    ) -> Identity:
        """The identity written at a birth; the kind as it is given. Raises ``BadNameError``."""
        fields = {
            "schema": "rapp/1",
            "rappid": rappid.text,
            "parent_rappid": parent.text if parent else None,
            "parent_repo": None,
            "parent_commit": None,
            "born_at": utc(born_at),
            "kind": kind,
            "name": proper_name(name),
            "incarnations": 0,
        }
        return cls(fields, rappid)

    def changed(self, **fields: Any) -> Identity:
        """The same identity with some fields set; everything else stays, in its order."""
        return Identity({**self.fields, **fields}, self.rappid)

    def encode(self) -> bytes:
        """The file's bytes: JSON indented by two."""
        return indented(self.fields)

    def write(self, folder: Path) -> None:
        """Puts it in the workspace at ``folder``, whole or not at all."""
        SafeTree(folder).write_durably(FILE, self.encode())

    @property
    def name(self) -> str:
        """The name for people, fit to be shown; the slug, or the start of the tail, where it has none."""
        for key in ("display_name", "name"):
            shown = _shown(self._text(key))
            if shown:
                return shown
        return self.rappid.slug or self.rappid.tail[:8]

    @property
    def names(self) -> frozenset[str]:
        """Every name that it answers to."""
        return frozenset({self.name, _shown(self._text("name")), self.rappid.slug} - {""})

    @property
    def kind(self) -> str:
        """The kind as written, unknown ones too."""
        return _shown(self._text("kind")) or DEFAULT_KIND

    @property
    def parent_text(self) -> str:
        """``parent_rappid`` as written; "" without one."""
        return self._text("parent_rappid")

    @property
    def parent(self) -> Rappid | None:
        """The rappid it was forked from; None without one, or when the text is no rappid."""
        return _rappid_or_none(self.parent_text)

    @property
    def migrated_from(self) -> Rappid | None:
        """The older rappid that it went on from."""
        return _rappid_or_none(self._text("_migrated_from"))

    @property
    def born_at(self) -> str:
        """The time of birth, as written; older files say ``minted_at`` or ``planted_at``."""
        return next((at for at in map(self._text, ("born_at", "minted_at", "planted_at")) if at), "")

    @property
    def incarnations(self) -> int:
        """The number of upgrades it lived through."""
        count = self.fields.get("incarnations")
        return count if isinstance(count, int) and count > 0 and not isinstance(count, bool) else 0

    def _text(self, key: str) -> str:
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""


def read_regular(path: Path, limit: int, tree: SafeTree | None = None) -> bytes | None:
    """A file that agents may have laid there: None without one.

    Links, pipes and what is larger than ``limit`` bytes are ``BadFileError``. ``tree``: no folder beneath its
    root may be a link either.
    """
    try:
        if tree is not None:
            return tree.read(path, limit)
        return SafeTree(path.parent).read((path.name,), limit)
    except FileNotFoundError:
        return None
    except UnsafeFileError as error:
        raise BadFileError(str(error), do=error.do) from error
    except OSError as error:
        raise BadFileError(f"{path.name} cannot be read: {error.strerror}", do="Look at the file.") from error


def indented(value: Any) -> bytes:
    """JSON as people read and edit it; what came in goes out, half surrogate pairs too."""
    try:
        return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
    except UnicodeEncodeError:  # only the escaped form can carry half a pair
        return (json.dumps(value, indent=2) + "\n").encode()


def proper_name(name: str) -> str:
    """A name as it is kept: free text of one line. Raises ``BadNameError``."""
    text = " ".join(unicodedata.normalize("NFC", name).split())
    if not text or len(text) > MAX_NAME or _UNSHOWN.search(text):
        raise BadNameError(
            "A name is one line of readable text." if text else "A twin needs a name.",
            do=f"Use 1 to {MAX_NAME} characters.",
        )
    return text


def proper_kind(kind: str) -> str:
    """A kind as it is kept; unknown ones are welcome. Raises ``BadNameError``."""
    if not _KIND.fullmatch(kind):
        raise BadNameError(f"{kind[:60]!r} cannot be a kind.", do="Use lower-case letters, digits, dashes.")
    return kind


def utc(at: datetime) -> str:
    """A moment as these files write it, ``2026-11-21T09:40:00Z``."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _rappid_or_none(text: str) -> Rappid | None:
    try:
        return Rappid.parse(text) if text else None
    except BadRappidError:
        return None


def _shown(text: str) -> str:
    return _UNSHOWN.sub(" ", text).strip()[:MAX_NAME]


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
