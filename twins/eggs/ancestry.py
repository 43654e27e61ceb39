"""The versions that the files of a merged egg were made of: what each may replace without a loss.

In the manifest, written by the merge alone: ``"ancestors": {path: [sha256, …]}``. Every reader of the shape ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from twins.eggs.integrity import are_digests

KEY: Final = "ancestors"

Ancestors = Mapping[str, frozenset[str]]


def ancestors(manifest: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The earlier versions of each file, by its place; empty for an egg that no merge made."""
    found = manifest.get(KEY)
    if not isinstance(found, dict):
        return {}
    return {
        path: frozenset(digests)
        for path, digests in found.items()
        if isinstance(digests, list) and are_digests(digests)
    }
