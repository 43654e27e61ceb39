"""The beacon (``rapp-network-beacon/1.1``): who runs this machine, for programs that look at a well-known place."""

from __future__ import annotations

from typing import Any

from neighborhoods.estate.estate_file import SCHEMA as ESTATE_SCHEMA
from neighborhoods.estate.estate_file import Estate

SCHEMA = "rapp-network-beacon/1.1"
PATH = "/.well-known/rapp-network.json"
ESTATE_PATH = "/.well-known/rapp-estate.json"
_IMPLEMENTS = ("brainstem-egg/2.3-estate", "brainstem-egg/2.3-neighborhood", "rapp-egg/2.0")


def beacon(estate: Estate, *, base_url: str, private_pointer: str = "") -> dict[str, Any]:
    """The document. It asks not to be indexed; of the private tier it holds the pointer and nothing else."""
    return {
        "schema": SCHEMA,
        "operator_rappid": estate.owner or None,
        "github": estate.github or None,
        "estate_url": f"{base_url}{ESTATE_PATH}",
        "grail_url": None,
        "protocol": {
            "spec_version": "rapp-protocol/1.0",
            "estate_schema": ESTATE_SCHEMA,
            "implements": list(_IMPLEMENTS),
            "spec_url": None,
        },
        "discovery": {"indexable": False, "consent": "owner", "federation_hints": []},
        "private_estate_pointer": private_pointer or None,
        "private_estate_commitment": None,
        "private_door_count": None,
        "minted_at": estate.updated_at,
    }
