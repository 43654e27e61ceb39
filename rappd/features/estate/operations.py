"""The estate of this home's owner: shown, changed, rebuilt from what lives here, packed; and estates kept as data."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict

from msgspec.structs import replace

from agents.storage.safe_walk import LinkFreeFolder
from neighborhoods.errors import BadEstateError, NotInEstateError
from neighborhoods.places import estate_file
from neighborhoods.places.doors import Door, door
from neighborhoods.places.estate_file import Estate, EstateView, Part
from neighborhoods.places.place import places
from rappd.daemon.home import Home
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.operation import OWNER, Text, operation
from rappd.settings.load import Settings
from twins.byte_sizes import format_bytes
from twins.eggs.nested_eggs import FOLDER
from twins.workspace.identity_file import Identity, indented
from twins.workspace.listing import find, scan
from twins.workspace.rappid import Rappid
from twins.workspace.twin import adopt
from twins.workspace.workspace import TwinLayout, Workspace

PackPlace = Callable[..., Mapping[str, Any]]


class KeptEstate(TypedDict):
    """An estate of somebody else that lies here as data, or why it cannot be read."""

    key: str
    folder: str
    owner: str
    trouble: str
    created: int
    member: int
    eggs: list[str]


class EstateShown(TypedDict):
    """The estate, the addresses of what is in it, and estates of others."""

    estate: EstateView | None
    doors: list[Door]
    kept: list[KeptEstate]


class EstateChanged(TypedDict):
    """The estate as it is now."""

    estate: EstateView
    message: str


class EstateRebuilt(EstateChanged):
    """The same; ``aside`` is where a damaged file was set, "" for none."""

    aside: str


class EstateMember(TypedDict):
    """A twin or a neighborhood whose egg is in an estate's."""

    hash: str
    rappid: str
    name: str


class PackedEstate(TypedDict):
    """The egg of an estate."""

    path: str
    kind: Literal["estate"]
    owner: str
    members: list[EstateMember]
    files: int
    size: int
    sha256: str
    left_out: list[dict[str, Any]]


class EstatePacked(TypedDict):
    """The answer of ``estate.pack``."""

    packed: PackedEstate
    message: str


