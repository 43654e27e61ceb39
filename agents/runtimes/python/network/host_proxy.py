"""The way out of a worker that has a network of its own: an HTTP proxy in the daemon, for the hosts of its needs alone.

The worker makes the listening socket within its network namespace, which nothing but its own processes reaches, and
hands it to the daemon, which accepts. Names are resolved here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from agents.runtimes.python.network.host_rules import HostRules
from envelopes.ip_addresses import is_this_machine

_HEAD_BYTES = 32 * 1024
_HEAD_SECONDS = 20.0
_CONNECT_SECONDS = 15.0
_CHUNK = 64 * 1024
_WEB = 80
_MOST_CONNECTIONS = 64
_CONNECT = re.compile(r"CONNECT (\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(\d{1,5}) HTTP/1\.[01]")
_PLAIN = re.compile(r"([A-Z]+) (http://\S+) HTTP/1\.[01]")
_DROPPED = re.compile(rb"(?im)^(?:proxy-[a-z-]+|connection|keep-alive):[^\r\n]*\r\n")

OnHost = Callable[[str, bool], None]
"""Told ``name:port``, and whether it was given, for each connection that a worker asks for."""


class _Wanted(NamedTuple):
    """A connection that is asked for; ``head`` is what the server gets first."""

    host: str
    port: int
    head: bytes

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Upstream(NamedTuple):
    """The owner's own proxy, through which this machine reaches the internet. ``skips``: hosts that are reached without."""

    host: str
    port: int
    credentials: str
    skips: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Upstream | None:
        """The one that the environment names, as curl and Python read it; None for none, and for one without HTTP."""
        either = {name.lower(): text for name, text in environment.items() if text}
        address = urlsplit(either.get("https_proxy") or either.get("all_proxy") or "")
        if address.scheme != "http" or not address.hostname:
            return None
        destination = (
            f"{unquote(address.username or '')}:{unquote(address.password or '')}" if address.username else ""
        )
        return cls(address.hostname, address.port or _WEB, destination, either.get("no_proxy", ""))

    def connects(self, host: str) -> bool:
        """True where ``host`` is reached through it."""
        names = [one.strip().lstrip("*.").lower() or "*" for one in self.skips.split(",") if one.strip()]
        return not any(one in ("*", host) or host.endswith(f".{one}") for one in names)


