"""Stores a buddy in its twin's workspace: ``.brainstem_data/buddy.json``, in the published shape.

A hatched egg lies beside it as it came, ``buddy.rappter.egg``. The first look for the buddy finds only
that and takes it in; the shell stays.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from twins.cartridges import buddy_actions, buddy_state
from twins.cartridges.buddy_actions import Action, ActionResult
from twins.cartridges.json_documents import MAX_BYTES, Document, encode, parse
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape, checked
from twins.errors import BadCartridgeError, BadFileError, NoSuchFileError, NoSuchTwinError, TwinConflictError
from twins.workspace.identity_file import Identity, read_regular
from twins.workspace.workspace import Workspace, exclusive_lock

KIND = "buddy"
"""The kind of the twins that are buddies."""
FILE = "buddy.json"
SHELL = "buddy.rappter.egg"


class BuddyStore:
    """One workspace's buddy. Several processes may act on it: one at a time writes, all of it or nothing."""

    def __init__(self, workspace: Workspace) -> None:
        self._data = workspace.data
        self.files = workspace.files
        self.path = workspace.data / FILE
        self.shell = workspace.data / SHELL

    def is_empty(self) -> bool:
        """True when no buddy lives here."""
        return not self.files.exists(self.path) and not self.files.exists(self.shell)

    def read(self) -> Document:
        """The buddy as it was last written. Raises ``NoSuchFileError``, ``BadCartridgeError``, ``BadFileError``.

        What has changed since, through time alone, is ``life.at``'s to say.
        """
        found = self._lying(FILE)
        if found is not None:
            document, shape = found
            if shape is not Shape.BUDDY:
                raise BadCartridgeError(
                    f"{FILE} is of another shape.", do="Take it out and hatch it as an egg."
                )
            return document
        found = self._lying(SHELL)
        if found is None:
            raise _nobody()
        hatched = convert(found[0], Shape.BUDDY)
        hatched["_meta"].pop("as_of", None)  # in the shell no time passed
        return hatched

    def lay(
        self, *, name: str = "???", github_user: str | None = None, now: datetime | None = None
    ) -> Document:
        """Puts a new egg in. Raises ``TwinConflictError`` when somebody lives here."""
        moment = _now(now)
        return self._put(buddy_state.egg(moment, name=name, github_user=github_user), moment, replace=False)

    def take(self, document: Document, *, replace: bool = False, now: datetime | None = None) -> Document:
        """Takes in what a ``.rappter.egg`` of any shape holds; its time begins here and now.

        With ``replace`` it takes the place of who lives here, whole, as published; that one stays as
        ``kept/buddy/<moment>.json``. Raises ``TwinConflictError`` without, ``BadCartridgeError``.
        """
        moment = _now(now)
        found = convert(document, Shape.BUDDY)
        found["_meta"].pop("as_of", None)
        return self._put(buddy_state.at(found, moment), moment, replace=replace)

    def act(
        self,
        action: Action,
        *,
        text: str = "",
        kind: str = "memory",
        found: bool = False,
        pulse: int = 0,
        now: datetime | None = None,
    ) -> ActionResult:
        """Does ``action`` and keeps what came of it; see ``acting.act``."""
        entropy = os.urandom(2)
        with self._alone():
            lived = buddy_actions.act(
                self.read(),
                action,
                _now(now),
                text=text,
                kind=kind,
                found=found,
                pulse=pulse,
                entropy=entropy,
            )
            if lived.changed or not self.files.exists(self.path):
                self.files.write_durably(self.path, encode(lived.document))
        return lived

    def rename(self, name: str, *, now: datetime | None = None) -> None:
        """Calls it something else; an empty nest stays one."""
        with self._alone():
            if not self.is_empty():
                document = buddy_state.at(self.read(), _now(now))
                document["organism"]["name"] = name
                self.files.write_durably(self.path, encode(document))

    def hear(self, text: str, source: str, *, now: datetime | None = None) -> None:
        """Keeps in mind what was said here and by whom."""
        with self._alone():
            heard = buddy_state.hear(self.read(), text, source, _now(now))
            self.files.write_durably(self.path, encode(heard))

    def export(self, shape: Shape = Shape.BUDDY, *, now: datetime | None = None) -> Document:
        """The buddy as a ``.rappter.egg`` of that shape, to be written to a file. It stays here too."""
        return convert(buddy_state.exported(self.read(), _now(now)), shape)

    def _put(self, document: Document, now: datetime, *, replace: bool) -> Document:
        octets = encode(document)
        self._no_link()
        self.files.make_folder(self._data)
        with self._alone():
            if not self.is_empty():
                if not replace:
                    raise TwinConflictError(
                        "A buddy lives here already; it stays.", do="Hatch it as a new twin."
                    )
                self._keep(now)
            self.files.write_durably(self.path, octets)
        return document

    def _keep(self, now: datetime) -> None:
        octets = read_regular(self.path, MAX_BYTES, self.files)
        if octets is not None:
            name = now.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ.json")
            self.files.write_durably(self._data / "kept" / "buddy" / name, octets)

    def _lying(self, name: str) -> tuple[Document, Shape] | None:
        self._no_link()
        octets = read_regular(self._data / name, MAX_BYTES, self.files)
        if octets is None:
            return None
        document = parse(octets, name=name)
        return document, checked(document, name=name)

    def _alone(self) -> AbstractContextManager[None]:
        self._no_link()
        if not self.files.is_folder(self._data):
            raise _nobody()
        return exclusive_lock(self._data)

    def _no_link(self) -> None:
        """The workspace is its agents' to write: they must not have the daemon write elsewhere."""
        if self.files.exists(self._data) and not self.files.is_folder(self._data):
            raise BadFileError(
                f"{self._data.name} is a link; nothing was read or written.", do="Remove the link."
            )


def is_buddy(workspace: Workspace) -> bool:
    """True when a workspace is a buddy's."""
    try:
        return Identity.read(workspace.root).kind == KIND
    except (NoSuchTwinError, BadFileError):
        return False


def _nobody() -> NoSuchFileError:
    return NoSuchFileError("No buddy lives here.", do="rappd twins new NAME --kind buddy")


def _now(now: datetime | None) -> datetime:
    return datetime.now(UTC) if now is None else now
