"""Where this process's agents keep what they remember."""

from __future__ import annotations

from pathlib import Path

_data_dir = Path(".brainstem_data")


def use(data_dir: Path) -> None:
    """From now on storage made without a place of its own is in ``data_dir``."""
    global _data_dir  # a worker serves one workspace, and agent files name no place
    _data_dir = data_dir


def data_dir() -> Path:
    """The folder in use."""
    return _data_dir
