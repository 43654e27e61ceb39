"""``rappd xml``: sends messages in XML to a machine, as a program with an authenticator's code, and prints the answers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

import click

from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import identity_of
from envelopes.identity.keys import fingerprint_of
from neighborhoods.errors import NotPairedError, PeerOfflineError
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_err, print_out, status_mark, strip_control, wrapped
from rappd.cli.home_client import HomeClient
from rappd.daemon.home import Home
from rappd.errors import RefusedError, UsageProblemError

if TYPE_CHECKING:
    import aiohttp

FEDERATION_PORT = 7443
_ANSWER_SECONDS = 300.0
_LARGEST = 1 << 20
_POLICY_VIOLATION = 1008


@cli_command()
@click.argument("address", metavar="HOST[:PORT]")
@click.argument("files", metavar="FILE...", nargs=-1, type=click.File("rb"))
@click.option("--user", required=True, help="The name that the access was issued for.")
@click.option("--code", help="The authenticator's code; it is asked for without it.")
@click.option("--fingerprint", help="The key of the machine, where it is not paired here.")
def xml(
    address: str, files: Sequence[IO[bytes]], user: str, code: str | None, fingerprint: str | None
) -> None:
    """Sign in at HOST, print its catalog, send each FILE (- is the keyboard), print each answer.

    A FILE is a whole <message>, or a payload alone, which is wrapped in one.
    """
    if code is None:
        if not sys.stdin.isatty():
            raise UsageProblemError("The authenticator's code is missing.", do="Add --code 123456.")
        code = str(click.prompt("Code", err=True))
    payloads = [file.read(_LARGEST + 1).decode() for file in files]
    wanted = _with_port(address)
    known = {fingerprint.lower()} if fingerprint else _known_keys()
    asyncio.run(_talk(wanted, known, f"<authenticate user={_quoted(user)} totp={_quoted(code)}/>", payloads))


def _known_keys() -> set[str]:
    """The keys of this machine and of those that are paired here."""
    found = HomeClient(Home.here(), reads=True).do("peers.list")
    peers = [str(row["fingerprint"]) for row in found["peers"] if row.get("paired", True)]
    return {str(found["self"]["fingerprint"]), *peers}


async def _talk(address: str, known: set[str], first: str, payloads: Sequence[str]) -> None:
    import aiohttp

    from neighborhoods.auth.tls import client_context
    from neighborhoods.transport.connector import certificate_at
    from neighborhoods.transport.http_client import session

    try:
        shown = await certificate_at(address)
        key = fingerprint_of(identity_of(shown))
    except (OSError, TimeoutError, BadCertificateError) as error:
        raise PeerOfflineError(f"Nobody answers at {address}.", do="Is rappd running there?") from error
    if key not in known:
        raise NotPairedError(
            f"{address} shows the key {key[:16]}…, which is of no machine paired here; no code was sent.",
            do=f"If it is the one you mean: --fingerprint {key}",
        )
    limits = aiohttp.ClientTimeout(total=None, sock_connect=10)
    try:
        async with (
            session(timeout=limits) as client,
            client.ws_connect(
                f"wss://{address}/messages", ssl=client_context(shown), max_msg_size=2 * _LARGEST
            ) as socket,
        ):
            await socket.send_str(first)
            catalog = await _answer(socket)
            print_out(strip_control(catalog))
            await _send(socket, _sender(catalog), payloads)
    except aiohttp.WSServerHandshakeError as error:
        raise RefusedError(
            f"{address} takes no messages in XML.", do="There: rappd token issue NAME --totp"
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise PeerOfflineError(f"{address} ended the connection.", do="Try again.") from error


async def _send(socket: aiohttp.ClientWebSocketResponse, sender: str, payloads: Sequence[str]) -> None:
    for text in payloads:
        whole = text if "<message" in text else _wrapped(text, sender)
        await socket.send_str(whole)
        print_out(strip_control(await _answer(socket)))
    print_err(f"{status_mark('good', sys.stderr)} {wrapped(f'signed in as {sender}.', 2, stream=sys.stderr)}")


async def _answer(socket: aiohttp.ClientWebSocketResponse) -> str:
    import aiohttp

    frame = await socket.receive(_ANSWER_SECONDS)
    if frame.type is aiohttp.WSMsgType.TEXT:
        return str(frame.data)
    if frame.type is aiohttp.WSMsgType.BINARY:
        return bytes(frame.data).decode(errors="replace")
    if socket.close_code == _POLICY_VIOLATION:
        reason = frame.extra if isinstance(frame.extra, str) else ""
        raise RefusedError(reason or "It was refused.", do="Look at the name, and wait for the next code.")
    raise PeerOfflineError("The connection was ended.", do="Try again.")


def _sender(catalog: str) -> str:
    from envelopes.codecs.xml_message import element_of

    return str(element_of(catalog).get("from", ""))


def _wrapped(payload: str, sender: str) -> str:
    from envelopes.codecs.xml_message import ENVELOPE_NS

    meta = f"<meta><from>{sender}</from><thread/></meta>"
    return f'<message xmlns="{ENVELOPE_NS}">{meta}{payload.strip()}</message>'


def _with_port(address: str) -> str:
    bare = address.removeprefix("wss://").removeprefix("https://").rstrip("/")
    host, _, port = bare.rpartition(":")
    return bare if host and port.isdecimal() else f"{bare}:{FEDERATION_PORT}"


def _quoted(text: str) -> str:
    from xml.sax.saxutils import quoteattr

    return quoteattr(text)
