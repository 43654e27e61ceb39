"""Staging on several cores: told by one thread, stopped as a whole, and what fails first is what is said."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator

import pytest

from tests.twins.installer.a_home import GARDENER, AHome, egg, leftovers, lies, part
from twins.eggs.parsed_egg import Part, Role
from twins.errors import BadEggError
from twins.zip import ordered_pool

MANY = {f".brainstem_data/{n % 7}/{n:04}.json": b"%d" % n * 20 for n in range(700)}


@pytest.fixture(autouse=True, params=[1, 2, 4])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(ordered_pool, "_cores", lambda: request.param)
    before = set(threading.enumerate())
    yield request.param
    assert set(threading.enumerate()) <= before


def broken(target: str, after: float = 0.0) -> Part:
    """A part that is shorter than it says, which takes a while to show."""

    def chunks() -> Iterator[bytes]:
        time.sleep(after)
        yield b"short"

    return Part(target, Role.MEMORY, target, 10, chunks)


def test_every_file_comes_to_its_place(home: AHome) -> None:
    files = {**GARDENER, **MANY}
    home.importer().hatch(egg(files))
    found = lies(home.twin)
    assert {path: found[path] for path in files} == files
    receipt = home.importer().receipts.find("2")
    hashes = {file.path: file.sha256 for file in receipt.files}
    assert all(hashes[path] == hashlib.sha256(content).hexdigest() for path, content in files.items())


def test_progress_is_told_by_the_thread_that_hatches(home: AHome) -> None:
    told: list[tuple[int, int]] = []
    threads = set()

    def progress(phase: str, done: int, total: int) -> None:
        threads.add(threading.get_ident())
        if phase == "stage":
            told.append((done, total))

    home.importer().hatch(egg({**GARDENER, **MANY}), progress=progress)
    assert threads == {threading.get_ident()}
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(map(len, {**GARDENER, **MANY}.values()))


def test_who_tells_may_stop_it_and_nothing_is_left(home: AHome) -> None:
    class Enough(Exception):
        pass

    def progress(_: str, done: int, total: int) -> None:
        if done > total // 2:
            raise Enough

    with pytest.raises(Enough):
        home.importer().hatch(egg({**GARDENER, **MANY}), progress=progress)
    assert not home.twin.exists()
    assert not leftovers(home.root)


def test_first_damaged_part_is_named_and_nothing_left(home: AHome) -> None:
    parts = [part(path, content, Role.MEMORY) for path, content in MANY.items()]
    parts[500:500] = [broken(".brainstem_data/first", 0.3)]
    parts[600:600] = [broken(".brainstem_data/second")]
    with pytest.raises(BadEggError, match=r"\.brainstem_data/first"):
        home.importer().hatch(egg(GARDENER, *parts))
    assert not home.twin.exists()
    assert not leftovers(home.root)


def test_what_is_longer_than_it_says_is_cut_off(home: AHome) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(50):
            yield b"x" * 1000

    parts = [part(path, content, Role.MEMORY) for path, content in MANY.items()]
    parts.insert(650, Part(".brainstem_data/endless", Role.MEMORY, ".brainstem_data/endless", 5000, endless))
    with pytest.raises(BadEggError, match=r"\.brainstem_data/endless"):
        home.importer().hatch(egg(GARDENER, *parts))
    assert not leftovers(home.root)
