"""A machine that is no rappd: what the wire asks for, written from its description with other libraries."""

from __future__ import annotations

import base64
import hashlib
import http.client
import http.server
import json
import socket
import ssl
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyrage
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

OWN_EXTENSION = "2.25.266237281911542817306372926513482013417"
JSON = "application/json; charset=utf-8"
RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)

Json = dict[str, Any]


class Reply:
    """An HTTP answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def verb(self) -> str:
        return str(self.json["verb"])

    @property
    def data(self) -> Json:
        found: Json = self.json["data"]
        return found


class PlainMachine:
    """A key, a certificate, a listener of its own that keeps what comes, and a way to call a daemon."""

    def __init__(self, folder: Path, name: str = "plain") -> None:
        self.name = name
        self.key = Ed25519PrivateKey.generate()
        self.public = self.key.public_key().public_bytes(*RAW)
        self.fingerprint = hashlib.sha256(self.public).hexdigest()
        self.id = f"brainstem_{self.fingerprint[:16]}"
        self.sealing = str(pyrage.x25519.Identity.generate().to_public())
        folder.mkdir(parents=True, exist_ok=True)
        self.pem, self.der = self._certificate(folder)
        self.received: list[Json] = []
        self.arrived = threading.Condition()
        self.daemon_address = ""
        self.daemon_fingerprint = ""
        self._server = self._serve()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # What it says.

    def to(self, name: str = "brainstem") -> str:
        """A caller on the daemon's machine."""
        return f"{name}_{self.daemon_fingerprint[:16]}"

    def envelope(self, verb: str, data: Json | None = None, **more: Any) -> Json:
        found = {"id": str(uuid.uuid4()), "from": self.id, "to": self.to(), "verb": verb, "data": data or {}}
        sender = more.pop("sender", None)
        if sender is not None:
            found["from"] = sender
        return {**found, **more}

    def help(self, agent: str = "Clock", args: Json | None = None, **more: Any) -> Json:
        return self.envelope("HELP", {"agent": agent, "args": args or {}}, **more)

    def signed(self, envelope: Json, *, at: float | None = None) -> Json:
        said = {
            "alg": "Ed25519",
            "kid": self.fingerprint,
            "key": self.public.hex(),
            "t": int(time.time() if at is None else at),
        }
        whole = json.dumps(
            {**envelope, "_x_sig": said}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        said["s"] = self.key.sign(b"rappd/envelope\n" + whole.encode()).hex()
        return {**envelope, "_x_sig": said}

    def jwt(self, claims: Json, **header: Any) -> str:
        head = {"alg": "EdDSA", "typ": "JWT", "kid": self.fingerprint, **header}
        body = f"{_b64(json.dumps(head).encode())}.{_b64(json.dumps(claims).encode())}"
        return f"{body}.{_b64(self.key.sign(body.encode()))}"

    def token(self, *, bound: bool = False, at: float | None = None, **claims: Any) -> str:
        now = int(time.time() if at is None else at)
        said: Json = {
            "iss": self.fingerprint,
            "sub": self.id,
            "aud": self.daemon_fingerprint,
            "iat": now,
            "exp": now + 300,
            "jti": str(uuid.uuid4()),
        }
        if bound:
            said["cnf"] = {"x5t#S256": _b64(hashlib.sha256(self.der).digest())}
        return self.jwt({**said, **claims})

    def narrowed(self, chain: list[str], to: str, caps: list[str], **claims: Any) -> list[str]:
        """A permission that this machine holds, passed on."""
        last = json.loads(_unb64(chain[-1].split(".")[1]))
        said = {
            "iss": self.fingerprint,
            "sub": to,
            "aud": last["aud"],
            "iat": int(time.time()),
            "exp": last["exp"],
            "jti": str(uuid.uuid4()),
            "cnf": {"kid": to},
            "caps": caps,
            "parent": hashlib.sha256(chain[-1].encode()).hexdigest(),
            **claims,
        }
        return [*chain, self.jwt(said, key=self.public.hex())]

    @property
    def introduction(self) -> Json:
        return {
            "schema": "rappd-introduction/1.0",
            "name": self.name,
            "fingerprint": self.fingerprint,
            "public_key": self.public.hex(),
            "certificate": base64.b64encode(self.der).decode(),
            "sealing_key": self.sealing,
            "sealing_signature": self.key.sign(b"rappd/sealing-key\n" + self.sealing.encode()).hex(),
            "port": self._server.server_address[1],
        }

    # How it calls.

    def context(self, *, certificate: bool = True) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # the tests look at who answers themselves
        if certificate:
            context.load_cert_chain(self.pem)
        return context

    def connect(self, *, certificate: bool = True, timeout: float = 100) -> http.client.HTTPSConnection:
        host, _, port = self.daemon_address.rpartition(":")
        return http.client.HTTPSConnection(
            host, int(port), context=self.context(certificate=certificate), timeout=timeout
        )

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        certificate: bool = True,
        token: str = "",
        headers: dict[str, str] | None = None,
        on: http.client.HTTPSConnection | None = None,
    ) -> Reply:
        connection = on or self.connect(certificate=certificate)
        sent = {"Content-Type": JSON, **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, raw, sent)
            got = connection.getresponse()
            return Reply(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        finally:
            if on is None:
                connection.close()

    def post(self, envelope: Any, **more: Any) -> Reply:
        return self.request("POST", "/envelopes", envelope, **more)

    def raw(
        self, octets: bytes, *, certificate: bool = True, timeout: float = 100, until: bytes = b""
    ) -> bytes:
        """Returns what comes back for these bytes, until the other side has nothing more to say, or said ``until``."""
        host, _, port = self.daemon_address.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout)
        found = b""
        with self.context(certificate=certificate).wrap_socket(plain) as line:
            line.settimeout(timeout)
            line.sendall(octets)
            try:
                while not (until and until in found) and (piece := line.recv(65536)):
                    found += piece
            except (TimeoutError, ConnectionError, ssl.SSLError):
                pass
        return found

    def waits_for(self, id: str, verb: str = "DONE", seconds: float = 100) -> Json:
        """The envelopes that the daemon brought to this machine's own listener."""
        with self.arrived:
            found: list[Json] = []

            def came() -> bool:
                found[:] = [one for one in self.received if one["id"] == id and one["verb"] == verb]
                return bool(found)

            assert self.arrived.wait_for(came, seconds), self.received
            return found[0]

    # Its own listener.

    def _serve(self) -> http.server.ThreadingHTTPServer:
        machine = self

        class Door(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                one = isinstance(found, dict)
                replies = [machine.answer(each) for each in ([found] if one else found)]
                body = json.dumps(replies[0] if one else replies).encode()
                self.send_response(200)
                self.send_header("Content-Type", JSON)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def answer(self, envelope: Json) -> Json:
        """The machine's answer to an envelope."""
        reply = {"id": envelope["id"], "from": self.id, "to": envelope["from"]}
        if envelope["verb"] == "HELLO":
            data = {
                "capabilities": [],
                "verbs": ["HELLO", "HELP", "DONE", "ERROR", "ACK"],
                "name": self.name,
                "protocol": "rappd/1",
                "introduction": self.introduction,
            }
            return {**reply, "verb": "HELLO", "data": data}
        with self.arrived:
            self.received.append(envelope)
            self.arrived.notify_all()
        return {**reply, "verb": "ACK", "data": {"state": "done"}}

    def _certificate(self, folder: Path) -> tuple[Path, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        spki = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        own = self.public + self.key.sign(b"rappd/tls-key\n" + spki)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, self.fingerprint)])
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime.now(UTC) - timedelta(days=1))
            .not_valid_after(datetime.now(UTC) + timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(identifier, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
            )
            .add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(OWN_EXTENSION), own), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        pem = folder / f"{self.name}.pem"
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + made.public_bytes(serialization.Encoding.PEM)
        )
        return pem, made.public_bytes(serialization.Encoding.DER)


def _b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
