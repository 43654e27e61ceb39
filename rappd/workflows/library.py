"""Workflow files of the brainstem's workspace, and those that come with the program."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agents.storage.safe_open import UnsafeFileError
from rappd.workflows.definition import MOST_BYTES, Workflow, read_workflow
from rappd.workflows.errors import ForeignWorkflowError, NoSuchWorkflowError, WorkflowError
from twins.errors import BadFileError
from twins.installer.quarantine import QuarantineList
from twins.workspace.agent_files import sha256
from twins.workspace.workspace import Workspace

SHIPPED = Path(__file__).parent / "shipped"
MOST_TEXT_BYTES = 64 << 10


class WorkflowFile(NamedTuple):
    """One file: its workflow, or the ``problem`` with it. ``foreign`` is the reason why it must not run, or ""."""

    name: str
    path: str
    sha256: str
    shipped: bool
    foreign: str
    workflow: Workflow | None
    problem: WorkflowError | None

    def runnable(self) -> Workflow:
        """Raises ``ForeignWorkflowError``, ``WorkflowError``."""
        if self.foreign:
            raise ForeignWorkflowError(
                f"{self.path} is foreign: {self.foreign}",
                do=f"Read it (rappd workflows show {self.name}), then: rappd agents approve {self.path}",
            )
        if self.workflow is None:
            assert self.problem is not None
            raise self.problem
        return self.workflow

    def shown(self, *, whole: bool = False) -> dict[str, Any]:
        """As lists show it; ``whole``: with its text."""
        row: dict[str, Any] = {
            "name": self.name, "title": self.name, "path": self.path, "sha256": self.sha256, "steps": 0,
            "participants": [], "shipped": self.shipped, "foreign": self.foreign,
            "problem": self.problem.as_json() if self.problem else None,
        }  # fmt: skip
        if (found := self.workflow) is not None:
            row |= {"title": found.title, "steps": len(found.steps)}
            row["participants"] = [one.name for one in found.participants]
            if whole:
                row["workflow"] = msgspec.to_builtins(found)
        return row


class WorkflowLibrary:
    """Reads the files anew each time: they are few. All methods block on the disk."""

    def __init__(self, workspace: Workspace, held: QuarantineList) -> None:
        self._workspace, self._held = workspace, held

    def listing(self) -> list[WorkflowFile]:
        """Every workflow by name. One of the workspace stands for the program's own of that name."""
        folder = self._workspace.workflows
        own = [one for one in self._workspace.files.names(folder) if one.endswith(".json")]
        names = {path.stem for path in SHIPPED.glob("*.json")} | {one.removesuffix(".json") for one in own}
        return [self.find(name) for name in sorted(names)]

    def find(self, name: str) -> WorkflowFile:
        """The file of a workflow. Raises ``NoSuchWorkflowError``."""
        file = f"{name}.json"
        unknown = NoSuchWorkflowError(f'No workflow "{name[:40]}".', do="rappd workflows list")
        if not name or "/" in name or "\\" in name or name.startswith(".") or not name.isprintable():
            raise unknown
        place = self._workspace.workflows / file
        try:
            content = self._workspace.files.read_if_there(place, MOST_BYTES + 1)
        except (UnsafeFileError, OSError) as error:
            problem = WorkflowError(f"{file} cannot be read: {error}.", do="Put a plain file of at most 256 KiB there.")  # fmt: skip
            return WorkflowFile(name, f"workflows/{file}", "", False, "", None, problem)
        if content is not None:
            digest = sha256(content)
            return _read(name, content, foreign=self._why_held(place, digest), shipped=False)
        try:
            return _read(name, (SHIPPED / file).read_bytes(), foreign="", shipped=True)
        except OSError:
            raise unknown from None

    def texts(self, workflow: Workflow, given: dict[str, str]) -> dict[str, str]:
        """The texts of its files that are there, with the ``given`` ones first. Raises ``WorkflowError``."""
        found = _given(workflow, given)
        for name, path in workflow.files.items():
            if name in found:
                continue
            place = self._workspace.workflows / path
            try:
                content = self._workspace.files.read_if_there(place, MOST_TEXT_BYTES)
            except (UnsafeFileError, OSError) as error:
                raise WorkflowError(
                    f"workflows/{path} cannot be read: {error}.",
                    do="Put a plain text of at most 64 KiB there.",
                ) from error
            if content is not None and (text := content.decode("utf-8", "replace").strip()):
                found[name] = text
        return found

    def _why_held(self, place: Path, digest: str) -> str:
        try:
            return self._held.why(place, digest)
        except BadFileError as problem:  # what cannot be read lets nothing run
            return str(problem)


def _read(name: str, content: bytes, *, foreign: str, shipped: bool) -> WorkflowFile:
    file = f"{name}.json"
    workflow, problem = None, None
    try:
        workflow = read_workflow(file, content)
    except WorkflowError as found:
        problem = found
    return WorkflowFile(name, f"workflows/{file}", sha256(content), shipped, foreign, workflow, problem)


def _given(workflow: Workflow, texts: dict[str, str]) -> dict[str, str]:
    for name, text in texts.items():
        if name not in workflow.files:
            names = ", ".join(workflow.files) or "none"
            raise WorkflowError(f'{workflow.name} has no file "{name[:40]}".', do=f"Its files: {names}.")
        if len(text.encode()) > MOST_TEXT_BYTES or not text.strip():
            problem = f'The text for "{name}" is empty or longer than 64 KiB.'
            raise WorkflowError(problem, do="Give another file.")
    return {name: text.strip() for name, text in texts.items()}
