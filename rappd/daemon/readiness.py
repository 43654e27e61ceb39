"""Readiness: the reasons why a turn could not be recorded now, or a part of the daemon does not run."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from envelopes.errors import ReportableError
from rappd.errors import StoreError
from rappd.federation.service import FederationService
from rappd.store.store import Store

_PROBE_SECONDS = 5.0
_FRESH_SECONDS = 1.0


class Readiness:
    """Tries a small commit when it is asked, at most once a second while all is well."""

    def __init__(self, store: Store, federation: FederationService) -> None:
        self._store = store
        self._federation = federation
        self._probed_at = -_FRESH_SECONDS
        self._trouble: ReportableError | None = None
        self._probing = asyncio.Lock()

    async def problems(self) -> list[dict[str, Any]]:
        """``{"what", "do"}`` for each problem; empty when the daemon is ready."""
        async with self._probing:
            if self._store.trouble is not None or time.monotonic() - self._probed_at >= _FRESH_SECONDS:
                self._trouble = await self._probe()
                self._probed_at = time.monotonic()
        found = [self._trouble, self._federation.failure]
        return [{"what": str(one).rstrip("."), "do": one.do} for one in found if one is not None]

    async def _probe(self) -> ReportableError | None:
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._store.probe()
        except TimeoutError:
            return StoreError(
                f"The disk did not answer within {_PROBE_SECONDS:.0f} s.",
                do="Look at the disk; it goes on by itself.",
            )
        except ReportableError as problem:
            return problem
        return None
