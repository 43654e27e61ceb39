"""The classes whose methods are the operations of the daemon: what a page or a reference is made of without one."""

from __future__ import annotations

from rappd.features.calls.broadcast import BroadcastOperations
from rappd.features.calls.operations import CallOperations
from rappd.features.fleet.operations import FleetOperations
from rappd.features.operation import Operation, operations_of
from rappd.features.peers.legacy import LegacyOperations
from rappd.features.peers.operations import PeerOperations
from rappd.features.tokens.operations import TokenOperations
from rappd.features.twins.buddies import BuddyOperations
from rappd.features.twins.checkpoints import CheckpointOperations
from rappd.features.twins.operations import TwinOperations
from rappd.operations.snapshot_schedule import SnapshotSchedule

FEATURES: tuple[type, ...] = (
    PeerOperations,
    CallOperations,
    BroadcastOperations,
    TokenOperations,
    LegacyOperations,
    TwinOperations,
    BuddyOperations,
    CheckpointOperations,
    FleetOperations,
    SnapshotSchedule,
)


def all_operations() -> list[Operation]:
    """Every operation, noun by noun."""
    found = [one for feature in FEATURES for one in operations_of(feature)]
    return sorted(found, key=lambda one: one.noun)
