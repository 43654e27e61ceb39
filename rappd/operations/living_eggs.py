"""Eggs while the daemon runs: what is packed or hatched sleeps or is told, and other turns go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rappd.errors import Mistyped, NotFound
from rappd.operations.egg_fetching import fetch_egg
from rappd.operations.eggs import EggVerbs, Order, Progress
from rappd.store.store import Store
from rappd.tenants import Tenants

Tell = Callable[[], Awaitable[None]]
"""Looks at the host's agent files anew and tells whoever watches."""


class LivingEggs:
    """``EggVerbs`` for the event loop: each verb runs in a thread, around twins that are awake."""

    def __init__(self, verbs: EggVerbs, tenants: Tenants, store: Store, refresh_host: Tell) -> None:
        self.verbs = verbs
        self._folder = tenants.places.eggs / ".waiting"
        self._tenants = tenants
        self._store = store
        self._refresh_host = refresh_host
        self._hatching = asyncio.Lock()

    async def pack(self, order: Order, progress: Progress | None = None) -> dict[str, Any]:
        """See ``EggVerbs.pack``; what was said up to now is in it."""
        await self._store.flush()
        return await asyncio.to_thread(self.verbs.pack, order, progress=progress)

    async def plan(self, path: Path, overwrite: Iterable[str] = ()) -> dict[str, Any]:
        """See ``EggVerbs.plan``."""
        return await asyncio.to_thread(self.verbs.plan, path, overwrite=overwrite)

    async def hatch(
        self,
        path: Path,
        *,
        overwrite: Iterable[str] = (),
        approved: str = "",
        source: str = "",
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """See ``EggVerbs.hatch``; a twin that is awake sleeps meanwhile and is woken again."""
        async with self._hatching:
            key = await asyncio.to_thread(self.verbs.key_of, path)
            was_awake = await self._asleep(key)
            try:
                done = await asyncio.to_thread(
                    self.verbs.hatch,
                    path,
                    overwrite=overwrite,
                    approved=approved,
                    source=source,
                    progress=progress,
                )
            finally:
                if was_awake:
                    await self._tenants.boot(key)
        await self._refresh_host()
        return done

    async def rollback(self, receipt: str, *, even_if_changed: bool = False) -> dict[str, Any]:
        """See ``EggVerbs.rollback``; the twin sleeps afterwards."""
        async with self._hatching:
            key = (await asyncio.to_thread(self.verbs.importer.receipts.find, receipt)).key
            await self._asleep(key)
            done = await asyncio.to_thread(self.verbs.rollback, receipt, even_if_changed=even_if_changed)
        await self._refresh_host()
        return done

    async def perform(self, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """A verb by its name, for agents: ``eggs.<verb>`` of ``utils.host``."""
        text = {key: value for key, value in given.items() if isinstance(value, str)}
        overwrite = [one for one in given.get("overwrite") or () if isinstance(one, str)]
        match verb:
            case "pack":
                return await self.pack(
                    Order(
                        twin=text.get("twin", ""),
                        form=text.get("form", ""),
                        item=text.get("item", ""),
                        into=text.get("into", ""),
                        exclude_memory=given.get("exclude_memory") is True,
                    )
                )
            case "receipts":
                return await asyncio.to_thread(self.verbs.receipts)
            case "rollback":
                return await self.rollback(text.get("receipt", ""))
        if text.get("url"):
            expected = text.get("expect_sha256", "")
            path = await fetch_egg(text["url"], self._folder, expect_sha256=expected)
            text["source"] = text["url"]
        else:
            path = Path(text.get("path", ""))
        if not path.is_absolute():
            raise Mistyped("Which egg? Its whole path is needed.", do="Give a path like /home/ada/rose.egg.")
        match verb:
            case "inspect":
                return await asyncio.to_thread(self.verbs.inspect, path)
            case "plan":
                return await self.plan(path, overwrite)
            case "hatch":
                return await self.hatch(
                    path,
                    overwrite=overwrite,
                    approved=text.get("approved", ""),
                    source=text.get("source", ""),
                )
        raise NotFound(f'There is no operation "eggs.{verb[:40]}".')

    async def _asleep(self, key: str) -> bool:
        if not key:
            return False
        was_awake = self._tenants.presence(key).awake
        await self._tenants.stop(key)
        return was_awake
