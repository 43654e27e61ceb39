"""Operations on sources of agents (RAPP v1 §5.7, §8): a source is connected, its agents are put into service one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NotRequired, TypedDict

from agents.contract.agent import Change
from agents.contract.may_run import origin_of
from agents.storage.safe_fs import in_file_pool
from rappd.daemon.rate_limit import RateLimit
from rappd.errors import NotFoundError
from rappd.features.operation import ANYBODY, OWNER, Status, Text, operation
from rappd.features.sources import fetching
from rappd.settings.load import Settings
from rappd.tenants.tenant import Tenant
from twins.installer.planning import reach_of
from twins.workspace.agent_files import proper_name
from twins.workspace.sources import Source


class OfferedAgent(TypedDict):
    """An agent of a source; ``sha256`` is that of what was fetched, "" while it is not in service."""

    id: str
    name: str
    description: str
    enabled: bool
    sha256: str


class SourceRow(TypedDict):
    """A connected source, and what it offers."""

    url: str
    repo: str
    agents: list[OfferedAgent]
    enabled_count: int


class Connected(TypedDict):
    """A source, and what it offers."""

    repo: str
    agents: list[OfferedAgent]


class Toggled(TypedDict):
    """An agent of a source that is in service now, or not; one that is there has its SHA-256 and what it may reach."""

    status: Literal["enabled", "disabled", "no_change"]
    loaded: NotRequired[list[str]]
    sha256: NotRequired[str]
    reach: NotRequired[list[str]]


class SourceOperations:
    """Sources of the brainstem ``host``; ``tell`` is called with the agents that came and went."""

    def __init__(
        self, host: Tenant, settings: Settings, imports: RateLimit, tell: Callable[[list[Change]], None]
    ) -> None:
        self._host, self._settings, self._imports, self._tell = host, settings, imports, tell

    @operation("sources.list", "GET", "/repos", right=ANYBODY, answers="repos")
    async def listing(self) -> list[SourceRow]:
        """The connected sources and what each offers."""
        return [_row(source) for source in await in_file_pool(self._host.sources.all)]

    @operation("sources.connect", "POST", "/repos/connect", right=OWNER)
    async def connect(self, url: Text) -> Connected:
        """Connects owner/repo, a GitHub address, or a folder or clone on this machine."""
        self._imports.take()
        name = fetching.source_name(url)
        offered = await fetching.discover(name, self._settings)
        row = _row(await in_file_pool(self._host.sources.connect, name, offered))
        return {"repo": row["repo"], "agents": row["agents"]}

    @operation("sources.disconnect", "POST", "/repos/disconnect", right=OWNER)
    async def disconnect(self, url: Text) -> Status:
        """Forgets a source; its agents go out of service."""
        await in_file_pool(self._host.sources.disconnect, fetching.source_name(url))
        self._tell(await self._host.refresh())
        return {"status": "ok"}

    @operation("sources.toggle", "POST", "/repos/toggle", right=OWNER)
    async def toggle(self, url: Text, agent_id: Text, enable: bool = True) -> Toggled:
        """Puts one agent of a source into service, or out of it; the sha256 of what was fetched is kept."""
        name, host = fetching.source_name(url), self._host
        source = await in_file_pool(host.sources.get, name)
        if not enable:
            removed = await in_file_pool(host.sources.disable, name, agent_id)
            self._tell(await host.refresh())
            return {"status": "disabled" if removed else "no_change"}
        if agent_id in source.fetched:
            return {"status": "no_change"}
        offered = next((one for one in source.offered if one.id == agent_id), None)
        if offered is None:
            raise NotFoundError(f'{name} offers no "{agent_id[:80]}".', do="GET /repos lists them.")
        content = await fetching.fetch(offered.location)
        digest = await in_file_pool(host.sources.enable, name, agent_id, content)
        self._tell(await host.refresh())
        found = host.registry.outcome(origin_of(name), proper_name(f"{agent_id}.py"))
        loaded = [agent for change in found if change.kind == "ready" for agent in change.agents]
        return {
            "status": "enabled",
            "loaded": loaded,
            "sha256": digest,
            "reach": reach_of(proper_name(f"{agent_id}.py"), content),
        }


def _row(source: Source) -> SourceRow:
    agents: list[OfferedAgent] = [
        {
            "id": one.id,
            "name": one.name,
            "description": one.description,
            "enabled": one.id in source.fetched,
            "sha256": source.fetched.get(one.id, ""),
        }
        for one in source.offered
    ]
    local = source.name.startswith("/")
    return {
        "url": source.name,
        "repo": source.name if not local else source.name.rsplit("/", 1)[-1],
        "agents": agents,
        "enabled_count": len(source.fetched),
    }
