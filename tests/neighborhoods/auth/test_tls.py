from __future__ import annotations

import asyncio
import gc
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import EXTENSION, TlsMaterial, make_certificate, pin_of
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.tls import (
    ServerTrust,
    TlsFiles,
    client_context,
    presented_certificate,
)

NOW = datetime.now(UTC)
REFUSED = (aiohttp.ClientConnectionError, ssl.SSLError, ConnectionError)


class Machine:
    """An identity with its certificate, and the files of it."""

    def __init__(self, folder: Path, name: str, now: datetime = NOW, years: int = 20) -> None:
        self.identity = IdentityKey.generate()
        self.tls = make_certificate(self.identity, now=now, years=years)
        self.der = self.tls.certificate_der
        self.files = written(folder, name, self.tls)


def written(folder: Path, name: str, tls: TlsMaterial) -> TlsFiles:
    files = TlsFiles(folder / f"{name}.crt", folder / f"{name}.key")
    files.certificate.write_bytes(tls.certificate_pem)
    files.key.write_bytes(tls.key_pem)
    return files


class Door:
    """An aiohttp server that answers who it sees, by the pin of the certificate of each request."""

    def __init__(self, machine: Machine, pins: list[bytes]) -> None:
        self.machine = machine
        self.trust = ServerTrust(machine.files, pins)
        self.requests = 0
        self.port = 0

    async def open(self) -> None:
        self.runner = web.ServerRunner(web.Server(self.answer))
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0, ssl_context=self.trust.context)
        await site.start()
        self.port = self.runner.addresses[0][1]

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.requests += 1
        assert request.transport is not None
        shown = presented_certificate(request.transport.get_extra_info("ssl_object"))
        return web.Response(text=pin_of(shown).hex() if shown else "stranger")

    async def ask(self, context: ssl.SSLContext, session: aiohttp.ClientSession | None = None) -> str:
        if session is not None:
            async with session.get(f"https://127.0.0.1:{self.port}/", ssl=context) as answer:
                return await answer.text()
        async with aiohttp.ClientSession() as once:
            return await self.ask(context, once)

    async def calls(self, machine: Machine) -> str:
        """The fingerprint that the listener sees when ``machine`` calls it as a peer does."""
        return await self.ask(client_context(self.machine.der, machine.files))


@pytest.fixture
def host(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "host")


@pytest.fixture
def peer(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "peer")


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    return Machine(tmp_path, "other")


@pytest.fixture
async def door(host: Machine, peer: Machine) -> AsyncIterator[Door]:
    """A listener that knows ``peer``."""
    made = Door(host, [peer.der])
    await made.open()
    yield made
    await made.runner.cleanup()


async def test_paired_peer_is_identified_in_every_request(door: Door, peer: Machine) -> None:
    context = client_context(door.machine.der, peer.files)
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            assert await door.ask(context, session) == pin_of(peer.der).hex()
    assert door.requests == 3


async def test_a_stranger_without_a_certificate_comes_in_as_a_stranger(door: Door) -> None:
    assert await door.ask(client_context(None)) == "stranger"
    assert await door.ask(client_context(door.machine.der)) == "stranger"


async def test_unpinned_certificate_is_refused_in_the_handshake(door: Door, other: Machine) -> None:
    with pytest.raises(REFUSED):
        await door.calls(other)
    assert door.requests == 0


async def test_listener_without_peers_admits_only_unauthenticated(host: Machine, peer: Machine) -> None:
    door = Door(host, [])
    await door.open()
    try:
        assert await door.ask(client_context(None)) == "stranger"
        with pytest.raises(REFUSED):
            await door.calls(peer)
    finally:
        await door.runner.cleanup()


async def test_tls_before_1_3_is_refused(door: Door, peer: Machine) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(peer.files.certificate, peer.files.key)
    assert await door.ask(context) == pin_of(peer.der).hex()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(REFUSED):
        await door.ask(context)


async def test_a_caller_does_not_go_below_1_3_either(host: Machine) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    old.load_cert_chain(host.files.certificate, host.files.key)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=old)
    port = server.sockets[0].getsockname()[1]
    lenient = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    lenient.check_hostname = False
    lenient.load_verify_locations(cadata=host.der)
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=lenient)
        writer.close()
        for context in (client_context(host.der), client_context(None)):
            with pytest.raises(REFUSED):
                await asyncio.open_connection("127.0.0.1", port, ssl=context)
    finally:
        server.close()


async def test_a_pin_counts_from_the_next_connection_on(door: Door, peer: Machine, other: Machine) -> None:
    door.trust.pin(other.der)
    door.trust.pin(other.der)
    assert door.trust.pinned(other.der)
    assert await door.calls(other) == pin_of(other.der).hex()
    assert await door.calls(peer) == pin_of(peer.der).hex()


