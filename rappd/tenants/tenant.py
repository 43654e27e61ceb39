"""A tenant: one workspace with its brainstem, its workers and its services, behind the dispatcher."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from agents.brainstem.answer_slots import Senses
from agents.brainstem.prompt import Soul
from agents.brainstem.turn import Brainstem
from agents.contract.agent import Agent, Change
from agents.contract.agent_describer import AgentStorage
from agents.contract.declared_needs import declared_in
from agents.contract.file_discovery import Stamp
from agents.contract.imported_files import Neighbours
from agents.contract.may_run import SHIPPED
from agents.contract.registry import AgentRegistry
from agents.errors import AgentError
from agents.providers.selection import ProviderSelector
from agents.runtimes.python.pools.answers import read_tests, reader_of_descriptions
from agents.runtimes.python.pools.call import ReadAnswer
from agents.runtimes.python.pools.runner import AgentRunner, WorkerPools
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.use_log import UseLog
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines
from agents.runtimes.python.worker.service_files import ServiceReply
from agents.storage.safe_fs import SafeTree, in_file_pool
from envelopes.envelope import agent_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.errors import NotFoundError
from rappd.notices.notices import Notices
from rappd.organism.organism import Organism
from rappd.organism.organism_in_force import OrganismInForce
from rappd.organism.schemas import ListenerSchemas
from rappd.settings.load import Settings
from rappd.tenants.agent_admin import AgentAdmin
from rappd.tenants.listener_notifications import SystemMessages, is_system
from rappd.tenants.listener_states import ListenerStates
from rappd.tenants.model_choices import ModelChoices
from rappd.tenants.primitives import DelayGateway
from rappd.tenants.rapplication_services import WorkspaceServices
from rappd.tenants.request_handler import TenantRequestHandler
from rappd.tenants.tenant_config import (
    OF_BUDDIES,
    PackageSettings,
    TenantSettings,
    folders_of,
    pool_config,
    trusted_plan,
)
from rappd.tenants.tenant_context import GatewayEndpoints, PeerGateway, TenantContext, TimerGateway
from rappd.tenants.tenant_endpoints import agent_endpoints, whole_endpoint
from rappd.tenants.worker_callbacks import WorkerCallbackHandler
from twins.cartridges.buddy_store import is_buddy
from twins.trust.trust import Trust, WorkspaceTrust
from twins.workspace.agent_files import AgentFiles
from twins.workspace.sources import Sources
from twins.workspace.workspace import Workspace

log = logging.getLogger(__name__)

HOST = "brainstem"
"""The name of the host's tenant; every other is named by a twin's key."""

_NO_ORGANISM = Organism()
_LOOK_SECONDS = 0.5
_GLANCE_SECONDS = 0.05  # turns that flow do not each go to the disk


class AgentRan(TypedDict):
    """A call of an agent: whether it went well, its result, and the thread that it is recorded on."""

    ok: bool
    result: Any
    seconds: float
    thread: str


@dataclass(slots=True, kw_only=True)
class TenantServices:
    """Services of the daemon that all tenants share. ``settings`` are those of the last reload."""

    node: str
    settings: Settings
    supervisor: WorkerSupervisor
    providers: ProviderSelector
    dispatcher: Dispatcher
    private_root: Path
    trust: Trust
    models: ModelChoices
    organism: OrganismInForce
    states: ListenerStates
    system: SystemMessages
    notices: Notices = field(default_factory=Notices)
    perform: Callable[[Tenant, str, dict[str, Any]], Awaitable[Any]]
    """Structural operations, of an agent of that tenant."""
    peers: PeerGateway | None = None
    """The way to other machines; None where there is none."""
    gateway_tools: GatewayEndpoints = lambda tools: []
    writes: bool = True
    """False where a home is only looked at: nothing is made in it."""
    timers: TimerGateway | None = None
    """The way to set timers; None where none run."""
    delays: DelayGateway | None = None
    """The way to begin delays; None where no timers run."""

    def apply(self, settings: Settings) -> None:
        """Settings that are in force from now on."""
        self.settings = settings

    def reach(self, peers: PeerGateway, gateway_tools: GatewayEndpoints) -> None:
        """Other machines can be reached from now on."""
        self.peers, self.gateway_tools = peers, gateway_tools

    def time(self, timers: TimerGateway, delays: DelayGateway) -> None:
        """Timers can be set, and delays begun, from now on."""
        self.timers, self.delays = timers, delays


class Tenant:
    """Answers HELP envelopes for one workspace. ``id`` is its name on the wire."""

    def __init__(
        self,
        name: str,
        workspace: Workspace,
        services: TenantServices,
        *,
        title: str = "",
        address: str = "",
        watched: bool = True,
        heard: Callable[[str], None] | None = None,
    ) -> None:
        """``name`` is its name in records and workers, ``title`` the one for people, ``address`` the one in its id.

        Without a file watcher, every turn looks at the files first. ``heard`` is told each sentence of a turn.
        """
        self._shared = services
        self.organism = services.organism
        settings, private_root = services.settings, services.private_root
        self.name = name
        self.title = title or name
        self.id = agent_id(address or name, services.node)
        self.active_requests = self.requests_begun = 0
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self._glanced = 0.0
        self._stamps: list[Stamp | None] = []
        self._watched = watched
        self._closed = False
        self.workspace = workspace
        self.settings = TenantSettings.from_settings(settings)
        self.files = AgentFiles(workspace)
        self.sources = Sources(workspace)
        self._trust = WorkspaceTrust(services.trust, workspace)
        self.node = services.node
        self._install_lock = asyncio.Lock()
        self._packages = PackageSettings.from_settings(settings, private_root=private_root)
        self._private_root = private_root
        self._plan = partial(pool_config, workspace, settings, private_root, self._trust.may_run)
        self._pools = WorkerPools(
            services.supervisor,
            name,
            self._plan(),
            trusted=trusted_plan,
            request_context=lambda: self._trust.standing,
        )
        beside = (workspace.agents / "utils", workspace.root / "utils")
        self._neighbours = Neighbours(workspace.files, workspace.agents, beside)
        self.registry = AgentRegistry(
            self._pools,
            lambda: folders_of(workspace, self.sources),
            AgentStorage(workspace.files, workspace.good_copies, workspace.deps, self._neighbours),
            self._trust,
            self._install,
            self._is_offered,
            self._given_name,
        )
        self.senses = Senses(workspace.senses, trust=self._trust, files=workspace.files)
        self.uses = UseLog(private_root / "uses" / f"{name}.json")
        self.runner = AgentRunner(self._pools, self.settings, self.uses)
        self.services = WorkspaceServices(
            workspace, self._trust, self._pools, self._neighbours, self.settings, self.uses
        )
        self.brainstem = Brainstem(
            soul=Soul(workspace.soul, workspace.files),
            senses=self.senses,
            agents=self.registry,
            runner=self.runner,
            thinking=services.providers,
            modes=self.settings,
        )
        self._writes = services.writes
        schemas = private_root / "schemas"
        self.schemas = ListenerSchemas(schemas if name == HOST else schemas / name)
        self.ready = asyncio.Event()
        self.notices = services.notices
        context = TenantContext(
            name=name,
            id=self.id,
            node=services.node,
            workspace=workspace,
            files=self.files,
            trust=services.trust,
            registry=self.registry,
            runner=self.runner,
            services=self.services,
            brainstem=self.brainstem,
            notices=self.notices,
            peers=lambda: services.peers,
            gateway_tools=lambda tools: services.gateway_tools(tools),
            timers=lambda: services.timers,
            delays=lambda: services.delays,
            refresh=self.refresh,
            reload_variables=self.reload_variables,
            describe=self.describe,
            test=self.test_file,
            perform=self.perform,
            models=services.models,
            schemas=self.schemas,
            states=services.states,
            private_root=private_root,
            what_exists=self._what_exists,
            rounds=lambda: services.settings.number("organism.rounds"),
            is_of_buddies=self.is_of_buddies,
            heard=heard,
        )
        self.admin = AgentAdmin(context)
        self.callbacks = WorkerCallbackHandler(context, services.providers, settings)
        self.requests = TenantRequestHandler(context, self.callbacks, services.dispatcher)
        services.dispatcher.route(self.id, name, self.handle, repeatable=self.requests.may_begin_again)

    def _what_exists(self) -> Organism:
        """The ``organism.yaml`` in force, of which twins are not."""
        return self.organism.current if self.name == HOST else _NO_ORGANISM

    def _given_name(self, agent: Agent) -> str:
        own = agent.own_name or agent.name
        return self.organism.current.given_name(own, agent.file.rel) if self.name == HOST else ""

    def _is_offered(self, agent: Agent) -> bool:
        """True for what ``organism.yaml`` names, where it has a list. Twins are not of it: each is a whole of its own."""
        return self.name != HOST or self.organism.current.offers(agent.name, agent.file.rel)

    async def start(self) -> list[Change]:
        """Describes the agents. Turns that come earlier wait for it."""
        changes = await self.refresh()
        self.ready.set()
        return changes

    async def described(self) -> None:
        """Describes the agents where that was not done yet: a command without a daemon begins with it."""
        if not self.ready.is_set():
            await self.start()

    async def reload_variables(self) -> None:
        """Reads the workspace's ``.env`` anew; where it changed, later calls get workers that have it."""
        await self._pools.use(await asyncio.to_thread(self._plan))

    async def refresh(self) -> list[Change]:
        """Looks at the agent files again; returns what changed."""
        began = time.monotonic()
        self._glanced = 0.0
        changes = await self.registry.refresh()
        self._looked = began  # not before: what was not done yet, or was cancelled, is no look
        self.publish()  # before anything is awaited: what is listed can be called
        if changes:
            await self.keep_schemas()
        self._shared.system.look(self)
        return changes

    async def keep_schemas(self) -> None:
        """Writes the schemas of its listeners that have none yet."""
        listeners = [one.listener for one in self.registry.serving() if one.listener and not is_system(one)]
        if self._writes and listeners:
            await in_file_pool(self.schemas.keep, listeners)

    def relist(self) -> None:
        """Goes by the ``organism.yaml`` that is in force now: names, and what is offered."""
        self.registry.settle()
        self.publish()

    def serving(self) -> list[Agent]:
        """The tenant's agents and listeners that serve now, those that a model drives last."""
        return [*self.registry.serving(), *self.requests.driven.agents()]

    async def tell(self, listener: Agent, value: dict[str, Any]) -> None:
        """Calls a listener with a message of the system, on a thread of ``core``."""
        await self.requests.tell(listener, value)

    def publish(self, title: str = "") -> None:
        """Puts into the registry what of this tenant can be called now; ``title`` is its name for people from now on."""
        self.title = title or self.title
        if self._closed:
            return
        agents = agent_endpoints(
            self.name, self.node, self.serving(), self.requests.call, self.schemas.newest
        )
        whole = whole_endpoint(self.name, self.id, self.title, self.handle)
        self._shared.dispatcher.endpoints.publish(whole, agents)

    async def close(self) -> None:
        """Takes no more records, and ends the workers with what they do."""
        self._closed = True
        self._shared.system.gone(self)
        self._shared.dispatcher.unroute(self.id)
        self._shared.dispatcher.endpoints.withdraw(self.name)
        await self._pools.close()
        await self.uses.close()

    def apply(self, settings: Settings) -> None:
        """Takes changed live settings over."""
        fresh = TenantSettings.from_settings(settings)
        self.settings.voice, self.settings.twin = fresh.voice, fresh.twin
        self.settings.rounds, self.settings.call_seconds = fresh.rounds, fresh.call_seconds
        self.settings.result_characters = fresh.result_characters
        self._packages = PackageSettings.from_settings(settings, private_root=self._private_root)
        self.callbacks.apply(settings)

    async def handle(self, context: RequestContext) -> dict[str, Any]:
        """A HELP for this tenant: a sentence for its brainstem, or arguments for one agent. The DONE's data."""
        self.active_requests += 1
        self.requests_begun += 1
        try:
            if not self.ready.is_set():
                await self.ready.wait()
            if not self._watched:
                async with self._looking:  # turns that come meanwhile wait for what the first finds
                    if time.monotonic() - self._looked > _LOOK_SECONDS:
                        await self.refresh()
            await self._glance()
            return await self.requests.perform(context)
        finally:
            self.active_requests -= 1

    async def perform(self, operation: str, arguments: dict[str, Any]) -> Any:
        """A structural operation that an approved agent asked for in an operator's turn: ``agents.…`` on this workspace, all others on the daemon."""
        return await self._shared.perform(self, operation, arguments)

    def is_of_buddies(self, agent: Agent) -> bool:
        """True for the shipped agent of buddies in a buddy's workspace."""
        return agent.origin == SHIPPED and agent.file.rel in OF_BUDDIES and is_buddy(self.workspace)

    async def service(
        self, method: str, name: str, path: str, body: Any, caller: Caller
    ) -> ServiceReply | None:
        """Hands a request to a service in a worker; None when there is no such service."""
        whose = "" if self.name == HOST else f" --twin {self.name[:12]}"
        answers = self.callbacks.for_service()
        return await self.services.ask(method, name, path, body, caller, answers, whose)

    @property
    def sandbox(self) -> dict[str, Any]:
        """The report of the sandbox of its workers."""
        return self._shared.supervisor.sandbox_report()

    async def workers_answer(self) -> bool:
        """True when a worker can be started, and answers."""
        try:
            async with self._pools.apart() as pool:
                await pool.request("describe", {"files": []}, timeout=10.0)
        except AgentError:
            return False
        return True

    async def describe(self, agent_file: dict[str, Any]) -> dict[str, Any]:
        """Returns the description of one file, without registering it."""
        body, read = {"files": [agent_file]}, reader_of_descriptions(1)
        confines = await in_file_pool(self._confines_of, agent_file)
        outcome: dict[str, Any] = (await self._apart("describe", body, 20.0, read, confines))["files"][0]
        return outcome

    async def run_agent(
        self, name: str, arguments: dict[str, Any], *, caller: Caller | None = None
    ) -> AgentRan:
        """Runs one agent by itself, as a recorded HELP and its answer: ``{ok, result, seconds, thread}``."""
        caller = caller or Caller("control", operator=True)
        found = self._shared.dispatcher.endpoints.named(self.name, name)
        if found is None:  # else another one has its name
            self._check_listed(name)
        if found is None or found.agent is None or not found.exposure.admits(caller):
            raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
        await asyncio.to_thread(self._trust.look_at_quarantine)
        ran, thread = await self.requests.alone(found.agent, arguments, caller)
        return {"ok": ran.ok, "result": ran.result, "seconds": round(ran.seconds, 4), "thread": thread}

    def _check_listed(self, name: str) -> None:
        """Raises ``NotFoundError`` for an agent that would serve, and that ``organism.yaml`` does not name."""
        if self.registry.is_hidden(name):
            raise NotFoundError(
                f"{name[:80]} is not in organism.yaml.", do=f"rappd organism add listener {name[:80]}"
            )

    async def test_agent(self, name: str) -> list[dict[str, Any]]:
        """Runs the contract tests over one serving agent, in a worker."""
        self._check_listed(name)
        agent = self.registry.named(name)
        if agent is None:
            raise NotFoundError(f'No agent "{name[:80]}".', do="rappd agents list")
        reference = {"rel": agent.file.rel, "path": str(agent.file.path)}
        tests: list[dict[str, Any]] = (await self.test_file(reference))["tests"]
        return tests

    async def test_file(self, agent_file: dict[str, Any]) -> dict[str, Any]:
        """Runs the contract tests over one file, in a worker of its own: ``{passed, tests}``."""
        confines = await in_file_pool(self._confines_of, agent_file)
        found: dict[str, Any] = await self._apart("test", {"file": agent_file}, 60.0, read_tests, confines)
        return found

    def _confines_of(self, agent_file: dict[str, Any]) -> Confines:
        """The confines of a file that is not registered yet. Blocks on the disk."""
        path, rel = Path(agent_file["path"]), agent_file["rel"]
        is_own = path.is_relative_to(self.workspace.root)
        files = self.workspace.files if is_own else SafeTree(path.parent)
        content = files.read(path)
        needs = declared_in(rel, content).needs
        if needs is None:
            return UNCONFINED
        return Confines(needs, False, (str(path),), self._neighbours.imported_by(rel, content))

    async def _apart(
        self, op: str, body: dict[str, Any], seconds: float, read: ReadAnswer, confines: Confines
    ) -> Any:
        """Asks a worker that ends with it, and that goes by what is held now."""
        await asyncio.to_thread(self._trust.look_at_quarantine)
        async with self._pools.apart(confines) as pool:
            return await pool.request(op, body, timeout=seconds, read=read)

    async def _glance(self) -> None:
        """Sees what changed on disk of senses and of what is held."""
        now = time.monotonic()
        if now - self._glanced > _GLANCE_SECONDS:
            self._glanced = now
            if await asyncio.to_thread(self._glance_at_disk):
                await self.refresh()

    def _glance_at_disk(self) -> bool:
        """True when the agent files have to be read again. Mostly a few ``stat`` say that nothing changed."""
        stamps = [_stamp(path) for path in (self._shared.trust.quarantine.path, *self.senses.places)]
        if stamps == self._stamps:
            return False
        self.senses.look()
        is_other = self._trust.look_at_quarantine() is not self.registry.rules_seen[0]
        if not is_other:  # else the refresh that follows may fail, and the next turn has to try again
            self._stamps = stamps
        return is_other

    async def _install(self, requirements: list[str]) -> str:
        async with self._install_lock:
            from agents.packages import install_packages  # rarely needed, and every start would pay for it

            if not self._packages.allowed:
                return "installing packages is switched off (agents.install_packages)"
            log.info("installing %s for %s", ", ".join(requirements), self.name)
            report = await asyncio.to_thread(
                install_packages.install,
                requirements,
                self.workspace.deps,
                timeout=180.0,
                source=self._packages.source(),
            )
            self._pools.retire()
            return report.problem


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def reference_to(path: Path) -> dict[str, Any]:
    """The reference by which a worker opens a file, wherever it lies. Blocks on the disk; raises ``NotFoundError``."""
    try:
        found = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a zero byte
        raise NotFoundError(f'No file "{str(path)[:200]}".', do="Give the path of an agent file.") from error
    return {"rel": path.name, "path": str(path), "stamp": [found.st_mtime_ns, found.st_size, found.st_ino]}
