"""The plan: what each part of an egg would do here, and a digest that an approval binds to. Writes nothing."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from agents.contract.declared_needs import declared_in
from agents.contract.file_discovery import (
    AGENT_SUFFIXES,
    CARTRIDGE,
    LISPY,
    OWN_PACKAGES,
    SENSE_SUFFIX,
    SERVICE_SUFFIXES,
)
from agents.contract.syntax import syntax_tree
from agents.packages.requirements import declared_requirements, normalised, package_for
from agents.runtimes.python.sandbox.needs import in_words
from agents.storage.safe_walk import NOTHING, FileKind, LinkFreeFolder, LinkFreeFolders
from twins.eggs.parsed_egg import Destination, ParsedEgg, Part, Role, ancestors
from twins.errors import BadEggError, BadFileError
from twins.fs.untrusted_names import NameSet, folded, safe_path, shown
from twins.installer.errors import PlanChangedError
from twins.installer.placement_rules import (
    Category,
    InstallTarget,
    category_of,
    is_held_like_code,
    role_here,
    runs,
    to_threads,
    why_never,
)
from twins.trust.quarantine import QuarantineList
from twins.workspace.workspace_env import decode, parse

_ROOT = Path("/")
MERGED = "yours was merged into it"
"""``Row.why`` of memory that is replaced because the egg descends from it."""
NETWORK = "the network"
PROGRAMS = "other programs"
NATIVE = "native code"
UNREADABLE = "unknown: it does not parse"

_NETWORKS = (
    *("socket", "socketserver", "ssl", "asyncio", "http", "urllib", "xmlrpc", "ftplib", "smtplib", "imaplib"),
    *("poplib", "telnetlib", "requests", "httpx", "aiohttp", "websockets", "urllib3"),
)
_REACH = {
    **dict.fromkeys(_NETWORKS, NETWORK),
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "pexpect", "sh"), PROGRAMS),
    **dict.fromkeys(("ctypes", "cffi", "mmap"), NATIVE),
}
_STARTS = frozenset({"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"})
_HIDES = frozenset({"eval", "exec", "compile", "__import__"})
CODE_MADE = "code it makes itself"


class Action(StrEnum):
    """The action on one part. A part that is created or replaced may wait for approval besides."""

    CREATE = "create"
    KEEP = "keep"
    """The present file stays."""
    REPLACE = "replace"
    """The present file is kept aside, for a rollback."""
    REFUSE = "refuse"
    """The part stays in the egg."""


class Standing(StrEnum):
    """The standing of an egg's signer, as seen from here."""

    SELF = "self"
    TRUSTED = "trusted"
    UNKNOWN = "unknown"
    """Signed, by a key that is not trusted here."""
    UNSIGNED = "unsigned"


@dataclass(slots=True, frozen=True)
class Row:
    """One part of the egg: ``name`` in the egg, ``target`` below the destination.

    ``why`` says so for what is kept or refused. ``quarantined``: it is code, or a ``.env``, that waits for approval. ``same``:
    the very bytes are there already. ``old``: SHA-256 of what is there; ``new``: of the part, for code.
    """

    action: Action
    role: Role
    name: str
    target: str
    size: int
    why: str = ""
    quarantined: bool = False
    same: bool = False
    old: str = ""
    new: str = ""

    @property
    def writes(self) -> bool:
        """True when the part is placed."""
        return self.action in (Action.CREATE, Action.REPLACE)

    def as_json(self) -> dict[str, Any]:
        """The row for a screen."""
        why = self.why or (
            "yours is kept aside" if self.quarantined and self.action is Action.REPLACE else ""
        )
        return {
            "path": self.target,
            "role": self.role.value,
            "size": self.size,
            **({"why": why} if why else {}),
        }


