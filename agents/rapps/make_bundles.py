"""Writes what the files of the shipped rapplications have in common, since each of them travels alone.

    python -m agents.rapps.make_bundles

An agent and its service cannot import each other: the lines of the store are written by hand in ``service/``.
The pages have their look and their helpers from the Kanban's ``ui/``. Run this after changing one of these, or
an agent: it copies the marked lines, and writes the agent's hash into the manifest. The tests compare the
files with what it writes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

STORE = ("# The store, the same in service and agent (agents/rapps/make_bundles.py).", "# End of the store.")
PAGE = ("/* The page, the same in each bundle (agents/rapps/make_bundles.py). */", "/* End of the page. */")
_PAGE_OF = "kanban"
_HASH = re.compile(r'("singleton_sha256": ")[0-9a-f]*')


def generated_files(bundle: Path) -> Iterator[tuple[Path, str]]:
    """(path, text) of the agent, the manifest and the page of the bundle in a folder, as they have to be."""
    agent = bundle / "singleton" / f"{bundle.name}_agent.py"
    text = _with_lines_of(bundle / "service" / f"{bundle.name}_service.py", agent, STORE)
    yield agent, text
    manifest = bundle / "manifest.json"
    digest = hashlib.sha256(text.encode()).hexdigest()
    yield manifest, _HASH.sub(rf"\g<1>{digest}", manifest.read_text("utf-8"))
    for name in ("app.js", "style.css"):
        page = bundle / "ui" / name
        yield page, _with_lines_of(Path(__file__).parent / _PAGE_OF / "ui" / name, page, PAGE)


def _with_lines_of(source: Path, target: Path, marks: tuple[str, str]) -> str:
    """The text of ``target`` with the lines that ``source`` has between the marks."""
    block = re.compile(f"{re.escape(marks[0])}\n.*{re.escape(marks[1])}\n", re.DOTALL)
    lines = block.search(source.read_text("utf-8"))
    if lines is None:
        raise ValueError(f"{source} has no lines between {marks[0]!r} and {marks[1]!r}.")
    text, found = block.subn(lambda _: lines[0], target.read_text("utf-8"))
    if found != 1:
        raise ValueError(f"{target} has no place for the lines of {source.name}.")
    return text


def main() -> None:
    """Writes what changed, and names it."""
    for bundle in sorted(path.parent for path in Path(__file__).parent.glob("*/manifest.json")):
        for path, text in generated_files(bundle):
            if path.read_text("utf-8") != text:
                path.write_text(text, "utf-8")
                sys.stdout.write(f"{path.relative_to(bundle.parent)}\n")


if __name__ == "__main__":
    main()
