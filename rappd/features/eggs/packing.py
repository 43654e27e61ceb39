"""Packing: a twin, the brainstem, or one thing out of either; by an order, or before an egg touches it."""

from __future__ import annotations

import os
import platform
import re
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from rappd.features.operation import OWNER, Download, operation
from rappd.transcript.frames import RecordedConversations
from rappd.version import __version__
from twins.byte_sizes import format_bytes
from twins.eggs.writers.formats import SESSION_FORM, EggFormat, EggMaker, PackedEgg
from twins.work_progress import SAVE, Progress
from twins.workspace.listing import find, scan
from twins.workspace.twin import adopt
from twins.workspace.workspace import TwinLayout, Workspace

if TYPE_CHECKING:
    from twins.eggs.writers.contents import IsHeld

_MOST_LAID = 50
"""Eggs in one answer; of older ones nobody asks."""
_BEFORE = "-before.egg"
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]+')


class PackRequest(msgspec.Struct, frozen=True):
    """A request to pack an egg.

    ``twin`` "" means the host; ``item`` an agent's file or a rapplication's id; ``into`` a file, or "" for a
    place among the home's eggs. ``allow``: ids of findings that may travel. Of the form ``session``, ``item`` or
    ``twin`` is the beginning of a session's id, "" for the newest.
    """

    twin: str = ""
    form: str = ""
    item: str = ""
    into: str = ""
    exclude_memory: bool = False
    allow: frozenset[str] = frozenset()
    overwrite: bool = False


class LaidEgg(TypedDict):
    """An egg that lies on this machine; ``file`` is a name after what is inside, ``at`` µs since 1970."""

    file: str
    name: str
    folder: str
    path: str
    size: int
    at: int


