"""The operations on eggs that approved agents call by name: ``eggs.*`` of ``utils.host``."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from envelopes.errors import ReportableError
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.uploaded_eggs import whole_path
from rappd.features.operation import agent_operation
from rappd.tenants.tenants import Tenants


class EggHostApi:
    """A change of the twin that asks is put off until it has answered."""

    def __init__(self, eggs: EggOperations, tenants: Tenants) -> None:
        self._eggs, self._home_eggs, self._tenants = eggs, eggs.home_eggs, tenants

    @agent_operation("eggs.pack")
    async def pack(
        self, twin: str = "", form: str = "", item: str = "", into: str = "", exclude_memory: bool = False
    ) -> dict[str, Any]:
        """Packs a twin, the brainstem, or one thing out of either."""
        order = PackRequest(twin=twin, form=form, item=item, into=into, exclude_memory=exclude_memory)
        return await self._eggs.pack_order(order)

    @agent_operation("eggs.inspect")
    async def inspect(self, path: str = "", url: str = "", expect_sha256: str = "") -> dict[str, Any]:
        """Describes an egg."""
        async with self._egg(path, url, expect_sha256) as egg:
            return await asyncio.to_thread(self._home_eggs.inspect, egg)

    @agent_operation("eggs.plan")
    async def plan(
        self, path: str = "", url: str = "", expect_sha256: str = "", overwrite: list[str] | None = None
    ) -> dict[str, Any]:
        """Plans the hatching of an egg."""
        async with self._egg(path, url, expect_sha256) as egg:
            return await self._eggs.plan_egg(egg, overwrite or [], expect_sha256=expect_sha256)

    @agent_operation("eggs.hatch")
    async def hatch(
        self,
        path: str = "",
        url: str = "",
        expect_sha256: str = "",
        overwrite: list[str] | None = None,
        approved: str = "",
        source: str = "",
    ) -> dict[str, Any]:
        """Hatches an egg."""
        async with self._egg(path, url, expect_sha256) as egg:
            return await self._hatch_once_answered(
                egg,
                overwrite=overwrite or [],
                approved=approved,
                source=source or url or egg.name,
                expect_sha256=expect_sha256,
            )

    @contextlib.asynccontextmanager
    async def _egg(self, path: str, url: str, expect_sha256: str) -> AsyncIterator[Path]:
        """The egg at a path, or of a web address; what was fetched for nothing is let go."""
        if not url:
            yield whole_path(path)
            return
        from rappd.features.eggs.download import fetch_egg

        fetched = await fetch_egg(url, self._home_eggs.waiting, expect_sha256=expect_sha256)
        try:
            yield fetched
        except ReportableError:
            await asyncio.to_thread(self._home_eggs.waiting.let_go, fetched)
            raise

    async def _hatch_once_answered(self, path: Path, *, expect_sha256: str, **how: Any) -> dict[str, Any]:
        """``hatch``; but it may be an agent of the very twin that asks, and a twin that is talking answers first.

        Then nothing is known of a receipt yet.
        """
        async with self._eggs.taken_in(path, expect_sha256) as kept:
            keys = await asyncio.to_thread(self._home_eggs.keys_of, kept)
            key = next(filter(self._tenants.is_answering, keys), "")
            if not key:
                return await self._eggs.hatch_egg(kept, **how)
            planned = await asyncio.to_thread(self._home_eggs.plan, kept, overwrite=how["overwrite"])
        name = planned["plan"]["egg"]["name"]
        what = f"the hatching of {name} ({self._home_eggs.waiting.id_of(kept)[:12]})"
        self._tenants.once_answered(key, what, partial(self._eggs.hatch_egg, kept, **how))
        return {
            "hatched": {"key": key, "name": name, "receipt": ""},
            "message": f"{name} hatches as soon as it has answered. Then: rappd egg hatchings",
        }

    @agent_operation("eggs.rollback")
    async def rollback(self, receipt: str = "") -> dict[str, Any]:
        """Takes a hatching back."""
        key = await asyncio.to_thread(self._home_eggs.key_of_hatching, receipt)
        if not key or not self._tenants.is_answering(key):
            return {"rolled_back": await self._eggs.rollback(receipt)}
        self._tenants.once_answered(key, f"the rollback of {receipt}", partial(self._eggs.rollback, receipt))
        return {"message": f"{receipt} is taken back as soon as the twin has answered."}
