"""A phone without a browser: pairs and talks over the listener's WebSocket, as the phone's page does."""

from __future__ import annotations

from typing import Any, Self

from fixtures.running_daemon import RunningDaemon

from rappd.tether import proofs

_SECONDS = 20.0


class PhoneClient:
    """One phone of a running daemon. ``events`` are those it has seen of ``session``."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self.daemon = daemon
        self.events: list[dict[str, Any]] = []
        self.pages: list[int] = []
        self.here: list[str] = []
        self.refused: list[dict[str, Any]] = []
        self.session = ""
        self.name = ""
        self.last_seq = 0
        self._device: dict[str, Any] = {}

    async def pair(self, **asked: Any) -> Self:
        """Joins: shows a code, proves it, and says yes on both sides."""
        window = await self._owner("POST", "/devices/window", asked)
        key = proofs.unb64(
            dict(one.split("=") for one in window["links"][0].partition("#")[2].split("&"))["t"]
        )
        await self._open({"window": window["id"]}, key, window["links"][0])
        await self._send({"type": "confirm", "same": True})
        await self._owner("POST", "/devices/window/answer", {"id": window["id"], "same": True})
        await self._greet(await self._take("paired"))
        return self

    async def resume(self) -> Self:
        """Comes back after ``leave``, or after a restart."""
        await self._open(
            {"device": self._device["device"]}, proofs.unb64(self._device["secret"]), self._address
        )
        await self._greet(await self._take("paired"))
        return self
