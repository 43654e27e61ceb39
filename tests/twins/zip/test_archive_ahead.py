"""Work on several cores: the order, the first failure, nothing left behind; and archives that show none of it."""

from __future__ import annotations

import hashlib
import io
import random
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.twins.eggs.crafted_zip import DEFLATED, Crafted, built
from twins.errors import BadEggError, BadFileError
from twins.zip import deflate, ordered_pool, writer
from twins.zip.chunks import PIECE
from twins.zip.extracting import extract
from twins.zip.ordered_pool import OrderedThreadPool, PoolStoppedError, beside, in_tasks
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

NOISE = random.Random(1).randbytes(2 * PIECE + 7)
TEXT = b"".join(b"line %d of a long story\n" % n for n in range(200_000))
MANY = {f"notes/{n:04}.md": TEXT[n * 100 : n * 117 + n] for n in range(2_000)}
FILES = {
    **MANY,
    "pictures/1.jpg": NOISE,
    "story.txt": TEXT,
    "text and noise": TEXT + NOISE,
    "zeros": bytes(66 << 20),
    "zz": b"the end",
}


def on(cores: int, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ordered_pool, "_cores", lambda: cores)


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def _slow(number: int, moment: float) -> int:
    time.sleep(moment)
    return number


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_come_in_the_order_of_the_work(threads: int) -> None:
    chance = random.Random(threads)
    with OrderedThreadPool[int](threads=threads) as crew:
        works = [partial(_slow, number, chance.random() / 100) for number in range(60)]
        assert list(crew.each(works)) == list(range(60))


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_failure_in_order_is_told(threads: int) -> None:
    def work(number: int) -> int:
        if number == 21:
            time.sleep(0.2)  # by then the next one has failed
            raise BadEggError("the first")
        if number == 22:
            raise BadEggError("the second")
        return number

    taken = []
    with pytest.raises(BadEggError, match="the first"), OrderedThreadPool[int](threads=threads) as crew:
        for number in crew.each(partial(work, number) for number in range(1000)):
            taken.append(number)
    assert taken == list(range(21))


def test_it_runs_ahead_no_further_than_it_may() -> None:
    begun: list[int] = []
    with OrderedThreadPool[None](threads=2) as crew:
        for number in range(50):
            taken = len(begun) - len(crew._pending)
            assert number - taken <= 50 and len(crew._pending) <= 6
            crew.put(partial(begun.append, number))


def test_one_core_and_little_work_need_no_thread() -> None:
    with OrderedThreadPool[int](threads=1) as crew:
        assert set(crew.each([threading.get_ident] * 20)) == {threading.get_ident()}
    with OrderedThreadPool[int](threads=4) as crew:
        assert set(crew.each([threading.get_ident] * 4)) == {threading.get_ident()}


def test_what_takes_long_is_given_up_when_something_failed() -> None:
    ended = []
    all_at_work = threading.Barrier(3, timeout=100)

    def endless() -> Iterator[bytes]:
        while True:
            time.sleep(0.01)
            yield b"more"

    def long() -> None:
        all_at_work.wait()
        try:
            for _ in crew.unless_stopped(endless()):
                pass
        except PoolStoppedError:
            ended.append("stopped")
            raise

    def broken() -> None:
        all_at_work.wait()
        raise BadEggError("broken")

    nothing: Callable[[], None] = lambda: None  # noqa: E731
    with pytest.raises(BadEggError, match="broken"), OrderedThreadPool[None](threads=3) as crew:
        for work in (nothing, nothing, nothing, nothing, broken, long, long):
            crew.put(work)
        list(crew.rest())
    assert ended == ["stopped"] * 2


def test_wait_callback_runs_on_the_callers_thread() -> None:
    seen: set[int] = set()
    with OrderedThreadPool[int](threads=2, meanwhile=lambda: seen.add(threading.get_ident())) as crew:
        list(crew.each([partial(_slow, 0, 0.0)] * 4 + [partial(_slow, 0, 0.3)] * 2))
    assert seen == {threading.get_ident()}