class EstateOperations:
    """The estate of one home. Answers are JSON objects; raises ``ReportableError``. Most of it blocks on the disk."""

    def __init__(
        self,
        home: Home,
        host: Workspace,
        eggs: EggOperations,
        pack_place: PackPlace,
        settings: Callable[[], Settings],
        *,
        machine: str,
    ) -> None:
        """``pack_place`` packs one neighborhood by its key."""
        self._home = home
        self._host = host
        self._eggs, self._pack_place = eggs, pack_place
        self._settings = settings
        self._machine = machine
        self._twins = TwinLayout(home.root)

    @operation("estate.show", "GET", "/estate", right=OWNER)
    def show(self) -> EstateShown:
        """Shows the estate's file, or null, the links to what is in it, and estates of others that lie here as data."""
        estate = Estate.read(self._home.root)
        kinds = self._kinds()
        doors: list[Door] = []
        account = (estate.github if estate else "") or self._github
        for part in estate_file.PARTS:
            for entry in getattr(estate, part) if estate else ():
                rappid = Rappid.parse(entry.rappid)
                kind = kinds.get(rappid.identity) or rappid.kind or ("twin" if part == "created" else "")
                # What was made here has this machine's name for its owner, until the owner says who they are there.
                is_account = bool(account) and (
                    part == "member" or rappid.owner.casefold() == account.casefold()
                )
                found = door(rappid, kind=kind, has_account=is_account)
                found["part"] = part
                doors.append(found)
        return {
            "estate": estate.as_json() if estate else None,
            "doors": doors,
            "kept": [self._kept(folder) for folder in self._kept_folders()],
        }

    @operation("estate.add", "POST", "/estate", right=OWNER)
    def add(self, rappid: Text, part: Part = "created") -> EstateChanged:
        """Adds one entry by hand: what the owner made (`created`), or belongs to (`member`)."""
        return self._change(
            lambda estate, at: estate.with_entries(part, [rappid], via="manual", at=at),
            f"{rappid} is listed in",
        )

    @operation("estate.remove", "POST", "/estate/remove", right=OWNER)
    def remove(self, rappid: Text) -> EstateChanged:
        """Removes one entry, by its `rappid` or the beginning of its tail. The thing itself stays where it is."""
        return self._change(lambda estate, at: estate.without(rappid, at=at), "It is out of")

    def note(self, rappid: str, part: Part, via: str) -> None:
        """Adds what came into this home just now."""
        self._change(lambda estate, at: estate.with_entries(part, [rappid], via=via, at=at), "")

    def forget(self, rappid: str) -> None:
        """Removes what left this home, where it is in the estate."""
        with contextlib.suppress(NotInEstateError):
            self.remove(rappid)

    @operation("estate.rebuild", "POST", "/estate/rebuild", right=OWNER)
    def rebuild(self) -> EstateRebuilt:
        """Adds whatever lives in this home and is missing. A damaged file is set aside and made anew."""
        aside = None
        with estate_file.changing(self._home.root):
            try:
                estate = Estate.read(self._home.root)
            except BadEstateError:
                aside, estate = estate_file.set_aside(self._home.root), None
            changed = self._scanned(estate or self._new(), "rebuild")
            changed = replace(changed, owner=changed.owner or self.owner())
            estate_file.save(self._home.root, changed)
        return {
            "estate": changed.as_json(),
            "aside": str(aside) if aside else "",
            "message": f"The estate has {len(changed.created)} created and {len(changed.member)} member entries.",
        }

    @operation("estate.pack", "POST", "/estate/pack", right=OWNER)
    async def pack(
        self,
        twins: list[str] | None = None,
        into: str = "",
        exclude_memory: bool = False,
        allow: list[str] | None = None,
        overwrite: bool = False,
    ) -> EstatePacked:
        """Packs the estate with the eggs of its `twins` (without them: of all that live here) and of its neighborhoods.

        `into`, `exclude_memory`, `allow` and `overwrite` as of an egg.
        """
        target = whole_path(into) if into else None
        await self._eggs.flush()
        return await asyncio.to_thread(self._pack, twins, target, exclude_memory, allow or [], overwrite)

    def _pack(
        self,
        twins: list[str] | None,
        into: Path | None,
        exclude_memory: bool,
        allow: list[str],
        overwrite: bool,
    ) -> EstatePacked:
        from neighborhoods.places.estate_egg import (  # brings the archive writer along
            MemberEgg,
            write_estate_egg,
        )
        from twins.fs.atomic_file import atomic_file, settled

        at = datetime.now(UTC)
        with estate_file.changing(self._home.root):
            before = Estate.read(self._home.root)
            estate = self._scanned(before or self._new(), "scan")
            if estate != before:
                estate_file.save(self._home.root, estate)
        chosen = scan(self._twins).twins if twins is None else [find(self._twins, one) for one in twins]
        packing = self._eggs.home_eggs.packing
        target = into or packing.place("estate", "estate")
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._twins.eggs.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".packing-", dir=self._home.root / "eggs") as scratch:
            members, left_out = [], []
            for twin in chosen:
                path = Path(scratch) / f"{twin.key}.egg"
                request = PackRequest(twin.key, "", "", str(path), exclude_memory, frozenset(allow))
                done = packing.pack(request)["packed"]
                left_out += [{**one, "path": f"{twin.key}/{one['path']}"} for one in done["left_out"]]
                members.append(MemberEgg(twin.rappid.key, twin.rappid.text, twin.name, path))
            for place in self._places() if twins is None else ():
                path = Path(scratch) / f"{place.rappid.key}.egg"
                done = self._pack_place(place.rappid.key, into=str(path), allow=allow)["packed"]
                left_out += [{**one, "path": f"{place.rappid.key}/{one['path']}"} for one in done["left_out"]]
                members.append(MemberEgg(place.rappid.key, place.rappid.text, place.name, path))
            with atomic_file(target, overwrite=overwrite) as file:
                files = write_estate_egg(
                    file,
                    estate,
                    members,
                    at=at,
                    key=self._home.identity(),
                    maker=packing.maker,
                    # the repository of the owner's private tier: this text alone ever travels
                    private_pointer=self._settings().text("estate.private"),
                )
                size, digest = settled(file)
        return {
            "packed": {
                "path": str(target),
                "kind": "estate",
                "owner": estate.owner,
                "members": [{"hash": one.key, "rappid": one.rappid, "name": one.name} for one in members],
                "files": files,
                "size": size,
                "sha256": digest,
                "left_out": left_out,
            },
            "message": f"The estate is packed: {target}, {len(members)} eggs in it, {format_bytes(size)}.",
        }

    @operation("estate.lay", "POST", "/estate/lay", right=OWNER, answers="path")
    def lay(self, kept: Text) -> str:
        """Makes an estate that lies here as data (`kept` begins its key) an egg again, which waits at `path` for a day."""
        folders = [one for one in self._kept_folders() if one.name.startswith(kept) and len(kept) >= 4]
        if len(folders) != 1:
            raise NotInEstateError(f'No estate "{kept[:60]}" is kept here.', do="rappd estate show")
        from neighborhoods.places.estate_egg import SCHEMA
        from twins.zip.writer import ArchiveWriter

        part = self._eggs.waiting.part()
        try:
            with part.open("xb") as file, ArchiveWriter(file) as writer, LinkFreeFolder(folders[0]) as tree:
                names = [one for one in tree.files() if one.lower() != "hatch_receipt.json"]
                if "manifest.json" not in names:
                    manifest = {"schema": SCHEMA, "scale": "estate", "type": "estate", "members": []}
                    writer.add("manifest.json", indented(manifest))
                for name in names:
                    writer.add(name, tree.content(name))
                writer.finish()
            kept_egg = self._eggs.waiting.keep_whole(part, f"estate-{folders[0].name[:16]}.egg")
            return str(kept_egg)
        finally:
            part.unlink(missing_ok=True)

    @property
    def _github(self) -> str:
        return self._settings().text("estate.github")

    def _change(self, change: Callable[[Estate, datetime], Estate], what: str) -> EstateChanged:
        with estate_file.changing(self._home.root):
            before = Estate.read(self._home.root)
            estate = change(before or self._new(), datetime.now(UTC))
            if estate != before:
                estate_file.save(self._home.root, estate)
        return {"estate": estate.as_json(), "message": f"{what} the estate."}

    def _new(self) -> Estate:
        return Estate(owner=self.owner(), github=self._github)

    def owner(self) -> str:
        """The rappid of this machine's owner: the brainstem's, minted where there is none yet."""
        self._host.create()
        twin = adopt(
            self._host,
            self._machine,
            owner=self._github or self._machine,
            host=self._machine,
            platform=platform.system().lower(),
        )
        return twin.rappid.text

    def _scanned(self, estate: Estate, via: str) -> Estate:
        at = datetime.now(UTC)
        twins = [twin.rappid.text for twin in scan(self._twins).twins]
        places = [one.rappid.text for one in self._places()]
        estate = estate.with_entries("created", twins, via=via, at=at)
        return estate.with_entries("member", places, via=via, at=at)

    def _places(self) -> list[Identity]:
        return [Identity.read(one.folder) for one in places(self._home.root)[0]]

    def _kinds(self) -> dict[str, str]:
        kinds = {one.rappid.identity: "neighborhood" for one in self._places()}
        kinds.update({one.rappid.identity: "twin" for one in scan(self._twins).twins})
        return kinds

    def _kept_folders(self) -> list[Path]:
        return _folders(self._home.root / "estates")

    def _kept(self, folder: Path) -> KeptEstate:
        trouble = ""
        try:
            estate = Estate.read(folder)
        except BadEstateError as problem:
            estate, trouble = None, str(problem)
        return {
            "key": folder.name,
            "folder": str(folder),
            "owner": estate.owner if estate else "",
            "trouble": trouble,
            "created": len(estate.created) if estate else 0,
            "member": len(estate.member) if estate else 0,
            "eggs": [one.name for one in _folders(folder / FOLDER) if (one / "manifest.json").is_file()],
        }


def _folders(above: Path) -> list[Path]:
    """The folders directly in one, without links and hidden ones."""
    if not above.is_dir() or above.is_symlink():
        return []
    return sorted(
        one
        for one in above.iterdir()
        if not one.name.startswith(".") and one.is_dir() and not one.is_symlink()
    )
