"""Selects twins for a bulk command: the filter's clauses, all of which must hold (RAPP v1 §18.13.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import msgspec

from agents.programs import programs
from twins.errors import BadFilterError

CLAUSES = ("kind", "name_prefix", "name_regex", "stopped_for_days", "exclude_kinds")
MAX_DAYS = 36_500

_TEXTS = ("kind", "name_prefix", "name_regex")


class Named(Protocol):
    """The properties that a clause looks at."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...


T = TypeVar("T", bound=Named)


class Selection(msgspec.Struct, frozen=True):
    """A filter that was read and found sound: at least one clause, every clause known.

    ``kind`` and ``exclude_kinds`` match exactly, ``name_prefix`` with case, ``name_regex`` anywhere in
    the name. ``stopped_for_days`` means: not running, and untouched for at least that many days.
    """

    kind: str | None = None
    name_prefix: str | None = None
    name_regex: str | None = None
    stopped_for_days: int | None = None
    exclude_kinds: tuple[str, ...] | None = None

    @classmethod
    def from_filter(cls, given: object) -> Selection:
        """Reads the ``filter`` object of a request. Raises ``BadFilterError``; an unknown clause is never skipped."""
        if not isinstance(given, Mapping):
            raise BadFilterError("The filter is not an object of clauses.", do=_known())
        unknown = [str(clause) for clause in given if clause not in CLAUSES]
        if unknown:
            raise BadFilterError(f'The filter has no clause "{unknown[0][:40]}".', do=_known())
        if not given:
            raise BadFilterError("The filter is empty, and would mean every twin.", do=_known())
        for clause in _TEXTS:
            if clause in given and not (isinstance(given[clause], str) and given[clause]):
                raise BadFilterError(f"{clause} needs a text.", do=f"{clause}=…")
        if "name_regex" in given:
            check_pattern(given["name_regex"])
        if "stopped_for_days" in given:
            days = given["stopped_for_days"]
            if type(days) is not int or not 0 <= days <= MAX_DAYS:
                raise BadFilterError(
                    "stopped_for_days needs a whole number of days.", do="stopped_for_days=30"
                )
        clauses: dict[str, Any] = dict(given)
        if "exclude_kinds" in given:
            kinds = given["exclude_kinds"]
            if (
                not isinstance(kinds, list | tuple)
                or not kinds
                or not all(isinstance(kind, str) and kind for kind in kinds)
            ):
                raise BadFilterError(
                    "exclude_kinds needs a list of kinds.", do="exclude_kinds=memorial,personal"
                )
            clauses["exclude_kinds"] = tuple(kinds)
        return cls(**clauses)

    @classmethod
    def from_options(cls, texts: Iterable[str]) -> Selection:
        """Reads ``CLAUSE=VALUE`` texts of a command line.

        ``exclude_kinds`` takes kinds with commas between them, and may be given again; the others once.
        """
        given: dict[str, Any] = {}
        for text in texts:
            clause, equals, value = text.partition("=")
            clause = clause.strip()
            if not equals:
                raise BadFilterError(f'"{text[:40]}" is not CLAUSE=VALUE.', do=_known())
            if clause == "exclude_kinds":
                kinds = [kind.strip() for kind in value.split(",")]
                given[clause] = [*given.get(clause, []), *filter(None, kinds)]
            elif clause in given:
                raise BadFilterError(f"{clause} is given twice; all clauses must hold.", do="Give it once.")
            else:
                given[clause] = _whole_number(value) if clause == "stopped_for_days" else value
        return cls.from_filter(given)

    def as_filter(self) -> dict[str, Any]:
        """The ``filter`` object again, for a request to another machine."""
        clauses = {clause: getattr(self, clause) for clause in CLAUSES}
        if self.exclude_kinds is not None:
            clauses["exclude_kinds"] = list(self.exclude_kinds)
        return {clause: value for clause, value in clauses.items() if value is not None}

    def choose(
        self, twins: Iterable[T], *, quiet_since: Callable[[T], datetime | None], now: datetime
    ) -> list[T]:
        """The twins for which every clause holds, in the order given.

        ``quiet_since(twin)`` is when it was last touched, None while it runs; it may be slow, and is asked
        only where its answer decides. Blocks for ``name_regex`` (see ``patterns``).
        """
        chosen = [twin for twin in twins if self._fits(twin)]
        if self.name_regex is not None:
            found = matching(self.name_regex, [twin.name for twin in chosen])
            chosen = [twin for twin, fits in zip(chosen, found, strict=True) if fits]
        if self.stopped_for_days is not None:
            limit = now - timedelta(days=self.stopped_for_days)
            chosen = [twin for twin in chosen if (since := quiet_since(twin)) is not None and since <= limit]
        return chosen

    def _fits(self, twin: Named) -> bool:
        return (
            (self.kind is None or twin.kind == self.kind)
            and (self.name_prefix is None or twin.name.startswith(self.name_prefix))
            and (self.exclude_kinds is None or twin.kind not in self.exclude_kinds)
        )


def _whole_number(text: str) -> int | str:
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() and len(stripped) < 10 else text


def _known() -> str:
    return f"Clauses: {', '.join(CLAUSES)}."


MAX_PATTERN = 500
_ANSWER_BYTES = 4096
_SECONDS = 30  # of wall time, for a machine that is busy; the processor time below is what ends a bad pattern

# ``re`` holds the interpreter while it matches, so a pattern that backtracks without end could not be
# stopped in a thread. In a process of its own the kernel stops it after a second of processor time.
_CHILD = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
import json, re, sys
pattern, names = json.load(sys.stdin)
search = re.compile(pattern).search
print(json.dumps([search(name) is not None for name in names]))
"""


def check_pattern(pattern: str) -> None:
    """Raises ``BadFilterError`` when ``pattern`` is not a regular expression."""
    if len(pattern) > MAX_PATTERN:
        raise BadFilterError(
            f"name_regex is longer than {MAX_PATTERN} characters.", do="Use a shorter pattern."
        )
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadFilterError(
            f"name_regex is not a regular expression: {error}.", do="Write it as Python's re does."
        ) from error


def matching(pattern: str, names: Sequence[str]) -> list[bool]:
    """For each name, whether ``pattern`` is found anywhere in it (``re.search``; anchor with ``^`` and ``$``).

    Raises ``BadFilterError`` when the pattern takes more than a second of processor time over all names.
    """
    check_pattern(pattern)
    if not names:
        return []
    try:
        child = programs.run(
            programs.python("-S", "-c", _CHILD),
            given=json.dumps([pattern, list(names)]).encode(),
            seconds=_SECONDS,
            keep=_ANSWER_BYTES + 10 * len(names),
        )
    except TimeoutError as error:
        raise _too_slow() from error
    if child.code:
        raise _too_slow()
    found: list[bool] = json.loads(child.output)
    return found


def _too_slow() -> BadFilterError:
    return BadFilterError("name_regex takes too long on these names.", do="Use a simpler pattern.")
