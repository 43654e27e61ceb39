"""All features: the table of a daemon's operations, and their list for what is made without a daemon."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rappd.daemon.app import Daemon
from rappd.daemon.waiting_list import waiting
from rappd.features.agents.operations import AgentOperations
from rappd.features.calls.broadcast import BroadcastOperations
from rappd.features.calls.operations import CallOperations
from rappd.features.calls.outbox_operations import OutboxOperations
from rappd.features.cartridges.operations import CartridgeOperations
from rappd.features.conversations.operations import ConversationOperations
from rappd.features.devices.operations import DeviceOperations
from rappd.features.eggs.home_eggs import HomeEggs
from rappd.features.eggs.host_api import EggHostApi
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.packing import EggPacking
from rappd.features.eggs.transfer import EggTransferOperations
from rappd.features.estate.operations import EstateOperations
from rappd.features.fleet.operations import FleetOperations
from rappd.features.host_operations import HostOperations
from rappd.features.memories.operations import MemoryOperations
from rappd.features.models.operations import ModelOperations
from rappd.features.neighborhoods.operations import NeighborhoodOperations
from rappd.features.neighborhoods.places import PlaceOperations
from rappd.features.notices.operations import NoticeOperations
from rappd.features.operation import Operation, OperationTable, operations_of
from rappd.features.operator.operations import OperatorOperations
from rappd.features.organism.graph import GraphOperations
from rappd.features.organism.operations import StructureOperations
from rappd.features.organism.payload_operations import OrganismOperations
from rappd.features.organism.privileged import PrivilegedOperations
from rappd.features.peers.legacy import LegacyOperations
from rappd.features.peers.operations import PeerOperations
from rappd.features.peers.pairing_operations import PairingOperations
from rappd.features.programs.operations import ProgramOperations
from rappd.features.rapps.operations import RappOperations
from rappd.features.search.operations import SearchOperations
from rappd.features.sessions.operations import SessionOperations
from rappd.features.sessions.replays import ReplayOperations
from rappd.features.settings.operations import SettingOperations
from rappd.features.snapshots.host_api import NeighborhoodHostApi
from rappd.features.snapshots.operations import SnapshotOperations
from rappd.features.snapshots.schedule import SnapshotSchedule
from rappd.features.sources.operations import SourceOperations
from rappd.features.threads.operations import AnchorOperations, RecordOperations
from rappd.features.timers.operations import TimerOperations
from rappd.features.tokens.operations import TokenOperations
from rappd.features.twins.buddies import BuddyOperations
from rappd.features.twins.checkpoints import CheckpointOperations
from rappd.features.twins.operations import TwinOperations
from rappd.features.voice.operations import VoiceOperations
from rappd.features.webhooks.operations import WebhookOperations
from rappd.features.workflows.operations import WorkflowOperations

FEATURES: tuple[type, ...] = (
    PeerOperations,
    PairingOperations,
    CallOperations,
    OutboxOperations,
    BroadcastOperations,
    TokenOperations,
    ProgramOperations,
    LegacyOperations,
    TwinOperations,
    BuddyOperations,
    CheckpointOperations,
    FleetOperations,
    SnapshotSchedule,
    TimerOperations,
    WebhookOperations,
    PlaceOperations,
    NeighborhoodOperations,
    DeviceOperations,
    SessionOperations,
    ReplayOperations,
    WorkflowOperations,
    AnchorOperations,
    NoticeOperations,
    ConversationOperations,
    ModelOperations,
    MemoryOperations,
    SearchOperations,
    OperatorOperations,
    OrganismOperations,
    StructureOperations,
    GraphOperations,
    PrivilegedOperations,
    AgentOperations,
    RappOperations,
    SourceOperations,
    CartridgeOperations,
    SettingOperations,
    VoiceOperations,
    RecordOperations,
    SnapshotOperations,
    EggPacking,
    HomeEggs,
    EggOperations,
    EggTransferOperations,
    EstateOperations,
)


def all_operations(features: Iterable[type] = FEATURES) -> list[Operation]:
    """Every operation of this machine's callers, or of others, noun by noun."""
    found = [one for feature in features for one in operations_of(feature)]
    return sorted(found, key=lambda one: one.noun)


