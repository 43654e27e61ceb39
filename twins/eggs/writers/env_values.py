"""Values out of a workspace's ``.env``, so that a copy of one in a file is found whatever it looks like."""

from __future__ import annotations

import re
from contextlib import ExitStack
from io import StringIO

from twins.eggs.writers.env_blanking import MAX_BYTES, is_secret_key
from twins.eggs.writers.secret_scan import looks_secret
from twins.fs.source_tree import SourceTree
from twins.workspace.workspace import Workspace

_LEAST = 8
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*[^A-Za-z])")


def known_values(workspace: Workspace) -> dict[bytes, str]:
    """Value to what a finding calls it. Empty without a ``.env``; short and everyday values are left out."""
    with ExitStack() as held:
        content = held.enter_context(SourceTree(workspace.root)).read(".env", MAX_BYTES)
    if not content:
        return {}
    from dotenv import dotenv_values  # most workspaces have no .env, and every packing would pay for it

    try:
        found = dotenv_values(stream=StringIO(content.decode("utf-8-sig")), interpolate=False)
    except UnicodeDecodeError:
        return {}
    return {
        value.encode(): f"copy of {key[:60]}"
        for key, value in found.items()
        if value and len(value) >= _LEAST and (looks_secret(value) or _is_chosen(key, value))
    }


def _is_chosen(key: str, value: str) -> bool:
    return is_secret_key(key) and _MIXED.match(value) is not None
