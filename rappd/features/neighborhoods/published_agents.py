"""Agents that an owner may publish: those of the brainstem that other machines may be given."""

from __future__ import annotations

from rappd.errors import NotFoundError, RefusedError
from rappd.tenants.tenant import Tenant


def publishable_name(host: Tenant, name: str) -> str:
    """The name under which an agent is called from elsewhere. Raises ``NotFoundError``, ``RefusedError``."""
    agent = host.registry.named(name)
    if agent is None:
        raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
    if host.registry.find(agent.tool_name, structural=False) is None:
        raise RefusedError(
            f"{agent.name} changes this machine and is never published.", do="Publish another agent."
        )
    return agent.tool_name
