"""The operator's requests are signed one by one: what was heard on the loopback is of no use to a listener."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
from collections.abc import Callable

import pytest
from fixtures.operator_page import SIGNATURE, BrowserKey, OperatorPage
from fixtures.running_daemon import Answer, RunningDaemon, agent_source
from playwright.sync_api import Browser, expect

from rappd.daemon import request_signatures
from rappd.daemon.request_signatures import (
    WINDOW_MS,
    LateSignatureError,
    NotSignedError,
    RequestSignatures,
    Signature,
    TooManySignaturesError,
    UsedSignatureError,
    body_hash,
)

HOST = "127.0.0.1:7071"
SETTING = b'{"name": "name", "value": "shed"}'
THIEF = b'{"name": "name", "value": "evil"}'
assert len(SETTING) == len(THIEF)


class Clock:
    """A clock that a test moves; both the daemon's and the browser's."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def check(signatures: RequestSignatures, text: str, public: str, **changed: str) -> None:
    asked = {"method": "POST", "host": HOST, "target": "/a?b=%20", "content_type": "x/y"} | changed
    signatures.check(Signature.parse(text), public=public, **asked)


def made(signatures: RequestSignatures, browser: BrowserKey, nonce: str = "", ago: int = 0) -> str:
    asked = {"host": HOST, "content_type": "x/y", "body": body_hash(b"z"), "nonce": nonce}
    return browser.signature("POST", "/a?b=%20", at=signatures.now - ago, **asked)  # type: ignore[arg-type]


def test_signature_is_of_every_part_of_the_request_and_of_one_key() -> None:
    clock = Clock()
    signatures, browser = RequestSignatures(clock), BrowserKey()
    clock.seconds += 1  # a signature of the millisecond before the start would be late, whatever it is of
    text = made(signatures, browser)
    changes = {"method": "PUT", "host": "127.0.0.1:7072", "content_type": "", "target": "/a?b=+"}
    for name, value in changes.items():
        with pytest.raises(NotSignedError):
            check(signatures, text, browser.public, **{name: value})
    with pytest.raises(NotSignedError):
        check(signatures, text, BrowserKey().public)
    at, nonce, body, mark = text.split(".")
    other = "A" * 22
    for forged in (f"{int(at) - 1}.{nonce}.{body}.{mark}", f"{at}.{other}.{body}.{mark}",
                   f"{at}.{nonce}.{body_hash(b'')}.{mark}", f"{at}.{nonce}.length=1.{mark}",
                   f"{at}.{nonce}.{body}.{'A' * 86}", text + "\n", f" {text}", "", "." * 3000, "\xe9"):  # fmt: skip
        with pytest.raises(NotSignedError):
            check(signatures, forged, browser.public)
    check(signatures, text, browser.public)


def test_signature_is_good_once_and_for_a_minute() -> None:
    clock = Clock()
    signatures, browser = RequestSignatures(clock), BrowserKey()
    clock.seconds += 1000
    early, late, future = (made(signatures, browser, ago=ago) for ago in (WINDOW_MS, WINDOW_MS + 1, -1))
    for text in (late, future):
        with pytest.raises(LateSignatureError):
            check(signatures, text, browser.public)
    check(signatures, early, browser.public)
    kept = made(signatures, browser)
    check(signatures, kept, browser.public)
    for _ in range(200):
        with pytest.raises((UsedSignatureError, LateSignatureError)):
            check(signatures, kept, browser.public)
        check(signatures, made(signatures, browser), browser.public)
        clock.seconds += 0.7


def test_what_was_signed_before_the_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(request_signatures.time, "time", lambda: 1_700_000_000 + clock())
    former, browser = RequestSignatures(clock), BrowserKey()
    heard = made(former, browser)
    check(former, heard, browser.public)
    clock.seconds += 1
    again = RequestSignatures(clock)
    with pytest.raises(LateSignatureError):
        check(again, heard, browser.public)
    check(again, made(again, browser), browser.public)


def test_flood_of_signed_requests_is_refused_and_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_signatures, "MOST_NONCES", 5)
    signatures, browser, other = RequestSignatures(), BrowserKey(), BrowserKey()
    heard = [made(signatures, browser) for _ in range(6)]
    for text in heard[:5]:
        check(signatures, text, browser.public)
    with pytest.raises(TooManySignaturesError):
        check(signatures, heard[5], browser.public)
    for text in heard[:5]:
        with pytest.raises(UsedSignatureError):
            check(signatures, text, browser.public)
    check(signatures, made(signatures, other), other.public)


