"""Names against a pattern that anybody may have written: full ``re`` syntax, and never a hang."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from agents.runtime import programs
from twins.errors import BadFilterError

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
