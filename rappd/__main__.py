"""The command's entry. It imports the command line alone, so that ``rappd --help`` is instant."""

from __future__ import annotations

import gc
import os
import sys

_COLLECT_AFTER = (50_000, 20, 20)
"""Imported objects stay alive: looking for cycles among them after every 700 objects cost a start a tenth."""


def main() -> None:
    """Runs ``rappd`` with the process's arguments and exits with its code."""
    gc.set_threshold(*_COLLECT_AFTER)
    _fill_closed_descriptors()
    _leave_current_folder_out()
    try:
        from rappd.cli.app import run

        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:  # between two screens, or while something is imported
        sys.exit(130)


def _fill_closed_descriptors() -> None:
    """Opens the null device where a standard stream was closed: the next file would take its number, and be printed to."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        null = open(os.devnull, "w" if number else "r", encoding="utf-8")  # noqa: SIM115, PTH123 - for the process's life
        setattr(sys, name, null)


def _leave_current_folder_out() -> None:
    """Takes the current folder off the module path, unless rappd lies there itself.

    ``python -m rappd`` puts it first, and an empty part of ``PYTHONPATH`` means it: a file ``twins.py`` or
    ``json.py`` there would be imported in place of the module of that name.
    """
    own = os.path.realpath(__file__ + "/../..")
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # it was deleted
        here = ""
    if here != own:
        sys.path[:] = [path for path in sys.path if path and os.path.realpath(path) != here]


if __name__ == "__main__":
    main()
