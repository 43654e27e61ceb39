"""Agents that an owner may publish: those of the brainstem that other machines may be given."""

from __future__ import annotations

from rappd.dispatch.endpoints import Endpoints
from rappd.errors import NotFoundError, RefusedError
from rappd.tenants.tenant import HOST


def publishable_name(endpoints: Endpoints, name: str) -> str:
    """The name under which an agent is called from elsewhere. Raises ``NotFoundError``, ``RefusedError``."""
    found = endpoints.named(HOST, name)
    if found is None or found.agent is None:
        raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
    if found.exposure.kind != "peer":
        raise RefusedError(
            f"{found.agent.name} changes this machine and is never published.", do="Publish another agent."
        )
    return found.name
