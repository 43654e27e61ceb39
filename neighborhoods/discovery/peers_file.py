"""``$RAPP_HOME/peers.json`` in its published form, and ``BRAINSTEM_PEERS``: addresses that somebody wrote down.

``{"peers": ["http://host:7071", {"name", "url", …}, …]}``. The form of a URL says what is there (``kind_of``). What this
module does not know is kept as it is, in its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import orjson

from agents.storage.atomic_write import write_atomically
from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, TextFile, decode
from envelopes.codecs.bounded_json import bounded_json
from neighborhoods.discovery.address_text import (
    FEDERATION_PORT,
    LOOPBACK_PORT,
    AddressKind,
    BadAddressError,
    is_loopback,
    is_unspecified,
    join,
    kind_of,
    split,
)
from neighborhoods.discovery.announcement import tame
from neighborhoods.discovery.discovered_nodes import AddressSource
from neighborhoods.discovery.interfaces import zone_trouble
from neighborhoods.errors import BadPeersFileError

MOST_OCTETS = 4 << 20
MOST_ENTRIES = 2000
"""Each is compared with every other, to make one machine of several entries."""
_OTHER_WAYS = ("ssh_host", "folder", "github_neighborhood")


class Entry(msgspec.Struct, frozen=True):
    """One written-down machine. ``fingerprint`` is "" until somebody wrote down whose address it is."""

    url: str
    host: str
    port: int
    kind: AddressKind
    source: AddressSource
    name: str = ""
    fingerprint: str = ""

    @property
    def legacy(self) -> bool:
        """True for what proves nothing and has no pairing: all but listeners for machines."""
        return self.kind != "machine"

    @property
    def address(self) -> str:
        """``host:port``."""
        return join(self.host, self.port)

    @property
    def key(self) -> tuple[str, str]:
        """The kind, and the place: several agents live at one host and port."""
        return self.kind, self.address if self.kind in ("machine", "brainstem") else self.url


class PeersFile:
    """The file and the variable ``BRAINSTEM_PEERS`` as one list. A change made by hand is seen in a second.

    Of this machine's own addresses, only published brainstems on ports other than ``own_port``, the daemon's, are
    peers; ``allow_loopback`` lets in all.
    """

    def __init__(
        self,
        path: Path,
        *,
        environment: str = "",
        allow_loopback: bool = False,
        own_port: int = LOOPBACK_PORT,
    ) -> None:
        self._path, self._environment, self._allow_loopback = path, environment, allow_loopback
        self._own_port = own_port
        self._lock = asyncio.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._looked = float("-inf")
        self._entries: tuple[Entry, ...] = ()
        self.trouble = ""

    def own_port_is(self, port: int) -> None:
        """Tells the daemon's port, where it is another than was given first. Before anything is read."""
        self._own_port = port

    async def entries(self) -> tuple[Entry, ...]:
        """The entries, file first. Bad ones are left out and named in ``trouble``."""
        if time.monotonic() - self._looked >= 1:
            async with self._lock:
                await asyncio.to_thread(self._look)
        return self._entries

    @property
    def read(self) -> tuple[Entry, ...]:
        """Returns the entries that ``entries`` gave last."""
        return self._entries

    async def check(self) -> None:
        """Raises ``BadPeersFileError`` that names the first bad entry by its place, counted from 0."""
        await asyncio.to_thread(self._check)

    async def add(self, url: str, *, name: str = "", fingerprint: str = "", typed: bool = True) -> Entry:
        """Writes an address down, once; ``typed`` says that this machine's owner typed it.

        ``url`` without a scheme is a federation listener's. An address that is there gets the name and the
        fingerprint. Raises ``BadPeersFileError`` for what is no address, or when the file cannot be added to.
        """
        entry = await self.checked(url, name=name, fingerprint=fingerprint, typed=typed)
        async with self._lock:
            await asyncio.to_thread(self._put, entry)
        return entry

    async def checked(self, url: str, *, name: str = "", fingerprint: str = "", typed: bool = True) -> Entry:
        """The entry that ``add`` would write. Raises ``BadPeersFileError`` for what is no address of another machine."""
        try:
            entry = _entry({"url": url, "name": name, "fingerprint": fingerprint, "typed": typed})
        except ValueError as error:
            raise BadPeersFileError(
                f"“{tame(url)}” {error}.", do="Write it as HOST, HOST:PORT, or the URL of an agent card."
            ) from None
        if trouble := await asyncio.to_thread(zone_trouble, entry.host):
            raise BadPeersFileError(trouble[0], do=trouble[1])
        if self._is_self(entry):
            raise BadPeersFileError(
                f"{entry.address if entry.legacy else entry.host} is this machine itself.",
                do="Name another machine, or a published brainstem here as http://127.0.0.1:PORT.",
            )
        return entry

    async def remove(self, address: str) -> bool:
        """Takes an address (a URL or ``host:port``) out of the file; False when it was not there."""
        async with self._lock:
            return await asyncio.to_thread(self._take, address)

    def _look(self) -> None:
        self._looked = time.monotonic()
        stamp = self._stamped()
        if stamp == self._stamp:
            return
        found, self.trouble = _environment(self._environment)
        try:
            listed = _listed(self._read())
        except BadPeersFileError as error:
            listed, self.trouble = [], str(error)
        good: list[Entry] = []
        for place, raw in enumerate(listed):
            if _is_reached_otherwise(raw):
                continue
            try:
                good.append(_entry(raw))
            except ValueError as error:
                self.trouble = self.trouble or f"peers.json: entry {place} {error}."
        every: dict[tuple[str, str], Entry] = {}
        for entry in (*good, *found):
            if not self._is_self(entry):
                every.setdefault(entry.key, entry)
        self._entries = tuple(every.values())
        self._stamp = stamp

    def _is_self(self, entry: Entry) -> bool:
        """Tests whether an entry leads back to this daemon, or to no machine."""
        if self._allow_loopback or not is_loopback(entry.host):
            return False
        return not entry.legacy or entry.port == self._own_port or is_unspecified(entry.host)

    def _check(self) -> None:
        for place, raw in enumerate(_listed(self._read())):
            if _is_reached_otherwise(raw):
                continue
            try:
                _entry(raw)
            except ValueError as error:
                raise BadPeersFileError(f"peers.json: entry {place} {error}.", do=_DO) from None
        _, trouble = _environment(self._environment)
        if trouble:
            raise BadPeersFileError(trouble, do="Set it to URLs, with commas between them.")

    def _put(self, entry: Entry) -> None:
        document = self._read()
        peers = _listed(document)
        added: dict[str, Any] = {"name": entry.name} if entry.name else {}
        added["url"] = _zone_escaped(entry.url)
        if entry.fingerprint:
            added["fingerprint"] = entry.fingerprint
        if entry.source == "typed":
            added["typed"] = True
        for place, raw in enumerate(peers):
            with contextlib.suppress(ValueError):
                there = _entry(raw)
                if there.key == entry.key:
                    peers[place] = {**raw, **added} if isinstance(raw, dict) else {**added, "url": raw}
                    break
        else:
            peers.append(added)
        self._write({**document, "peers": peers})

    def _take(self, address: str) -> bool:
        wanted = _entry(address)
        document = self._read()
        peers = _listed(document)
        kept = [raw for raw in peers if not _is(raw, wanted, any_kind="://" not in address)]
        if len(kept) == len(peers):
            return False
        self._write({**document, "peers": kept})
        return True

    def _read(self) -> dict[str, Any]:
        return _document(self._path)

    def _write(self, document: dict[str, Any]) -> None:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"
        before = _text(self._path)
        target = Path(os.path.realpath(self._path))  # a link stays, and what it leads to is written
        write_atomically(target, before.rewritten(text) if before else text.encode())
        self._stamp, self._looked = None, float("-inf")

    def _stamped(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_mtime_ns, found.st_size, found.st_ino


def listed_entries(path: Path) -> list[Any]:
    """The entries of the file as they are written. Raises ``BadPeersFileError`` for a file that is none."""
    return _listed(_document(path))


def placed(url: str) -> tuple[str, int, AddressKind]:
    """The host and port of an entry's URL, and what is there. Raises ``ValueError``."""
    return _place(url if "://" in url else f"https://{url}")


def _document(path: Path) -> dict[str, Any]:
    file = _text(path)
    if file is None or not file.text.strip():
        return {"peers": []}
    try:
        found = bounded_json(file.text.encode(), most_bytes=MOST_OCTETS)
    except ValueError as error:
        raise BadPeersFileError(f"peers.json is not JSON: {error}.", do=_DO_ALL) from None
    if not isinstance(found, dict):
        raise BadPeersFileError("peers.json is not an object with “peers”.", do=_DO_ALL)
    return found


def _text(path: Path) -> TextFile | None:
    """The file as its owner saved it; None where there is none. Raises ``BadPeersFileError`` for what is no text."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_OCTETS + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadPeersFileError(f"peers.json cannot be read: {error.strerror}.", do=_DO_ALL) from None
    if len(content) > MOST_OCTETS:
        raise BadPeersFileError("peers.json is larger than 4 MB.", do=_DO_ALL)
    try:
        return decode(content)
    except NotUtf8Error as error:
        raise BadPeersFileError(f"peers.json {error}.", do=f"{SAVE_AS_UTF8} {_UNTIL_THEN}") from None


def _is_reached_otherwise(raw: object) -> bool:
    """True for an entry without an address that a snapshot reads by SSH, as a folder or from GitHub."""
    return isinstance(raw, dict) and "url" not in raw and any(raw.get(key) for key in _OTHER_WAYS)


def _listed(document: dict[str, Any]) -> list[Any]:
    peers = document.get("peers", [])
    if not isinstance(peers, list):
        raise BadPeersFileError("peers.json: “peers” is not a list.", do=_DO_ALL)
    if len(peers) > MOST_ENTRIES:
        raise BadPeersFileError(f"peers.json has more than {MOST_ENTRIES} entries.", do=_DO_ALL)
    return list(peers)


def _entry(raw: object) -> Entry:
    """Raises ``ValueError`` with what is wrong, to follow the entry's place in a sentence."""
    fields = raw if isinstance(raw, dict) else {"url": raw}
    url = fields.get("url")
    if not isinstance(url, str) or not url.strip():
        raise ValueError("has no URL")
    text = url.strip()
    name, fingerprint = fields.get("name", ""), fields.get("fingerprint", "")
    if not isinstance(name, str) or not isinstance(fingerprint, str):
        raise ValueError("has a name or a fingerprint that is no text")
    host, port, kind = _place(text if "://" in text else f"https://{text}")
    full = _zone_plain(text) if "://" in text else f"https://{join(host, port)}"
    source: AddressSource = "typed" if fields.get("typed") is True else "list"
    return Entry(full, host, port, kind, source, tame(name), fingerprint)


def _place(url: str) -> tuple[str, int, AddressKind]:
    plain = _zone_plain(url)
    kind = kind_of(plain)
    parts = urlsplit(plain)
    if "@" in parts.netloc:
        raise ValueError("holds a name or a password, which does not belong in an address")
    usual = 80 if parts.scheme == "http" else FEDERATION_PORT if kind == "machine" else 443
    try:
        host, port = split(parts.netloc, usual)
    except BadAddressError:
        raise ValueError("names no machine") from None
    return host, port, kind


def _zone_plain(url: str) -> str:
    """A URL whose zone stands as ``%eth0``, as sockets take it; in URLs it is written ``%25eth0`` (RFC 6874)."""
    return re.sub(r"^(\w+://\[[^\[\]%]+%)25(?=[^\[\]%]+\])", r"\1", url)


def _zone_escaped(url: str) -> str:
    return re.sub(r"^(\w+://\[[^\[\]%]+%)(?=[^\[\]%]+\])", r"\g<1>25", url)


def _environment(text: str) -> tuple[list[Entry], str]:
    found: list[Entry] = []
    trouble = ""
    for place, url in enumerate(one for one in text.split(",") if one.strip()):
        try:
            found.append(_entry(url))
        except ValueError as error:
            trouble = trouble or f"BRAINSTEM_PEERS: entry {place} {error}."
    return found, trouble


def _is(raw: object, wanted: Entry, *, any_kind: bool) -> bool:
    try:
        entry = _entry(raw)
    except ValueError:
        return False
    return entry.address == wanted.address if any_kind else entry.key == wanted.key


_DO = "Correct the file; the other entries work meanwhile."
_UNTIL_THEN = "Until then none of its entries counts."
_DO_ALL = "Correct the file; until then none of its entries counts."
