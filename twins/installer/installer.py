"""The importer of one home: plan, hatch, receipts, rollback, recovery. Everything that arrives comes this way.

Recovery finishes or takes back what a crash left half-way, before anything of it runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson

from envelopes.errors import ReportableError
from twins.eggs.frames import ConversationSink, KnownConversations
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role
from twins.errors import BadEggError, TwinError
from twins.fs.file_transaction import PREFIX, resume
from twins.installer.errors import from_disk
from twins.installer.former_data import hold_former_data
from twins.installer.hatching import PreBond, hatch_plan
from twins.installer.placement_rules import (
    INERT_FOLDERS,
    Category,
    InstallTarget,
    install_target,
    is_held_like_code,
    runs,
    to_threads,
)
from twins.installer.planning import Action, Plan, Standing, answer_plan, check_approved, make_plan
from twins.installer.receipts import Receipt, Receipts
from twins.installer.restored_conversations import deliver, is_settled
from twins.installer.rollback import RollbackResult, roll_back
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.work_progress import Cancellation, Progress
from twins.workspace.workspace import TwinLayout, Workspace, exclusive_lock


class HatchResult(msgspec.Struct):
    """The result of a hatching. ``receipt`` is None when there was nothing to do, or only an ``answer`` to give.

    ``released``: code that was held and now comes from somebody trusted. ``conversations``: frames that
    were new to the threads; None while they wait for the daemon, or when there are none.
    """

    plan: Plan
    receipt: Receipt | None = None
    released: list[str] = msgspec.field(default_factory=list)
    conversations: int | None = None
    answer: str = ""
    notes: list[str] = msgspec.field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The plan that was carried out, what came of it, and ``message``, the sentence for every screen."""
        opened, receipt = self.plan.opened, self.receipt
        done = {
            **self.plan.as_json(),
            "receipt": receipt.id if receipt else "",
            "pre_bond_egg": receipt.pre_bond_egg if receipt else "",
            "released": self.released,
            "conversations": self.conversations,
            "answer": self.answer,
            "notes": self.notes,
            "key": receipt.key if receipt else opened.key,
            "name": opened.name,
        }
        return {"hatched": done, "message": self._message()}

    def _message(self) -> str:
        plan, name = self.plan, self.plan.opened.name
        if self.receipt is None:
            return self.answer or f"{name} is here already; nothing had to be written."
        stayed = sum(not row.same for row in plan.of(Action.KEEP))
        text = f"{name} hatched: {len(plan.placed)} files" + (
            f", {stayed} of yours stayed." if stayed else "."
        )
        if plan.quarantined:
            what = "files" if any(row.role is Role.ENV for row in plan.quarantined) else "code files"
            number = len(plan.quarantined)
            text += f" {number} {what if number > 1 else what[:-1]} {'wait' if number > 1 else 'waits'} for your approval."
        return f"{text} Undo: rappd egg rollback {self.receipt.id}"


class Recovered(msgspec.Struct, frozen=True):
    """One staging folder that was found. ``outcome``: finished, undone, cleared, or stuck with a reason."""

    folder: Path
    outcome: str
    reason: str = ""


