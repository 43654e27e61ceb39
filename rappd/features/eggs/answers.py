"""Eggs as operations answer them: a look at one, a difference, a plan, a hatching, a packing, a merge."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class ChangedFact(TypedDict):
    """A fact that two eggs tell of themselves, otherwise each."""

    what: str
    before: str
    after: str


class ChangedFile(TypedDict):
    """A file that differs; sizes are None where it is not there, ``text`` is a unified diff."""

    target: str
    role: str
    what: str
    before: int | None
    after: int | None
    text: list[str]


class EggDifference(TypedDict):
    """The differences between two eggs, and the number of files that are the same."""

    facts: list[ChangedFact]
    files: list[ChangedFile]
    same: int


class EggsCompared(TypedDict):
    """Two eggs, compared."""

    diff: EggDifference


class SignerShown(TypedDict):
    """The signer of an egg as this home knows it; ``signed`` is the sentence for screens."""

    standing: str
    signer_name: str
    whose: str
    signed: str


class EggPart(TypedDict):
    """A file of an egg, and where it would lie."""

    name: str
    role: str
    target: str
    size: int


class EggShown(SignerShown):
    """An egg, described; ``whole`` is None where it carries no hashes, or was not read."""

    file: str
    size: int
    sha256: str
    schema: str
    kind: str
    container: str
    name: str
    rappid: str | None
    hatches_to: str
    folder: str
    packed_at: str
    made_by: str
    checked: bool
    whole: bool | None
    listed: int
    signer: str
    sealed_at: str
    roles: dict[str, int]
    parts: list[EggPart]
    notes: list[str]
    answer: str
    manifest: dict[str, Any]


class PlannedFile(TypedDict):
    """A file of a plan."""

    path: str
    role: str
    size: int
    why: NotRequired[str]


class PlannedFiles(TypedDict):
    """Files of a plan of which the same becomes."""

    count: int
    roles: dict[str, int]
    files: list[PlannedFile]


class PlannedCode(TypedDict):
    """The reach of a code file: what its text ``wants``, and what it ``may``."""

    path: str
    wants: list[str]
    may: list[str]


class PlannedVariables(TypedDict):
    """The names that a ``.env`` sets."""

    path: str
    names: list[str]
    never_taken: list[str]
    problem: str


class HatchingSteps(TypedDict):
    """The steps of a hatching; each file is in one of the five groups. ``members`` and ``estate`` are of an estate's egg."""

    egg: dict[str, Any]
    seal: dict[str, Any]
    destination: str
    workspace: str
    exists: bool
    overwrite: list[str]
    create: PlannedFiles
    keep: PlannedFiles
    replace: PlannedFiles
    refuse: PlannedFiles
    quarantine: PlannedFiles
    permissions: list[PlannedCode]
    variables: list[PlannedVariables]
    notes: list[str]
    answer: str
    nothing_to_do: bool
    digest: str
    members: NotRequired[list[dict[str, Any]]]
    estate: NotRequired[str]


class EggPlanned(TypedDict):
    """The plan of a hatching, and the ``id`` under which a copy of the egg waits."""

    id: NotRequired[str]
    plan: HatchingSteps


class EggLookedAt(TypedDict):
    """An egg that waits under ``id``: what it is, and what it would do."""

    id: str
    file: str
    egg: EggShown
    plan: HatchingSteps


class HatchedEgg(HatchingSteps):
    """The plan that was carried out, and what came of it. ``receipt`` undoes it."""

    receipt: str
    pre_bond_egg: str
    released: list[str]
    conversations: int | None
    key: str
    name: str
    partial: NotRequired[bool]


class EggHatched(TypedDict):
    """A hatching, and the sentence for screens."""

    hatched: HatchedEgg
    message: str


class LeftOut(TypedDict):
    """A file that stayed behind."""

    path: str
    why: str


class AllowedSecret(TypedDict):
    """A likely secret that the owner let travel."""

    path: str
    line: int
    what: str


_ForPeer = TypedDict("_ForPeer", {"for": NotRequired[str]})


class PackedFile(_ForPeer):
    """An egg that was packed; ``for`` is the peer that it is sealed for, ``session`` and ``events`` are a session egg's."""

    path: str
    form: str
    name: str
    rappid: str
    size: int
    sha256: str
    files: int
    left_out: list[LeftOut]
    unread: dict[str, int]
    odd_names: list[LeftOut]
    allowed: list[AllowedSecret]
    signature: str
    session: NotRequired[str]
    events: NotRequired[int]


class EggPacked(TypedDict):
    """A packing, and ``link``, where the page that asked for it fetches the egg."""

    packed: PackedFile
    message: str
    link: NotRequired[str]


class MergedEgg(TypedDict):
    """The egg of two lives of one being, and what was joined."""

    name: str
    rappid: str
    shared: int
    new: int
    contradicting: int
    dimensions: int
    taken: list[str]
    joined: list[str]
    set_aside: list[str]
    removed: list[str]
    foreign_code: list[str]
    already: bool
    forward: bool
    path: str
    size: int
    sha256: str
    files: int
    signed: bool


class EggsMerged(TypedDict):
    """Two eggs that are one now."""

    merged: MergedEgg
