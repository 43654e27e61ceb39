"""``utils.environment``: where an agent runs. Always on a machine of its owner, never in a cloud."""

from __future__ import annotations

import os


def is_running_in_azure() -> bool:
    """False."""
    return False


def should_use_azure_storage() -> bool:
    """False: what agents remember is in files of the workspace."""
    return False


def is_local() -> bool:
    """True."""
    return True


def environment_name() -> str:
    """``local``."""
    return "local"


def get_env(name: str, default: str | None = None) -> str | None:
    """The environment variable, with the workspace's ``.env`` in it."""
    return os.environ.get(name, default)
