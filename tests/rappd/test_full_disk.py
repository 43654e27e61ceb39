"""Changes of the owner while the disk is full: each is refused with the reason, and holds neither now nor after a restart."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.full_disk import FillableDisk, fillable_disk
from fixtures.running_daemon import RunningDaemon

from neighborhoods.places import memberships

pytestmark = pytest.mark.needs_root


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[FillableDisk]:
    with fillable_disk(tmp_path) as made:
        yield made


@pytest.fixture
def desk(disk: FillableDisk) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(disk.root / "home", RAPPD_NAME="desk", LLM_FAKE="1").start()
    yield daemon
    disk.empty()
    daemon.stop()


def fill(desk: RunningDaemon, disk: FillableDisk) -> None:
    """Leaves no room, in the event log either."""
    disk.fill()
    while desk.post("/sessions/current/clear", control=True).status == 200:
        pass


def state(desk: RunningDaemon) -> dict[str, Any]:
    """Returns what the owner sees of everything that the test tries to change."""
    seen = {
        name: desk.get(path, control=True).json()
        for name, path in (
            ("tokens", "/tokens"),
            ("neighborhoods", "/neighborhoods"),
            ("schedule", "/neighborhood/schedule"),
            ("signers", "/eggs/signers"),
            ("voice", "/voice"),
        )
    }
    twins = desk.get("/twins", control=True).json()["twins"]
    return seen | {"twins": [(one["name"], one["state"]) for one in twins]}


def listening() -> set[str]:
    """The sockets on which this process, and so the daemon in it, takes connections."""
    own = {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}


def test_changes_on_a_full_disk_are_refused_with_the_reason(desk: RunningDaemon, disk: FillableDisk) -> None:
    def made(path: str, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = desk.post(path, body, control=True).json()
        return found

    rose = made("/twins", {"name": "Rose"})["key"]
    token = made("/tokens", {"name": "door", "caps": ["HELP.brainstem"], "days": 3})["token"]["jti"]
    made("/neighborhoods", {"name": "Chess"})
    desk.request("PUT", "/neighborhood/schedule", {"rule": "daily 03:00"}, control=True)
    fill(desk, disk)
    seen, ports, refused = state(desk), listening(), 0
    for method, path, body in (
        ("POST", "/tokens", {"name": "shed", "caps": ["HELP.brainstem"], "days": 3}),
        ("DELETE", f"/tokens/{token}", None),
        ("DELETE", "/neighborhood/schedule", None),
        ("POST", "/neighborhoods", {"name": "Garden"}),
        ("POST", "/neighborhoods/Chess/leave", {}),
        ("POST", "/eggs/signers", {"fingerprint": "ab" * 32, "name": "Bob"}),
        ("POST", "/settings", {"name": "voice_mode", "value": "on"}),
        ("POST", "/voice/toggle", {}),
        ("POST", f"/twins/{rose}/boot", {}),
    ):
        answer = desk.request(method, path, body, control=True)
        if answer.status == 200:  # the log has room of its own, and may find some again
            assert path.startswith(("/tokens", "/neighborhood/schedule")), path
            seen = state(desk)
            continue
        refused += 1
        assert answer.status == 503, (method, path, answer.body)
        assert answer.json()["error"].startswith("The disk is full"), answer.body
        assert answer.json()["do"].startswith("Free some space"), answer.body
        assert (state(desk), listening()) == (seen, ports), (method, path)
    assert refused >= 6
    disk.empty()
    desk.stop()
    desk.start()
    assert state(desk) == seen


def test_neighborhood_that_could_not_be_written_whole_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    desk = RunningDaemon(tmp_path / "home", RAPPD_NAME="desk", LLM_FAKE="1").start()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(memberships, "write_atomically", full)
            assert desk.post("/neighborhoods", {"name": "Chess"}, control=True).status == 503
        again = desk.post("/neighborhoods", {"name": "Chess"}, control=True)
        assert again.json()["neighborhood"]["name"] == "Chess", again.body
    finally:
        desk.stop()
