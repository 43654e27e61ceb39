"""Anchors of the event log, for its owner: how it stands to them, and what other machines keep."""

from __future__ import annotations

from typing import Any

from rappd.daemon.anchoring import Anchoring
from rappd.features.operation import OWNER, Text, operation
from rappd.federation.service import FederationService


class AnchorOperations:
    """The anchors of this machine, and those that it keeps for others."""

    def __init__(self, anchoring: Anchoring, machines: FederationService) -> None:
        self._anchoring, self._machines = anchoring, machines

    @operation("anchors.show", "GET", "/anchors", right=OWNER)
    async def show(self) -> dict[str, Any]:
        """Compares the event log with its newest anchor, and lists kept anchors of other machines."""
        report = {**self._anchoring.report.as_json(), "problems": self._anchoring.problems}
        return {"anchor": report, "kept": self._machines.witness.kept()}

    @operation("anchors.ask", "POST", "/anchors/ask", right=OWNER)
    async def ask(self) -> dict[str, Any]:
        """Asks each machine of the same owner which anchors of this one it keeps."""
        await self._machines.available()
        return {"witnesses": await self._machines.ask_witnesses()}

    @operation("anchors.forget", "POST", "/anchors/forget", right=OWNER)
    async def forget(self, peer: Text) -> dict[str, Any]:
        """Drops the anchors that are kept of `peer`, evidence included."""
        await self._machines.available()
        node = self._machines.witness.find(peer)
        return {"forgotten": await self._machines.witness.forget(node)}
