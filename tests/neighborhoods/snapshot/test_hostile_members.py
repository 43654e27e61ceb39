"""Hostile members beside honest ones: theirs is the failure, the others are copied, and the event loop goes on."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.foreign_text import LONGEST_HOLD, watched_loop
from fixtures.ssh_server import SshServer

from neighborhoods.snapshot.capture import SnapshotResult, take_snapshot
from neighborhoods.snapshot.member_capture import SnapshotPeer
from neighborhoods.snapshot.member_transport import MemberListing, MemberProbe
from neighborhoods.snapshot.transports.folder import FolderTransport
from tests.neighborhoods.snapshot import hostile_listings as hostile
from tests.neighborhoods.snapshot.machines import NOW, Machine

MOST_BUSY = 1.0
"""Seconds of the event loop's own thread for a whole snapshot; 0.25 at most when it was written."""


@pytest.fixture(scope="module")
def pi(tmp_path_factory: pytest.TempPathFactory) -> SshServer:
    folder = tmp_path_factory.mktemp("pi")
    with SshServer(folder, options=hostile.options(folder)) as server:
        yield server


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    """The home of an honest member, a folder."""
    home = tmp_path / "stick"
    homes.fill_home(home)
    return home


async def snapshot(machine: Machine, *peers: SnapshotPeer) -> SnapshotResult:
    with machine.folder.alone():
        return await take_snapshot(machine.local(), peers, machine.folder, machine.key, now=NOW)


@pytest.mark.parametrize(
    ("prints", "fails"),
    [
        pytest.param(hostile.ONE_LETTER_LINES, True, id="one-letter-lines"),
        pytest.param(hostile.LONG_SIZE, True, id="size-of-5000-digits"),
        pytest.param(hostile.MANY_FILES, False, id="400000-files"),
        pytest.param(hostile.DEEP_RAPPID, True, id="deep-rappid"),
        pytest.param(hostile.EMPTY_LISTS, True, id="empty-lists"),
        pytest.param(hostile.MANY_TWINS, False, id="many-oversize-twins"),
        pytest.param(hostile.NO_LINE_END, True, id="line-without-end"),
        pytest.param(hostile.ENDLESS_ERRORS, True, id="endless-errors"),
        pytest.param(hostile.MARKED_WORDS, False, id="marked-words"),
    ],
)
async def test_hostile_list_is_that_members_failure_and_holds_nothing(
    pi: SshServer, stick: Path, tmp_path: Path, prints: str, fails: bool
) -> None:
    hostile.print_instead(pi, prints)
    desk = Machine(tmp_path / "desk", "desk")
    peers = [SnapshotPeer("pi", pi.transport()), SnapshotPeer("stick", FolderTransport("stick", stick))]
    async with asyncio.timeout(120), watched_loop() as watch:
        result = await snapshot(desk, *peers)
    assert watch.rounds > 20
    assert watch.longest < LONGEST_HOLD
    assert watch.busy < MOST_BUSY
    assert {one.path.partition("/")[0] for one in result.failed} == ({"pi"} if fails else set())
    assert "stick" in result.record.holds
    assert result.record.twins == 2, "both twins of the honest member"


@pytest.mark.parametrize("free", ["²", "9" * 5000, "-1", "x"])
async def test_probe_with_odd_free_space_does_not_know_it(pi: SshServer, free: str) -> None:
    hostile.print_instead(pi, "pass", free=free)
    found = await pi.transport().probe()
    assert (found.reachable, found.free_bytes) == (True, -1)


class _Broken(FolderTransport):
    """A member whose transport fails as no code expects."""

    def __init__(self, home: Path, at: str) -> None:
        super().__init__("broken", home)
        self._at = at

    async def probe(self) -> MemberProbe:
        return MemberProbe(1 // (self._at != "probe") == 1)

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        assert self._at != "list"
        return await super().list(include_archived=include_archived)

    async def activity(self) -> dict[str, object]:  # type: ignore[override]
        return {"": {}[self._at]} if self._at == "activity" else {}

    async def read_twin(self, twin: str, *, archived: bool = False):  # type: ignore[no-untyped-def, override]
        yield b"\xff".decode() if self._at == "read" else b""


@pytest.mark.parametrize("at", ["probe", "list", "activity", "read"])
async def test_failure_that_nobody_expects_is_logged_and_is_that_members(
    stick: Path, tmp_path: Path, at: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Machine(tmp_path / "desk", "desk")
    peers = [
        SnapshotPeer("broken", _Broken(stick, at)),
        SnapshotPeer("stick", FolderTransport("stick", stick)),
    ]
    with caplog.at_level(logging.ERROR):
        result = await snapshot(desk, *peers)
    assert {one.path.partition("/")[0] for one in result.failed} == {"broken"}
    assert result.record.twins == 2
    assert any(record.exc_info and record.exc_info[2] for record in caplog.records), "the trace is in the log"
