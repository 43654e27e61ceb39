"""Signed anchors of an event log: one root hash over all threads, chained and signed by the identity key."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Literal

import msgspec

from envelopes.codecs.canonical import canonical
from envelopes.codecs.emergence import GENESIS
from envelopes.errors import EnvelopeError
from envelopes.identity.keys import IdentityKey, fingerprint_of
from envelopes.identity.keys import verify as _holds

DOMAIN = b"rappd/anchor\n"
VERSION = 1
LARGEST = 2_048
"""Bytes of an anchor as JSON, at most."""
ENTRY_BYTES = 88
BUCKET = 64
"""Entries that are hashed together."""

Note = Literal["", "first", "restored", "accepted"]
"""Reasons for an anchor that need not continue the one before it."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII).fullmatch
_LENGTH = struct.Struct(">Q").pack

ABSENT = bytes(ENTRY_BYTES)
"""The entry of a thread that has none."""


class BadAnchorError(EnvelopeError):
    """An anchor that has another form, or is not signed by the key it is checked against."""

    code = "bad_anchor"


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed statement: after ``events`` events in ``threads`` threads the log had the hash ``root``.

    ``counter`` grows by one; ``previous`` is the hash of the anchor before it ("" for the first). ``closed``:
    signed at a clean stop, so that no event follows until another anchor says that the log is open. ``at`` is
    microseconds since the epoch.
    """

    version: int
    node: str
    counter: int
    at: int
    threads: int
    events: int
    root: str
    previous: str
    closed: bool
    note: Note
    sig: str

    @property
    def hash(self) -> str:
        """SHA-256 of what is signed, in hex."""
        return sha256(_signed(self)).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """As it is stored and sent."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class EventRoot:
    """A root hash over the entries of threads 1 to N. Only buckets that changed are hashed again.

    ``load(index)`` returns the bytes of a bucket that is not in memory. The result does not depend on the order
    in which entries were put.
    """

    def __init__(self, hashes: list[bytes] | None = None, load: Callable[[int], bytes] | None = None) -> None:
        self._hashes = hashes or []
        self._load = load or (lambda index: b"")
        self._buckets: dict[int, bytearray] = {}
        self._changed: set[int] = set()
        self.threads = 0

    def entry(self, number: int) -> bytes:
        """The entry of a thread; zeros for one that has none."""
        bucket, offset = self._place(number)
        return bytes(bucket[offset : offset + ENTRY_BYTES])

    def put(self, number: int, octets: bytes) -> None:
        """Sets the entry of a thread."""
        bucket, offset = self._place(number)
        bucket[offset : offset + ENTRY_BYTES] = octets
        self._changed.add((number - 1) // BUCKET)
        if number > self.threads:
            self.threads = number

    def root(self) -> bytes:
        """The hash of all entries."""
        for index in self._changed:
            while len(self._hashes) <= index:
                self._hashes.append(bucket_hash(b""))
            self._hashes[index] = bucket_hash(bytes(self._buckets[index]))
        self._changed.clear()
        return root_of(self.threads, self._hashes)

    def changed(self) -> Iterator[tuple[int, bytes]]:
        """Buckets that changed since ``root`` was last called."""
        return ((index, bytes(self._buckets[index])) for index in sorted(self._changed))

    def forget(self) -> None:
        """Drops the buckets from memory; their hashes stay."""
        self._buckets.clear()

    def _place(self, number: int) -> tuple[bytearray, int]:
        index, within = divmod(number - 1, BUCKET)
        bucket = self._buckets.get(index)
        if bucket is None:
            bucket = self._buckets[index] = bytearray(_filled(self._load(index)))
        return bucket, within * ENTRY_BYTES


def bucket_hash(octets: bytes) -> bytes:
    """The hash of one bucket; what is shorter is filled with zeros."""
    return sha256(b"\x00" + _filled(octets)).digest()


def root_of(threads: int, hashes: list[bytes]) -> bytes:
    """The root over the hashes of all buckets."""
    return sha256(b"\x01" + threads.to_bytes(8, "big") + b"".join(hashes)).digest()


def entry(thread: str, count: int, head: bytes, names: bytes) -> bytes:
    """A thread as the root covers it: its id, number of events, the last one's hash, and ``names_hash``."""
    return thread_key(thread) + count.to_bytes(8, "big") + head + names if count else ABSENT


def parts(octets: bytes) -> tuple[bytes, int, bytes, bytes]:
    """The key of the thread, its number of events, head and names of an entry."""
    return octets[:16], int.from_bytes(octets[16:24], "big"), octets[24:56], octets[56:]


def thread_key(thread: str) -> bytes:
    """16 bytes that stand for a thread's id: the UUID itself; of any other text, a hash."""
    if _UUID(thread):
        return bytes.fromhex(thread.replace("-", ""))
    return sha256(thread.encode("utf-8", "surrogatepass")).digest()[:16]


def names_hash(workspace: str, caller: str, title: str) -> bytes:
    """A hash over what is said of a thread beside its events."""
    first = workspace.encode("utf-8", "surrogatepass")
    second = caller.encode("utf-8", "surrogatepass")
    third = title.encode("utf-8", "surrogatepass")
    return sha256(
        _LENGTH(len(first)) + first + _LENGTH(len(second)) + second + _LENGTH(len(third)) + third
    ).digest()


def sign_anchor(
    key: IdentityKey,
    *,
    previous: Anchor | None,
    counter: int,
    at: int,
    threads: int,
    events: int,
    root: bytes,
    closed: bool = False,
    note: Note = "",
) -> Anchor:
    """The next anchor after ``previous``."""
    before = previous.hash if previous is not None else ""
    anchor = Anchor(
        VERSION, key.fingerprint, counter, at, threads, events, root.hex(), before, closed, note, ""
    )
    return msgspec.structs.replace(anchor, sig=key.sign(_signed(anchor)).hex())


def read_anchor(value: Any, public: bytes) -> Anchor:
    """The anchor in a JSON object, signed by the key ``public``. Raises ``BadAnchorError``."""
    try:
        anchor = msgspec.convert(value, Anchor)
        signature, root = bytes.fromhex(anchor.sig), bytes.fromhex(anchor.root)
        previous = bytes.fromhex(anchor.previous)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadAnchorError("That is no anchor.") from error
    numbers = (anchor.counter, anchor.at, anchor.threads, anchor.events)
    if (
        anchor.version != VERSION
        or len(root) != len(GENESIS)
        or len(previous) not in (0, len(GENESIS))
        or min(numbers) < 0
        or max(numbers) > 1 << 53
        or anchor.counter == 0
    ):
        raise BadAnchorError("That is no anchor of a version known here.", do="Update rappd.")
    if anchor.node != fingerprint_of(public) or not _holds(public, signature, _signed(anchor)):
        raise BadAnchorError("The anchor is not signed by the machine it names.")
    return anchor


def _signed(anchor: Anchor) -> bytes:
    document = anchor.to_json()
    del document["sig"]
    return DOMAIN + canonical(document)


def _filled(octets: bytes) -> bytes:
    return octets.ljust(BUCKET * ENTRY_BYTES, b"\x00")
