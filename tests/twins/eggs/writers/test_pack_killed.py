"""Packing that is killed at any step, or meets a full disk: the egg is whole or not there, the old one stays."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.twins.eggs.writers.nest import AT, Nest, contents
from twins.eggs import integrity
from twins.eggs.writers.formats import EggFormat
from twins.errors import TwinConflictError

pytestmark = pytest.mark.forks

STEPS = ("open", "os.rename", "os.remove", "os.link", "os.mkdir")
DONE = 0
KILLED = 9
REFUSED = 3


def in_child(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> int:
    """The exit code of a process of its own that does this."""
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            before()
            try:
                work()
                code = DONE
            except TwinConflictError:
                code = REFUSED
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int) -> Callable[[], None]:
    """Makes the process die at its ``step``-th dealing with the disk."""

    def arm() -> None:
        left = step

        def hook(event: str, _: object) -> None:
            nonlocal left
            if event in STEPS:
                left -= 1
                if left < 0:
                    os._exit(KILLED)

        sys.dont_write_bytecode = True  # what is compiled on the way is no step
        sys.addaudithook(hook)

    return arm


def state(path: Path) -> str:
    """The egg that lies there, after everything about it was found right."""
    beside = path.with_name(path.name + ".sig")
    if not path.exists():
        assert not beside.exists()
        return "none"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if beside.exists():
        integrity.check(beside.read_bytes()).covers(digest)
    members = contents(path)
    if integrity.MEMBER in members:
        sealed = integrity.check(members.pop(integrity.MEMBER))
        sealed.compare({name: hashlib.sha256(content).hexdigest() for name, content in members.items()})
    return digest


@pytest.mark.parametrize("form", [EggFormat.TWIN, EggFormat.RAPP1_ORGANISM])
@pytest.mark.parametrize("again", [False, True])
def test_killed_at_any_step_it_leaves_the_old_egg_or_the_new_one(
    nest: Nest, form: EggFormat, again: bool
) -> None:
    target = nest.folder / "some.egg"
    new = nest.pack(form, target=nest.folder / "new.egg").sha256
    old = nest.pack(form, target=target, at=AT.replace(year=2025)).sha256 if again else "none"
    seen = set()
    for step in range(400):
        code = in_child(lambda: nest.pack(form, target=target), killed_at(step))
        assert code in (DONE, KILLED)
        now = state(target)
        assert now in (old, new)
        seen.add(now)
        left = {path.name for path in nest.folder.iterdir() if not path.name.startswith(".")}
        assert left - {"home", "new.egg", "new.egg.sig", "some.egg", "some.egg.sig"} == set()
        if code == DONE:
            break
        if now == new and again:  # begin anew from the old one, so that every later step is met too
            nest.pack(form, target=target, at=AT.replace(year=2025))
        elif now == new:
            target.unlink()
            target.with_name("some.egg.sig").unlink(missing_ok=True)
    else:
        pytest.fail("it never came to its end")
    assert step > 20 and seen == {old, new}


def test_a_full_disk_is_said_and_leaves_nothing(nest: Nest) -> None:
    nest.put(".brainstem_data/noise", os.urandom(3 << 20))
    target = nest.folder / "some.egg"

    def small_disk() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    assert in_child(lambda: nest.pack(target=target), small_disk) == REFUSED
    assert not target.exists() and not list(nest.folder.glob(".*"))
    nest.pack(target=target, exclude_memory=True)
    before = state(target)
    assert in_child(lambda: nest.pack(target=target), small_disk) == REFUSED
    assert state(target) == before and not list(nest.folder.glob(".*"))


def test_a_place_where_nothing_can_be_written_is_said(nest: Nest) -> None:
    nest.put("a file")
    for target in (nest.workspace.root / "a file" / "x.egg", nest.folder):
        with pytest.raises(TwinConflictError, match="nothing was packed"):
            nest.pack(target=target)
    with pytest.raises(TwinConflictError):
        nest.pack(target=nest.folder / ("x" * 300))


def test_an_interrupted_packing_leaves_nothing(nest: Nest) -> None:
    nest.put(".brainstem_data/large", os.urandom(3 << 20))

    def interrupt(phase: str, done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nest.pack(progress=interrupt)
    assert not list(nest.folder.glob("*.egg")) and not list(nest.folder.glob(".*"))


def test_no_file_stays_open(nest: Nest) -> None:
    nest.put(".brainstem_data/large", os.urandom(3 << 20))
    nest.pack()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for form in EggFormat:
        nest.pack(form)
    with pytest.raises(TwinConflictError):
        nest.pack(overwrite=False)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_memory_stays_flat(bare: Nest) -> None:
    with (bare.workspace.data / "large").open("wb") as file:
        for number in range(120):
            file.write(random_megabyte(number))

    def pack_it() -> None:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        bare.pack()
        bare.pack(EggFormat.RAPP1_ORGANISM)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 40_000, f"{grown} KB"

    assert in_child(pack_it) == DONE


def random_megabyte(number: int) -> bytes:
    return hashlib.shake_256(number.to_bytes(4, "big")).digest(1 << 19) + b"prose of all kinds, " * 26_214
