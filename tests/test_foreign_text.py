"""Every reader of text from outside passes the one suite: read or refused, and at a bounded cost.

``LOOP``: called by the event loop itself, so its whole text must be cheap. ``THREAD``: called beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from fixtures.foreign_text import LONGEST_HOLD, Grow, check_reader_of_foreign_text

from agents.providers import json_http, refusals
from agents.providers.answers.reader import AnswerReader
from agents.runtimes.lispy.errors import LispyError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.reader import read as read_lispy
from envelopes.codecs import a2a, a2a_cards, jsonrpc, wire
from envelopes.codecs.bounded_json import bounded_json, bounded_object, list_parts, object_parts
from envelopes.codecs.jsonrpc import RpcError, id_in
from envelopes.errors import BadCapabilityError, BadNodeCardError, MalformedError
from envelopes.identity.capabilities import check
from envelopes.identity.node_card import NodeCard
from neighborhoods.discovery import announcement
from neighborhoods.discovery.peers_file import PeersFile
from neighborhoods.errors import (
    BadEstateError,
    BadNeighborhoodError,
    BadPeersFileError,
    BadStepError,
    MemberError,
    NeighborhoodError,
)
from neighborhoods.pairing.messages import read_step
from neighborhoods.places.estate_file import Estate
from neighborhoods.places.invite import read_invite
from neighborhoods.places.place import decode_members, decode_place
from neighborhoods.snapshot.member_capture import _row
from neighborhoods.snapshot.member_coordinates import read_coordinates
from neighborhoods.snapshot.roster import members
from neighborhoods.snapshot.tar_guard import TarGuard
from neighborhoods.snapshot.transports.far_rappd import FarAnswer, activity_of
from neighborhoods.snapshot.transports.github import GithubTransport
from neighborhoods.snapshot.transports.listing_parser import ListingParser, rappid_fields
from neighborhoods.snapshot.transports.rappd import _probed, read_listing
from neighborhoods.snapshot.transports.ssh import _free
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_failures import far_failure, ssh_failure
from neighborhoods.snapshot.transports.ssh_run import SshRun
from neighborhoods.transport import a2a_agent
from neighborhoods.transport.published_brainstem import _answer
from neighborhoods.transport.replies import arrived
from rappd.federation.peer_greeting import read_greeting
from rappd.federation.remote_agents import names_told, offered_agents
from rappd.sessions.errors import WorkflowError
from rappd.sessions.workflows.definition import read_workflow
from rappd.tether.framing import Assembler, FrameError
from twins.eggs.readers.detect import open_egg
from twins.errors import BadFileError, TwinError
from twins.workspace.identity_file import Identity

KEY = "a" * 64
RAPPID = f"rappid:@me/gardener:{KEY}"
UUID = "123e4567-e89b-42d3-a456-426614174000"
MARK = "m" * 32
PIECE = 1 << 18
LOOP, THREAD = LONGEST_HOLD, None
DESTINATION = SshDestination.parse("pi")


class Peer(NamedTuple):
    name: str = "pi"
    prefix: str = "x"


def octets(value: Any) -> bytes:
    return json.dumps(value).encode()


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def decoded(raw: bytes) -> Any:
    """As the transports give JSON to their readers; None for what they refuse."""
    try:
        return bounded_json(raw)
    except ValueError:
        return None


LISTING = f"""
{MARK} begin

{MARK} host pi

{MARK} kind gnu

{MARK} twin active {KEY}
{{"rappid": "{RAPPID}", "name": "gardener"}}
{MARK} files
12 1.0 1.0 ./soul.md
12 1.0 1.0 ./agents/water_agent.py

{MARK} done

{MARK} agents
clock_agent.py

