"""The brainstem gets a rappid once, and lives through upgrades with an egg of what was before."""

from __future__ import annotations

import json
from collections.abc import Callable

from fixtures.running_daemon import RunningDaemon

from twins.eggs.readers.detect import open_egg


def identity(daemon: RunningDaemon) -> dict[str, object]:
    found: dict[str, object] = json.loads((daemon.home / "brainstem" / "rappid.json").read_text())
    return found


def test_the_first_start_mints_a_rappid_and_later_ones_leave_it(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    first = identity(daemon)
    assert str(first["rappid"]).startswith("rappid:@")
    daemon.stop()
    daemon.start()
    assert identity(daemon) == first


def test_new_version_lays_egg_and_counts_incarnation(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    (daemon.home / "brainstem" / "soul.md").write_text("# Soul\n\nBefore the upgrade.\n")
    daemon.stop()
    (daemon.home / "version").write_text("0.0.9\n")
    before = identity(daemon)
    daemon.start()
    after = identity(daemon)
    assert after["rappid"] == before["rappid"]
    assert after["incarnations"] == 1
    events = json.loads((daemon.home / "brainstem" / "bonds.json").read_text())["events"]
    assert [event["kind"] for event in events] == ["adoption", "bond"]
    assert events[1]["from_version"] == "0.0.9"
    (egg,) = (daemon.home / "eggs" / "brainstem").glob("*.egg")
    with open_egg(egg) as opened:
        soul = next(part for part in opened.parts if part.role == "soul")
        assert b"Before the upgrade." in soul.read()
    daemon.stop()
    daemon.start()
    assert identity(daemon)["incarnations"] == 1


def test_a_damaged_rappid_keeps_nobody_out(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.stop()
    path = daemon.home / "brainstem" / "rappid.json"
    path.write_text("{ not json")
    (daemon.home / "version").write_text("0.0.9\n")
    daemon.start()
    assert daemon.chat("hello")["response"]
    assert path.read_text() == "{ not json"
