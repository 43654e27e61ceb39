"""Killed, or failed by the disk, at any step: the twin as it was or as it was then, never a mixture.

A step is whatever changes a file: opening one for writing, renaming, linking, removing, making a folder.
The interpreter tells of each before it happens; there the child process dies, or the disk says no.
"""

from __future__ import annotations

import errno
import os
import shutil
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.twins.checkpoints.garden import Garden, lies
from twins.errors import TwinError

pytestmark = pytest.mark.forks

DIED, REFUSED, BROKE = 9, 7, 1
_STEPS = frozenset(
    {"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.symlink", "os.chmod"}
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

OnStep = Callable[[int, str], None]


class Case:
    """A garden that lived on since its checkpoint, made anew for every try."""

    def __init__(self, garden: Garden) -> None:
        self.garden = garden
        garden.make(note="spring")
        self.then = self.twin()
        garden.live_on()
        self.lived = self.twin()
        self._template = garden.home.with_name("template")
        shutil.copytree(garden.home, self._template, symlinks=True)
        ended, self.steps = in_child(self.act, lambda count, event: None)
        assert ended == 0
        self.went = self.twin()
        assert self.went != self.lived

    def act(self) -> None:
        self.garden.go_back()

    def reset(self) -> None:
        shutil.rmtree(self.garden.home)
        shutil.copytree(self._template, self.garden.home, symlinks=True)

    def twin(self) -> dict[str, str]:
        return self.garden.content() if self.garden.root.is_dir() else {}

    def check(self) -> str:
        """The one of the two that it is, after recovery. A checkpoint that was made stays, and is whole."""
        self.garden.recover()
        assert self.garden.staged() == []
        state = self.twin()
        assert state in (self.lived, self.went)
        made = self.garden.checkpoints.listing(self.garden.twin.key)
        assert 1 <= len(made) <= 2
        if state == self.went:
            assert len(made) == 2
        assert all(one.note for one in made)
        self.garden.look(made[-1].id)
        assert self.garden.recover() == []
        return "went" if state == self.went else "lived"


def in_child(work: Callable[[], object], on_step: OnStep) -> tuple[int, int]:
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
        except TwinError:
            ended = REFUSED
        except BaseException:
            traceback.print_exc()
        finally:
            os.write(writing, os.pread(number_file, 4, 0))
            os._exit(ended)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, struct.unpack("I", told)[0] if told else 0


def die_at(number: int) -> OnStep:
    def on_step(count: int, event: str) -> None:
        if count == number:
            os._exit(DIED)

    return on_step


@pytest.fixture
def case(garden: Garden) -> Iterator[Case]:
    yield Case(garden)


def test_killed_at_any_step(case: Case) -> None:
    assert case.steps > 40
    outcomes = set()
    for number in range(1, case.steps + 1):
        case.reset()
        assert in_child(case.act, die_at(number))[0] == DIED
        outcomes.add(case.check())
    assert outcomes == {"lived", "went"}


def test_killed_at_any_step_and_gone_back_again_at_once(case: Case) -> None:
    """Without a start of the daemon in between: the next verb settles what the crash left."""
    for number in range(1, case.steps + 1, 4):
        case.reset()
        in_child(case.act, die_at(number))
        if (
            not case.garden.root.is_dir()
        ):  # between the two renames: nobody can be found, so nothing can be asked
            case.garden.recover()
        case.act()
        state = {path: text for path, text in case.twin().items() if "soul_history" not in path}
        assert state == {path: text for path, text in case.went.items() if "soul_history" not in path}
        assert case.garden.staged() == []


def test_killed_again_while_recovering(case: Case) -> None:
    for number in range(case.steps // 2, case.steps + 1, 9):
        for second in range(1, 60, 7):
            case.reset()
            in_child(case.act, die_at(number))
            if in_child(case.garden.recover, die_at(second))[0] != DIED:
                break
            case.check()


@pytest.mark.parametrize("how", [errno.ENOSPC, errno.EACCES])
def test_one_step_fails(case: Case, how: int) -> None:
    refused = 0
    for number in range(1 if how == errno.ENOSPC else 3, case.steps + 1, 4):
        case.reset()

        def fail(count: int, event: str, number: int = number) -> None:
            if count == number:
                raise OSError(how, os.strerror(how), "somewhere")

        ended, _ = in_child(case.act, fail)
        assert ended in (0, REFUSED), f"failed at step {number}"
        refused += ended == REFUSED
        assert case.check() == ("lived" if ended == REFUSED else "went"), f"failed at step {number}"
    assert refused > 10


def test_the_disk_is_full_from_some_step_on(case: Case) -> None:
    """Nothing more can be written or made; renaming and removing still work, as on a real disk."""
    needs_room = {"os.link", "os.mkdir", "open", "os.symlink"}
    for number in range(1, case.steps + 1, 5):
        case.reset()

        def fail(count: int, event: str, number: int = number) -> None:
            if count >= number and event in needs_room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        ended, _ = in_child(case.act, fail)
        assert ended in (0, REFUSED), f"full at step {number}"
        assert case.twin() == (case.lived if ended == REFUSED else case.went), f"full at step {number}"
        case.check()


def test_killed_checkpoint_is_whole_or_absent(garden: Garden) -> None:
    folder = garden.home / "eggs"
    ended, steps = in_child(garden.make, lambda count, event: None)
    assert ended == 0
    shutil.rmtree(folder)
    before = garden.content()
    for number in range(1, steps + 1):
        assert in_child(garden.make, die_at(number))[0] == DIED
        made = garden.checkpoints.listing(garden.twin.key)
        assert len(made) <= 1
        for one in made:
            assert not garden.look(one.id).differs
        assert garden.content() == before
        garden.make(hours=1)
        assert [path for path in lies(folder) if path.endswith(".tmp")] == []
        shutil.rmtree(folder)


def test_where_files_can_have_one_name_only_they_are_copied(
    garden: Garden, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*names: object, **more: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    garden.make()
    garden.live_on()
    kept = {
        path: garden.content()[path]
        for path in (".env", ".brainstem_data/kept/good/sly.py", "agents/linked.py")
    }
    monkeypatch.setattr(os, "link", link)
    garden.go_back()
    assert {path: garden.content()[path] for path in kept} == kept
    assert garden.content()["soul.md"] == "You keep the garden.\n"
    assert Path(garden.root / "agents" / "linked.py").is_symlink()