@dataclass(slots=True, frozen=True)
class Plan:
    """The steps of a hatching. ``digest`` changes when the egg, the options or any touched file does.

    ``reaches``: what each code file would reach for, by target. ``may``: what each could reach, in words: the needs that an
    agent declares, to which it is held. ``variables``: what a ``.env`` sets. ``releases``: how
    many files that wait for approval would wait no longer.
    """

    opened: ParsedEgg = field(repr=False)
    ground: InstallTarget
    overwrite: frozenset[Category]
    rows: tuple[Row, ...] = field(repr=False)
    standing: Standing
    signer_name: str
    digest: str
    reaches: dict[str, list[str]]
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    releases: int = 0
    may: dict[str, list[str]] = field(default_factory=dict)

    def of(self, action: Action) -> list[Row]:
        """The rows of one action."""
        return [row for row in self.rows if row.action is action]

    @property
    def placed(self) -> list[Row]:
        """The rows that write: created and replaced."""
        return [row for row in self.rows if row.writes]

    @property
    def is_settled(self) -> bool:
        """True when hatching would do nothing."""
        return not (self.placed or self.releases)

    @property
    def quarantined(self) -> list[Row]:
        """The placed rows that do not run until they are approved."""
        return [row for row in self.rows if row.quarantined]

    @property
    def trusted(self) -> bool:
        """True when the egg's code may run at once: whole, and signed by this home or somebody trusted."""
        return _is_trusted(self.opened, self.standing)

    def as_json(self) -> dict[str, Any]:
        """For the command line and the page: five groups of files with count, counts per role and files.

        Each file of the egg is in exactly one of them; what is placed and waits for approval, in ``quarantine``.
        """
        opened = self.opened
        groups = {
            action.value: _group([row for row in self.of(action) if not row.quarantined]) for action in Action
        }
        groups["quarantine"] = _group(self.quarantined)
        return {
            "egg": {
                "name": opened.name,
                "rappid": opened.rappid.text if opened.rappid else "",
                "schema": opened.family.tag,
                "kind": opened.family.kind,
                "size": opened.size,
                "sha256": opened.digest,
                "packed_at": opened.packed_at,
                "packed_by": opened.made_by,
            },
            "seal": {
                "whole": opened.seal.whole,
                "signer": opened.seal.signer,
                "signer_name": self.signer_name,
                "standing": self.standing.value,
            },
            "destination": opened.destination.value,
            "workspace": str(self.ground.root),
            "exists": not self.ground.new,
            "overwrite": sorted(self.overwrite),
            **groups,
            "permissions": [
                {"path": path, "wants": self.reaches.get(path, []), "may": may}
                for path, may in self.may.items()
            ],
            "variables": [{"path": path, **found} for path, found in self.variables.items()],
            "notes": list(opened.notes),
            "answer": opened.answer,
            "nothing_to_do": self.is_settled,
            "digest": self.digest,
        }


def make_plan(
    opened: ParsedEgg,
    ground: InstallTarget,
    *,
    overwrite: Iterable[Category],
    standing: Standing,
    quarantine: QuarantineList,
    signer_name: str = "",
    is_recorded: Callable[[Part], bool] = lambda part: False,
) -> Plan:
    """The plan for an egg on its ground. ``is_recorded``: the threads hold the conversations of that part already.

    Raises ``HostileEggError`` or ``BadEggError`` for the egg as a whole.
    """
    if opened.seal.whole is False:
        raise BadEggError(f"{opened.name} is damaged; nothing was written.", do="Get it again.")
    _check_names(opened.parts)
    chosen = frozenset(overwrite)
    maker = _Rows(opened, ground, chosen, standing, quarantine, is_recorded)
    with LinkFreeFolders(_ROOT) as opened_walks:
        rows = tuple(maker.row(part, opened_walks) for part in opened.parts)
    digest = _digest(opened, ground, chosen, standing, rows)
    return Plan(
        opened,
        ground,
        chosen,
        rows,
        standing,
        signer_name,
        digest,
        maker.reaches,
        maker.variables,
        _releases(opened, ground, standing, rows, quarantine),
        maker.may,
    )


def _releases(
    opened: ParsedEgg,
    ground: InstallTarget,
    standing: Standing,
    rows: Iterable[Row],
    quarantine: QuarantineList,
) -> int:
    """Held files that somebody trusted sends again, as they are."""
    if not (_is_trusted(opened, standing) and standing is Standing.TRUSTED):
        return 0
    places = (
        (row.old, ground.locate(row.target)) for row in rows if row.same and is_held_like_code(row.role)
    )
    return sum(quarantine.is_held(base / path, digest) for digest, (base, path) in places)


def answer_plan(opened: ParsedEgg, ground: InstallTarget, standing: Standing) -> Plan:
    """For an egg that hatches nowhere and has an answer instead: nothing would be written."""
    nothing: frozenset[Category] = frozenset()
    return Plan(opened, ground, nothing, (), standing, "", _digest(opened, ground, nothing, standing, ()), {})


