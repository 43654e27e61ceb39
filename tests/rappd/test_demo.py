"""The machines of the demonstration: real daemons that are gone afterwards, whatever ended the story."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from rappd.cli.demo import demo
from rappd.daemon.home import Home
from rappd.demo import node
from rappd.demo.interrupts import Interrupts
from rappd.demo.node import DemoNode, running
from rappd.errors import RappdError

pytestmark = pytest.mark.timeout(900)


class Interrupted(Exception):
    """Stands for whatever goes wrong in the middle."""


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_machines_run_as_long_as_the_block_and_no_longer(tmp_path: Path) -> None:
    desk, pi = machines = [DemoNode(tmp_path, name) for name in ("desk", "pi")]
    with pytest.raises(Interrupted), running(machines, Interrupts()):
        assert desk.daemon.get("/operator/status")["node"].startswith("desk")
        assert pi.daemon.get("/peers")["self"]["name"] == "pi"
        assert not desk.ended(0)
        raise Interrupted
    assert all(node.ended(0) for node in machines)
    assert not any(node.daemon.running() for node in machines)


def test_what_interrupts_while_one_starts_finds_it_known(tmp_path: Path) -> None:
    class Slow(DemoNode):
        def start(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().start()

    desk = Slow(tmp_path, "desk")
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, running([desk], interrupts):
        pytest.fail("it was interrupted before")
    assert desk.ended(0) and not desk.daemon.running()
    assert desk._process is not None, "it was started before anything was interrupted"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_only_first_interrupt_counts_and_never_cleanup(number: signal.Signals) -> None:
    tidied = 0
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        try:
            with interrupts.until_here():
                os.kill(os.getpid(), number)
                pytest.fail("the first one interrupts")
        finally:
            assert not interrupts.hurried()
            for _ in range(3):
                os.kill(os.getpid(), number)
                tidied += 1
            assert interrupts.hurried()
    assert tidied == 3
    os.kill(os.getpid(), number)  # the process ends by the first, and its exit code says so
    time.sleep(0.01)


def test_cleanup_after_success_is_not_interrupted() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        with interrupts.until_here():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
    assert signal.getsignal(signal.SIGINT) is before


def test_impatient_person_need_not_wait_for_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rappd.demo.node.STOP_SECONDS", 3600.0)
    desk = DemoNode(tmp_path, "desk")
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, running([desk], interrupts):
        assert desk._process is not None
        os.kill(desk._process.pid, signal.SIGSTOP)  # it hears nothing of being asked to end
        threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT)).start()
        os.kill(os.getpid(), signal.SIGINT)
    assert desk.ended(0)


def test_early_interrupt_leaves_no_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    desk = DemoNode(tmp_path, "desk")
    monkeypatch.setattr(node, "_ask_to_stop", interrupted)
    with pytest.raises(KeyboardInterrupt), running([desk], Interrupts()):
        assert not desk.ended(0)
    assert desk.ended(0)


def test_interrupt_while_making_folder_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def mkdtemp(suffix: str | None, prefix: str | None, dir: str | None) -> str:
        made.append(really(suffix, prefix, tmp_path))
        os.kill(os.getpid(), signal.SIGINT)
        return str(made[-1])

    really = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    found = CliRunner().invoke(demo, ["--json"])
    gc.collect()
    assert (found.exit_code, len(made)) == (1, 1)
    assert list(tmp_path.iterdir()) == []


def test_killed_machine_returns_with_its_key(tmp_path: Path) -> None:
    shed = DemoNode(tmp_path, "shed")
    with running([shed], Interrupts()):
        before = shed.daemon.get("/peers")
        shed.kill()
        assert shed.ended(0)
        shed.start()
        shed.wait_running()
        after = shed.daemon.get("/peers")
    assert after["self"] == before["self"]
    assert after["listener"] == before["listener"]
    assert shed.peer_address.endswith(f":{after['listener']['port']}")


def test_failed_start_is_named_and_stops_the_others(tmp_path: Path) -> None:
    desk, pi = machines = [DemoNode(tmp_path, name) for name in ("desk", "pi")]
    pi.home.create()
    held = Home(pi.home.root).hold()  # another daemon has that home
    try:
        with pytest.raises(RappdError, match="pi ended at once") as refused, running(machines, Interrupts()):
            pytest.fail("pi cannot be running")
    finally:
        held.release()
    said = str(refused.value)
    assert "\n" not in said and "✗" in said, "no file may be pointed to: they go with the demonstration"
    assert str(pi.home.log) not in said and refused.value.do != f"see {pi.home.log}"
    assert desk.ended(0) and pi.ended(0)
