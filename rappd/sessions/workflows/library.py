"""Workflow files of the brainstem and of twins, and those that come with the program."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

import msgspec

from agents.contract.may_run import YOURS, Allowed, Quarantined
from agents.storage.safe_open import UnsafeFileError
from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.errors import NotFoundError, RappdError
from rappd.sessions.errors import WorkflowError, WorkflowStateError
from rappd.sessions.workflows.definition import MOST_BYTES, Workflow, read_workflow, wants_files
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle.lookup import find_active
from twins.trust.trust import Trust
from twins.workspace.agent_files import sha256
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout, Workspace

SHIPPED = Path(__file__).parent / "shipped"
MOST_TEXT_BYTES = 64 << 10


class WorkflowRow(TypedDict):
    """A workflow; ``workflow`` is its text where all of it is shown, ``problem`` why it cannot be read."""

    name: str
    title: str
    path: str
    sha256: str
    steps: int
    participants: list[str]
    shipped: bool
    foreign: str
    twin: str
    origin: str
    problem: dict[str, Any] | None
    workflow: NotRequired[dict[str, Any]]


class NeededText(TypedDict):
    """A text that a workflow takes, and whether its file is there."""

    name: str
    file: str
    there: bool
    optional: bool


class WorkflowFile(NamedTuple):
    """One file: its workflow, or the ``problem`` with it. A twin's has the twin's name before its own: ``gardener/story``.

    ``foreign`` is the reason why it must not run, or "", ``origin`` what brought it. ``place`` is its file, None for
    the program's own.
    """

    name: str
    path: str
    sha256: str
    shipped: bool
    foreign: str
    workflow: Workflow | None
    problem: WorkflowError | None
    whose: str = ""
    origin: str = ""
    workspace: Workspace | None = None
    place: Path | None = None

    def runnable(self) -> Workflow:
        """Raises ``foreign_workflow``, ``WorkflowError``."""
        if self.foreign:
            raise RappdError(
                f"{self.path} is foreign: {self.foreign}",
                do=f"Read it, then: rappd workflows approve {shlex.quote(self.name)}",
                code="foreign_workflow",
            )
        if self.workflow is None:
            assert self.problem is not None
            raise self.problem
        return self.workflow

    def shown(self, *, whole: bool = False) -> WorkflowRow:
        """As lists show it; ``whole``: with its text."""
        row: WorkflowRow = {
            "name": self.name, "title": self.name, "path": self.path, "sha256": self.sha256, "steps": 0,
            "participants": [], "shipped": self.shipped, "foreign": self.foreign, "twin": self.whose,
            "origin": self.origin,
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

    def __init__(self, workspace: Workspace, trust: Trust, layout: TwinLayout) -> None:
        self._workspace, self._trust, self._layout = workspace, trust, layout

    def listing(self) -> list[WorkflowFile]:
        """Every workflow by name, then those of twins. One of the workspace stands for the program's own of that name."""
        names = {path.stem for path in SHIPPED.glob("*.json")} | _stems(self._workspace)
        found = [self.find(name) for name in sorted(names)]
        twins = scan(self._layout).twins
        known = [one.name.casefold() for one in twins]
        for twin in twins:
            called = twin.name if known.count(twin.name.casefold()) == 1 else twin.key[:12]
            found += [self._of(twin.workspace, stem, called) for stem in sorted(_stems(twin.workspace))]
        return found

    def find(self, name: str) -> WorkflowFile:
        """The file of a workflow: ``story``, or ``gardener/story``. Raises ``no_such_workflow``."""
        whose, slash, stem = name.rpartition("/")
        try:
            workspace = find_active(self._layout, whose).workspace if slash else self._workspace
        except (NoSuchTwinError, TwinConflictError):
            raise _unknown(name) from None
        return self._of(workspace, stem, whose)

    def approve(self, name: str, digest: str) -> WorkflowFile:
        """Lets a foreign workflow run, if it is still exactly that content.

        Raises ``no_such_workflow``, ``WorkflowStateError``.
        """
        file = self.find(name)
        if file.sha256 != digest:
            raise WorkflowStateError(
                f"{file.path} is not what you read: it changed.",
                do=f"rappd workflows approve {shlex.quote(name)}",
            )
        if file.foreign and file.place is not None:
            self._trust.quarantine.release(file.place, digest)
        return self.find(name)

    def needs(self, file: WorkflowFile) -> list[NeededText]:
        """The texts that a workflow takes: ``name``, its ``file``, if that is ``there``, and if it is ``optional``."""
        workflow, workspace = file.workflow, file.workspace or self._workspace
        if workflow is None:
            return []
        must = {name for one in workflow.steps if not one.without_file for name in wants_files(one.cue)}
        there = set(workspace.files.names(workspace.workflows))
        return [
            {"name": name, "file": path, "there": path in there, "optional": name not in must}
            for name, path in workflow.files.items()
        ]

    def texts(self, file: WorkflowFile, given: dict[str, str]) -> dict[str, str]:
        """The texts of a workflow's files that are there, with the ``given`` ones first. Raises ``WorkflowError``."""
        workflow, workspace = file.runnable(), file.workspace or self._workspace
        found = _given(workflow, given)
        for name, path in workflow.files.items():
            if name in found:
                continue
            place = workspace.workflows / path
            try:
                content = workspace.files.read_if_there(place, MOST_TEXT_BYTES)
            except (UnsafeFileError, OSError) as error:
                raise WorkflowError(
                    f"workflows/{path} cannot be read: {error}.",
                    do="Put a plain text of at most 64 KiB there.",
                ) from error
            if content is not None and (text := _text(f"workflows/{path}", content).strip()):
                found[name] = text
        return found

    def _of(self, workspace: Workspace, stem: str, whose: str) -> WorkflowFile:
        name, file = f"{whose}/{stem}" if whose else stem, f"{stem}.json"
        if not stem or "\\" in stem or stem.startswith(".") or not stem.isprintable():
            raise _unknown(name)
        place = workspace.workflows / file
        try:
            content = workspace.files.read_if_there(place, MOST_BYTES + 1)
        except (UnsafeFileError, OSError) as error:
            problem = WorkflowError(f"{file} cannot be read: {error}.", do="Put a plain file of at most 256 KiB there.")  # fmt: skip
            return WorkflowFile(name, f"workflows/{file}", "", False, "", None, problem, whose)
        if content is not None:
            found = _read(stem, content, shipped=False)
            verdict = self._trust.may_run(YOURS, place, found.sha256)
            foreign = "" if isinstance(verdict, Allowed) else verdict.why
            origin = verdict.came_in if isinstance(verdict, Quarantined) else ""
            return found._replace(
                name=name, foreign=foreign, origin=origin, whose=whose, workspace=workspace, place=place
            )
        try:
            shipped = b"" if whose else (SHIPPED / file).read_bytes()
        except OSError:
            shipped = b""
        if not shipped:
            raise _unknown(name)
        return _read(stem, shipped, shipped=True)