{MARK} end
""".encode()


def ssh_listing(raw: bytes) -> object:
    parser = ListingParser(MARK, lambda line: None)
    for at in range(0, len(raw), PIECE):
        parser.lines.feed(raw[at : at + PIECE])
    parser.lines.finish()
    found = parser.listing()
    return [orjson.dumps(_row(twin)) for twin in found.twins]


def after(start: str) -> Grow:
    """The hostile text where a listing has something else: in a ``rappid.json``, among the files, the agents."""

    def grown(size: int) -> bytes:
        lines = b"7 1.0 1.0 ./a\n" if "files" in start else b"a\n"
        return start.replace("@", MARK).encode() + lines * (size // len(lines))

    grown.__name__ = start.split()[-1]
    return grown


IN_LISTING = (
    after("\n@ begin\n@ twin active a\n"),
    after("\n@ begin\n@ twin active a\n@ files\n"),
    after("\n@ begin\n@ agents\n"),
    lambda size: (
        f"\n{MARK} begin".encode()
        + f"\n{MARK} twin active a\n{MARK} files\n{MARK} done".encode() * (size // 120)
    ),
    lambda size: (
        f"\n{MARK} begin\n{MARK} twin active a\n{MARK} files\n".encode() + b"9" * (size // 2) + b" 1 1 ./x\n"
    ),
)


def ssh_run(raw: bytes, then: Callable[[SshRun], object]) -> object:
    run = SshRun("pi", DESTINATION)
    found = raw.replace(b"@", run.mark.encode())
    for at in range(0, len(found), PIECE):
        run._errors.feed(found[at : at + PIECE])
    run._errors.finish()
    return then(run)


def refused_hatching(run: SshRun) -> object:
    with contextlib.suppress(MemberError):
        run.hatched(b"")
    errors = "\n".join(run._complaints)
    return ssh_failure("pi", DESTINATION, errors), far_failure("pi", "it failed", errors)


def tar(form: int) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as file:
        for name in ("soul.md", "x" * 200 + "é"):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = 3, 1.5 if form == tarfile.PAX_FORMAT else 1
            file.addfile(info, io.BytesIO(b"abc"))
    return content.getvalue()


def read_tar(raw: bytes) -> object:
    guard = TarGuard()
    for at in range(0, len(raw), PIECE):
        guard.feed(raw[at : at + PIECE])
    return guard.close()


def github(folder: Path, raw: bytes) -> object:
    (folder / "members.json").write_bytes(raw)
    transport = GithubTransport("pi", "me/x")
    return transport._read_places(transport._repository(transport._url), folder)


def peers_json(folder: Path, raw: bytes) -> object:
    path = folder / "peers.json"
    path.write_bytes(raw)
    PeersFile(path)._look()
    return members([], read_coordinates(path))


def announced(raw: bytes) -> object:
    """A TXT record of at most 9,000 octets, as a packet has them; each value is one of the stranger's."""
    found = decoded(raw[:9000])
    said = found if isinstance(found, dict) else {"v": "1", "id": KEY, "name": text(raw[:9000])}
    records = {key.encode(): str(value).encode()[:255] for key, value in said.items()}
    addresses = said.get("addresses", ["192.168.1.2"])
    sighting = announcement.read(
        records, said.get("srv"), map(str, addresses if isinstance(addresses, list) else [addresses]), at=1
    )
    return sighting and orjson.dumps([sighting.name, sighting.port, sighting.addresses])


def hello(raw: bytes) -> object:
    found = decoded(raw)
    with contextlib.suppress(BadNodeCardError):
        NodeCard.from_json(found.get("introduction") if isinstance(found, dict) else found).check()
    greeting = read_greeting(found if isinstance(found, dict) else {})
    return orjson.dumps(
        [names_told(greeting.capabilities), [one.name for one in offered_agents(greeting.agents)]]
    )


def estate(raw: bytes) -> object:
    return Estate.decode(raw).encode()


def invite(raw: bytes) -> object:
    found = decoded(raw)
    found = read_invite(found if isinstance(found, dict) else {})
    return found.check_time(datetime.now(UTC))


