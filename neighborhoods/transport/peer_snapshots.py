"""Reads a paired machine for a snapshot, over its federation listener. Errors are ``MemberError`` and name the peer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import aiohttp

from envelopes.codecs.bounded_json import bounded_object
from neighborhoods.errors import (
    BadMemberStreamError,
    KeyChangedError,
    MemberBusyError,
    MemberDiskFullError,
    MemberError,
    MemberRefusedError,
    MemberTooLargeError,
    MemberUnreachableError,
    NoSuchMemberError,
    NotPairedError,
    PeerOfflineError,
    PeerRefusedError,
    UnstableMemberError,
)
from neighborhoods.peer import Peer
from neighborhoods.transport.http_client import ResponseTooLongError, whole
from neighborhoods.transport.peer_client import PeerClient

MOST_LISTED = 64 << 20
"""Octets of one list of twins. They are passed on unread: who wants the twins parses them in a thread."""
_MOST_PROBLEM = 1 << 16
_PIECE = 1 << 18
_ERRORS: dict[str, type[MemberError]] = {
    error.code: error
    for error in (
        BadMemberStreamError,
        MemberBusyError,
        MemberDiskFullError,
        MemberTooLargeError,
        NoSuchMemberError,
        UnstableMemberError,
    )
}


async def answer(client: PeerClient, peer: Peer, path: str) -> bytes:
    """The octets at ``/snapshot`` plus ``path`` of a peer, as they came."""
    async with _opened(client, peer, path) as response:
        return await whole(response, MOST_LISTED)


async def stream(client: PeerClient, peer: Peer, path: str) -> AsyncIterator[bytes]:
    """The tar stream at ``/snapshot`` plus ``path`` of a peer."""
    async with _opened(client, peer, path) as response:
        if response.content_length is None:  # then nothing says where it breaks off
            raise BadMemberStreamError(f"{peer.name} sends no size.", do="Look what runs there.")
        async for piece in response.content.iter_chunked(_PIECE):
            yield piece


@asynccontextmanager
async def _opened(client: PeerClient, peer: Peer, path: str) -> AsyncIterator[aiohttp.ClientResponse]:
    with _as_member_errors(peer):
        async with await client.open_response(peer, f"/snapshot{path}") as response:
            if response.status != 200:
                raise _problem(peer, response.status, await whole(response, _MOST_PROBLEM))
            yield response


@contextmanager
def _as_member_errors(peer: Peer) -> Iterator[None]:
    try:
        yield
    except PeerOfflineError as error:
        raise MemberUnreachableError(str(error), do=error.do) from error
    except (KeyChangedError, NotPairedError, PeerRefusedError) as error:
        raise MemberRefusedError(str(error), do=error.do) from error
    except ResponseTooLongError as error:
        raise MemberTooLargeError(f"{peer.name} answers without end.", do="Look what runs there.") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise MemberUnreachableError(f"The connection to {peer.name} broke.", do="Rerun.") from error


def _problem(peer: Peer, status: int, raw: bytes) -> MemberError:
    """The peer's own words, in the error that they stand for here."""
    fields = bounded_object(raw, most_bytes=_MOST_PROBLEM)
    text, do = str(fields.get("error", ""))[:300], str(fields.get("do", ""))[:300]
    if (known := _ERRORS.get(str(fields.get("code", "")))) is not None:
        return known(text or f"{peer.name} answered {status}.", do=do)
    if status in (404, 405):
        return MemberError(
            f"{peer.name} offers no snapshots.",
            do="It may be another program than rappd, or an older rappd.",
        )
    if status in (401, 403):
        return MemberRefusedError(
            f"{peer.name} does not let this machine take snapshots.",
            do=f"On {peer.name}: rappd peers scopes NAME --add SNAPSHOT, with its name for this machine",
        )
    return MemberError(f"{peer.name}: {text or status}", do=do or "Look there: rappd logs")
