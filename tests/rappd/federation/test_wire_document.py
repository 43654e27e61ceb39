"""docs/wire.md says how machines talk, byte for byte: its examples are taken, its figures are the code's."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest
from fixtures.running_daemon import REPO
from lxml import etree

import envelopes
import neighborhoods
import rappd
from envelopes import envelope as envelope_module
from envelopes.codecs import wire, xml_message
from envelopes.errors import ReportableError
from envelopes.identity import (
    caller_tokens,
    capability_tokens,
    certificates,
    node_card,
    pairing_proof,
    signatures,
)
from envelopes.payloads import core
from envelopes.payloads.schemas import xsd_of_all
from neighborhoods.auth.totp import DIGITS
from neighborhoods.delivery import delivery_route, outbox, retry
from neighborhoods.discovery import address_text, announcement, discovered_nodes, peer_address_order
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.pairing import code_pairing, initiator, responder
from neighborhoods.transport import connector, peer_connection
from neighborhoods.transport.published_brainstem import twin_chat
from rappd.dispatch import turns
from rappd.features.eggs import received as received_eggs
from rappd.features.features import all_operations
from rappd.features.organism.payload_operations import META_NS
from rappd.federation import inbound
from rappd.listeners import bodies, connection_admission
from rappd.listeners.federation import envelopes as envelope_routes
from rappd.listeners.federation import pairing as pairing_routes
from rappd.listeners.federation import xml_messages
from rappd.listeners.federation.operation_routes import FEATURES as OF_PEERS
from tests.rappd.federation.wire_page import FENCE, SECTION, blocks, in_words, rows, shown

# Nothing on the page is unlooked at.


def test_every_example_is_looked_at() -> None:
    source = "".join(file.read_text() for file in Path(__file__).parent.glob("test_wire_*.py"))
    for language, mark, _ in FENCE.findall(SECTION):
        assert mark, f"a {language} block without a mark"
        family = mark.partition("-")[0] + "-*"
        assert f'"{mark}"' in source or f'"{family}"' in source, mark


def test_schema_of_core_is_the_one_that_is_published() -> None:
    forms = [*core.PRIMITIVES.values(), *core.ANSWERS.values(), *core.SYSTEM.values()]
    assert blocks("core-xsd") == [xsd_of_all(forms)]


# Envelopes.


@pytest.mark.parametrize("mark", ["request-help", "response-help-200", "response-malformed-400", "request-hello",
                                  "response-hello-200", "vector-signed"])  # fmt: skip
def test_envelopes_are_taken_and_sent_as_they_stand(mark: str) -> None:
    found = shown(mark)
    envelope = wire.decode(json.dumps(found).encode())
    assert json.loads(wire.encode(envelope)) == found
    status = mark.rpartition("-")[2]
    if status.isdecimal():
        assert wire.http_status(envelope) == int(status)


def test_batches_and_events_are_too() -> None:
    for mark in ("request-batch", "response-batch-200"):
        records = wire.decode_batch(json.dumps(shown(mark)).encode())
        assert [json.loads(wire.encode(one)) for one in records] == shown(mark)  # type: ignore[arg-type]
    (text,) = blocks("events")
    events = [dict(row.split(": ", 1) for row in one.splitlines()) for one in text.strip().split("\n\n")]
    assert [event["id"] for event in events] == [str(number + 1) for number in range(len(events))]
    first, last = (wire.decode(event["data"].encode()) for event in events)
    assert (first.verb, first.data["n"], last.verb) == ("STREAM", 1, "DONE")


def test_extensions_are_those_that_the_code_knows() -> None:
    named = {key for row in rows("Key", "Shape", "Meaning") for key in row[0].split(", ")}
    assert set(envelope_module._KNOWN) | {"_x_slush"} == named


def test_the_reasons_have_the_statuses_that_the_code_gives_them() -> None:
    known = reasons() | {("400", "unknown_verb"), ("500", "interrupted"), ("500", "failed")}
    known |= {("503", "busy"), ("500", "answer_too_large")}  # said without an exception of their own
    for status, reason, *_ in [*rows("code", "reason", "When"), *rows("Status", "code", "When")]:
        assert (status, reason) in known
    source = "".join(
        path.read_text() for floor in ("rappd", "neighborhoods") for path in (REPO / floor).rglob("*.py")
    )
    for word in ("unknown_verb", "interrupted", "busy", "answer_too_large"):
        assert f'"{word}"' in source


def reasons() -> set[tuple[str, str]]:
    """Of every error that the code has: its status and its slug."""
    for package in (envelopes, neighborhoods, rappd):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in module.name:
                importlib.import_module(module.name)
    found, ahead = set(), [ReportableError]
    while ahead:
        one = ahead.pop()
        ahead += one.__subclasses__()
        if isinstance(one.code, str):
            found.add((str(one.status), one.code))
        found |= {(str(refusal.status), code) for code, refusal in one.refusals.items()}
    return found


def test_documented_routes_are_the_listeners() -> None:
    tables = (envelope_routes.routes, pairing_routes.routes, xml_messages.routes)
    served = {f"{route.method} {route.path}" for table in tables for route in table}  # type: ignore[attr-defined]
    shared = {f"{one.method} {one.path}": f"peers with {one.right.scope}" for one in all_operations(OF_PEERS)}
    documented = {row[0]: row[1] for row in rows("Route", "Who", "What")}
    assert documented.keys() == served | shared.keys()
    assert shared.items() <= documented.items()


def test_the_figures_are_those_of_the_code() -> None:
    pace, text = retry.RetryPolicy(), in_words()
    for said in (
        f"`t` is at most {signatures.WINDOW} s away",
        f"at most {caller_tokens.LONGEST} characters",
        f"`exp` at most {caller_tokens.PEER_SECONDS} s after `iat`",
        f"may be {caller_tokens.LEEWAY} s ahead",
        f"all that it allows, {caller_tokens.MOST_CAPABILITIES} at most",
        f"{certificates.MOST_BYTES} bytes at most",
        f"`name` is 1 to {node_card.LONGEST_NAME} characters",
        f"`from` and `to` are 1 to {wire.MAX_ID} visible characters",
        f"`verb` is 1 to {wire.MAX_VERB} letters",
        f"more than {wire.MAX_BATCH} records",
        f"more than {envelope_routes.FOR_BATCHES >> 20} MiB",
        f"at most {wire.MAX_BYTES >> 20} MiB and {wire.MAX_DEPTH} levels deep",
        f"{envelope_routes.FOR_STRANGERS >> 10} KiB of a stranger",
        f"did not come to its end in {bodies.BODY_SECONDS:g} s",
        f"A stranger's connection lives {connection_admission.STRANGER_SECONDS:g} s at most",
        f"A lone `:` every {envelope_routes.BEAT:g} s",
        f"above 0, at most {envelope_module.LONGEST_WAIT}",
        f"16 hex digits, {envelope_module.LONGEST_PATH} at most",
        f"seconds, {inbound.WAIT:g} without one",
        f"holds a request {inbound.LONGEST_WAIT:g} s at most",
        "after {:g}, {:g} and {:g} s, each a fifth longer or shorter".format(*retry.PAUSES),
        "the status was {}, {}, {}, {}, {} or {}".format(*sorted(delivery_route.RETRIABLE)),
        f"up to {pace.batch} envelopes or {pace.batch_octets >> 10} KiB in a batch",
        f"again in {pace.first_pause:g} s, doubling to {pace.longest_pause:g} s",
        f"A ping goes after {peer_connection.HEARTBEAT:g} s in which nothing came",
        f"{peer_connection.MOST_AT_ONCE} under way at most",
        "the subprotocol `{}` or `{}`".format(*peer_connection.PROTOCOLS),
        f"with `{peer_connection.SEVERAL}` it may be an array of up to {wire.MAX_BATCH}",
        f"`{initiator.WORDS_SECONDS:g} s passed",
        f"{pairing_routes.MOST_BYTES >> 10} KiB at most",
        f"a nonce of {pairing_proof.NONCE_BYTES} random bytes",
        f"{received_eggs.MOST_BYTES >> 30} GiB at most, and {received_eggs.MOST_OF_ONE_PEER} of one peer",
        f"Nothing came for {received_eggs.SILENT_SECONDS:g} s",
        f"is tried {connector.HEAD_START:g} s before the others",
        f"(port {address_text.FEDERATION_PORT})",
        f"{announcement.MOST_ADDRESSES} addresses at most",
    ):
        assert said.replace("`120", "120") in text, said
    assert pace.ask_every == 60 and "is asked for every minute" in text
    assert outbox.DAY == 86_400 and "a day unless told otherwise" in text
    assert turns.KEEP_SECONDS == 300 and "five minutes after the end" in text
    assert inbound.DEEPEST == 6 and "more than six machines" in text
    assert capability_tokens.MOST_LINKS == 8 and "a chain of JWTs, eight at most" in text
    assert responder.MOST_PENDING == 8 and "B keeps eight attempts at a time" in text
    assert code_pairing.CODE_SECONDS == 600 and "good for ten minutes and one pairing" in text
    assert retry.SPREAD == 0.2


# Announcements, addresses, published brainstems.


def test_announcements_have_the_form_that_the_page_says() -> None:
    said = dict(row[:2] for row in rows("Record", "Value"))
    made = announcement.Announcement("desk", "56475aa7" * 8, 7443)
    assert said["service"] == announcement.SERVICE
    assert made.instance == f"desk_{made.fingerprint[:16]}.{announcement.SERVICE}"
    assert made.server == f"{made.fingerprint[:12]}.local."
    assert {f"TXT {key}" for key in made.properties()} == {name for name in said if name.startswith("TXT ")}
    assert (said["TXT v"], made.properties()["v"]) == ("1", "1")
    dotted = announcement.Announcement("a.b\\c" + "x" * 60, made.fingerprint, 7443).instance
    label = dotted.removesuffix(f"_{made.fingerprint[:16]}.{announcement.SERVICE}")
    assert label.startswith("a-b-c") and len(label.encode()) == 40
    txt: dict[bytes, bytes | None] = {
        key.encode(): value.encode() for key, value in made.properties().items()
    }
    found = announcement.read({**txt, b"port": b"7777"}, 7443, ["192.168.1.12"], at=0)
    assert found is not None and found.port == 7777
    assert announcement.read({**txt, b"v": b"2"}, 7443, ["192.168.1.12"], at=0) is None


async def test_peers_file_entries_are_distinguished(tmp_path: Path) -> None:
    (text,) = blocks("peers-file")
    path = tmp_path / "peers.json"
    path.write_text(text)
    file = PeersFile(path, environment="https://pi.local,http://localhost:7071")
    found = [(one.name, one.address, one.legacy, one.source) for one in await file.entries()]
    assert found == [
        ("", "192.168.1.20:7071", True, "list"),
        ("attic", "attic.local:7071", True, "list"),
        ("shed", "192.168.1.13:7443", False, "typed"),
        ("", "pi.local:7443", False, "list"),
    ]
    assert file.trouble == ""
    assert discovered_nodes.ADDRESS_SOURCES == ("nearby", "last address", "list", "typed")
    assert peer_address_order.ADDRESS_SOURCES == discovered_nodes.ADDRESS_SOURCES


def test_a_published_brainstem_is_sent_what_the_page_shows() -> None:
    said = shown("twin-chat")
    made = twin_chat(said["payload"]["text"], from_rappid=said["from_rappid"], nonce=said["nonce"])
    assert {**made, "utc": said["utc"]} == said
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["utc"])


def test_message_of_the_page_is_read() -> None:
    (text,) = blocks("message-xml")
    envelope, thread = xml_message.decode(text.encode(), recipient="core")
    assert (envelope.sender, envelope.verb, thread) == ("console_token-0a6a4ee0", "HELP", "")
    assert envelope.data == {"agent": "Clock", "args": {}}
    assert xml_message.decode(xml_message.encode(envelope), recipient="core").envelope == envelope


def test_sign_in_and_catalog_of_the_page_have_their_form() -> None:
    (first,) = blocks("authenticate-xml")
    element = xml_message.element_of(first.strip())
    assert element.tag == "authenticate"
    assert re.fullmatch(rf"[0-9]{{{DIGITS}}}", element.get("totp", ""))
    (text,) = blocks("catalog-xml")
    catalog = etree.fromstring(text)
    assert catalog.tag == f"{{{META_NS}}}catalog"
    assert catalog.get("from") == "console_token-0a6a4ee0"
    assert set(catalog[0].keys()) == {"name", "namespace", "root"}