def _text(file: str, content: bytes) -> str:
    try:
        return decode(content).text
    except NotUtf8Error as error:
        raise WorkflowError(f"{file} {error}.", do=SAVE_AS_UTF8) from error


def _stems(workspace: Workspace) -> set[str]:
    names = workspace.files.names(workspace.workflows)
    return {one.removesuffix(".json") for one in names if one.endswith(".json")}


def _unknown(name: str) -> NotFoundError:
    return NotFoundError(f'No workflow "{name[:80]}".', do="rappd workflows list", code="no_such_workflow")


def _read(name: str, content: bytes, *, shipped: bool) -> WorkflowFile:
    file = f"{name}.json"
    workflow, problem = None, None
    try:
        workflow = read_workflow(file, content)
    except WorkflowError as found:
        problem = found
    return WorkflowFile(name, f"workflows/{file}", sha256(content), shipped, "", workflow, problem)


def _given(workflow: Workflow, texts: dict[str, str]) -> dict[str, str]:
    for name, text in texts.items():
        if name not in workflow.files:
            names = ", ".join(workflow.files) or "none"
            raise WorkflowError(f'{workflow.name} has no file "{name[:40]}".', do=f"Its files: {names}.")
        if len(text.encode()) > MOST_TEXT_BYTES or not text.strip():
            problem = f'The text for "{name}" is empty or longer than 64 KiB.'
            raise WorkflowError(problem, do="Give another file.")
    return {name: text.strip() for name, text in texts.items()}
