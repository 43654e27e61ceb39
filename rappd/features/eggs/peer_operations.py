"""Operations of paired machines: they send eggs, which are staged until this machine's owner hatches them."""

from __future__ import annotations

from envelopes.envelope import is_uuid
from neighborhoods.peer import Peer
from rappd.dispatch.rights import PEER
from rappd.errors import NotFoundError
from rappd.features.eggs.received import ReceivedEggs
from rappd.features.operation import Upload, operation
from rappd.store.egg_table import EggKept

SEND = PEER("EGG")


class EggsFromPeers:
    """``id`` is a UUID of the sender's, which stays the same when an egg is sent again."""

    def __init__(self, inbox: ReceivedEggs) -> None:
        self._inbox = inbox

    @operation("peer_eggs.send", "POST", "/eggs", right=SEND)
    async def send(self, peer: Peer, egg: Upload, name: str = "", id: str = "") -> EggKept:
        """The body is the file; `X-Rappd-Name` (percent-encoded) and `X-Rappd-Id` are name and id."""
        return await self._inbox.take_in(peer, name[:200], egg.pieces, id.lower() if is_uuid(id) else "")

    @operation("peer_eggs.show", "GET", "/eggs/{id}", right=SEND)
    async def show(self, peer: Peer, id: str) -> EggKept:
        """The state of an egg that was sent under that id; 404 when it may be sent."""
        if not is_uuid(id):
            raise NotFoundError("No such egg of yours arrived.", do="Send it.")
        return await self._inbox.received(peer, id.lower())
