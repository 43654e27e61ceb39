"""Whom a HELP of another machine is for: the brainstem, a twin, or one agent; and whether it may ask that."""

from __future__ import annotations

import asyncio
import logging

from agents.contract.agent import is_structural
from envelopes.codecs import wire
from envelopes.envelope import CAP, HELP, Envelope
from rappd.dispatch.context import Caller
from rappd.errors import NotFoundError
from rappd.federation.errors import not_allowed
from rappd.tenants.tenant import HOST, Tenant
from rappd.tenants.tenants import Tenants
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle.lookup import find_active

log = logging.getLogger(__name__)


class Addressing:
    """Finds the tenant, and wakes it when it may be asked."""

    def __init__(self, tenants: Tenants, node: str) -> None:
        self._tenants = tenants
        self._node = node

    async def of(self, envelope: Envelope, caller: Caller) -> tuple[Envelope, Tenant]:
        """The HELP as its tenant takes it. Without the capability nobody learns what exists, nor wakes it."""
        name = envelope.recipient.rpartition("_")[0] if envelope.recipient != wire.BROADCAST else HOST
        data = envelope.data
        if "stream" in data or "twin" in data:  # what the caller sent stays as it came
            data = {key: value for key, value in data.items() if key != "stream"}
        key = ""
        if name not in (HOST, ""):
            if self._tenants.host.registry.find(name, structural=False) is not None and "agent" not in data:
                data = {"agent": name, "args": data.get("args", data)}
            else:
                key = await self._key_of(name, caller)
        elif isinstance(twin := data.get("twin"), str) and twin.strip():
            del data["twin"]
            key = await self._key_of(twin.strip(), caller)
        agent = data.get("agent")
        wanted = f"{HELP}.{key or HOST}" + (f".{agent}" if isinstance(agent, str) else "")
        if is_structural(agent if isinstance(agent, str) else name):
            log.warning("security: %s asked for %s", envelope.sender, agent or name)
        if not caller.may(wanted):
            log.warning("security: %s is not allowed %s", envelope.sender, ascii(wanted[:120]))
            raise not_allowed()
        tenant = await self._tenants.twin(key) if key else self._tenants.host
        extensions = envelope.extensions
        if CAP in extensions:
            extensions = {name: value for name, value in extensions.items() if name != CAP}
        return Envelope(envelope.id, envelope.sender, tenant.id, HELP, data, extensions), tenant

    async def _key_of(self, name: str, caller: Caller) -> str:
        """The key of the twin of that name; it sleeps on. Raises ``RefusedError``, ``NotFoundError``."""
        for tenant in self._tenants.all():
            if tenant.id == f"{name}_{self._node}":
                return tenant.name
        try:
            return (await asyncio.to_thread(find_active, self._tenants.layout, name)).key
        except (NoSuchTwinError, TwinConflictError) as problem:
            if caller.may(f"{HELP}.anybody.anything"):  # who may ask everybody may know who is there
                raise NotFoundError(f'No twin "{name[:60]}" here.', do="rappd peers show") from problem
            raise not_allowed() from problem
