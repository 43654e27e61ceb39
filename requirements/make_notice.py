"""Writes ``NOTICE``: each package that rappd runs with, its version and its licence, and the page's libraries.

``python requirements/make_notice.py`` after the lock files were made and installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, distribution
from pathlib import Path

HERE = Path(__file__).parent
_VENDORED = HERE.parent / "rappd" / "web" / "vendor" / "README.md"
_HEADER = """\
rappd is under the MIT licence (see LICENSE). It runs with the packages below, which it does not contain, and
contains the libraries of the page below. Each is under its own licence. Made by requirements/make_notice.py.
"""
_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST = 60
_BY_ITS_FILE = {"pyrage": "MIT"}
"""Packages that say it in their licence file alone."""


def locked(lock: str) -> dict[str, str]:
    """Name to version of the packages in a lock file."""
    text = (HERE / f"{lock}.lock").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))


def licence(name: str, metadata: PackageMetadata) -> str:
    """The licence that a package names. Raises ``LookupError`` when it names none."""
    expression = metadata["License-Expression"] or ""
    text = (metadata["License"] or "").strip()
    stated = [
        one.removeprefix(_CLASSIFIER) for one in metadata.get_all("Classifier") or [] if _CLASSIFIER in one
    ]
    found = (
        expression or (text if 0 < len(text) <= _LONGEST and "\n" not in text else "") or ", ".join(stated)
    )
    found = found or _BY_ITS_FILE.get(name, "")
    if not found:
        raise LookupError(f"{name} names no licence")
    return found


def vendored() -> Iterator[tuple[str, str, str]]:
    """Name, version and licence of each library of the page."""
    for line in _VENDORED.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            yield cells[1], cells[2], cells[5]


def notice() -> str:
    """The text of the file."""
    packages = [
        (name, version, licence(name, distribution(name).metadata))
        for name, version in locked("runtime").items()
    ]
    rows = [("Packages", packages), ("Libraries of the page (in rappd/web/vendor)", list(vendored()))]
    return "\n".join([_HEADER, *(_table(title, lines) for title, lines in rows)])


def _table(title: str, lines: list[tuple[str, str, str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in (0, 1)]
    shown = [f"  {name:<{widths[0]}}  {version:<{widths[1]}}  {told}" for name, version, told in lines]
    return "\n".join([title, "", *shown, ""])


if __name__ == "__main__":
    (HERE.parent / "NOTICE").write_text(notice())
