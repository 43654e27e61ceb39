"""The command's entry. It imports the command line alone, so that ``rappd --help`` is instant."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs ``rappd`` with the process's arguments and exits with its code."""
    try:
        from rappd.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # between two screens, or while something is imported
        sys.exit(130)


if __name__ == "__main__":
    main()
