"""This machine's twins as the fleet sees them, with a daemon and without one."""

from __future__ import annotations

from typing import Any

from rappd.operations.fleet import BY
from rappd.operations.twin_host_api import TwinHostApi
from rappd.operations.twins import TwinOperations
from twins.lifecycle.selection import Selection


class DaemonTwins:
    """Twins that may be answering: those are archived afterwards."""

    def __init__(self, twin_api: TwinHostApi, twins: TwinOperations) -> None:
        self._twin_api = twin_api
        self._twins = twins

    async def count(self) -> int:
        """See ``LocalTwins``."""
        return len((await self._twins.listing())["twins"])

    async def archive(self, selection: Selection, *, confirm: bool, reason: str) -> dict[str, Any]:
        """See ``LocalTwins``."""
        return await self._twin_api.archive_matching(selection, confirm=confirm, reason=reason, by=BY)


class StandaloneTwins:
    """Twins of a home without a daemon: all sleep."""

    def __init__(self, twins: TwinOperations) -> None:
        self._twins = twins

    async def count(self) -> int:
        """See ``LocalTwins``."""
        return len((await self._twins.listing())["twins"])

    async def archive(self, selection: Selection, *, confirm: bool, reason: str) -> dict[str, Any]:
        """See ``LocalTwins``."""
        lifecycle = self._twins.lifecycle
        return await lifecycle.archive_matching(selection, confirm=confirm, reason=reason, by=BY)
