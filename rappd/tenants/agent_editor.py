"""Editing agent files: saving without losing a change on disk, testing a draft, earlier versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from agents.contract.file_discovery import CARTRIDGE
from agents.contract.may_run import YOURS, Allowed
from agents.storage.safe_fs import in_file_pool
from agents.storage.text_file import shown_python
from rappd.errors import ConflictError, RefusedError
from rappd.tenants.staged_agent import checked, clear_disk_errors, reference
from rappd.tenants.tenant_context import TenantContext
from twins.errors import NoSuchFileError
from twins.workspace.agent_files import STAGED_DIGITS, sha256

AgentChange = TypedDict(
    "AgentChange",
    {
        "status": Literal["ok", "quarantined"],
        "message": str,
        "file": NotRequired[str],
        "agents": NotRequired[list[str]],
        "try": NotRequired[str],
        "reach": NotRequired[list[str]],
        "sha256": NotRequired[str],
        "undo": NotRequired[str],
    },
)
"""The result of a change to an agent file; ``undo`` takes a removal back, ``try`` is a sentence that reaches the agent."""


class GenerationRow(TypedDict):
    """An earlier version of an agent file."""

    generation: int
    at: float
    sha256: str
    reason: str


class AgentTested(TypedDict):
    """The contract tests of a text, and whether it passed them."""

    passed: bool
    tests: list[dict[str, Any]]


class ChangedOnDiskError(ConflictError):
    """A file that was changed since its editor read it; nothing was written."""

    code = "changed_on_disk"

    def __init__(self, filename: str, present: bytes | None) -> None:
        """``present`` is the file's content now; None when it was removed."""
        what = "was removed" if present is None else "was changed by another program"
        super().__init__(
            f"{filename} {what} since you opened it; nothing was written.", do="Choose which text stays."
        )
        self.present = present

    def as_json(self) -> dict[str, Any]:
        present = self.present
        return {
            **super().as_json(),
            "sha256": "" if present is None else sha256(present),
            "source": "" if present is None else shown_python(present),
        }


class AgentEditor:
    """Changes to the text of a tenant's own agent files, made by its operator."""

    def __init__(
        self, tenant: TenantContext, lock: asyncio.Lock, report: Callable[[str], AgentChange]
    ) -> None:
        """``lock`` is held while agent files change; ``report`` tells what became of one."""
        self._tenant = tenant
        self._lock = lock
        self._report = report

    async def save(
        self, filename: str, content: bytes, *, base: str, keep_faulty: bool = False
    ) -> AgentChange:
        """Replaces a file that still has the SHA-256 ``base``; "" for one that is not there yet.

        The text is loaded in a worker first. One that gives no agent is refused, or with ``keep_faulty`` kept and not
        run. What was there becomes a generation. Returns what ``AgentAdmin.write`` does, and ``sha256``. Raises
        ``ChangedOnDiskError``, ``BadFileError``, and ``RefusedError`` for a quarantined file.
        """
        files = self._tenant.files
        async with self._lock, clear_disk_errors(filename):
            await in_file_pool(self._refuse_changed, filename, base)
            staged = await in_file_pool(files.stage_edit, filename, content, faulty=keep_faulty)
            try:
                await checked(self._tenant, filename, staged, keep_faulty=keep_faulty)
                await in_file_pool(self._place, filename, staged, base, content)
            finally:
                await in_file_pool(files.discard, staged)
            await self._tenant.registry.forget(YOURS, filename)
            await self._tenant.refresh()
        return {**self._report(filename), "sha256": sha256(content)}

    async def test(self, filename: str, content: bytes) -> AgentTested:
        """Runs the contract tests over a text that is not saved: ``{passed, tests}``."""
        files = self._tenant.files
        async with clear_disk_errors(filename):
            staged = await in_file_pool(files.stage_edit, filename, content, faulty=True)
            try:
                wanted = await in_file_pool(reference, self._tenant.workspace.files, filename, staged)
                found = await self._tenant.test(wanted)
            finally:
                await in_file_pool(files.discard, staged)
        return {"passed": found["passed"], "tests": [_named(test, staged) for test in found["tests"]]}

    async def generations(self, filename: str) -> list[GenerationRow]:
        """Earlier versions of a file, oldest first: ``generation``, ``at``, ``sha256``, ``reason``."""
        found = await in_file_pool(self._tenant.files.generations, filename)
        return [
            {"generation": kept.number, "at": kept.at, "sha256": kept.sha256, "reason": kept.reason}
            for kept in found
        ]

    async def generation(self, filename: str, number: int) -> str:
        """The text of an earlier version. Raises ``NoSuchFileError``."""
        content = await in_file_pool(self._tenant.files.generation, filename, number)
        return shown_python(content)

    def _refuse_changed(self, filename: str, base: str) -> None:
        files = self._tenant.files
        try:
            present = files.read(filename)
        except NoSuchFileError as error:
            if base:
                raise ChangedOnDiskError(filename, None) from error
            return
        if sha256(present) != base:
            raise ChangedOnDiskError(filename, present)
        if not isinstance(self._tenant.trust.may_run(YOURS, files.path(filename), base), Allowed):
            raise RefusedError(
                f"{filename} waits for your approval; it is changed after that.",
                do=f"rappd agents approve {filename}",
            )

    def _place(self, filename: str, staged: Path, base: str, content: bytes) -> None:
        self._refuse_changed(filename, base)  # once more: loading the text took a while
        files = self._tenant.files
        files.place(filename, staged, reason="edited")
        self._tenant.trust.quarantine.release(files.path(filename), sha256(content))


def why_read_only(filename: str, origin: str, waits: bool, content: bytes) -> str:
    """The reason why an agent file cannot be edited, for people; "" when it can."""
    if origin == "shipped":
        return "It is built in. Make a copy to change it."
    if origin != YOURS:
        return f"It comes from {origin.removeprefix('source ')}. Make a copy to change it."
    if waits:
        return "It waits for your approval. Read and approve it first."
    if filename.endswith(CARTRIDGE):
        return "A program writes this file; it is not made by hand."
    try:
        content.decode()
    except UnicodeDecodeError:
        return "It is no text in UTF-8, and saving would damage it."
    return ""


def _named(test: dict[str, Any], staged: Path) -> dict[str, Any]:
    """The test's outcome with the file's own name instead of that of its staged copy."""
    name = staged.name
    return {**test, "message": test["message"].replace(name, name[STAGED_DIGITS + 1 :])}