def test_beside_gives_the_result_or_the_failure() -> None:
    with beside(partial(_slow, 7, 0.05)) as done:
        assert done() == 7

    def broken() -> int:
        raise OSError(5, "broken")

    with pytest.raises(OSError, match="broken"), beside(broken) as done:
        done()


def test_small_files_are_handed_on_together_and_large_ones_alone() -> None:
    sizes = [10] * 100 + [PIECE * 5, 0, 0, PIECE, 10]
    tasks = list(in_tasks(enumerate(sizes)))
    assert [number for task in tasks for number in task] == list(range(len(sizes)))
    assert [len(task) for task in tasks] == [64, 36, 1, 3, 1]
    assert list(in_tasks([])) == []


def _packed() -> bytes:
    file = io.BytesIO()
    with ArchiveWriter(file) as writer:
        for name, content in FILES.items():
            written = writer.add(name, content)
            assert written == (name, len(content), hashlib.sha256(content).hexdigest())
        writer.finish()
    return file.getvalue()


def _by_zlib(content: bytes) -> bytes:
    stream = zlib.compressobj(1, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()


def _unsteady(shrink: Callable[[bytes], bytes], chance: random.Random, content: bytes) -> bytes:
    time.sleep(chance.random() / 500)
    return shrink(content)


def test_the_number_of_cores_and_their_speed_show_in_no_byte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With zlib, since what ISA-L makes of the same file is now and then another stream by itself."""
    chance = random.Random(1)
    for module in (writer, deflate):
        monkeypatch.setattr(module, "deflated", partial(_unsteady, _by_zlib, chance), raising=False)
    monkeypatch.setattr(deflate, "_compressor", zlib.compressobj)
    on(1, monkeypatch)
    alone = _packed()
    for cores in (2, 4):
        on(cores, monkeypatch)
        assert _packed() == alone
    path = tmp_path / "made.egg"
    path.write_bytes(alone)
    with Archive.open(path) as archive:
        assert not archive.deviations
        archive.verify()
        assert all(
            archive.digest(name) == hashlib.sha256(content).hexdigest() for name, content in FILES.items()
        )


def test_packing_that_fails_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    on(4, monkeypatch)
    with pytest.raises(BadFileError, match="cannot go into an egg"), ArchiveWriter(io.BytesIO()) as writer:
        for name, content in MANY.items():
            writer.add(name, content)
        writer.add("../up", b"")


def _crafted(*broken: str) -> bytes:
    members = []
    for number, (name, content) in enumerate([*MANY.items(), ("large", TEXT * 3), ("last", NOISE)]):
        crc = {"crc": 1} if name in broken else {}
        members.append(Crafted(name.encode(), content, DEFLATED if number % 2 else 0, **crc))  # type: ignore[arg-type]
    return built(members)


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize(
    "broken",
    [("notes/0003.md",), ("notes/1500.md", "notes/1501.md"), ("large", "last"), ("notes/0900.md", "last")],
)
def test_the_first_file_that_is_not_whole_is_named(
    broken: tuple[str, ...], cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on(cores, monkeypatch)
    path, out = tmp_path / "some.egg", tmp_path / "out"
    out.mkdir()
    path.write_bytes(_crafted(*broken))
    with Archive.open(path) as archive:
        for _ in range(3):
            with pytest.raises(BadEggError, match=rf"some\.egg is damaged \({broken[0]}\)"):
                archive.verify()
        with pytest.raises(BadEggError, match=rf"some\.egg is damaged \({broken[0]}\)"):
            extract(archive, out)


@pytest.mark.parametrize("cores", [1, 3])
def test_all_comes_out_on_any_number_of_cores(
    cores: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on(cores, monkeypatch)
    path, out = tmp_path / "some.egg", tmp_path / "out"
    out.mkdir()
    path.write_bytes(_crafted())
    contents = {**MANY, "large": TEXT * 3, "last": NOISE}
    with Archive.open(path) as archive:
        archive.verify()
        written = extract(archive, out)
    assert [(one.name, one.size, one.sha256) for one in written] == [
        (name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
    ]
    found = {one.relative_to(out).as_posix(): one.read_bytes() for one in out.rglob("*") if one.is_file()}
    assert found == contents
