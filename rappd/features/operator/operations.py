"""Operations on the daemon itself: its state, and links that make an operator of a browser."""

from __future__ import annotations

from typing import TypedDict

from rappd.daemon.app import Daemon
from rappd.dispatch.rights import Caller
from rappd.errors import RefusedError
from rappd.features.operation import OWNER, operation
from rappd.features.operator.status import DaemonStatus, describe


class OperatorKey(TypedDict):
    """A key that makes an operator of a browser once, and the link that carries it."""

    key: str
    url: str


class OperatorOperations:
    """Links go over the control socket alone, since others can read TCP on loopback."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @operation("operator.status", "GET", "/operator/status", right=OWNER)
    async def status(self, caller: Caller) -> DaemonStatus:
        """The state that the start screen and `rappd status` show; `url`, a link for the page, over the control socket."""
        return await describe(self._daemon, with_link=caller.listener == "control")

    @operation("operator.key", "POST", "/operator/key", right=OWNER)
    async def key(self, caller: Caller) -> OperatorKey:
        """A fresh one-use key, for `rappd open`; over the control socket alone."""
        if caller.listener != "control":
            raise RefusedError("Only the command gives a link for the page.", do="rappd open")
        made = self._daemon.operators.mint_key()
        return {"key": made, "url": f"http://127.0.0.1:{self._daemon.port}/#k={made}"}
