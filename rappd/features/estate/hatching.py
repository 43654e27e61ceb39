"""Planning and hatching an estate egg: its own files as data, each egg in it as what it is, then ``estate.json``."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envelopes.errors import ReportableError
from rappd.daemon.home import Home
from rappd.features.eggs.signer_view import planned
from twins.eggs.nested_eggs import DEPTH, hashes_within, nested_hashes, without_nested, write_nested
from twins.eggs.parsed_egg import ParsedEgg
from twins.errors import BadEggError, BadRappidError, HostileEggError
from twins.installer.installer import Installer
from twins.installer.placement_rules import Category
from twins.installer.planning import Plan, check_approved
from twins.work_progress import Cancellation, Progress, WorkCancelledError

if TYPE_CHECKING:
    from neighborhoods.places.estate_file import Estate


@dataclass(slots=True)
class _Member:
    """One nested egg, and its plan or the reason for which there is none. ``inner``: the eggs in it, if it is an estate."""

    key: str
    opened: ParsedEgg
    plan: Plan | None = None
    problem: ReportableError | None = None

    @property
    def digest(self) -> str:
        return self.plan.digest if self.plan is not None else str(self.problem)


def touched_twins(opened: ParsedEgg, home: Path) -> list[str]:
    """The folders of the twins here that an estate's eggs would touch, whatever form their rappids have."""
    from twins.workspace.listing import scan
    from twins.workspace.rappid import Rappid
    from twins.workspace.workspace import TwinLayout

    wanted = set()
    for one in hashes_within(opened):
        with contextlib.suppress(BadRappidError):  # refused when it is planned
            wanted.add(Rappid.parse(f"rappid:{one}").wide)
    return [twin.key for twin in scan(TwinLayout(home)).twins if twin.rappid.wide in wanted]


class EstateHatching:
    """One home's way to take an estate in. Blocks on the disk."""

    def __init__(self, home: Home, installer: Installer) -> None:
        self._home = home
        self._installer = installer

    def plan(self, opened: ParsedEgg, overwrite: Iterable[Category]) -> dict[str, Any]:
        """The plan of the estate's own files, with ``members`` and ``estate``. Writes nothing to the home."""
        chosen = list(overwrite)
        with _nested(opened, None) as nested:
            outer, members = self._planned(opened, nested, chosen)
            return self._view(outer, members, opened)

    def hatch(
        self,
        opened: ParsedEgg,
        *,
        overwrite: Iterable[Category],
        approved: str,
        source: str,
        progress: Progress | None,
        cancellation: Cancellation,
    ) -> dict[str, Any]:
        """Carries it out. What is refused for one member is told, and the others go on.

        Raises ``PlanChangedError`` when ``approved`` is another plan's digest; ``BadEggError`` or
        ``HostileEggError`` for any nested egg that is no good, before anything is written.
        """
        chosen = list(overwrite)
        scratch = self._home.root / "eggs"
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _nested(opened, scratch) as nested:
            outer, members = self._planned(opened, nested, chosen)
            check_approved(opened.name, approved, _digest(outer, members))
            cancellation.check()
            done = self._installer.hatch(
                outer.opened,
                overwrite=chosen,
                source=source,
                progress=progress,
                cancellation=cancellation,
            )
            rows = [self._hatch_member(member, chosen, f"{source}, {member.key[:16]}") for member in members]
            estate = self._take_over(opened)
        found = done.as_json()
        found["hatched"].update(members=rows, estate=estate, partial=any(row["problem"] for row in rows))
        found["message"] = _message(found["message"], rows)
        return found

    def _planned(
        self, opened: ParsedEgg, nested: list[tuple[str, ParsedEgg]], chosen: list[Category]
    ) -> tuple[Plan, list[_Member]]:
        outer = self._installer.plan(_own_files(opened), overwrite=chosen)
        members = []
        for key, egg in nested:
            member = _Member(key, egg)
            try:
                member.plan = self._installer.plan(egg, overwrite=chosen)
            except HostileEggError:
                raise
            except ReportableError as problem:  # somebody else lives there, or was purged: the others go on
                member.problem = problem
            members.append(member)
        return outer, members

    def _hatch_member(self, member: _Member, chosen: list[Category], source: str) -> dict[str, Any]:
        row = _row(member)
        if member.plan is None:
            return row
        try:
            done = self._installer.hatch(
                member.opened, overwrite=chosen, approved=member.plan.digest, source=source
            )
        except WorkCancelledError:
            raise
        except ReportableError as problem:
            return {**row, "problem": str(problem), "do": problem.do}
        found = done.as_json()["hatched"]
        return {**row, "hatched": found, "receipt": found["receipt"]}

    def _view(self, outer: Plan, members: list[_Member], opened: ParsedEgg) -> dict[str, Any]:
        body = planned(outer, self._home)
        rows = [
            {**_row(one), "plan": planned(one.plan, self._home) if one.plan is not None else None}
            for one in members
        ]
        if rows:
            many = f"{len(rows)} eggs" if len(rows) > 1 else "one egg"
            body["notes"] = [*body["notes"], f"It holds {many}; each hatches to its own place."]
        own = self._own()
        meeting, merged = _meeting(own, _estate_of(opened), opened)
        plans = [outer, *(one.plan for one in members if one.plan is not None)]
        return {
            **body,
            "digest": _digest(outer, members),
            "members": rows,
            "estate": meeting,
            "nothing_to_do": all(plan.is_settled for plan in plans) and merged in (None, own),
        }

    def _own(self) -> Estate | None:
        from neighborhoods.places.estate_file import Estate

        return Estate.read(self._home.root)

    def _take_over(self, opened: ParsedEgg) -> str:
        """Adds the estate's entries to the one kept here, where both have one owner; says what was done."""
        from neighborhoods.places import estate_file

        with estate_file.changing(self._home.root):
            meeting, merged = _meeting(self._own(), _estate_of(opened), opened)
            if merged is not None:
                estate_file.save(self._home.root, merged)
        return meeting