def check_approved(name: str, approved: str, digest: str) -> None:
    """Raises ``PlanChangedError`` when ``approved`` is not the plan's ``digest``; "" approves any plan for ``name``."""
    if approved and approved != digest:
        raise PlanChangedError(
            f"{name}, or what it would touch, changed since you looked; nothing was written.",
            do="Look at the plan again.",
        )


class _Rows:
    """Makes one row per part; notes on the way what code would reach for."""

    def __init__(
        self,
        opened: ParsedEgg,
        ground: InstallTarget,
        overwrite: frozenset[Category],
        standing: Standing,
        quarantine: QuarantineList,
        is_recorded: Callable[[Part], bool],
    ) -> None:
        self._is_recorded = is_recorded
        self.reaches: dict[str, list[str]] = {}
        self.variables: dict[str, dict[str, Any]] = {}
        self.may: dict[str, list[str]] = {}
        self._destination = opened.destination
        self._ground = ground
        # The soul of an empty brainstem is nobody's.
        empty = {Category.SOUL} if opened.destination is Destination.BRAINSTEM else set()
        self._overwrite = overwrite | empty
        self._trusted = _is_trusted(opened, standing)
        self._by_self = standing is Standing.SELF
        # What an egg says it was merged from is believed of those whose code is.
        takes_over = self._trusted and Category.NO_MEMORY not in overwrite
        self._ancestors = ancestors(opened.manifest) if takes_over else {}
        self._quarantine = quarantine
        self._name = opened.name
        self._names: dict[tuple[str, str], dict[str, list[str]]] = {}

    def row(self, part: Part, opened_walks: LinkFreeFolders) -> Row:
        role = role_here(part.target, part.role, self._destination)

        def row(action: Action, why: str = "", same: bool = False, old: str = "") -> Row:
            return Row(action, role, part.name, part.target, part.size, why, same=same, old=old)

        why = why_never(part, role, self._destination)
        if why:
            return row(Action.REFUSE, why)
        if to_threads(role, self._destination, trusted=self._trusted):
            return (
                row(Action.KEEP, "the same is there", True) if self._is_recorded(part) else row(Action.CREATE)
            )
        base, path = self._ground.locate(part.target)
        walk = opened_walks[str(base)]
        if not self._ground.new and (present := self._spelled_otherwise(str(base), walk, path)):
            return row(Action.REFUSE, f"{present} is there, and some disks take both for one name")
        found = NOTHING if self._ground.new else walk.find(path)
        match found.kind:
            case FileKind.NOTHING:
                return self._written(row(Action.CREATE), part)
            case FileKind.FILE:
                category = category_of(part.target, role)
                replaces = category in self._overwrite
                earlier = self._ancestors.get(part.target) if category is Category.MEMORY else None
                alike = found.size == part.size
                old = walk.sha256(path) if replaces or alike or earlier else ""
                if alike and old == part.sha256():
                    return row(Action.KEEP, "the same is there", True, old)
                if earlier and old in earlier and not replaces:
                    return self._written(row(Action.REPLACE, MERGED, old=old), part)
                if replaces:
                    return self._written(row(Action.REPLACE, old=old), part)
                return row(Action.KEEP, "yours differs and stays")
            case FileKind.FOLDER:
                return row(Action.REFUSE, "a folder of that name is there")
            case FileKind.LINK:
                return row(Action.REFUSE, "a link is there, and links are never written through")
            case FileKind.BLOCKED:
                return row(Action.REFUSE, "the way there leads through a link or a file")
            case _:
                return row(Action.REFUSE, "something that is no file is there")

    def _spelled_otherwise(self, base: str, walk: LinkFreeFolder, path: str) -> str:
        """A path that is there and is the same as ``path`` on some disk, but spelled otherwise; "" for none."""
        above = ""
        for name in path.split("/"):
            names = self._names.get((base, above))
            if names is None:
                names = self._names[base, above] = _by_folded(walk, above)
            if name not in names.get(folded(name), (name,)):
                return "/".join(filter(None, (above, names[folded(name)][0])))
            if not names:
                return ""
            above = f"{above}/{name}" if above else name
        return ""

    def _written(self, row: Row, part: Part) -> Row:
        if not runs(row.role, self._destination):
            return row
        code = _read(part, self._name)
        digest = hashlib.sha256(code).hexdigest()
        if part.target.endswith(".py"):
            self.reaches[part.target] = reaches_for(code)
        if is_code(part.target):
            self.may[part.target] = reach_of(part.target, code)
        elif row.role is Role.ENV:
            self.variables[part.target] = variables_of(code)
        # This home signs whatever it packs, quarantined code too: that is no approval.
        quarantined = not self._trusted or (self._by_self and self._quarantine.holds_content(digest))
        return Row(
            row.action,
            row.role,
            row.name,
            row.target,
            row.size,
            quarantined=quarantined,
            old=row.old,
            new=digest,
        )


