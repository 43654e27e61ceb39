"""The restore drill: a snapshot hatched into a scratch folder, and compared file by file with the egg."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from agents.storage.safe_walk import LinkFreeFolder
from envelopes.errors import ReportableError
from neighborhoods.errors import DrillUntriedError
from neighborhoods.snapshot.filtering import Omission, omissions
from neighborhoods.snapshot.hatch import RestoreHooks, nobody_runs, restore_local, restore_peers
from neighborhoods.snapshot.original_file_names import listing_of, unexplained
from neighborhoods.snapshot.peer_trees import as_egg, spooled
from neighborhoods.snapshot.plan import (
    NO_RAPPID,
    RestoreOptions,
    RestorePlan,
    Target,
    make_restore_plan,
    simulated_home,
)
from neighborhoods.snapshot.snapshot_contents import SnapshotContents
from neighborhoods.snapshot.snapshot_folder import DrillResult
from neighborhoods.snapshot.spooled_files import Spool, disk_problem
from neighborhoods.snapshot.tar_guard import UNEXPLAINED
from twins.eggs.parsed_egg import ARCHIVED, ParsedEgg
from twins.eggs.writers.exclusions import ExclusionReason
from twins.installer.errors import DiskFullError
from twins.installer.installer import Installer
from twins.installer.placement_rules import to_threads
from twins.installer.planning import Action
from twins.installer.staging import check_disk_space
from twins.lifecycle.state_index import list_archived
from twins.lifecycle.tombstones import ARCHIVED_NAME
from twins.trust.quarantine import QuarantineList
from twins.trust.signers import Signers
from twins.workspace.identity_file import utc
from twins.workspace.workspace import TwinLayout

_WITH_NOTES = ("rappid.json", "bonds.json")
"""Files to which a hatching adds a line of its own."""


async def drill(path: Path, beside: Path, fingerprint: str, *, now: datetime | None = None) -> DrillResult:
    """Hatches the snapshot at ``path`` into a folder made in ``beside`` and removed afterwards.

    Nothing of the home is read or touched. ``problem`` names the first file that would not come back. Raises
    ``DrillUntriedError`` when the disk has no room for it.
    """
    at = utc(now or datetime.now(UTC))
    scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, "", ".drill-", beside))
    try:
        with (await asyncio.to_thread(SnapshotContents.open, path)).opened as opened:
            contents = SnapshotContents.of(opened)
            check_disk_space(scratch, _octets(contents), path.stem)
            result = await _hatched(contents, scratch, fingerprint)
    except DiskFullError as error:
        raise DrillUntriedError(
            f"{path.stem} is not tried: this machine's disk is full.", do=error.do
        ) from error
    except ReportableError as error:
        return DrillResult(at, 0, str(error))
    except OSError as error:
        return DrillResult(at, 0, f"it could not be tried: {disk_problem(error)}")
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
    return DrillResult(at, *result)


def _octets(contents: SnapshotContents) -> int:
    """Bytes that a hatching takes at its height: all files, and the largest twin of another machine once more."""
    here = sum(part.size for unit in contents.local for part in unit.opened.parts)
    rows = [row for block in contents.peers for row in block.row["twins"] if row["captured"]]
    elsewhere = [int(row["workspace_bytes"]) for row in rows]
    return here + sum(elsewhere) + max(elsewhere, default=0)


async def _hatched(
    contents: SnapshotContents, scratch: Path, fingerprint: str
) -> tuple[int, str, tuple[str, ...]]:
    """(files compared, the first problem, what is no twin)."""

    def installer_of(home: Path) -> Installer:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        quarantine = QuarantineList(home / "held.json", home)
        return Installer(
            home, quarantine=quarantine, signers=Signers(home / "signers.json"), fingerprint=fingerprint
        )

    installer = installer_of(scratch / "home")
    options = RestoreOptions(target=Target.LOCAL_SIMULATE, restore_archived=True)
    plan = await make_restore_plan(contents, options, installer, lambda block: None)
    refused = [
        f"{one.unit.name}/{row.target}: {row.why}"
        for one in plan.local
        if one.plan is not None
        for row in one.plan.of(Action.REFUSE)
    ]
    local = await restore_local(plan, installer, RestoreHooks(nobody_runs))
    done = await restore_peers(plan, installer.home, installer_of, lambda block: None, scratch, local)
    apart = tuple(
        f"{peer.block.name}/{step.twin.name} {step.why}"
        for peer in plan.peers
        for step in peer.steps
        if step.why == NO_RAPPID
    )
    for problem in (*done.failed, *refused):
        return 0, problem, apart
    return *(await asyncio.to_thread(_compared, plan, installer, scratch)), apart


def _compared(plan: RestorePlan, installer: Installer, scratch: Path) -> tuple[int, str]:
    """(files compared, the first that differs)."""
    count = 0
    opened = plan.contents.opened
    listings, left_out = listing_of(opened), _left_out(opened)
    for one in plan.local:
        assert one.plan is not None
        for problem in _differences(one.plan.opened, one.plan.ground.root):
            if problem:
                return count, f"{one.unit.name}/{problem}"
            count += 1
        prefix = f"{one.unit.id}/"
        listed, named = listings.get(prefix, []), left_out.get(prefix, [])
        for path in unexplained(listed, named, one.plan.ground.root):
            return count, f"{one.unit.name}/{path} was there, is not in the snapshot, and nothing says why"
    recorded = {prefix for prefix, names in listings.items() if ARCHIVED_NAME in names}
    for twin in list_archived(TwinLayout(installer.home)):
        if "note" in twin and f"twins/.archive/{twin['hash']}/" in recorded:
            return count, f"{twin['name']} does not come back as archived: {twin['note']}"
    for peer in plan.peers:
        for row in peer.block.row["twins"]:
            for lost in omissions(row):
                if lost.why == UNEXPLAINED:
                    return count, f"{peer.block.name}/{row.get('name')}/{lost.path} {UNEXPLAINED}"
        home = simulated_home(installer.home, peer.block)
        for step in peer.writes:
            with Spool(scratch) as spool:
                for refused in spooled(step.twin, spool).left_out:
                    if refused.reason == ExclusionReason.MADE_ANEW.value:  # other programs pack it, too
                        continue
                    name = f"{peer.block.name}/{step.twin.name}/{refused.path}"
                    return count, f"{name} is packed, and is not taken out again: it {refused.reason}"
                egg = as_egg(plan.contents.opened, step.twin, spool)
                below = "twins/.archive" if step.twin.is_archived else "twins"
                for problem in _differences(egg, home / below / egg.key):
                    if problem:
                        return count, f"{peer.block.name}/{step.twin.name}/{problem}"
                    count += 1
    return count, ""


def _left_out(opened: ParsedEgg) -> dict[str, list[Omission]]:
    """The omissions of each part of the machine that took the snapshot, by its prefix in the egg."""
    local = opened.manifest["members"].get("local") if isinstance(opened.manifest["members"], dict) else None
    if not isinstance(local, dict):
        return {}
    found = {"brainstem/": omissions(local)}
    for row in local.get("twins", []):
        below = "twins/.archive" if row.get("lifecycle") == ARCHIVED else "twins"
        found[f"{below}/{row['hash']}/"] = omissions(row)
    return found


def _differences(opened: ParsedEgg, root: Path) -> Iterator[str]:
    """For each file "" when it came back, else its name and what is wrong."""
    with LinkFreeFolder(root) as tree:
        for part in opened.parts:
            if to_threads(part.role, opened.destination, trusted=True):  # its own signature is on it
                yield ""
            elif part.target in _WITH_NOTES:
                yield "" if tree.sha256(part.target) else f"{part.target} is missing"
            else:
                found = tree.sha256(part.target)
                yield (
                    "" if found == part.sha256() else f"{part.target} {'differs' if found else 'is missing'}"
                )
