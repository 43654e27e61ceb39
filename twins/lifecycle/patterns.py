"""Names against a pattern that anybody may have written: full ``re`` syntax, and never a hang."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from twins.lifecycle.errors import BadFilter

MAX_PATTERN = 500
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
    """Raises ``BadFilter`` when ``pattern`` is not a regular expression."""
    if len(pattern) > MAX_PATTERN:
        raise BadFilter(f"name_regex is longer than {MAX_PATTERN} characters.", do="Use a shorter pattern.")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadFilter(
            f"name_regex is not a regular expression: {error}.", do="Write it as Python's re does."
        ) from error


def matching(pattern: str, names: Sequence[str]) -> list[bool]:
    """For each name, whether ``pattern`` is found anywhere in it (``re.search``; anchor with ``^`` and ``$``).

    Raises ``BadFilter`` when the pattern takes more than a second of processor time over all names.
    """
    check_pattern(pattern)
    if not names:
        return []
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            input=json.dumps([pattern, list(names)]).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise BadFilter("name_regex takes too long on these names.", do="Use a simpler pattern.") from error
    found: list[bool] = json.loads(child.stdout)
    return found
