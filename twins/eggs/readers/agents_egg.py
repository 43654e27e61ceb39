"""``rapp-egg/2.0``, scale agent: single files for the brainstem that is there."""

from __future__ import annotations

from twins.eggs.parsed_egg import ParsedEgg, Role
from twins.eggs.readers.detected import DetectedEgg
from twins.eggs.readers.formats import SCALES
from twins.eggs.readers.member_paths import Place, in_host
from twins.eggs.readers.rapplications import in_brainstem, rapp_id


def agent(found: DetectedEgg) -> ParsedEgg:
    """Every ``*_agent.py`` by its last name into ``agents/``; memory under ``data/``. At least one agent."""
    return in_brainstem(found, SCALES["agent"], rapp_id(found, "slug", "id"), _place, listed=False)


def _place(name: str) -> Place | None:
    last = name.rpartition("/")[2]
    if not name.startswith("data/") and last.endswith("_agent.py") and last != "basic_agent.py":
        return Role.AGENT, f"agents/{last}"
    return in_host(name)
