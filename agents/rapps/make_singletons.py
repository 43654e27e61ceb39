"""Writes the agents of the shipped rapplications: each is one file, with the store of its service in it.

    python -m agents.rapps.make_singletons

An agent and a service travel alone, so neither can import the other. The lines between ``START`` and ``END``
are written by hand in ``service/``; run this after changing them, or the agent. It writes the same lines
into ``singleton/``, and the agent's hash into the manifest; the tests compare the files with what it writes.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

START = "# The store, the same in service and agent (agents/rapps/make_singletons.py).\n"
END = "# End of the store.\n"
_BLOCK = re.compile(re.escape(START) + "(.*)" + re.escape(END), re.DOTALL)
_HASH = re.compile(r'("singleton_sha256": ")[0-9a-f]*')


def generated_files(bundle: Path) -> Iterator[tuple[Path, str]]:
    """(path, text) of the agent and the manifest of the bundle in a folder, as they have to be."""
    service = bundle / "service" / f"{bundle.name}_service.py"
    agent = bundle / "singleton" / f"{bundle.name}_agent.py"
    store = _BLOCK.search(service.read_text("utf-8"))
    if store is None:
        raise ValueError(f"{service} has no lines between {START!r} and {END!r}.")
    text, found = _BLOCK.subn(lambda _: store[0], agent.read_text("utf-8"))
    if found != 1:
        raise ValueError(f"{agent} has no place for the store.")
    yield agent, text
    manifest = bundle / "manifest.json"
    digest = hashlib.sha256(text.encode()).hexdigest()
    yield manifest, _HASH.sub(rf"\g<1>{digest}", manifest.read_text("utf-8"))


def main() -> None:
    """Writes what changed, and names it."""
    for bundle in sorted(path.parent for path in Path(__file__).parent.glob("*/manifest.json")):
        for path, text in generated_files(bundle):
            if path.read_text("utf-8") != text:
                path.write_text(text, "utf-8")
                sys.stdout.write(f"{path.relative_to(bundle.parent)}\n")


if __name__ == "__main__":
    main()
