"""Sources: folders and files that some disk would join, or some system cannot hold, are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from twins.errors import BadFileError
from twins.workspace.sources import OfferedAgent, Sources
from twins.workspace.workspace import Workspace


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    workspace = Workspace.at(tmp_path)
    workspace.create()
    return Sources(workspace)


def offered(*names: str) -> list[OfferedAgent]:
    return [OfferedAgent(name, name, "", "") for name in names]


def test_connect_other_spelling_of_a_connected_source_is_refused(sources: Sources) -> None:
    sources.connect("ada/garden", offered("rain"))
    with pytest.raises(BadFileError, match="differs from Ada/Garden in its spelling alone"):
        sources.connect("Ada/Garden", offered("rain"))
    assert sources.connect("ada/garden", offered("rain", "sun")).name == "ada/garden"


def test_unnameable_source_is_refused(sources: Sources) -> None:
    with pytest.raises(BadFileError, match=r"ada__garden\. ends in a dot"):
        sources.connect("ada/garden.", offered("rain"))
    assert sources.all() == []


def test_enable_other_spelling_of_an_enabled_agent_is_refused(sources: Sources) -> None:
    sources.connect("ada/garden", offered("rain", "Rain"))
    sources.enable("ada/garden", "rain", b"x = 1\n")
    with pytest.raises(BadFileError, match=r"rain_agent\.py is enabled, and some disks take Rain_agent\.py"):
        sources.enable("ada/garden", "Rain", b"x = 2\n")
    sources.enable("ada/garden", "rain", b"x = 3\n")
