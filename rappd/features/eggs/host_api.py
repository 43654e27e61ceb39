"""The operations on eggs that approved agents call by name: ``eggs.*`` of ``utils.host``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from envelopes.errors import ReportableError
from rappd.errors import NotFoundError
from rappd.features.eggs.download import fetch_egg
from rappd.features.eggs.operations import EggOperations
from rappd.features.eggs.packing import PackRequest
from rappd.features.eggs.waiting import whole_path
from rappd.tenants.tenants import Tenants


class EggHostApi:
    """A change of the twin that asks is put off until it has answered."""

    def __init__(self, eggs: EggOperations, tenants: Tenants) -> None:
        self._eggs, self._home_eggs, self._tenants = eggs, eggs.home_eggs, tenants

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the result of ``eggs.<verb>``. Raises ``NotFoundError`` for an unknown one."""
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        match verb:
            case "pack":
                return await self._eggs.pack_order(
                    PackRequest(
                        twin=text.get("twin", ""),
                        form=text.get("form", ""),
                        item=text.get("item", ""),
                        into=text.get("into", ""),
                        exclude_memory=given.get("exclude_memory") is True,
                    )
                )
            case "receipts":
                return await asyncio.to_thread(self._home_eggs.receipts)
            case "rollback":
                return await self._rollback_once_answered(text.get("receipt", ""))
            case "inspect" | "plan" | "hatch":
                return await self._with_egg(verb, text, given.get("overwrite"))
        raise NotFoundError(f'There is no operation "eggs.{verb[:40]}".')

    async def _with_egg(self, verb: str, text: Mapping[str, str], overwrite: Any) -> dict[str, Any]:
        expected = text.get("expect_sha256", "")
        url = text.get("url", "")
        chosen = [one for one in overwrite if isinstance(one, str)] if isinstance(overwrite, list) else []
        if url:
            path = await fetch_egg(url, self._home_eggs.waiting, expect_sha256=expected)
        else:
            path = whole_path(text.get("path", ""))
        try:
            if verb == "inspect":
                return await asyncio.to_thread(self._home_eggs.inspect, path)
            if verb == "plan":
                return await self._eggs.plan_egg(path, chosen, expect_sha256=expected)
            return await self._hatch_once_answered(
                path,
                overwrite=chosen,
                approved=text.get("approved", ""),
                source=text.get("source") or url or path.name,
                expect_sha256=expected,
            )
        except ReportableError:
            if url:
                await asyncio.to_thread(self._home_eggs.waiting.let_go, path)
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

    async def _rollback_once_answered(self, receipt: str) -> dict[str, Any]:
        key = await asyncio.to_thread(self._home_eggs.key_of_hatching, receipt)
        if not key or not self._tenants.is_answering(key):
            return await self._eggs.rollback(receipt)
        self._tenants.once_answered(key, f"the rollback of {receipt}", partial(self._eggs.rollback, receipt))
        return {"message": f"{receipt} is taken back as soon as the twin has answered."}
