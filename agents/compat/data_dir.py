"""The folder in which this process's agents keep their files and memories."""

from __future__ import annotations

from pathlib import Path

_data_dir = Path(".brainstem_data")


def use_data_dir(data_dir: Path) -> None:
    """Sets the folder for storage that names none."""
    global _data_dir  # a worker serves one workspace, and agent files name no place
    _data_dir = data_dir


def data_dir() -> Path:
    """The folder in use."""
    return _data_dir