def model_answer(raw: bytes) -> object:
    """A JSON body, and an event stream, fed in slices between which the event loop comes round."""
    told = []
    for whole in (raw, b"data: " + raw):
        reader = AnswerReader("m")
        for begin in range(0, len(whole), 32 << 10):
            reader.feed(whole[begin : begin + (32 << 10)])
        reader.finish()
        answer = reader.answer()
        told += [answer.text, answer.thoughts, answer.model, [one.arguments for one in answer.calls]]
    return orjson.dumps(told)


def a2a_request(raw: bytes) -> object:
    id_in(raw)
    params = a2a.decode_rpc(raw).params
    for read in (a2a.read_query, a2a.read_task_id):
        with contextlib.suppress(a2a.A2AError):
            read(params)
    return orjson.dumps(a2a.read_sent(params).args)


def a2a_answer(raw: bytes) -> object:
    found = a2a_agent.read_result("n", "JSONRPC", 200, raw)
    return a2a_agent.answer_of("n", found), a2a_agent._unfinished(found)


def a2a_card(raw: bytes) -> object:
    return a2a_cards.read_card(raw, "https://h/agent-card.json")


def identity(raw: bytes) -> object:
    found = Identity.decode(raw)
    return found.name, found.kind, found.parent, found.incarnations, found.encode()


def phone_frames(raw: bytes) -> object:
    """The text in frames of a phone, whole and as one chunk after the other."""
    said, assembler = text(raw), Assembler()
    with contextlib.suppress(FrameError):
        assembler.feed(said)
    pieces = [said[at : at + 4000] for at in range(0, len(said), 4000)][:256]
    for n, piece in enumerate(pieces):
        frame = {"type": "chunk", "id": "a", "n": n, "total": len(pieces), "data": piece}
        assembler.feed(json.dumps(frame, ensure_ascii=False))
    return Assembler().feed(said)


def egg(folder: Path, raw: bytes) -> object:
    path = folder / "some.egg"
    path.write_bytes(raw)
    with open_egg(path) as opened:
        return [part.target for part in opened.parts]


def egg_manifest(folder: Path, raw: bytes) -> object:
    import zipfile

    path = folder / "some.egg"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("manifest.json", raw)
        file.writestr("rappid.json", octets({"rappid": RAPPID, "name": "g"}))
        file.writestr("soul.md", "x")
        file.writestr(f"peers/pi/twins/{KEY}.tar.gz", b"x")
    with open_egg(path) as opened:
        from neighborhoods.snapshot.snapshot_contents import SnapshotContents, is_snapshot

        return SnapshotContents.of(opened).peers if is_snapshot(opened) else None


ROSTER = {
    "schema": "rapp-neighborhood-members/1.0",
    "members": [
        {"rappid": RAPPID, "name": "g", "role": "member", "fingerprint": KEY, "capabilities": ["HELP"]}
    ],
}
TWIN_ROW = {
    "hash": KEY, "rappid": RAPPID, "name": "g", "captured": True, "lifecycle": "active",
    "captured_path_in_egg": f"peers/pi/twins/{KEY}.tar.gz", "workspace_bytes": 3,
}  # fmt: skip
ENVELOPE = {
    "id": UUID,
    "from": "a_1",
    "to": "b_1",
    "verb": "HELP",
    "data": {"user_input": "x"},
    "_x_thread": UUID,
}
HELLO = {
    "capabilities": ["Clock"], "verbs": ["HELLO"], "name": "pi", "introduction": {"schema": "rappd-introduction/1.0"},
    "agents": [{"name": "Clock", "description": "d", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}],
}  # fmt: skip
WORKFLOW = {
    "name": "debate", "title": "Debate", "participants": [{"name": "Editor"}], "files": {"story": "story.txt"},
    "steps": [{"participant": "Editor", "cue": "x {file:story}"}], "driver": {"name": "C"},
}  # fmt: skip
ANSWER = {
    "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    "choices": [{"index": 0, "message": {"content": "hi", "tool_calls": [
        {"id": "a", "index": 0, "function": {"name": "f", "arguments": "{}"}}]}}],
}  # fmt: skip
A2A_MESSAGE = {"messageId": "m", "contextId": "c", "parts": [{"text": "x"}, {"data": {"a": 1}}, {
    "raw": "iVBORw0KGgo=", "mediaType": "image/png"}], "metadata": {"skillId": ""}}  # fmt: skip