def _by_folded(walk: LinkFreeFolder, folder: str) -> dict[str, list[str]]:
    """The names in a folder by what all their spellings have in common; empty when it is no folder."""
    found: dict[str, list[str]] = {}
    try:
        names = sorted(name for name, _ in walk.entries(folder))
    except OSError:
        return found
    for name in names:
        found.setdefault(folded(name), []).append(name)
    return found


def _is_trusted(opened: ParsedEgg, standing: Standing) -> bool:
    return opened.seal.whole is True and standing in (Standing.SELF, Standing.TRUSTED)


def _check_names(parts: Iterable[Part]) -> None:
    names = NameSet()
    for part in parts:
        names.add(safe_path(part.target))


def _digest(
    opened: ParsedEgg,
    ground: InstallTarget,
    overwrite: frozenset[Category],
    standing: Standing,
    rows: Iterable[Row],
) -> str:
    what = {
        "schema": "rappd-plan/1.0",
        "egg": opened.digest,
        "name": opened.name,
        "destination": opened.destination.value,
        "root": str(ground.root),
        "new": ground.new,
        "lives": ground.identity.rappid.text if ground.identity else "",
        "overwrite": sorted(overwrite),
        "standing": standing.value,
        "rows": list(rows),
    }
    return hashlib.sha256(orjson.dumps(what, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _read(part: Part, egg: str) -> bytes:
    content = b""
    for chunk in part.chunks():
        content += chunk
        if len(content) > part.size:
            break
    if len(content) != part.size:
        raise BadEggError(f"{egg} is damaged ({part.name}); nothing was written.", do="Get it again.")
    return content


def _group(rows: list[Row]) -> dict[str, Any]:
    return {
        "count": len(rows),
        "roles": dict(Counter(row.role.value for row in rows)),
        "files": [row.as_json() for row in rows],
    }


def reach_of(target: str, code: bytes) -> list[str]:
    """The reach of a code file in words, told from its text: what an agent declares, to which workers are held."""
    if target.endswith(SENSE_SUFFIX):
        return ["is read, and never run"]
    if not target.endswith((*AGENT_SUFFIXES, *SERVICE_SUFFIXES, LISPY, CARTRIDGE)):
        return in_words(None)
    declared = declared_in(target, code)
    return (
        [f"nothing, since it does not run: {declared.fault}"] if declared.fault else in_words(declared.needs)
    )


def is_code(target: str) -> bool:
    """True for what workers run."""
    return target.endswith((".py", LISPY, CARTRIDGE))


def reaches_for(source: bytes) -> list[str]:
    """The access that the code needs, sorted, in words for people: the network, other programs, package names.

    Told from its text without running it: a help for reading a plan, no protection. Workers are sandboxed.
    """
    try:
        tree = syntax_tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [UNREADABLE]
    found: set[str] = set()
    packages = {f"the package {name}" for name in map(normalised, declared_requirements(source)) if name}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                modules = [module]
                if module == "os" and _STARTS & {alias.name for alias in names}:
                    found.add(PROGRAMS)
            case ast.Attribute(value=ast.Name(id="os"), attr=attribute):
                modules = []
                if attribute in _STARTS or attribute.startswith(("exec", "spawn")):
                    found.add(PROGRAMS)
            case ast.Call(func=ast.Name(id=name)) if name in _HIDES:
                modules = []
                found.add(CODE_MADE)
            case _:
                continue
        for module in modules:
            top = module.partition(".")[0]
            if top in _REACH:
                found.add(_REACH[top])
            package = package_for(top)
            if package and top not in OWN_PACKAGES and top not in sys.stdlib_module_names:
                packages.add(f"the package {normalised(package)}")
    return sorted(found) + sorted(packages)


def variables_of(content: bytes) -> dict[str, Any]:
    """``{names, never_taken, problem}`` of a ``.env``: names without values, in the file's order."""
    try:
        found = parse(decode(content))
    except BadFileError as problem:
        return {"names": [], "never_taken": [], "problem": str(problem)}
    names, left_out = map(shown, found.accepted), map(shown, found.left_out)
    return {"names": list(names), "never_taken": list(left_out), "problem": ""}