class EggPacking:
    """Packs what lives in one home. Raises ``ReportableError``."""

    def __init__(
        self, home: Home, host: Workspace, identity: IdentityKey, is_held: IsHeld, *, machine: str
    ) -> None:
        self._home = home
        self._host = host
        self._key = identity
        self._is_held = is_held
        self._machine = machine
        self.maker = EggMaker(version=__version__, host=machine)
        self._places = TwinLayout(home.root)

    def pack(self, order: PackRequest, *, progress: Progress | None = None) -> dict[str, Any]:
        """Packs a twin, the brainstem, or one thing out of either. A running twin may go on meanwhile.

        Code that is quarantined stays behind: this machine signs nothing that nobody has read.
        """
        target = Path(order.into).expanduser().absolute() if order.into else None
        if order.form == SESSION_FORM:
            from rappd.features.sessions.packing import (
                SessionPacking,  # brings tenants and their brainstems along
            )

            sessions = SessionPacking(self._home, self._host, self._key, machine=self._machine)
            target = target or self.place("sessions", SESSION_FORM)
            session = order.item or order.twin
            return sessions.pack(session, target, allow=order.allow, overwrite=order.overwrite)
        form = _form(order)
        workspace, name = self._workspace(order)
        if not order.twin and not form.needs_item:
            self._adopt_host()
        done = self._packed(
            workspace,
            target or self.place(name, form.value),
            form,
            item=order.item,
            exclude_memory=order.exclude_memory,
            allow=order.allow,
            overwrite=order.overwrite,
            progress=progress,
        )
        sentence = f"{done.name} is packed: {done.path}, {done.files} files, {format_bytes(done.size)}."
        return {"packed": _packed(done), "message": sentence}

    @operation("eggs.laid", "GET", "/eggs/laid", right=OWNER, answers="eggs")
    def laid(self) -> list[LaidEgg]:
        """Eggs that were packed here and lie on this machine, the latest first; `file` is a name after what is inside.

        Eggs that a hatching packed as its way back are none of them.
        """
        found = []
        for path in self._places.eggs.glob("[!.]*/*.egg"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and not path.name.endswith(_BEFORE):
                found.append((status.st_mtime, status.st_size, path))
        found.sort(reverse=True)
        names = {
            one.key: one.name for kept in (False, True) for one in scan(self._places, archived=kept).twins
        }
        rows: list[LaidEgg] = [
            {
                "file": egg_file_name(name),
                "name": name,
                "folder": path.parent.name,
                "path": str(path),
                "size": size,
                "at": int(at * 1_000_000),
            }
            for at, size, path in found[:_MOST_LAID]
            for name in [names.get(path.parent.name) or _name_inside(path)]
        ]
        return rows

    @operation("eggs.save", "GET", "/eggs/laid/{folder}/{name}", right=OWNER)
    def save(self, folder: str, name: str) -> Download:
        """An egg that was packed here, as a download."""
        return Download(laid_egg(self._places, folder, name))

    def lay_before_bond(self, root: Path, progress: Progress | None = None) -> Path:
        """An egg of a workspace before another egg touches it; secrets in it are no reason to stop."""
        furthest = 0

        def told(phase: str, done: int, whole: int) -> None:
            nonlocal furthest
            furthest = max(furthest, done)  # it begins anew where a secret was found
            if progress is not None:
                progress(SAVE, min(furthest, whole), whole)

        from twins.eggs.writers.secret_scan import SecretsFoundError

        is_host = os.path.realpath(root) == os.path.realpath(self._host.root)
        if is_host:
            self._adopt_host()
        form, workspace = (
            (EggFormat.BRAINSTEM, self._host) if is_host else (EggFormat.TWIN, Workspace.at(root))
        )
        target = self.place("brainstem" if is_host else root.name, form.value)
        target = target.with_name(target.stem + _BEFORE)
        allow: frozenset[str] = frozenset()
        while True:
            try:
                self._packed(workspace, target, form, allow=allow, progress=told)
            except SecretsFoundError as found:  # it stays on this machine, in the owner's own folder
                known = len(allow)
                allow |= {one.id for one in found.findings}
                if len(allow) == known:
                    raise
            else:
                return target

    def _packed(self, workspace: Workspace, target: Path, form: EggFormat, **how: Any) -> PackedEgg:
        from twins.eggs.writers.pack import pack  # brings the archive writer along

        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return pack(
            workspace,
            target,
            form=form,
            key=self._key,
            maker=self.maker,
            conversations=RecordedConversations(self._home.database, workspace.root.name),
            is_held=self._is_held,
            **how,
        )

    def _adopt_host(self) -> None:
        """A brainstem that no daemon ever ran has no rappid yet."""
        name = self._machine
        self._host.create()
        adopt(self._host, name, owner=name, host=name, platform=platform.system().lower())

    def _workspace(self, order: PackRequest) -> tuple[Workspace, str]:
        if not order.twin:
            return self._host, order.item or "brainstem"
        twin = find(self._places, order.twin)
        return twin.workspace, twin.key

    def place(self, name: str, form: str) -> Path:
        """A new file among the home's eggs, for what is called so."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
        folder = name.removesuffix(".py").replace("/", "__")
        return self._places.eggs / folder / f"{at}-{form}.egg"


def _form(order: PackRequest) -> EggFormat:
    text = order.form or (
        EggFormat.TWIN.value
        if order.twin
        else EggFormat.AGENT.value
        if order.item
        else EggFormat.BRAINSTEM.value
    )
    try:
        form = EggFormat(text)
    except ValueError as error:
        raise UsageProblemError(
            f'There is no form "{text[:40]}".',
            do=", ".join((*(one.value for one in EggFormat), SESSION_FORM)),
        ) from error
    if form.needs_item and not order.item:
        raise UsageProblemError(f"Which {form.value.removeprefix('rapp1-')} shall be packed?", do="Name it.")
    if order.item and not form.needs_item:
        raise UsageProblemError(f"The form {form.value} packs a whole workspace.", do="Leave the item out.")
    if not order.twin and form is EggFormat.TWIN:
        raise UsageProblemError("Which twin shall be packed?", do="rappd twins list")
    return form


def _packed(done: PackedEgg) -> dict[str, Any]:
    return {
        "path": str(done.path),
        "form": done.form.value,
        "name": done.name,
        "rappid": done.rappid.text if done.rappid else "",
        "size": done.size,
        "sha256": done.sha256,
        "files": done.files,
        "left_out": [{"path": one.path, "why": str(one.why.value)} for one in done.left_out],
        "unread": done.unread,
        "odd_names": [{"path": path, "why": why} for path, why in done.odd_names.items()],
        "allowed": [{"path": one.path, "line": one.line, "what": one.what} for one in done.allowed],
        "signature": str(done.signature) if done.signature else "",
    }


def laid_egg(places: TwinLayout, folder: str, name: str) -> Path:
    """The file of an egg that was packed here. Raises ``NotFoundError``."""
    root = places.eggs.resolve()
    try:
        path = (root / folder / name).resolve()
        found = path.parent.parent == root and path.suffix == ".egg" and path.is_file()
    except (OSError, ValueError):  # a name too long, a zero byte
        found = False
    if not found:
        raise NotFoundError("There is no such egg.", do="rappd egg pack")
    return path


def egg_file_name(name: str) -> str:
    """``Gardener.egg``: a name as every system allows it for a file."""
    return f"{_NOT_IN_NAMES.sub('_', name).strip('. ')[:80] or 'egg'}.egg"


def _name_inside(path: Path) -> str:
    from twins.eggs.readers.inspect import inspect, look_at

    try:
        with look_at(path) as opened:
            return str(inspect(opened)["egg"]["name"] or path.parent.name)
    except (ReportableError, OSError):
        return path.parent.name