def _own_files(opened: ParsedEgg) -> ParsedEgg:
    """The estate without the eggs in it, and without what belongs to the private tier."""
    from twins.eggs.writers.exclusions import ExclusionReason, by_name

    own = without_nested(opened)
    private = (ExclusionReason.SECRET, ExclusionReason.PRIVATE)
    kept = [part for part in own.parts if not any(by_name(one) in private for one in part.name.split("/"))]
    left = len(own.parts) - len(kept)
    notes = [*own.notes]
    if left:
        notes.append(f"{left} of its files belong to a private tier and are left in the egg.")
    return replace(own, parts=kept, notes=notes, answer="" if nested_hashes(opened) else own.answer)


@contextmanager
def _nested(opened: ParsedEgg, scratch: Path | None, depth: int = 1) -> Iterator[list[tuple[str, ParsedEgg]]]:
    """Every egg in the egg, opened and checked; of an estate in it, the eggs of that one besides."""
    from twins.eggs.readers.detect import open_egg

    hashes = nested_hashes(opened)
    with ExitStack() as stack:
        found: list[tuple[str, ParsedEgg]] = []
        if hashes and depth >= DEPTH:
            raise HostileEggError(
                f"{opened.name} holds eggs too deep inside others; refused whole", do="don't use it"
            )
        if hashes:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=".nested-", dir=scratch)))
            for key in hashes:
                path = folder / f"{key}.egg"
                write_nested(opened, key, path)
                egg = stack.enter_context(open_egg(path))
                _check_key(key, egg, opened)
                if egg.is_estate:
                    found += stack.enter_context(_nested(egg, scratch, depth + 1))
                    egg = _own_files(egg)
                found.append((key, egg))
        yield found


def _check_key(key: str, egg: ParsedEgg, opened: ParsedEgg) -> None:
    if egg.rappid is not None and egg.rappid.key != key:
        raise BadEggError(
            f"{opened.file} is damaged (members/{key[:16]} is another than its name says); nothing was written.",
            do="Get it again.",
        )


def _estate_of(opened: ParsedEgg) -> Estate | None:
    """The estate in an egg's ``estate.json``; None where it is of no use."""
    from neighborhoods.errors import BadEstateError
    from neighborhoods.places.estate_file import Estate

    part = next((part for part in opened.parts if part.name == "estate.json"), None)
    if part is None:
        return None
    try:
        return Estate.decode(part.read(), where="estate.json")
    except BadEstateError:
        return None


def _meeting(own: Estate | None, theirs: Estate | None, opened: ParsedEgg) -> tuple[str, Estate | None]:
    """(what becomes of the estate kept here: "none", "kept apart", "adopted", "merged" or "same"; the new one)."""
    from twins.workspace.rappid import Rappid, same

    if theirs is None or (not theirs.created and not theirs.member):
        return "none", None
    if own is None:
        return "adopted", theirs
    if not own.owner or not theirs.owner or not same(Rappid.parse(own.owner), Rappid.parse(theirs.owner)):
        return "kept apart", None
    merged = own.merged(theirs, at=datetime.now(UTC))
    return ("same", None) if merged is own else ("merged", merged)


def _row(member: _Member) -> dict[str, Any]:
    egg, problem = member.opened, member.problem
    return {
        "hash": member.key,
        "name": egg.name,
        "kind": egg.family.kind,
        "schema": egg.family.tag,
        "rappid": egg.rappid.text if egg.rappid else "",
        "folder": egg.folder,
        "problem": str(problem) if problem is not None else "",
        "do": problem.do if problem is not None else "",
    }


def _digest(outer: Plan, members: list[_Member]) -> str:
    lines = [outer.digest, *(f"{one.key} {one.digest}" for one in members)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _message(outer: str, rows: list[dict[str, Any]]) -> str:
    done = sum(not row["problem"] for row in rows)
    return f"{outer} {done} of {len(rows)} eggs in it hatched." if rows else outer