A2A_REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
    "message": A2A_MESSAGE, "configuration": {"historyLength": 1}, "id": "x", "pageSize": 5}}  # fmt: skip
A2A_TASK = {"id": "t", "status": {"state": "TASK_STATE_WORKING", "message": A2A_MESSAGE},
    "artifacts": [{"artifactId": "a", "parts": [{"text": "x"}, {"url": "http://x"}]}]}  # fmt: skip
A2A_CARD = {
    "name": "n", "description": "d", "skills": [{"id": "s", "name": "s", "description": "d"}],
    "supportedInterfaces": [{"url": "https://h/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    "signatures": [{"protected": "e30", "signature": "e30", "header": {"jwk": {"x": "e30"}}}],
}  # fmt: skip
PEERS = {"peers": ["http://192.168.1.9:7071", {
    "name": "pi", "url": "https://192.168.1.2:7443", "fingerprint": KEY, "ssh_host": "pi", "ssh_user": "me",
    "folder": "/x", "github_neighborhood": "me/x", "auth_token_env": "T", "auth_url": "https://x"}]}  # fmt: skip
PEER_LISTING = {"twins": [{
    "hash": KEY, "rappid_json": {"rappid": RAPPID, "name": "g"}, "lifecycle": "active", "workspace_bytes": 3,
    "workspace_files": 1, "has_soul": True, "agents": ["a_agent.py"], "fingerprint": "ff"}],
    "agent_files": ["clock_agent.py"], "host": "pi"}  # fmt: skip
SNAPSHOT = {
    "schema": "rapp-egg/2.0", "scale": "neighborhood", "name": "n", "members": {
        "local": {"twins": []}, "peers": [{"name": "pi", "twins": [TWIN_ROW]}]},
}  # fmt: skip
EXPIRING = {
    "schema": "brainstem-egg/2.3-neighborhood", "type": "neighborhood-invite", "rappid": RAPPID,
    "display_name": "x", "invite_expires_at": "2099-12-01T00:00:00Z", "_x_members": ROSTER,
}  # fmt: skip
ESTATE = {
    "schema": "rapp-estate/1.1", "owner": {"rappid": RAPPID, "github": "me"}, "member": [], "updated_at": "x",
    "created": [{"rappid": RAPPID, "added_at": "2026-01-01T00:00:00Z", "via": "mint"}],
}  # fmt: skip
TXT = {
    "v": "1",
    "id": KEY,
    "name": "pi",
    "port": "7443",
    "door": "7443",
    "srv": 7443,
    "addresses": ["192.168.1.2", "fe80::1%eth0"],
}
COUNTS = {"hatched": {name: {"count": 1} for name in ("create", "replace", "keep", "refuse", "quarantine")}}


class Reader(NamedTuple):
    """``read`` takes a folder of its own first where it is of files."""

    read: Callable[..., object]
    refusals: type[Exception] | tuple[type[Exception], ...]
    good: tuple[bytes, ...]
    seconds: float | None = LOOP
    growing: tuple[Grow, ...] = ()
    of_files: bool = False

    @property
    def small(self) -> int:
        """Octets of the small text: a megabyte, less where lines are read by Python and the ratio shows as well."""
        return 1 << (17 if self.seconds is THREAD else 20)


READERS = {
    "ssh: a list of twins": Reader(ssh_listing, MemberError, (LISTING,), THREAD, IN_LISTING),
    "ssh: rappid.json": Reader(rappid_fields, (), (octets({"rappid": RAPPID}),)),
    "ssh: files written": Reader(
        partial(ssh_run, then=SshRun.outcome), MemberError, (b"\n@ written 1 2 3\n",), THREAD
    ),
    "ssh: a program that ended": Reader(
        partial(ssh_run, then=lambda run: run.finished("x")), MemberError, (b"\n@ finished 0\n",), THREAD
    ),
    "ssh: files before and after": Reader(
        partial(ssh_run, then=lambda run: run._require_stable("x", "")),
        MemberError,
        (b"\n@ kind gnu\n@ files\n1 1 1 ./x\n@ done\n@ tar 0\n@ files\n1 1 1 ./x\n@ done\n@ end\n",),
        THREAD,
    ),
    "ssh: complaints": Reader(
        partial(ssh_run, then=refused_hatching),
        MemberError,
        (b"bash: no\n", octets({"error": "x", "do": "y"})),
        THREAD,
    ),
    "ssh: an egg hatched there": Reader(
        lambda raw: partial(ssh_run, b"\n@ hatched 0\n", then=lambda run: run.hatched(raw))(),
        MemberError,
        (octets(COUNTS),),
    ),
    "ssh: free space": Reader(lambda raw: _free(text(raw[:4096])), (), (b"/dev/x 1 2 3 4% /",)),
    "ssh: activity": Reader(
        activity_of, (), (octets({"twins": [{"key": KEY, "answering": True, "activity": "x"}]}),), THREAD
    ),
    "ssh: an answer of rappd": Reader(
        lambda raw: FarAnswer("pi", 0, raw, text(raw[:4096])).json(), MemberError, (octets({"a": 1}),)
    ),
    "tar of a twin": Reader(
        read_tar, MemberError, (tar(tarfile.PAX_FORMAT), tar(tarfile.GNU_FORMAT)), THREAD
    ),
    "github: members.json": Reader(
        github, MemberError, (octets({"members": [{"rappid": RAPPID, "name": "g"}]}),), THREAD, of_files=True
    ),
    "/snapshot: a list of twins": Reader(
        lambda raw: [orjson.dumps(_row(twin)) for twin in read_listing(raw).twins],
        ValueError,
        (octets(PEER_LISTING),),
        THREAD,
        (
            lambda size: b'{"twins": [' + b'{"hash": "a", "rappid_json": {}},' * (size // 33) + b"{}]}",
            lambda size: b'{"twins": [{"hash": "a", "rappid_json": {"a": "' + b"x" * size + b'"}}]}',
        ),
    ),
    "/snapshot: state": Reader(
        partial(_probed, "pi"), MemberError, (octets({"version": "1", "free_bytes": 3}),)
    ),
    "mDNS record": Reader(announced, (), (octets(TXT),)),
    "HELLO": Reader(hello, (), (octets(HELLO),)),
    "frame of a peer": Reader(wire.decode, MalformedError, (octets(ENVELOPE),)),
    "message of MCP or ACP": Reader(
        partial(jsonrpc.decode, most=1 << 20),
        RpcError,
        (octets({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": [1]}}),),
    ),
    "several envelopes in a frame": Reader(
        partial(wire.decode_batch, max_bytes=1 << 20), MalformedError, (octets([ENVELOPE]),)
    ),
    "batch of envelopes": Reader(wire.decode_batch, MalformedError, (octets([ENVELOPE]),), THREAD),
    "frames of a phone": Reader(phone_frames, FrameError, (octets({"type": "say", "text": "x"}),), THREAD),
    "step of a pairing": Reader(
        lambda raw: read_step(decoded(raw)), BadStepError, (octets({"step": "poll", "attempt": UUID}),)
    ),
    "capability text": Reader(lambda raw: check(text(raw)), BadCapabilityError, (b"HELP.brainstem.Clock",)),
    "peers.json": Reader(peers_json, BadPeersFileError, (octets(PEERS),), THREAD, of_files=True),
    "estate": Reader(estate, BadEstateError, (octets(ESTATE),), THREAD),
    "invite": Reader(invite, NeighborhoodError, (octets(EXPIRING),), THREAD),
    "members of a neighborhood": Reader(decode_members, BadNeighborhoodError, (octets(ROSTER),), THREAD),
    "neighborhood.json": Reader(
        decode_place,
        BadNeighborhoodError,
        (octets({"schema": "rapp-neighborhood/1.0", "name": "x"}),),
        THREAD,
    ),
    "workflow": Reader(partial(read_workflow, "debate.json"), WorkflowError, (octets(WORKFLOW),)),
    "identity of a twin": Reader(
        identity, BadFileError, (octets({"rappid": RAPPID, "incarnations": 1}),), THREAD
    ),
    "egg in JSON": Reader(egg, TwinError, (octets(EXPIRING),), THREAD, of_files=True),
    "manifest of an egg": Reader(
        egg_manifest, (TwinError, NeighborhoodError), (octets(SNAPSHOT),), THREAD, of_files=True
    ),
    "egg's receipt of a peer": Reader(
        lambda raw: arrived(Peer(), 200, raw), NeighborhoodError, (octets({"arrived": {"id": "x"}}),)
    ),
    "published brainstem": Reader(
        lambda raw: _answer("n", 200, raw), NeighborhoodError, (octets({"response": "x"}),)
    ),
    "A2A request": Reader(a2a_request, a2a.A2AError, (octets(A2A_REQUEST),), THREAD),
    "answer of an A2A agent": Reader(
        a2a_answer,
        NeighborhoodError,
        (octets({"jsonrpc": "2.0", "id": 1, "result": {"task": A2A_TASK}}),),
        THREAD,
    ),
    "card of an A2A agent": Reader(a2a_card, ValueError, (octets(A2A_CARD),), THREAD),
    "answer of a model server": Reader(model_answer, (), (octets(ANSWER),), THREAD),
    "refusal of a model server": Reader(
        lambda raw: refusals.read(text(raw), 400, 0.0, ("key",)).server_sentence,
        (),
        (octets({"error": {"message": "x"}}),),
    ),
    "list of a model server": Reader(
        partial(bounded_object, most_bytes=json_http._MOST_BYTES), (), (octets({"data": [{"id": "m"}]}),)
    ),
    "LisPy": Reader(
        lambda raw: read_lispy(text(raw), Limits()),
        LispyError,
        (b"(define (f x) (+ x 1)) '(1 2.5 #t)",),
        THREAD,
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_reader_reads_or_refuses_any_octets_at_a_bounded_cost(name: str, tmp_path: Path) -> None:
    one = READERS[name]
    read = partial(one.read, tmp_path) if one.of_files else one.read
    check_reader_of_foreign_text(
        read, one.refusals, one.good, growing=one.growing, most_seconds=one.seconds, small=one.small
    )


def test_the_suite_finds_a_reader_that_is_quadratic() -> None:
    def careless(raw: bytes) -> None:
        kept = b""
        for line in raw[: len(raw) // 200].split(b"\n"):
            kept += line + b"\n"
            hash(kept)

    with pytest.raises(AssertionError, match="a tenth cost"):
        check_reader_of_foreign_text(careless, (), (b"{}",), most_seconds=None)


@pytest.mark.parametrize("read", [int, lambda raw: int(json.loads(raw)["n"]), lambda raw: raw.decode()])
def test_the_suite_finds_a_reader_that_raises_something_else(read: Callable[[bytes], object]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, OverflowError)):
        check_reader_of_foreign_text(read, MemberError, (b'{"n": 1}',))


def test_parts_of_json_are_those_that_a_parser_finds() -> None:
    value = [1, 'a"]},{[\\', {"b": [{}, [], "é\\"]}, None, -2.5]
    raw = json.dumps(value, indent=1).encode()
    assert [json.loads(part) for part in list_parts(raw)] == value
    named = {'a\\"': value, "b": {}, "": ",:"}
    raw = json.dumps(named).encode()
    assert {key: json.loads(part) for key, part in object_parts(raw)} == named
