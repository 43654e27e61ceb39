"""The daemon: everything one running daemon holds, opened from the ground up and closed again."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agents.providers.offline_provider import OfflineBrain
from agents.providers.selection import ProviderSelector
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.zygote_client import LaunchZygote
from envelopes.envelope import Envelope, brainstem_id
from envelopes.identity.keys import IdentityKey
from neighborhoods.places.memberships import Memberships
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.daemon.activity_feed import ActivityFeed
from rappd.daemon.anchoring import Anchoring
from rappd.daemon.daemon_notices import OwnerNews
from rappd.daemon.home import OPERATOR_KEY, Home, machine_name
from rappd.daemon.live_settings import LiveSettings, provider_settings
from rappd.daemon.local_models import WorkerServerCheck
from rappd.daemon.model_downloads import ModelDownloads
from rappd.daemon.operator_sessions import OperatorSessions
from rappd.daemon.other_machines import machine_operations
from rappd.daemon.ports import TWIN_PORTS
from rappd.daemon.rate_limit import RateLimit
from rappd.daemon.readiness import Readiness
from rappd.daemon.request_signatures import RequestSignatures
from rappd.daemon.security_events import SecurityEvents
from rappd.dispatch.dispatcher import Dispatcher
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.transfer import EggTransferOperations
from rappd.features.estate.operations import EstateOperations
from rappd.features.fleet.operations import FleetOperations
from rappd.features.host_operations import HostOperations
from rappd.features.neighborhoods.places import PlaceOperations
from rappd.features.peers.legacy import LegacyListenerProtocol, LegacyOperations
from rappd.features.programs.program_record import ProgramRecord
from rappd.features.snapshots.operations import SnapshotOperations
from rappd.features.snapshots.restoring import SnapshotRestorer
from rappd.features.snapshots.schedule import SnapshotSchedule
from rappd.features.snapshots.schedule_view import TIMER as SNAPSHOT_TIMER
from rappd.features.snapshots.taking import SnapshotTaker
from rappd.features.timers.organism_timers import OrganismTimers
from rappd.features.timers.setters import SetterRights
from rappd.features.timers.timer_assembly import TimerParts
from rappd.features.twins.checkpoints import CheckpointOperations
from rappd.features.twins.host_api import TwinHostApi
from rappd.features.twins.operations import TwinOperations
from rappd.features.webhooks.webhooks import Webhooks
from rappd.federation.assembly import FederationAssembly
from rappd.federation.local_node import LocalNode
from rappd.federation.service import FederationService
from rappd.notices.command import NotifyCommand
from rappd.notices.notices import Notices
from rappd.organism.organism_in_force import OrganismInForce
from rappd.sessions.events import CLEAR, SESSION_END
from rappd.sessions.participants import Participants
from rappd.sessions.schedule.timers import Timers
from rappd.sessions.sessions import Sessions
from rappd.sessions.workflows.coordinator import Coordinator
from rappd.sessions.workflows.library import WorkflowLibrary
from rappd.sessions.workflows.workflow_endpoints import WorkflowEndpoints
from rappd.settings.load import Settings, host_workspace
from rappd.settings.write import write as write_setting
from rappd.store.notice_table import NoticeTable
from rappd.store.program_table import ProgramTable
from rappd.store.reader import Reader
from rappd.store.state_table import StateTable
from rappd.store.store import Store
from rappd.store.timer_table import TimerTable
from rappd.tenants.listener_notifications import SystemMessages
from rappd.tenants.listener_states import ListenerStates
from rappd.tenants.model_choices import ModelChoices
from rappd.tenants.tenant import HOST, Tenant, TenantServices
from rappd.tenants.tenant_config import sandbox_wish, scope_rules
from rappd.tenants.tenants import Tenants, TwinListeners
from rappd.tether.service import MakeListener, PhoneServices, TetherService
from rappd.transcript.frames import RestoredConversations
from twins.background_tasks import BackgroundTasks
from twins.lifecycle.lookup import address_of
from twins.trust.trust import Trust
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from rappd.features.operation import OperationTable
    from rappd.tether.phone_waiting import OwnersList

log = logging.getLogger(__name__)

Mode = Literal["serve", "work", "read"]
"""``serve`` is the daemon; ``work``: a command changes the home while none runs; ``read``: it only looks."""


class UpperParts(NamedTuple):
    """Makers of parts that stand above a daemon: listeners that it opens by itself, the list that phones get, and operations."""

    twins: Callable[[Daemon], TwinListeners]
    legacy: Callable[[Daemon], LegacyListenerProtocol]
    phones: MakeListener
    owners_list: Callable[[Daemon], OwnersList]
    agents: Callable[[Daemon], HostOperations]
    table: Callable[[Daemon], OperationTable]
    table_of_phones: Callable[[Daemon], OperationTable]


class Daemon:
    """Opened by ``Daemon.open``; listeners are handed one of these and know nothing beneath it."""

    # Built after parts that call them once the daemon runs.
    anchoring: Anchoring
    coordinator: Coordinator
    egg_transfer: EggTransferOperations
    snapshot_schedule: SnapshotSchedule
    tether: TetherService

    def __init__(
        self,
        home: Home,
        settings: Settings,
        identity: IdentityKey,
        store: Store,
        upper: UpperParts,
        launch: LaunchZygote | None,
        mode: Mode,
    ) -> None:
        """From the ground up. What is needed of a part that stands above is given as a call to it."""
        self.home = home
        self.mode = mode
        self.identity = identity
        self.store = store
        self.started_at = time.time()
        self.port = settings.number("port")
        self.hosts: set[str] = set()
        """Host headers that the loopback listener answers to."""
        self.name = machine_name(home, settings.text("name"))
        self.end_asked = asyncio.Event()
        """Set when the owner's key asked for the end."""
        self.dispatcher = Dispatcher(store)
        self.dispatcher.note_watchers.add(self._context_ended)
        self.activity = ActivityFeed(self.dispatcher)
        self.security_events = SecurityEvents(self.activity.tell)
        self.notify_command = NotifyCommand(lambda: self.settings.text("notify.command"))
        self.notices = Notices(
            NoticeTable(store), (self.activity.noticed, self.notify_command.tell), self.activity.notice_gone
        )
        self.news = OwnerNews(
            self.notices,
            self.activity,
            lambda: self.host,
            lambda: bool(self.anchoring.report.problems),
            lambda: self.machines.announcements.agents_changed(),
        )
        self.programs = ProgramRecord(ProgramTable(store))
        self.timers = Timers(TimerTable(store), ended=self.news.timer_ended)
        self.operators = OperatorSessions(home.secret(OPERATOR_KEY) if self.serves else os.urandom(32))
        self.request_signatures = RequestSignatures()
        self.failed_authentication = RateLimit(30, 60)
        self.sign_in = RateLimit(20, 60)
        self.imports = RateLimit(120, 60)
        self.providers = ProviderSelector(
            provider_settings(settings, home),
            OfflineBrain(),
            remember=lambda model: asyncio.to_thread(write_setting, home, "model", model),
            worker_serves=WorkerServerCheck(lambda: self.supervisor.zygote_pid),
        )
        self.supervisor = WorkerSupervisor(
            on_output=self._worker_said,
            sandbox=sandbox_wish(settings),
            may_read=settings.items("agents.may_read"),
            launch=launch,
            is_own_port=lambda port: port in (self.port, self.federation.port, self.tether.port, *TWIN_PORTS),
        )
        self.open_surface = settings.on("http.open_surface")
        workspace = host_workspace(home, settings)
        if mode != "read":
            workspace.create()
        self.trust = Trust(home.root, scope_rules(settings, self.supervisor))
        self.model_choices = ModelChoices(store, self.providers)
        self.organism = OrganismInForce(home.root, writes=mode != "read")
        self.states = ListenerStates(
            StateTable(store), lambda: self.settings.number("organism.state_hours") * 3600.0
        )
        self.system = SystemMessages(
            lambda: self.organism.current.organism.name,
            lambda: self.settings.number("organism.heartbeat_seconds"),
            serves=self.serves,
        )
        self.services = TenantServices(
            node=identity.fingerprint,
            settings=settings,
            supervisor=self.supervisor,
            providers=self.providers,
            dispatcher=self.dispatcher,
            private_root=home.root,
            trust=self.trust,
            models=self.model_choices,
            organism=self.organism,
            states=self.states,
            system=self.system,
            notices=self.notices,
            perform=lambda *asked: self.operations.perform(*asked),
            writes=mode != "read",
        )
        self.host = Tenant(HOST, workspace, self.services, title=self.name)
        self.organism.on_change(self._organism_changed)
        self.tenants = Tenants(
            home,
            self.host,
            self._twin,
            failed=self.news.failed_later,
            listeners=upper.twins(self),
            serves=self.serves,
        )
        conversations = RestoredConversations(store, home.database, asyncio.get_running_loop())
        home_eggs = HomeEggs(home, workspace, identity, machine=self.name, conversations=conversations)
        self.eggs = EggOperations(
            home_eggs,
            self.tenants,
            store,
            self.dispatcher,
            self.refresh_agents,
            lambda *order: self.egg_transfer.pack_for(*order),
        )
        self.twins = TwinOperations(
            self.tenants.layout,
            self.tenants,
            quarantine=self.trust.quarantine,
            owner=self.name,
            last_talks=self._last_talks,
            model_of=self.model_choices.of_twin,
        )
        self.checkpoints = CheckpointOperations(
            home, workspace, identity, machine=self.name, tenants=self.tenants, flush=store.flush
        )
        self.anchoring = Anchoring(home.database, identity, store, on_mismatch=self.news.records_missing)
        self.memberships = Memberships(home.root)
        self.estate = EstateOperations(
            home,
            workspace,
            self.eggs,
            lambda key, **how: self.places.pack(key, **how),
            lambda: self.settings,
            machine=self.name,
        )
        self.places = PlaceOperations(
            home,
            workspace,
            home_eggs,
            self.estate,
            self.memberships,
            identity=lambda: identity,
            machine=self.name,
        )
        self.machines = FederationAssembly(
            LocalNode(
                home,
                settings,
                identity,
                self.name,
                brainstem_id(identity.fingerprint),
                lambda: self.settings.on("programs.a2a"),
                lambda: self.settings.number("peers.keep_hours"),
            ),
            store,
            self.dispatcher,
            self.tenants,
            self.anchoring,
            self.notices,
            self.memberships,
        )
        machines = machine_operations(
            self.machines,
            lambda: self.federation.port,
            lambda: self.settings,
            self.organism,
            self.eggs,
            self.notices,
        )
        self.peers, self.calls, self.open_calls = machines.peers, machines.calls, machines.open_calls
        self.egg_transfer, self.gateways = machines.egg_transfer, machines.gateways
        self.members = machines.members.read
        self.services.reach(machines.peer_tools, machines.gateway_tools.endpoints)
        self.federation = FederationService(self.machines, self.egg_transfer)
        self.readiness = Readiness(store, home.database, self.machines.availability, self.anchoring)
        self.activity.watch("machines", self.machines.view.looks)
        folder = SnapshotFolder(home.root)
        self.snapshots = SnapshotOperations(
            SnapshotTaker(
                home,
                workspace,
                home_eggs,
                folder,
                machine=self.name,
                url=lambda: f"http://127.0.0.1:{self.port}",
                model=lambda: self.settings.text("provider.model"),
                serves=self.serves,
            ),
            SnapshotRestorer(home, self.eggs, self.tenants, folder),
            folder,
            self.members,
            self.dispatcher,
            self.notices,
            flush=store.flush,
            open_calls=self.open_calls.count,
            schedule=lambda: self.snapshot_schedule.show(),
        )
        self.activity.watch("neighborhood", self.snapshots.looks)
        self.snapshot_schedule = SnapshotSchedule(
            self.timers,
            folder,
            self.snapshots.take_scheduled,
            stopped=partial(self.notices.settle, f"timer:{SNAPSHOT_TIMER}"),
        )
        self.live_settings = LiveSettings(home, self.services, self.providers, self.tenants)
        self.model_downloads = ModelDownloads(lambda: self.settings, self.providers, self.dispatcher)
        self.legacy = LegacyOperations(lambda: self.settings, self.live_settings.set, upper.legacy(self))
        sessions = Sessions(
            self.dispatcher,
            store,
            Participants(self.tenants, machines.guests),
            changed=self.activity.sessions_changed,
            interject=lambda session, speak: self.coordinator.interject(session, speak),
        )
        library = WorkflowLibrary(workspace, self.trust, self.tenants.layout)
        self.coordinator = Coordinator(
            self.dispatcher, sessions, library, lambda id: self.tether.devices.get(id)
        )
        WorkflowEndpoints(self.dispatcher, sessions, self.coordinator)
        self.tether = TetherService(
            home,
            lambda: self.settings,
            identity,
            sessions,
            self.name,
            self.notices,
            PhoneServices(
                self.coordinator,
                self.egg_transfer,
                upper.owners_list(self),
                partial(upper.table_of_phones, self),
            ),
            upper.phones,
        )
        self.activity.watch("devices", self.tether.looks)
        timer_parts = TimerParts(
            self.timers,
            SetterRights(
                lambda id: self.tether.devices.get(id),
                self.machines.callers.by_key,
                self.machines.tables.tokens.tokens,
            ),
            self.dispatcher,
            self.tenants.of_workspace,
            self.states,
            self.notices,
            lambda: self.live_settings,
            lambda: self.providers.has_model,
            spoke=self.tether.timer_spoke,
        )
        self.turn_timers = timer_parts.timers
        self.services.time(timer_parts.conversation, timer_parts.delays)
        self.organism_timers = OrganismTimers(
            self.organism, self.timers, self.turn_timers, self.dispatcher, self.host
        )
        self.webhooks = Webhooks(
            home.keys / "webhooks.json", self.dispatcher, self.tenants.of_workspace, self.notices
        )
        self.background = BackgroundTasks("background work failed")
        self._upper = upper
        self.twin_api = TwinHostApi(self.dispatcher, self.tenants, self.twins, self.checkpoints)
        self.fleet = FleetOperations(
            home.root, self.name, self.members, self.twins, self.twin_api, is_running=self.serves
        )

    @cached_property
    def operations(self) -> HostOperations:
        """Operations that agents may ask for; made when the first of them does."""
        return self._upper.agents(self)

    @cached_property
    def table(self) -> OperationTable:
        """Every operation of this machine's callers; made when the first of them is asked for."""
        return self._upper.table(self)

    @classmethod
    async def open(
        cls,
        home: Home,
        settings: Settings,
        upper: UpperParts,
        launch: LaunchZygote | None = None,
        mode: Mode = "serve",
    ) -> Daemon:
        """Opens the store and everything above it; the listeners come after."""
        if mode == "read":
            store = await asyncio.to_thread(Store.reading, home.database)
            return cls(home, settings, home.identity(), store, upper, launch, mode)
        lost = home.lost_its_record()
        store = await Store.open(home.database, strict=settings.on("store.strict"))
        daemon = cls(home, settings, home.identity(), store, upper, launch, mode)
        await daemon.anchoring.start(lost=lost)
        return daemon

    @property
    def serves(self) -> bool:
        """False for a daemon that a command has to itself: it listens to nobody else, and nothing of it acts by itself."""
        return self.mode == "serve"

    @property
    def node(self) -> str:
        """The machine's name with four characters of its key: what screens show."""
        return f"{self.name}_{self.identity.fingerprint[:4]}"

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.live_settings.current

    def listen_on(self, port: int) -> None:
        """Tells the daemon which port the loopback listener got."""
        self.port = port
        self.machines.addresses.written.own_port_is(port)
        self.hosts.clear()
        self.hosts.update(f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]"))

    async def refresh_agents(self) -> None:
        """Reads the brainstem's agent files anew, and reports what changed."""
        self.news.agents_changed(await self.host.refresh())

    async def clear_context(self, thread: str, workspace: str, kept_messages: int = 0) -> None:
        """Forgets what listeners keep for a conversation, and tells those that want to know."""
        await self.states.end(thread)
        self.system.cleared(workspace, kept_messages)

    def _context_ended(self, record: Envelope) -> None:
        if record.data.get("kind") in (CLEAR, SESSION_END):
            self.spawn(self.clear_context(record.thread, HOST))

    def end(self) -> None:
        """Ends the daemon, once what is under way is answered."""
        self.end_asked.set()

    def spawn(self, work: Any) -> None:
        """Runs ``work`` beside everything else until the daemon closes; a failure is logged."""
        self.background.spawn(work)

    def _twin(self, key: str, name: str, workspace: Workspace) -> Tenant:
        return Tenant(
            key,
            workspace,
            self.services,
            title=name,
            address=address_of(name, key),
            watched=False,
            heard=lambda text: self.spawn(self.twins.buddies.hear(key, text)),
        )

    def _organism_changed(self) -> None:
        self.host.relist()
        self.spawn(self.host.keep_schemas())
        self.activity.organism_changed(self.organism.faults)
        self.news.organism_read(self.organism.faults)
        self.machines.announcements.agents_changed()
        if self.timers.runs:
            self.spawn(self.organism_timers.sync())

    def _last_talks(self) -> dict[str, float]:
        with Reader(self.home.database) as record:
            return record.last_talks()

    def agents_can_use_ssh_keys(self) -> bool:
        """True when agents reach a key of SSH, or a program that signs with one. Looks at the disk."""
        from agents.runtimes.python.sandbox.ssh_key_warning import can_use_ssh_keys

        kind = self.supervisor.sandbox_report()["kind"]
        return can_use_ssh_keys(kind, self.settings.items("agents.may_read"), self.settings.environment)

    def _worker_said(self, pool: str, pid: int, line: str) -> None:
        logging.getLogger("worker").info("%s[%d] %s", pool, pid, line)