class Installer:
    """Puts eggs into one home. Methods block on the disk; two at a time wait for each other."""

    def __init__(
        self,
        home: Path,
        *,
        quarantine: QuarantineList,
        signers: Signers,
        fingerprint: str,
        host: Workspace | None = None,
        pre_bond: PreBond | None = None,
        conversations: ConversationSink | None = None,
        known: KnownConversations | None = None,
    ) -> None:
        """``fingerprint``: this home's own key.

        ``host``: the brainstem's workspace, where settings moved it. ``pre_bond`` packs a workspace before an
        egg touches it. Without ``conversations`` they wait. ``known``: what a plan need not bring again.
        """
        self.home = Path(os.path.realpath(home))
        self.receipts = Receipts(home)
        self._quarantine = quarantine
        self._signers = signers
        self._fingerprint = fingerprint
        self._host = host or Workspace.at(self.home / "brainstem")
        self._pre_bond = pre_bond
        self._conversations = conversations
        self._known = known

    def plan(self, opened: ParsedEgg, *, overwrite: Iterable[Category | str] = ()) -> Plan:
        """The plan for hatching ``opened`` now. Writes nothing.

        Raises ``HostileEggError``, ``BadEggError``, and ``TwinConflictError`` when somebody else lives there, or the twin
        is archived or was purged.
        """
        if opened.destination is Destination.ANSWER:
            return answer_plan(opened, InstallTarget(self.home, new=False), self.standing(opened))
        ground = install_target(opened, self.home, self._host)
        return make_plan(
            opened,
            ground,
            overwrite=[Category(one) for one in overwrite],
            standing=self.standing(opened),
            quarantine=self._quarantine,
            signer_name=self._signers.name_of(opened.seal.signer),
            is_recorded=lambda part: not ground.new and self._holds(part, ground.root.name),
        )

    def _holds(self, part: Part, key: str) -> bool:
        receipts = [ident for ident in self.receipts.waiting() if self._key_of(ident) == key]
        return is_settled(part, key, map(self.receipts.frames, receipts), self._known)

    def _key_of(self, ident: str) -> str:
        return self.receipts.read(ident).key or self._host.root.name

    def hatch(
        self,
        opened: ParsedEgg,
        *,
        overwrite: Iterable[Category | str] = (),
        approved: str = "",
        source: str = "",
        now: datetime | None = None,
        progress: Progress | None = None,
        cancellation: Cancellation | None = None,
    ) -> HatchResult:
        """Carries the plan out, whole or not at all.

        ``approved``: the digest of the plan that was said yes to; ``PlanChangedError`` when it is another one
        by now. ``source``: where the egg came from, for the receipts. The twin should not be running.
        ``cancellation`` stops it with ``WorkCancelledError`` until its files are moved into place.
        """
        cancellation = cancellation or Cancellation()
        with self._alone(opened.name, opened.size):
            if not opened.seal.checked:
                raise BadEggError(
                    f"{opened.name} was only looked at; nothing was written.", do="Open it whole."
                )
            cancellation.check()
            plan = self.plan(opened, overwrite=overwrite)
            cancellation.check()
            check_approved(opened.name, approved, plan.digest)
            if opened.destination is Destination.ANSWER:
                return HatchResult(plan, answer=opened.answer, notes=list(opened.notes))
            done = HatchResult(plan, notes=list(opened.notes))
            if plan.placed:
                done.receipt = hatch_plan(
                    plan,
                    home=self.home,
                    receipts=self.receipts,
                    quarantine=self._quarantine,
                    pre_bond=self._pre_bond,
                    source=source,
                    now=now,
                    progress=progress,
                    cancellation=cancellation,
                )
                done.notes = done.receipt.notes
            done.released = self._release(plan)
        if done.receipt is not None:
            self._hand_over(done)
            if done.conversations == 0 and not done.receipt.files:
                self.receipts.forget(done.receipt.id)  # all that was said is here, too: nothing happened
                done.receipt = None
        elif self._conversations is not None and any(
            to_threads(part.role, opened.destination, trusted=True) for part in opened.parts
        ):
            done.conversations = 0  # the threads have them
        return done

    def rollback(
        self, selector: str, *, even_if_changed: bool = False, now: datetime | None = None
    ) -> RollbackResult:
        """Undoes a hatching, named by its receipt's id or the start of it; see ``roll_back``."""
        with self._alone("the rollback", 0):
            receipt = self.receipts.find(selector)
            return roll_back(
                receipt,
                home=self.home,
                receipts=self.receipts,
                quarantine=self._quarantine,
                even_if_changed=even_if_changed,
                now=now,
            )

    def recover(self) -> list[Recovered]:
        """To be called at start-up, before any workspace's code runs."""
        with self._lock():
            return recover_all(self.home, self._host, self._quarantine)

    def hold_former_data(self) -> list[str]:
        """Holds what earlier versions laid as data and this one would run: at start-up, after ``recover``."""
        with self._lock():
            return hold_former_data(self.home, self._host, self._quarantine, self.receipts)

    def deliver_waiting(self, *, failed: Callable[[str], None] | None = None) -> int:
        """Hands over conversations of eggs that were hatched while no daemon was there; how many were new.

        With ``failed``, those that cannot be handed over are told to it, and wait on; the others go.
        """
        count = 0
        with self._lock():
            for ident in self.receipts.waiting():
                try:
                    count += self._deliver(ident, self.receipts.read(ident).key) or 0
                except (OSError, ReportableError) as error:
                    if failed is None:
                        raise
                    failed(f"The conversations of hatching {ident} wait on: {error}")
        return count

    def _deliver(self, ident: str, key: str) -> int | None:
        path = self.receipts.frames(ident)
        if self._conversations is None or not path.exists():
            return None
        return deliver(path, key or self._host.root.name, self._conversations)

    def _hand_over(self, done: HatchResult) -> None:
        """The egg is hatched by now: should the threads not take its conversations, they wait."""
        assert done.receipt is not None
        try:
            done.conversations = self._deliver(done.receipt.id, done.receipt.key)
        except (OSError, ReportableError) as error:
            done.notes.append(f"Its conversations wait, they could not be restored yet: {error}")

    def _release(self, plan: Plan) -> list[str]:
        """The same bytes, this time from somebody trusted: they need not wait any longer."""
        if not plan.trusted:
            return []
        for row in plan.placed:
            if not row.quarantined and runs(row.role, plan.opened.destination):
                base, path = plan.ground.locate(row.target)
                self._quarantine.release(base / path, row.new)  # in the place of what nobody trusted
        if plan.standing is not Standing.TRUSTED:
            return []
        released = []
        for row in plan.of(Action.KEEP):
            if row.same and is_held_like_code(row.role):
                base, path = plan.ground.locate(row.target)
                if self._quarantine.release(base / path, row.old):
                    released.append(row.target)
        return released

    def standing(self, opened: ParsedEgg) -> Standing:
        """The standing of an egg's signer in this home."""
        signer = opened.seal.signer
        if not signer:
            return Standing.UNSIGNED
        if signer == self._fingerprint:
            return Standing.SELF
        return Standing.TRUSTED if self._signers.is_trusted(signer) else Standing.UNKNOWN

    @contextmanager
    def _alone(self, name: str, needs: int) -> Iterator[None]:
        """Holds the home against other hatchings; what an earlier one left half-way comes to its end first."""
        try:
            with self._lock():
                recover_all(self.home, self._host, self._quarantine)
                yield
        except OSError as error:
            raise from_disk(error, name, needs=needs) from error

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self.receipts.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_lock(self.receipts.folder):
            yield


def recover_all(home: Path, host: Workspace, quarantine: QuarantineList) -> list[Recovered]:
    """Brings every interrupted hatching and rollback of a home to its end.

    The caller holds the home against other hatchings. What cannot be brought to an end is told, stays,
    and is tried again the next time.
    """
    return [_one(staging, quarantine, Path(os.path.realpath(home))) for staging in sorted(_left(home, host))]


def _left(home: Path, host: Workspace) -> Iterator[Path]:
    real = Path(os.path.realpath(home))
    beside = {real, Path(os.path.realpath(host.root)).parent, Path(os.path.realpath(real / "twins"))}
    beside.add(Path(os.path.realpath(TwinLayout(real).archive)))
    beside |= {Path(os.path.realpath(real / name)) for name in INERT_FOLDERS.values()}
    for folder in beside:
        if folder.is_dir():
            with os.scandir(folder) as entries:
                yield from (
                    folder / entry.name
                    for entry in entries
                    if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
                )


def _one(staging: Path, quarantine: QuarantineList, home: Path) -> Recovered:
    try:
        return Recovered(staging, resume(staging, quarantine, home))
    except (OSError, TwinError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        return Recovered(staging, "stuck", str(error))
