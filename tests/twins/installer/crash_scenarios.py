"""Hatchings and rollbacks to be broken off at every step, each from a state that can be made anew.

A step is whatever changes a file: opening one for writing, renaming, linking, removing, making a folder.
The interpreter tells of each before it happens; there the child process dies, or the disk says no.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.twins.installer.a_home import GARDENER, LATER, NOW, AHome, egg, lies, part
from twins.eggs import frames
from twins.eggs.parsed_egg import Destination, Role
from twins.workspace.workspace import Workspace

DIED, REFUSED, BROKE = 9, 7, 1
_STEPS = frozenset({"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"})
NEEDS_ROOM = frozenset({"os.link", "os.mkdir", "open"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")

SAID = b"".join(frames.encoded(frames.chained("s", [("2026-11-21T09:00:00Z", "user", {"text": "dry?"})])))
MINE = {
    "rappid.json": GARDENER["rappid.json"],
    "soul.md": b"mine\n",
    ".brainstem_data/memory.json": b'{"mine": 1}',
    "agents/water_agent.py": b"mine = 1\n",
}
CODE = ("agents/water_agent.py", "services/pump_service.py")


class Scenario:
    """A thing to do in a home, from a state that is made anew for every try."""

    def __init__(self, home: AHome, elsewhere: Path) -> None:
        self.home = home
        home.root.joinpath("twins").mkdir()
        home.receipts.mkdir(parents=True)
        self.prepare()
        self._template = home.root.with_name("template")
        shutil.copytree(home.root, self._template, symlinks=True)

    def prepare(self) -> None:
        """Makes the home as it is before."""

    def act(self) -> None:
        """Carries out the operation that is cut off."""
        raise NotImplementedError

    def reset(self) -> AHome:
        shutil.rmtree(self.home.root)
        shutil.copytree(self._template, self.home.root, symlinks=True)
        self.home = AHome(self.home.root)
        return self.home

    def state(self) -> dict[str, object]:
        """Everything in the home, whatever the hatchings are called, and what is held."""
        found = {
            _ID.sub("ID", path): _ID.sub("ID", content.decode()) if isinstance(content, bytes) else content
            for path, content in lies(self.home.root, without=lambda path: path == "held.json").items()
        }
        return {**found, "held": sorted(hold.path for hold in AHome(self.home.root).held.listing())}

    def recover(self) -> list[str]:
        return [found.outcome for found in AHome(self.home.root).importer().recover()]


class HatchNew(Scenario):
    def act(self) -> None:
        said = part(".brainstem_data/frames.json", SAID, Role.CONVERSATIONS)
        self.home.importer().hatch(egg(GARDENER, said), now=NOW)


class HatchIntoExisting(Scenario):
    def prepare(self) -> None:
        self.home.live_in(self.home.twin, MINE)

    def act(self) -> None:
        self.home.importer().hatch(egg(GARDENER), overwrite=["soul", "agents", "memory"], now=NOW)


class RollBackNew(Scenario):
    def prepare(self) -> None:
        self.home.importer().hatch(egg(GARDENER), now=NOW)

    def act(self) -> None:
        self.home.importer().rollback("2026", now=LATER)


class RollBackAll(HatchIntoExisting):
    def prepare(self) -> None:
        super().prepare()
        super().act()
        (self.home.twin / "services/pump_service.py").write_bytes(b"edited = 1\n")

    def act(self) -> None:
        self.home.importer().rollback("2026", even_if_changed=True, now=LATER)


class GraftOnAnotherDisk(Scenario):
    """The brainstem's agents lie on another disk, where a rename cannot reach."""

    def __init__(self, home: AHome, elsewhere: Path) -> None:
        self.elsewhere = elsewhere / "agents"
        if elsewhere.stat().st_dev == home.root.stat().st_dev:
            pytest.skip("there is no other disk here")
        super().__init__(home, elsewhere)

    def prepare(self) -> None:
        self.home.brainstem.mkdir()
        self.host = Workspace.at(self.home.brainstem, agents=str(self.elsewhere))

    def reset(self) -> AHome:
        shutil.rmtree(self.elsewhere, ignore_errors=True)
        self.elsewhere.mkdir()
        (self.elsewhere / "k_agent.py").write_bytes(b"mine = 1\n")
        return super().reset()

    def state(self) -> dict[str, object]:
        return {**super().state(), "elsewhere": lies(self.elsewhere)}

    def act(self) -> None:
        files = {
            "agents/k_agent.py": b"x = 1\n",
            "agents/l_agent.py": b"y = 1\n",
            "services/k_service.py": b"z = 1\n",
        }
        graft = egg(files, destination=Destination.HOST, name="k")
        self.home.importer(host=self.host).hatch(graft, overwrite=["agents"], now=NOW)


SCENARIOS = [HatchNew, HatchIntoExisting, RollBackNew, RollBackAll, GraftOnAnotherDisk]


def in_child(work: Callable[[], object], on_step: Callable[[int, str], None]) -> tuple[int, int]:
    """Runs ``work`` in a child process that calls ``on_step(number, event)`` before each change of a file.

    Returns (how it ended, how many steps there were).
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            if event == "open":
                flags = arguments[2]
                if not isinstance(flags, int) or not flags & _WRITES:
                    return
            elif event not in _STEPS:
                return
            count += 1
            os.pwrite(number_file, struct.pack("I", count), 0)
            on_step(count, event)

        ended = BROKE
        number_file = os.memfd_create("steps")
        try:
            sys.dont_write_bytecode = True  # what is compiled on the way is no step
            sys.addaudithook(hook)
            work()
            ended = 0
        except BaseException as error:
            if getattr(error, "code", "") in ("disk_full", "not_writable"):
                ended = REFUSED
            else:
                traceback.print_exc()
        finally:
            os.write(writing, os.pread(number_file, 4, 0))
            os._exit(ended)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, struct.unpack("I", told)[0] if told else 0


def die_at(number: int) -> Callable[[int, str], None]:
    """Ends the child before step ``number``."""

    def on_step(count: int, event: str) -> None:
        if count == number:
            os._exit(DIED)

    return on_step
