"""A model server that keeps some questions waiting until a test lets them go."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from aiohttp import web
from fixtures.loopback_server import FakeModel, Message, says


class HeldModel(FakeModel):
    """Answers ``answer to TEXT``. Questions that hold a word in ``held`` wait; ``failing`` are refused so many times."""

    def __init__(self) -> None:
        super().__init__()
        self.held: set[str] = set()
        self.failing: dict[str, int] = {}
        self.texts: list[str] = []
        self._changed = asyncio.Event()

    def let_go(self, *, but: Iterable[str] = ()) -> None:
        """Answers everything that waits, ``but`` what holds one of these words."""
        self.held = set(but)
        self._loop.call_soon_threadsafe(self._changed.set)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Waits until a question that begins so was asked that often."""
        until = time.monotonic() + 100
        while sum(one.startswith(text) for one in self.texts) < times:
            assert time.monotonic() < until, self.texts
            self.reached.wait(0.1)
            self.reached.clear()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body: Message = await request.json()
        text = _said(body)
        self.texts.append(text)
        self.reached.set()
        while any(word in text for word in self.held):
            self._changed.clear()
            await self._changed.wait()
        if self.failing.get(text, 0) > 0:
            self.failing[text] -= 1
            return web.json_response({"error": {"message": "out of memory (5.6 GiB)"}}, status=400)
        self.script = [says(f"answer to {text}")]
        return await super()._complete(request)


def _said(body: dict[str, Any]) -> str:
    return str(next(one["content"] for one in reversed(body["messages"]) if one["role"] == "user"))
