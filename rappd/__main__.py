"""The command's entry. It imports the command line alone, so that ``rappd --help`` is instant."""

from __future__ import annotations

import gc
import sys

_COLLECT_AFTER = (50_000, 20, 20)
"""Imported objects stay alive: looking for cycles among them after every 700 objects cost a start a tenth."""


def main() -> None:
    """Runs ``rappd`` with the process's arguments and exits with its code."""
    gc.set_threshold(*_COLLECT_AFTER)
    try:
        from rappd.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # between two screens, or while something is imported
        sys.exit(130)


if __name__ == "__main__":
    main()