def raw_request(port: int, octets: bytes) -> Answer:
    """Sends exactly these bytes."""
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(octets)
        head, body = b"", b""
        with connection.makefile("rb") as answer:
            while (line := answer.readline()) not in (b"\r\n", b""):
                head += line
            length = re.search(rb"content-length: (\d+)", head.lower())
            body = answer.read(int(length[1]) if length else 0)
    return Answer(int(head.split()[1]), {}, body)


def with_body(octets: bytes, body: bytes) -> bytes:
    return octets.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + body


def header(octets: bytes, line: str) -> bytes:
    start, _, rest = octets.partition(b"\r\n")
    return start + b"\r\n" + line.encode() + b"\r\n" + rest


def without(octets: bytes, name: str) -> bytes:
    return re.sub(rf"(?im)^{name}: .*\r\n".encode(), b"", octets, count=1)


def in_pieces(octets: bytes) -> bytes:
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(THIEF), THIEF)
    return header(with_body(without(octets, "Content-Length"), body), "Transfer-Encoding: chunked")


FIRST = {
    "other body": lambda octets: with_body(octets, THIEF),
    "other body in pieces": in_pieces,
    "other method": lambda octets: octets.replace(b"POST ", b"PUT ", 1),
    "other path": lambda octets: octets.replace(b"/settings", b"/settings/reload", 1),
    "query": lambda octets: octets.replace(b"/settings", b"/settings?x=1", 1),
    "other spelling of the path": lambda octets: octets.replace(b"/settings", b"/%73ettings", 1),
    "whole address": lambda octets: octets.replace(b"/settings", b"http://127.0.0.1/settings", 1),
    "other content type": lambda octets: octets.replace(b"application/json", b"text/plain", 1),
    "second content type": lambda octets: header(octets, "Content-Type: text/plain"),
    "packed": lambda octets: header(octets, "Content-Encoding: deflate"),
    "second signature": lambda octets: header(octets, f"{SIGNATURE}: x"),
    "upgrade": lambda octets: header(octets, "Connection: Upgrade\r\nUpgrade: websocket"),
    "no signature": lambda octets: without(octets, SIGNATURE),
    "no cookie": lambda octets: without(octets, "Cookie"),
}
"""A forgery that a program could make of a request that it heard, if it were quicker than the page."""


def name_of(daemon: RunningDaemon) -> str:
    rows = daemon.get("/settings", control=True).json()["settings"]
    return str(next(row["value"] for row in rows if row["name"] == "name"))


@pytest.mark.parametrize("attack", FIRST)
def test_changed_request_is_refused_even_when_it_comes_first(fake_daemon: RunningDaemon, attack: str) -> None:
    page, before = OperatorPage(fake_daemon), name_of(fake_daemon)
    signed = page.headers("POST", "/settings", SETTING, content_type="application/json")
    lines = [f"{name}: {value}" for name, value in {"Host": page.host, **signed}.items()]
    head = "\r\n".join(["POST /settings HTTP/1.1", *lines, f"Content-Length: {len(SETTING)}"])
    heard = head.encode() + b"\r\n\r\n" + SETTING
    changed = FIRST[attack](heard)
    assert changed != heard
    answer = raw_request(fake_daemon.port, changed)
    assert answer.status in (400, 403, 429), answer.body
    assert name_of(fake_daemon) == before
    fresh = OperatorPage(fake_daemon).post("/settings", SETTING, content_type="application/json")
    assert fresh.status == 200, "positive control"
    fake_daemon.post("/settings", {"name": "name", "value": before}, control=True)


def test_only_uploads_are_signed_by_their_length(fake_daemon: RunningDaemon) -> None:
    page = OperatorPage(fake_daemon)
    large = json.dumps({"name": "name", "value": "x", "padding": "x" * (2 << 20)}).encode()
    assert page.post("/settings", large, covers=f"length={len(large)}").status == 403
    assert page.post("/settings", large[:-2] + b'y"', covers=body_hash(large)).status == 403
    assert page.post("/settings", large[:-1], covers=body_hash(large)).status == 403
    assert page.post("/eggs?name=x.egg", b"PK", covers="length=3").status == 403
    assert page.post("/eggs?name=x.egg", b"PK").status == 403, "an upload is not read into memory"
    assert page.post("/eggs?name=x.egg", b"PK", covers="length=2").status == 400, "taken, and no egg"