class _RefusedError(Exception):
    """A refusal of a request: its status and its reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HostProxy:
    """Serves one worker. ``servers``: its needs' hosts; ``on_host`` is told what is asked for; ``is_own``: ports of rappd."""

    def __init__(
        self,
        servers: Sequence[str],
        on_host: OnHost,
        is_own: Callable[[int], bool],
        upstream: Upstream | None = None,
    ) -> None:
        self._rules = HostRules(servers)
        self._upstream = upstream
        self._on_host = on_host
        self._is_own = is_own
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._closed = False

    async def serve(self, listening: socket.socket) -> None:
        """Accept at a socket that listens."""
        listening.setblocking(False)
        server = await asyncio.start_server(self._accept, sock=listening, limit=_HEAD_BYTES)
        self._server = server
        if self._closed:
            server.close()

    def close(self) -> None:
        """End all connections. Idempotent."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            if len(self._open) > _MOST_CONNECTIONS:
                raise _RefusedError(503, "too many connections at a time")
            await self._serve(reader, writer)
        except _RefusedError as refused:
            await _answer(writer, refused)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError, ValueError):
            pass  # the worker hung up, or sent what is no request
        except asyncio.CancelledError:
            if not self._closed:
                raise
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
        wanted = _wanted(head)
        if not self._rules.admits(wanted.host, wanted.port):
            self._on_host(wanted.name, False)
            raise _RefusedError(403, f"{wanted.name} is not among the hosts that this agent needs")
        far_reader, far_writer = await self._connected(wanted)
        try:
            if wanted.head:
                far_writer.write(wanted.head)
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as group:
                group.create_task(_copied(reader, far_writer))
                group.create_task(_copied(far_reader, writer))
        finally:
            far_writer.close()

    async def _connected(self, wanted: _Wanted) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        way = self._upstream
        if way is not None and self._rules.is_public_name(wanted.host) and way.connects(wanted.host):
            self._on_host(wanted.name, True)
            return await _through(way, wanted)
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
        except OSError as error:
            self._on_host(wanted.name, True)
            raise _RefusedError(502, f"{wanted.host} is not known: {error.strerror or error}") from error
        addresses = dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found)
        open_to = [one for one in addresses if self._rules.allows(wanted.host, one)]
        if self._is_own(wanted.port) and any(is_this_machine(one) for one in open_to):
            open_to = []  # a request of the daemon itself would count as its owner's
        if not open_to:
            self._on_host(wanted.name, False)
            raise _RefusedError(
                403,
                f"{wanted.name} leads to rappd itself or into a private network that this agent does not name",
            )
        self._on_host(wanted.name, True)
        problem: OSError | None = None
        for address in open_to:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await asyncio.open_connection(address, wanted.port, limit=_CHUNK)
            except (OSError, TimeoutError) as error:
                problem = error
        raise _RefusedError(502, f"{wanted.name} does not answer: {problem or 'no address'}")


async def _through(way: Upstream, wanted: _Wanted) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection by ``CONNECT`` through the owner's proxy, which resolves the name."""
    encoded = base64.b64encode(way.credentials.encode()).decode()
    shown = f"Proxy-Authorization: Basic {encoded}\r\n" if way.credentials else ""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(way.host, way.port, limit=_CHUNK)
            writer.write(f"CONNECT {wanted.name} HTTP/1.1\r\nHost: {wanted.name}\r\n{shown}\r\n".encode())
            status = (
                (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode("latin-1").split(maxsplit=2)
            )
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise _RefusedError(502, f"{wanted.name} is not reached by the proxy {way.host}: {error}") from error
    if len(status) < 2 or status[1] != "200":
        writer.close()
        raise _RefusedError(502, f"{wanted.name} is not let through by the proxy {way.host}")
    return reader, writer


def _wanted(head: bytes) -> _Wanted:
    """The connection that a request asks for. Raises ``_RefusedError`` for what is no request to a proxy."""
    line, _, rest = head.partition(b"\r\n")
    text = line.decode("latin-1")
    if found := _CONNECT.fullmatch(text):
        return _Wanted(_name(found[1]), int(found[2]), b"")
    if found := _PLAIN.fullmatch(text):
        address = urlsplit(found[2])
        path = f"{address.path or '/'}{'?' + address.query if address.query else ''}"
        # One request for each connection: another one might be for another host.
        kept = _DROPPED.sub(b"", rest)
        begin = f"{found[1]} {path} HTTP/1.1\r\nConnection: close\r\n".encode("latin-1")
        return _Wanted(_name(address.hostname or ""), address.port or 80, begin + kept)
    raise _RefusedError(400, "only CONNECT and http:// addresses")


def _name(text: str) -> str:
    """A host's name as name servers take it, or an address in its one spelling."""
    name = text.strip("[]").lower().rstrip(".")
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name))
    try:
        name = name.encode("idna").decode() if not name.isascii() else name
    except UnicodeError as error:
        raise _RefusedError(400, "no host") from error
    # What only looks like a name is an address to the resolver: 127.1, 0x7f000001, 2130706433.
    if not name or re.fullmatch(r"[0-9.]+|0x[0-9a-f.x]*", name.rpartition(".")[2] or name):
        raise _RefusedError(400, "no host")
    return name


async def _answer(writer: asyncio.StreamWriter, refused: _RefusedError) -> None:
    reason = "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in str(refused))
    body = f"{reason}\n".encode()
    head = (
        f"HTTP/1.1 {refused.status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    )
    with contextlib.suppress(OSError):
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        await writer.drain()


async def _copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while content := await reader.read(_CHUNK):
        writer.write(content)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