def table_of(daemon: Daemon) -> OperationTable:
    """Every operation, of the parts of one daemon."""
    table = OperationTable(
        *_features(daemon),
        PrivilegedOperations(
            daemon.identity, lambda: table, daemon.host, daemon.activity, daemon.end, began=daemon.started_at
        ),
    )
    return table


def operations_for_agents(daemon: Daemon) -> HostOperations:
    """Operations that agents may ask for, and those that are theirs alone."""
    return HostOperations(
        *_features(daemon),
        daemon.twin_api,
        EggHostApi(daemon.eggs, daemon.tenants),
        NeighborhoodHostApi(daemon.snapshots, daemon.eggs.home_eggs.signers.name_of),
    )


def _features(daemon: Daemon) -> tuple[object, ...]:
    m, tether = daemon.machines, daemon.tether
    node, availability, peers = m.node, m.availability, m.peer_store
    return (
        daemon.peers,
        PairingOperations(node, peers, m.addresses, m.pairings),
        daemon.calls,
        OutboxOperations(availability, peers, m.outbox, m.tables.outbox, daemon.open_calls),
        BroadcastOperations(
            availability, peers, m.greetings, m.dispatcher, daemon.calls, daemon.places.members_of
        ),
        TokenOperations(
            node, lambda: daemon.federation.port, availability, peers, m.tables.tokens, m.credentials
        ),
        ProgramOperations(daemon.programs, m.tables.tokens, peers, lambda: daemon.settings, daemon.store),
        daemon.legacy,
        daemon.twins,
        daemon.twins.buddies,
        daemon.checkpoints,
        daemon.fleet,
        daemon.snapshot_schedule,
        TimerOperations(daemon.turn_timers, daemon.dispatcher, daemon.tenants),
        WebhookOperations(daemon.webhooks, daemon.tenants, lambda: daemon.port, daemon.home.root),
        daemon.places,
        NeighborhoodOperations(
            daemon.places,
            peers,
            m.announcements,
            daemon.peers,
            daemon.eggs.to_the_end,
            daemon.dispatcher.endpoints,
        ),
        DeviceOperations(tether),
        SessionOperations(tether),
        ReplayOperations(daemon.eggs.waiting, tether),
        WorkflowOperations(daemon.coordinator, tether),
        AnchorOperations(daemon.anchoring, availability, m.witness, m.greetings),
        NoticeOperations(daemon.notices, partial(waiting, daemon)),
        ConversationOperations(daemon.store, daemon.dispatcher.running, daemon.clear_context),
        ModelOperations(
            daemon.providers,
            daemon.live_settings,
            daemon.model_choices,
            daemon.model_downloads,
            daemon.tenants.layout,
            lambda: daemon.port,
        ),
        MemoryOperations(tether.listing),
        SearchOperations(daemon),
        OperatorOperations(daemon),
        OrganismOperations(daemon.dispatcher.endpoints),
        StructureOperations(
            daemon.organism, daemon.host, daemon.dispatcher.endpoints, daemon.gateways, daemon.turn_timers
        ),
        GraphOperations(daemon),
        AgentOperations(daemon.agents_can_use_ssh_keys, daemon.imports, tether.workflows_changed),
        RappOperations(daemon.host, lambda: daemon.port, daemon.imports, daemon.news.agents_changed),
        SourceOperations(daemon.host, daemon.settings, daemon.imports, daemon.news.agents_changed),
        CartridgeOperations(daemon.home, daemon.host.workspace),
        SettingOperations(daemon.home, daemon.live_settings),
        VoiceOperations(),
        RecordOperations(
            daemon.store, daemon.activity, daemon.security_events, daemon.name, daemon.identity.fingerprint
        ),
        daemon.snapshots,
        daemon.eggs.home_eggs.packing,
        daemon.eggs.home_eggs,
        daemon.eggs,
        daemon.egg_transfer,
        daemon.estate,
    )
