"""docs/wire.md as tests read it: its examples by their marks, its tables, its sentences."""

from __future__ import annotations

import base64
import json
import re
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fixtures.running_daemon import REPO

from envelopes.identity.keys import IdentityKey

PAGE = (REPO / "docs" / "wire.md").read_text()
SECTION = PAGE[PAGE.index("\n## Between machines\n") : PAGE.index("\n## MCP\n")]
NOW = 1_800_000_000
Json = dict[str, Any]
FENCE = re.compile(r"^```(\S*)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(mark: str) -> list[str]:
    """Every block with a mark, or with one that begins so (`step-*`)."""
    found = [text for _, name, text in FENCE.findall(SECTION) if re.fullmatch(mark.replace("*", ".+"), name)]
    assert found, mark
    return found


def shown(mark: str) -> Any:
    """The only JSON with that mark, introductions whole."""
    (text,) = blocks(mark)
    return whole(json.loads(text))


@cache
def introductions() -> dict[str, Json]:
    """By the names of the machines."""
    return {found["name"]: found for found in map(json.loads, blocks("introduction"))}


def whole(found: Any) -> Any:
    """With each introduction that is only hinted at written out."""
    if isinstance(found, dict):
        if "…" in found:
            return introductions()[found["name"]]
        return {key: whole(value) for key, value in found.items()}
    return [whole(one) for one in found] if isinstance(found, list) else found


def rows(*heads: str) -> list[list[str]]:
    """The cells of the tables that have these heads, backticks taken off."""
    found: list[list[str]] = []
    for table in re.findall(r"(?:^\|.*\|\n)+", SECTION, re.MULTILINE):
        lines = [
            [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")]
            for line in table.splitlines()
        ]
        if lines[0][: len(heads)] == list(heads) or [cell.strip("| ") for cell in lines[0]] == list(heads):
            found += [[cell.strip("| ") for cell in line] for line in lines[2:]]
    assert found, heads
    return found


def in_words() -> str:
    """The section as one line, for sentences that were wrapped."""
    return " ".join(FENCE.sub("", SECTION).split())


def key_of(name: str) -> IdentityKey:
    """The key that the page's seed of that machine makes."""
    seed = bytes.fromhex(shown("vector-keys")[name]["seed"])
    return IdentityKey(Ed25519PrivateKey.from_private_bytes(seed))


def claims_of(token: str) -> Json:
    """The content of a token, unchecked."""
    found: Json = json.loads(unb64(token.split(".")[1]))
    return found


def unb64(text: str) -> bytes:
    """URL-safe base64 without its padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def plain(said: Json) -> bytes:
    """RFC 8785 for what has texts and whole numbers of ASCII alone."""
    return json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
