"""The classes whose methods are the operations of the daemon: what a page or a reference is made of without one."""

from __future__ import annotations

from rappd.features.operation import Operation, operations_of
from rappd.operations.broadcast import BroadcastOperations
from rappd.operations.buddies import BuddyOperations
from rappd.operations.calls import CallOperations
from rappd.operations.checkpoints import CheckpointOperations
from rappd.operations.fleet import FleetOperations
from rappd.operations.legacy import LegacyOperations
from rappd.operations.peers import PeerOperations
from rappd.operations.snapshot_schedule import SnapshotSchedule
from rappd.operations.tokens import TokenOperations
from rappd.operations.twins import TwinOperations

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
