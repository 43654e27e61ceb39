"""The owner's operations on eggs that are answered at once; packing and hatching tell how far they are, and so have routes of their own."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, TypedDict

from rappd.features.operation import OWNER, MissingArgumentError, Text, operation
from rappd.operations.daemon_eggs import DaemonEggOperations, whole_path
from rappd.operations.egg_transfer import EggTransferOperations
from rappd.operations.packed_eggs import packed_eggs
from twins.workspace.workspace import TwinLayout

_ID = re.compile(r"[0-9a-f]{64}")


class WhichEgg(TypedDict, total=False):
    """An egg that waits here by its ``id``, or one by its whole ``path`` on this machine."""

    id: str
    path: str


class OwnersEggs:
    """``id`` and ``path`` say which egg, see ``WhichEgg``."""

    def __init__(
        self, eggs: DaemonEggOperations, transfer: EggTransferOperations, layout: TwinLayout
    ) -> None:
        self._eggs, self._transfer, self._layout = eggs, transfer, layout

    @operation("eggs.plan", "POST", "/eggs/plan", right=OWNER)
    async def plan(self, id: str = "", path: str = "", overwrite: list[str] | None = None) -> dict[str, Any]:
        """The plan for hatching an egg (`id`, or `path` on this machine), with the given `overwrite`.

        A file given by its path is copied first; the answer's `id` is the copy that was planned.
        """
        return await self._eggs.plan(self.which(id, path), overwrite or [])

    @operation("eggs.laid", "GET", "/eggs/laid", right=OWNER)
    async def laid(self) -> dict[str, Any]:
        """Eggs that were packed here and lie on this machine, the latest first; `file` is a name after what is inside."""
        return {"eggs": await asyncio.to_thread(packed_eggs, self._layout)}

    @operation("eggs.diff", "POST", "/eggs/diff", right=OWNER)
    async def diff(self, before: WhichEgg, after: WhichEgg) -> dict[str, Any]:
        """The differences between two eggs: `before` and `after`, each `{id}` or `{path}`."""
        return await asyncio.to_thread(self._eggs.verbs.diff, self.which(**before), self.which(**after))

    @operation("eggs.hatchings", "GET", "/eggs/hatchings", right=OWNER)
    async def hatchings(self) -> dict[str, Any]:
        """Every hatching that has a receipt, the latest first."""
        return await asyncio.to_thread(self._eggs.verbs.receipts)

    @operation("eggs.rollback", "POST", "/eggs/rollback", right=OWNER)
    async def rollback(self, receipt: Text, even_if_changed: bool = False) -> dict[str, Any]:
        """Undoes a hatching by its `receipt`; `even_if_changed` puts aside what changed since."""
        return await self._eggs.rollback(receipt, even_if_changed=even_if_changed)

    @operation("eggs.signers", "GET", "/eggs/signers", right=OWNER)
    async def signers(self) -> dict[str, Any]:
        """The senders whose eggs run their code without asking, and this machine's own key."""
        return await asyncio.to_thread(self._eggs.verbs.list_signers)

    @operation("eggs.trust", "POST", "/eggs/signers", right=OWNER)
    async def trust(self, fingerprint: Text, name: Text) -> dict[str, Any]:
        """Trusts the key with `fingerprint`, called `name`."""
        return await asyncio.to_thread(self._eggs.verbs.trust_signer, fingerprint, name)

    @operation("eggs.revoke", "DELETE", "/eggs/signers/{fingerprint}", right=OWNER)
    async def revoke(self, fingerprint: str) -> dict[str, Any]:
        """Ends the trust in a key."""
        return await asyncio.to_thread(self._eggs.verbs.revoke_signer, fingerprint)

    @operation("eggs.send", "POST", "/eggs/send", right=OWNER)
    async def send(self, peer: Text, id: str = "", path: str = "") -> dict[str, Any]:
        """Sends an egg (`id` or `path`) to a `peer`, sealed for it; there it waits for its owner.

        Is the peer away, it waits in the outbox (`state` `queued`).
        """
        return await self._transfer.send(self.which(id, path), peer)

    @operation("eggs.arrived", "GET", "/eggs/arrived", right=OWNER)
    async def arrived(self) -> dict[str, Any]:
        """Eggs that other machines sent, and nobody hatched yet."""
        return await self._transfer.arrived()

    @operation("eggs.throw_away", "DELETE", "/eggs/arrived/{id}", right=OWNER)
    async def throw_away(self, id: str) -> dict[str, Any]:
        """Throws away an egg that another machine sent."""
        return await self._transfer.discard(id)

    @operation("eggs.discard", "DELETE", "/eggs/{id}", right=OWNER)
    async def discard(self, id: str) -> dict[str, Any]:
        """Throws away an egg that waits here unhatched, unless another tab looks at it."""
        path = await asyncio.to_thread(self._eggs.waiting.find, id)
        await asyncio.to_thread(self._eggs.waiting.let_go, path)
        return {"status": "ok"}

    def which(self, id: str = "", path: str = "") -> Path:
        """The egg that is meant. Raises ``MissingArgumentError``, ``NotFoundError``."""
        return which_egg(self._eggs, id, path)


def which_egg(eggs: DaemonEggOperations, id: object, path: object) -> Path:
    """The file of an egg that waits under ``id``, or lies at ``path``. Raises ``MissingArgumentError``, ``NotFoundError``."""
    if isinstance(id, str) and _ID.fullmatch(id):
        return eggs.waiting.find(id)
    if isinstance(path, str) and path:
        return whole_path(path)
    raise MissingArgumentError(
        "Which egg? Its id or whole path is needed.", do='Send {"id": "…"} or {"path": "/…"}.'
    )