def test_signed_upload_of_a_form_is_read_from_the_bytes_that_were_signed(fake_daemon: RunningDaemon) -> None:
    page = OperatorPage(fake_daemon)
    edge, kind = "edge", "multipart/form-data; boundary=edge"
    head = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="signed_agent.py"\r\n\r\n'
    body = head.encode() + agent_source("Signed").encode() + f"\r\n--{edge}--\r\n".encode()
    other = page.headers("POST", "/agents/import", body.replace(b"done", b"evil"), content_type=kind)
    assert page.daemon.post("/agents/import", body, headers=other).status == 403
    answer = page.post("/agents/import", body, content_type=kind)
    assert (answer.status, answer.json().get("agents")) == (200, ["Signed"]), answer.body


def test_links_are_given_over_the_control_socket_alone(fake_daemon: RunningDaemon) -> None:
    page = OperatorPage(fake_daemon)
    assert page.post("/operator/key").status == 403
    assert "url" not in page.get("/operator/status").json()
    assert "#k=" in fake_daemon.get("/operator/status", control=True).json()["url"]


class Ear(threading.Thread):
    """All that goes to a port of the loopback, as heard by a packet socket."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self._socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self._socket.bind(("lo", 0))
        self._socket.settimeout(0.2)
        self._said: dict[int, dict[int, bytes]] = {}  # by the client's port: sequence number -> bytes
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                packet = self._socket.recv(1 << 17)
            except TimeoutError:
                continue
            ip = packet[14:]
            if packet[12:14] != b"\x08\x00" or ip[9] != socket.IPPROTO_TCP:
                continue
            tcp = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4]) or None]
            source, target, number = struct.unpack(">HHI", tcp[:8])
            if target == self._port and (said := tcp[(tcp[12] >> 4) * 4 :]):
                self._said.setdefault(source, {})[number] = said

    def requests(self) -> list[bytes]:
        """Ends listening. The requests of all connections, each whole."""
        self._over.set()
        self.join(100)
        self._socket.close()
        found = []
        for pieces in self._said.values():
            rest = b"".join(pieces.values())
            while b"\r\n\r\n" in rest:
                head, _, rest = rest.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                size = int(length[1]) if length else 0
                found.append(head + b"\r\n\r\n" + rest[:size])
                rest = rest[size:]
        return found


@pytest.mark.needs_root
@pytest.mark.browser
def test_whoever_hears_a_real_page_can_do_nothing_with_it(
    make_daemon: Callable[..., RunningDaemon], browser: Browser
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    link = daemon.post("/operator/key", control=True).json()
    ear = Ear(daemon.port)
    ear.start()
    page = browser.new_page()
    page.goto(link["url"])
    page.goto(f"http://127.0.0.1:{daemon.port}/#/settings")
    page.locator("summary", has_text="This machine").click()
    page.locator("#setting-name").fill("shed")
    page.get_by_role("button", name="Save Name of this machine").click()
    expect(page.locator(".toast")).to_contain_text("saved")
    daemon.wait_for(lambda: name_of(daemon) == "shed")
    heard = ear.requests()
    (saved,) = [one for one in heard if one.startswith(b"POST /settings ")]
    (traded,) = [one for one in heard if one.startswith(b"POST /operator/session ")]
    assert re.search(rb"(?i)cookie: rappd_operator=", saved), "positive control: it heard the cookie"
    assert re.search(rb"(?i)x-rappd-signature: ", saved), "positive control: it heard the signature"
    assert link["key"].encode() not in b"".join(heard), "the link's key never travels"
    daemon.post("/settings", {"name": "name", "value": "attic"}, control=True)

    body = json.loads(traded.partition(b"\r\n\r\n")[2])
    own = json.dumps({**body, "public_key": BrowserKey().public}).encode()
    length = f"Content-Length: {len(own)}"
    reads = next(one for one in heard if one.startswith(b"GET /operator/session ") and b"Signature" in one)
    attacks = {
        "sent again": saved,
        "other body": saved.replace(b"shed", b"evil"),
        "other method": saved.replace(b"POST", b"PUT", 1),
        "other path": saved.replace(b"/settings", b"/settings/reload", 1),
        "cookie alone": without(saved, SIGNATURE),
        "what was read is read again": reads,
        "another path of one who read": reads.replace(b"/operator/session", b"/threads", 1),
        "the sign-in again": traded,
        "the sign-in for a key of one's own": header(
            without(with_body(traded, own), "Content-Length"), length
        ),
    }
    for name, octets in attacks.items():
        answer = raw_request(daemon.port, octets)
        assert answer.status == 403, (name, answer.body)
    assert name_of(daemon) == "attic"
    page.locator("#setting-name").fill("barn")
    page.get_by_role("button", name="Save Name of this machine").click()
    daemon.wait_for(lambda: name_of(daemon) == "barn")
    page.close()
