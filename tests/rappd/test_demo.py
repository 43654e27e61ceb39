"""The machines of the demonstration: real daemons that are gone afterwards, whatever ended the story."""

from __future__ import annotations

from pathlib import Path

import pytest

from rappd.demo.machine import DemoMachine, awake
from rappd.errors import RappdError
from rappd.home import Home

pytestmark = pytest.mark.timeout(180)


class Interrupted(Exception):
    """Stands for whatever goes wrong in the middle."""


def test_machines_run_as_long_as_the_block_and_no_longer(tmp_path: Path) -> None:
    desk, pi = machines = [DemoMachine(tmp_path, name) for name in ("desk", "pi")]
    with pytest.raises(Interrupted), awake(machines):
        assert desk.daemon.get("/operator/status")["node"].startswith("desk")
        assert pi.daemon.get("/peers")["self"]["name"] == "pi"
        assert not desk.ended(0)
        raise Interrupted
    assert all(machine.ended(0) for machine in machines)
    assert not any(machine.daemon.running() for machine in machines)


def test_a_killed_machine_comes_back_at_its_door_with_its_key(tmp_path: Path) -> None:
    shed = DemoMachine(tmp_path, "shed")
    with awake([shed]):
        before = shed.daemon.get("/peers")
        shed.kill()
        assert shed.ended(0)
        shed.start()
        shed.wait_awake()
        after = shed.daemon.get("/peers")
    assert after["self"] == before["self"]
    assert after["door"] == before["door"]
    assert shed.door.endswith(f":{after['door']['port']}")


def test_one_that_cannot_start_is_named_with_what_it_said_and_takes_the_others_along(tmp_path: Path) -> None:
    desk, pi = machines = [DemoMachine(tmp_path, name) for name in ("desk", "pi")]
    pi.home.create()
    held = Home(pi.home.root).hold()  # another daemon has that home
    try:
        with pytest.raises(RappdError, match="pi ended at once") as refused, awake(machines):
            pytest.fail("pi cannot be awake")
    finally:
        held.release()
    said = str(refused.value)
    assert "\n" not in said and "✗" in said, "no file may be pointed to: they go with the demonstration"
    assert str(pi.home.log) not in said and refused.value.do != f"see {pi.home.log}"
    assert desk.ended(0) and pi.ended(0)