async def test_what_was_unpinned_opens_no_new_connection(door: Door, peer: Machine, other: Machine) -> None:
    door.trust.pin(other.der)
    context = client_context(door.machine.der, peer.files)
    async with aiohttp.ClientSession() as session:
        assert await door.ask(context, session) == pin_of(peer.der).hex()
        door.trust.unpin(peer.der)
        # The open connection goes on and still says who it is: the dispatcher asks the book per request.
        assert await door.ask(context, session) == pin_of(peer.der).hex()
        assert not door.trust.pinned(peer.der)
        with pytest.raises(REFUSED):
            await door.calls(peer)
    assert await door.calls(other) == pin_of(other.der).hex()
    assert await door.ask(client_context(None)) == "stranger"
    door.trust.unpin(peer.der)
    door.trust.pin(peer.der)
    assert await door.calls(peer) == pin_of(peer.der).hex()


@pytest.mark.parametrize("name", [None, "host.local"], ids=["no name asked for", "a name"])
async def test_unpinning_does_not_depend_on_the_name_asked_for(
    door: Door, peer: Machine, other: Machine, name: str | None
) -> None:
    """Also with plain streams, which name a server only when told to."""

    async def knock(machine: Machine) -> bytes:
        context = client_context(door.machine.der, machine.files)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", door.port, ssl=context, server_hostname=name or ""
        )
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return (await reader.read()).rpartition(b"\r\n")[2]
        except REFUSED:
            return b"refused"
        finally:
            writer.close()

    assert (await knock(peer)).decode() == pin_of(peer.der).hex()
    door.trust.unpin(peer.der)
    assert await knock(peer) in (b"", b"refused")  # closed, with or without a word
    assert door.requests == 1
    door.trust.pin(other.der)
    assert (await knock(other)).decode() == pin_of(other.der).hex()


async def test_two_certificates_of_one_machine_are_known_side_by_side(
    door: Door, peer: Machine, tmp_path: Path
) -> None:
    newer = make_certificate(peer.identity, now=NOW)
    files = written(tmp_path, "newer", newer)
    door.trust.pin(newer.certificate_der)
    assert await door.calls(peer) == pin_of(peer.der).hex()
    renewed = client_context(door.machine.der, files)
    assert await door.ask(renewed) == pin_of(newer.certificate_der).hex()
    door.trust.unpin(peer.der)
    assert await door.ask(renewed) == pin_of(newer.certificate_der).hex()
    with pytest.raises(REFUSED):
        await door.calls(peer)


async def test_five_hundred_pins(host: Machine, tmp_path: Path) -> None:
    many = [Machine(tmp_path, str(number)) for number in range(500)]
    door = Door(host, [machine.der for machine in many[:499]])
    await door.open()
    try:
        for machine in (many[0], many[250], many[498]):
            assert await door.calls(machine) == pin_of(machine.der).hex()
        with pytest.raises(REFUSED):
            await door.calls(many[499])
        door.trust.pin(many[499].der)
        door.trust.unpin(many[250].der)
        assert await door.calls(many[499]) == pin_of(many[499].der).hex()
        with pytest.raises(REFUSED):
            await door.calls(many[250])
        assert await door.calls(many[498]) == pin_of(many[498].der).hex()
    finally:
        await door.runner.cleanup()


async def test_a_caller_tells_another_key_nothing(host: Machine, peer: Machine, other: Machine) -> None:
    """Not a byte of the request, and not who is calling."""
    heard: list[bytes] = []
    listened = asyncio.Event()
    context = ServerTrust(other.files, [peer.der]).context

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()
        listened.set()

    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await session.post(
                    f"https://127.0.0.1:{port}/", data=b"secret", ssl=client_context(host.der, peer.files)
                )
        assert heard == []
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context(other.der, peer.files)
        )
        writer.write(b"for you")
        writer.close()
        await asyncio.wait_for(listened.wait(), 100)
        assert heard == [b"for you"]
    finally:
        server.close()


async def test_a_stranger_sees_afterwards_whom_it_reached(door: Door, other: Machine) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", door.port, ssl=client_context(None))
    shown = presented_certificate(writer.get_extra_info("ssl_object"))
    assert shown == door.machine.der != other.der
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    writer.close()


async def test_a_certificate_that_looks_like_a_pinned_one_is_not_it(
    door: Door, peer: Machine, tmp_path: Path
) -> None:
    """Same name, same key identifiers, same identity extension: another key."""
    for number, signer in enumerate(("itself", "a pinned key of somebody else")):
        key = ec.generate_private_key(ec.SECP256R1())
        signing = key if signer == "itself" else serialization.load_pem_private_key(peer.tls.key_pem, None)
        assert isinstance(signing, ec.EllipticCurvePrivateKey)
        real = x509.load_der_x509_certificate(peer.der)
        builder = (
            x509.CertificateBuilder()
            .subject_name(real.subject if signer == "itself" else named("somebody"))
            .issuer_name(real.subject)
            .public_key(key.public_key())
            .serial_number(real.serial_number + number)
            .not_valid_before(NOW - timedelta(days=1))
            .not_valid_after(NOW + timedelta(days=1))
        )
        for extension in real.extensions:
            builder = builder.add_extension(extension.value, extension.critical)
        assert EXTENSION in {extension.oid.dotted_string for extension in real.extensions}
        fake = builder.sign(signing, hashes.SHA256())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        der = fake.public_bytes(serialization.Encoding.DER)
        files = written(
            tmp_path, f"fake{number}", TlsMaterial(pem, fake.public_bytes(serialization.Encoding.PEM), der)
        )
        with pytest.raises(REFUSED):
            await door.ask(client_context(door.machine.der, files))
        with pytest.raises(BadCertificateError):
            door.trust.pin(der)
    assert door.requests == 0


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


