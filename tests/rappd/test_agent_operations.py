"""The operations that agents may ask this machine for: rows of the table that say so, with arguments that are checked."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import agents.library
from envelopes.errors import ReportableError
from rappd.dispatch.rights import AGENT
from rappd.features.eggs.host_api import EggHostApi
from rappd.features.features import FEATURES, all_operations
from rappd.features.host_operations import HostOperations
from rappd.features.operation import OWNER, agent_operation, agent_operations_of, operation, operations_of
from rappd.features.snapshots.host_api import NeighborhoodHostApi
from rappd.features.twins.host_api import TwinHostApi

FOR_AGENTS = {
    "agents": "list source write remove generations restore",
    "buddy": "{action}",
    "eggs": "pack receipts inspect plan hatch rollback",
    "fleet": "status archive_estate",
    "neighborhood": "snapshot status places schedule snapshots inspect plan hatch",
    "twins": (
        "list archived purged lineage new archive show rename fork boot stop soul edit_soul restore_soul checkpoint"
        " checkpoints rollback unarchive purge chat"
    ),
}
"""The names that agents may ask for. A row that is added here is one more thing that an agent can do to this machine."""


def test_agents_may_ask_for_these_and_for_nothing_else() -> None:
    own = (TwinHostApi, EggHostApi, NeighborhoodHostApi)
    found = [one for feature in (*FEATURES, *own) for one in agent_operations_of(feature)]
    names = sorted(one.agents for one in found)
    assert names == sorted(f"{noun}.{verb}" for noun, verbs in FOR_AGENTS.items() for verb in verbs.split())
    for one in found:
        assert one.right in (OWNER, AGENT), f"{one.agents}: structure is the owner's"
        assert not (one.is_long or one.of_request), (
            f"{one.agents}: an agent gets one answer, and is no listener"
        )
    assert not [one.name for one in all_operations() if one.right == AGENT], "no route is an agent's alone"


class Pots:
    @operation("pots.fill", "POST", "/pots/{pot}/fill", right=OWNER, agents="pots.{how}")
    async def fill(self, pot: str, how: str, cups: int = 1) -> dict[str, Any]:
        """Fills it."""
        return {"pot": pot, "how": how, "cups": cups}

    @operation("pots.empty", "POST", "/pots/{pot}/empty", right=OWNER)
    async def empty(self, pot: str) -> dict[str, Any]:
        """Empties it: no agent does."""
        return {}

    @agent_operation("kettles.look", of_tenant=True)
    def look(self, tenant: Any) -> Any:
        """Looks at it."""
        return tenant


async def test_arguments_of_agents_are_read_as_those_of_everybody() -> None:
    host: Any = HostOperations(Pots())
    whose = object()
    filled = await host.perform(whose, "pots.gently", {"pot": "red", "how": "roughly", "other": 1})
    assert filled == {"pot": "red", "how": "gently", "cups": 1}, "its name counts for more than an argument"
    assert await host.perform(whose, "kettles.look", {}) is whose
    for operation_, given, code in (
        ("pots.gently", {"pot": ""}, "bad_body"),
        ("pots.gently", {}, "bad_body"),
        ("pots.gently", {"pot": "red", "cups": "many"}, "unfit"),
        ("pots", {"pot": "red"}, "not_found"),
        ("kettles.looks", {}, "not_found"),
        ("akettles.look", {}, "not_found"),
    ):
        with pytest.raises(ReportableError) as refused:
            await host.perform(whose, operation_, given)
        assert refused.value.code == code
    assert [one.name for one in operations_of(Pots)] == ["pots.fill", "pots.empty"]


def test_shipped_agents_ask_for_rows_with_arguments_that_these_take() -> None:
    """An argument that an operation does not know is left out unsaid: the agent would not be told."""
    own = (TwinHostApi, EggHostApi, NeighborhoodHostApi)
    rows = {one.agents: one for feature in (*FEATURES, *own) for one in agent_operations_of(feature)}
    asked = set()
    for path in sorted(Path(agents.library.__path__[0]).glob("*_agent.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name("request"), args=[ast.Constant(str(name))], keywords=given):
                    if name.startswith(("peers.", "timers.")):
                        continue  # it needs the turn that it is asked in
                    asked.add(name)
                    named = {one.arg for one in given if one.arg is not None}
                    assert named <= set(rows[name].arguments.__struct_fields__), (path.name, name)
    assert len(asked) > 25, "the probe works"
