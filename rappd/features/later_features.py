"""The operations of a daemon, imported when the first of them is asked for: an idle daemon does not hold them, 2 MB."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rappd.daemon.app import Daemon
    from rappd.features.host_operations import HostOperations
    from rappd.features.operation import OperationTable


def table_of(daemon: Daemon) -> OperationTable:
    """Every operation, of the parts of one daemon."""
    from rappd.features import features

    return features.table_of(daemon)


def operations_for_agents(daemon: Daemon) -> HostOperations:
    """The operations that agents may ask for, and those for agents alone."""
    from rappd.features import features

    return features.operations_for_agents(daemon)


def table_of_phones(daemon: Daemon) -> OperationTable:
    """The operations that phones may ask for."""
    from rappd.features.conversations.phone_operations import ConversationsForPhones
    from rappd.features.operation import OperationTable

    return OperationTable(
        ConversationsForPhones(
            daemon.store, daemon.dispatcher, daemon.tenants, daemon.providers, daemon.clear_context
        )
    )