async def test_nothing_is_resumed(door: Door, peer: Machine) -> None:
    """A resumed session would come in without showing a certificate, also after the trust ended."""

    def knock(session: ssl.SSLSession | None) -> tuple[bool | None, ssl.SSLSession | None]:
        with (
            socket.create_connection(("127.0.0.1", door.port), 10) as plain,
            context.wrap_socket(plain, session=session) as secure,
        ):
            secure.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            while secure.recv(4096):
                pass
            return secure.session_reused, secure.session

    context = client_context(door.machine.der, peer.files)
    _, session = await asyncio.to_thread(knock, None)
    assert session is None or not session.has_ticket
    reused, _ = await asyncio.to_thread(knock, session)
    assert reused is False


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program")
async def test_nobody_is_told_who_is_paired_here(door: Door) -> None:
    def look() -> str:
        return subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{door.port}"],
            input="",
            capture_output=True,
            text=True,
            timeout=100,
        ).stdout

    said = await asyncio.to_thread(look)
    assert "No client certificate CA names sent" in said
    assert "TLSv1.3" in said


@pytest.mark.parametrize(
    "when", [NOW - timedelta(days=9000), NOW + timedelta(days=9000)], ids=["past", "ahead"]
)
async def test_a_clock_that_is_wrong_parts_nobody(tmp_path: Path, host: Machine, when: datetime) -> None:
    peer = Machine(tmp_path, "peer", now=when, years=1)
    door = Door(peer, [host.der])
    there = Door(host, [peer.der])
    await door.open()
    await there.open()
    try:
        assert await door.calls(host) == pin_of(host.der).hex()
        assert await there.calls(peer) == pin_of(peer.der).hex()
    finally:
        await door.runner.cleanup()
        await there.runner.cleanup()


def test_what_no_machine_vouches_for_is_not_pinned(host: Machine, peer: Machine) -> None:
    trust = ServerTrust(host.files)
    for der in (b"", b"nothing", peer.der[:-1], peer.der + b"\0", peer.tls.certificate_pem):
        with pytest.raises(BadCertificateError):
            trust.pin(der)
        assert not trust.pinned(der)
    with pytest.raises(BadCertificateError):
        ServerTrust(host.files, [peer.der, b"nothing"])
    for der in (b"", b"nothing", peer.der[:-1]):  # an empty one is nobody, and not everybody
        with pytest.raises(BadCertificateError):
            client_context(der)


def test_contexts_are_kept_for_each_certificate(host: Machine, peer: Machine, other: Machine) -> None:
    one = client_context(host.der, peer.files)
    assert client_context(host.der, peer.files) is one
    different = {id(one), id(client_context(other.der, peer.files)), id(client_context(host.der))}
    assert len(different | {id(client_context(None))}) == 4


async def test_a_connection_outlives_what_it_was_opened_under(
    door: Door, peer: Machine, other: Machine
) -> None:
    context = client_context(door.machine.der, peer.files)
    async with aiohttp.ClientSession() as session:
        await door.ask(context, session)
        for _ in range(5):
            door.trust.pin(other.der)
            door.trust.unpin(other.der)
        gc.collect()
        assert await door.ask(context, session) == pin_of(peer.der).hex()


async def test_the_loop_goes_on_while_many_are_unpinned(host: Machine, tmp_path: Path) -> None:
    many = [Machine(tmp_path, str(number)) for number in range(150)]
    trust = await asyncio.to_thread(ServerTrust, host.files, [machine.der for machine in many])
    gone = many[:20]
    unpinning = asyncio.ensure_future(asyncio.to_thread(lambda: [trust.unpin(one.der) for one in gone]))
    turns = 0
    while not unpinning.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert turns > 2 * len(gone), "held by each, it has one turn between two"
    assert [trust.pinned(machine.der) for machine in many[18:22]] == [False, False, True, True]


async def test_a_peer_that_could_not_be_unpinned_can_be_unpinned_later(door: Door, peer: Machine) -> None:
    hidden = door.machine.files.key.rename(door.machine.files.key.with_suffix(".away"))
    with pytest.raises(OSError):
        door.trust.unpin(peer.der)
    assert door.trust.pinned(peer.der)
    hidden.rename(door.machine.files.key)
    door.trust.unpin(peer.der)
    assert not door.trust.pinned(peer.der)
    with pytest.raises(REFUSED):
        await door.calls(peer)


def test_a_connection_without_tls_shows_nothing() -> None:
    assert presented_certificate(None) is None
