from __future__ import annotations

import base64
import os
import resource
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyrage
import pytest
from fixtures.refusals import refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures import bech32
from twins.eggs.encryption import is_sealed, make_encryption_key, open_file, recipient_of, seal_file
from twins.errors import BadEggError, TwinError
from twins.installer.errors import DiskFullError

SECRET, RECIPIENT = make_encryption_key()
OTHER_SECRET, OTHER_RECIPIENT = make_encryption_key()
MISTYPED = RECIPIENT[:-1] + ("q" if RECIPIENT[-1] != "q" else "p")
CHUNK = 65536

UNDER_A_PASSWORD = (
    "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IHNjcnlwdCB0MjBYY0RsYUlteWF6ZTh6cjIwMGdRIDE5ClJMNkhBUnhJako5MGJwQlpC"
    "eXozeEZmWW8zY1F1OWp0T3BaeGtsNmI5WTAKLS0tIG1GWWRMWURWcmxpQXhCaE1FNUpicTJZTkgyOGtOS0lGNEpsY0ZmNkFqd00K"
    "6UT0LsV1k8j09RmaF9nSZQyQAiOm1SVpNKYhuav3z7wGFK8="
)
"""``pyrage.passphrase.encrypt(b"egg", "password")``, which takes a second or two by its design."""


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """A sealed egg of three chunks and a bit."""
    source = tmp_path / "twin.egg"
    source.write_bytes(os.urandom(3 * CHUNK + 17))
    seal_file(source, tmp_path / "twin.egg.age", RECIPIENT)
    return tmp_path / "twin.egg.age"


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_key_is_made_and_its_recipient_found_again() -> None:
    assert SECRET.startswith("AGE-SECRET-KEY-1")
    assert RECIPIENT.startswith("age1") and len(RECIPIENT) == 62
    assert str(pyrage.x25519.Identity.from_str(SECRET).to_public()) == RECIPIENT, (
        "what age itself makes of it"
    )
    assert recipient_of(SECRET) == recipient_of(f"{SECRET}\n") == RECIPIENT != OTHER_RECIPIENT


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2_500_000])
def test_what_was_sealed_comes_out_again(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)
    seal_file(tmp_path / "a", tmp_path / "b", RECIPIENT)
    open_file(tmp_path / "b", tmp_path / "c", SECRET)
    assert (tmp_path / "c").read_bytes() == content
    assert is_sealed(tmp_path / "b") and not is_sealed(tmp_path / "a") and not is_sealed(tmp_path / "c")
    assert size < 20 or content not in (tmp_path / "b").read_bytes()
    assert files(tmp_path) == {"a", "b", "c"}
    for made in ("b", "c"):
        assert stat.S_IMODE((tmp_path / made).stat().st_mode) == 0o600


def test_other_programs_that_know_age_read_and_write_it(tmp_path: Path, sealed: Path) -> None:
    identity = pyrage.x25519.Identity.from_str(SECRET)
    assert pyrage.decrypt(sealed.read_bytes(), [identity]) == (tmp_path / "twin.egg").read_bytes()
    foreign = pyrage.encrypt(
        b"egg", [pyrage.x25519.Recipient.from_str(r) for r in (OTHER_RECIPIENT, RECIPIENT)]
    )
    (tmp_path / "foreign").write_bytes(foreign)
    open_file(tmp_path / "foreign", tmp_path / "out", SECRET)
    assert (tmp_path / "out").read_bytes() == b"egg"


def test_a_file_may_be_opened_in_its_own_place(tmp_path: Path, sealed: Path) -> None:
    open_file(sealed, sealed, SECRET)
    assert sealed.read_bytes() == (tmp_path / "twin.egg").read_bytes()


def test_an_egg_for_another_machine_stays_closed(tmp_path: Path, sealed: Path) -> None:
    (tmp_path / "out").write_bytes(b"kept")
    with refused("not_for_this_machine", match="another machine") as caught:
        open_file(sealed, tmp_path / "out", OTHER_SECRET)
    assert caught.value.do
    assert (tmp_path / "out").read_bytes() == b"kept"
    assert files(tmp_path) == {"twin.egg", "twin.egg.age", "out"}


def test_an_egg_under_a_password_is_not_for_this_machine_either(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(base64.b64decode(UNDER_A_PASSWORD))
    with pytest.raises(TwinError):
        open_file(tmp_path / "a", tmp_path / "out", SECRET)
    assert files(tmp_path) == {"a"}


@pytest.mark.parametrize(
    "length",
    [22, 60, 200, -3 * CHUNK, -CHUNK, -17 - 16, -1],
    ids=["magic alone", "in the header", "late in it", "one chunk", "two", "whole chunks only", "a byte"],
)
def test_an_egg_that_was_cut_short_is_damaged(tmp_path: Path, sealed: Path, length: int) -> None:
    sealed.write_bytes(sealed.read_bytes()[:length])
    with pytest.raises(BadEggError, match="damaged or cut short"):
        open_file(sealed, tmp_path / "out", SECRET)
    assert files(tmp_path) == {"twin.egg", "twin.egg.age"}


@given(st.integers(0, 1000), st.integers(1, 255))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_byte_of_a_sealed_egg_can_be_changed(tmp_path: Path, place: int, change: int) -> None:
    (tmp_path / "a").write_bytes(b"an egg" * 20)
    seal_file(tmp_path / "a", tmp_path / "b", RECIPIENT)
    content = bytearray((tmp_path / "b").read_bytes())
    content[place % len(content)] ^= change
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(TwinError) as caught:
        open_file(tmp_path / "b", tmp_path / "out", SECRET)
    assert caught.value.code in ("bad_egg", "not_for_this_machine")
    assert files(tmp_path) == {"a", "b"}


def test_nothing_may_follow_a_sealed_egg(tmp_path: Path, sealed: Path) -> None:
    sealed.write_bytes(sealed.read_bytes() + b"x")
    with pytest.raises(BadEggError, match="damaged"):
        open_file(sealed, tmp_path / "out", SECRET)


def test_a_head_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.write(b"age-encryption.org/v1\n-> X25519 ")
        file.truncate(1 << 40)  # a tebibyte, of which nothing is on the disk
    with pytest.raises(BadEggError, match="damaged"):
        open_file(tmp_path / "a", tmp_path / "out", SECRET)


@pytest.mark.parametrize("line", [b"-> a\n\n", b"A\n"], ids=["recipients", "lines of one"])
def test_head_of_ten_thousand_lines_costs_no_time(tmp_path: Path, line: bytes) -> None:
    """The library reads its head anew for each line, and stops every thread meanwhile: 64 KiB took 48 seconds."""

    def sealed_with(lines: int) -> None:
        head = b"age-encryption.org/v1\n-> g\n" * (line == b"A\n") or b"age-encryption.org/v1\n"
        (tmp_path / "a").write_bytes(head + line * lines + b"--- " + b"A" * 43 + b"\n" + bytes(100))
        with pytest.raises(TwinError) as caught:
            open_file(tmp_path / "a", tmp_path / "out", SECRET)
        assert caught.value.code in ("bad_egg", "not_for_this_machine")

    sealed_with(10)
    began = time.process_time()
    sealed_with(60_000 // len(line))
    assert time.process_time() - began < 1
    assert files(tmp_path) == {"a"}


def test_egg_for_a_hundred_machines_opens(tmp_path: Path) -> None:
    others = [make_encryption_key()[1] for _ in range(100)]
    keys = [pyrage.x25519.Recipient.from_str(one) for one in (*others, RECIPIENT)]
    (tmp_path / "a").write_bytes(pyrage.encrypt(b"egg", keys))
    open_file(tmp_path / "a", tmp_path / "out", SECRET)
    assert (tmp_path / "out").read_bytes() == b"egg"


@pytest.mark.parametrize("change", ["swapped", "twice", "left out", "cut", "of another egg", "two eggs"])
def test_chunks_of_a_sealed_egg_stay_where_they_were(tmp_path: Path, sealed: Path, change: str) -> None:
    whole = sealed.read_bytes()
    head, size = len(whole) - 17 - 16 - 3 * (CHUNK + 16), CHUNK + 16
    chunks = [whole[at : at + size] for at in range(head, len(whole), size)]
    seal_file(tmp_path / "twin.egg", tmp_path / "other", RECIPIENT)  # the same egg for the same machine
    other = (tmp_path / "other").read_bytes()
    one, two, *rest = chunks
    changed = {
        "swapped": [two, one, *rest],
        "twice": [one, one, two, *rest],
        "left out": [one, *rest],
        "cut": [one, two],
        "of another egg": [one, other[head + size : head + 2 * size], *rest],
        "two eggs": [*chunks, other],
    }[change]
    sealed.write_bytes(whole[:head] + b"".join(chunks))
    open_file(sealed, tmp_path / "out", SECRET)
    (tmp_path / "out").unlink()
    sealed.write_bytes(whole[:head] + b"".join(changed))
    with pytest.raises(BadEggError, match="damaged or cut short"):
        open_file(sealed, tmp_path / "out", SECRET)
    assert files(tmp_path) == {"twin.egg", "twin.egg.age", "other"}


def test_egg_with_the_head_of_another_is_damaged(tmp_path: Path, sealed: Path) -> None:
    """An egg for another machine under a head for this one: its key is not that of the chunks."""
    seal_file(tmp_path / "twin.egg", tmp_path / "theirs", OTHER_RECIPIENT)
    mine, theirs = sealed.read_bytes(), (tmp_path / "theirs").read_bytes()
    head = mine.index(b"\n--- ") + 5 + 43 + 1
    sealed.write_bytes(mine[:head] + theirs[head:])
    with pytest.raises(BadEggError, match="damaged"):
        open_file(sealed, tmp_path / "out", SECRET)


@given(st.binary(max_size=300).filter(lambda content: not content.startswith(b"age-")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_not_sealed_is_said_to_be_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert not is_sealed(tmp_path / "a")
    with pytest.raises(BadEggError, match="is not sealed"):
        open_file(tmp_path / "a", tmp_path / "out", SECRET)


@pytest.mark.parametrize("text", ["", "age1", SECRET, MISTYPED, RECIPIENT + " x", "ä"])
def test_a_key_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_bytes(b"egg")
    with refused("bad_sealing_key"):
        seal_file(tmp_path / "a", tmp_path / "b", text)
    assert files(tmp_path) == {"a"}


@pytest.mark.parametrize(
    "text", ["", RECIPIENT, SECRET[:-1], SECRET.lower(), "ä", bech32.encode("age", bytes(32))]
)
def test_a_secret_that_is_none_is_refused(tmp_path: Path, sealed: Path, text: str) -> None:
    with refused("bad_sealing_key"):
        open_file(sealed, tmp_path / "out", text)
    with refused("bad_sealing_key"):
        recipient_of(text)


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "wanted.egg"
    if kind == "folder":
        source.mkdir()
    elif kind == "pipe":
        os.mkfifo(source)
    for act, key in ((seal_file, RECIPIENT), (open_file, SECRET)):
        with refused("not_writable", match=r"wanted\.egg"):
            act(source, tmp_path / "out", key)
    assert not (tmp_path / "out").exists()


def test_no_folder_to_write_to(tmp_path: Path, sealed: Path) -> None:
    with refused("not_writable", match="out"):
        open_file(sealed, tmp_path / "none" / "out", SECRET)
    (tmp_path / "out").mkdir()
    with refused("not_writable", match="out"):
        open_file(sealed, tmp_path / "out", SECRET)
    assert files(tmp_path) == {"twin.egg", "twin.egg.age", "out"}


_WITH_LITTLE_ROOM = """
import resource, signal, sys
from pathlib import Path
from twins.eggs.encryption import open_file, seal_file
from twins.installer.errors import DiskFullError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    (seal_file if sys.argv[1] == "seal" else open_file)(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
except DiskFullError as error:
    print(error, error.do)
"""


@pytest.mark.parametrize("verb", ["seal", "open"])
def test_when_the_disk_is_full_nothing_is_left_behind(tmp_path: Path, sealed: Path, verb: str) -> None:
    source, key = (tmp_path / "twin.egg", RECIPIENT) if verb == "seal" else (sealed, SECRET)
    (tmp_path / "out").write_bytes(b"kept")
    said = subprocess.run(
        [sys.executable, "-c", _WITH_LITTLE_ROOM, verb, source, tmp_path / "out", key],
        capture_output=True,
        text=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert "The disk is full; out was not written, not even half. Make room" in said.stdout, said.stderr
    assert (tmp_path / "out").read_bytes() == b"kept"
    assert files(tmp_path) == {"twin.egg", "twin.egg.age", "out"}
    assert DiskFullError.status == 507


_WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
from twins.eggs.encryption import open_file, seal_file
import pyrage
seal_file(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[4])
open_file(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[5])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_large_file_is_never_in_memory(tmp_path: Path) -> None:
    peaks = []
    places = [tmp_path / name for name in "abc"]
    for size in (1, 96 << 20):
        with (tmp_path / "a").open("wb") as file:
            file.truncate(size)
        said = subprocess.run(
            [sys.executable, "-c", _WITH_LITTLE_MEMORY, *places, RECIPIENT, SECRET],
            capture_output=True,
            text=True,
            timeout=100,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        assert (tmp_path / "c").stat().st_size == size, said.stderr
        peaks.append(int(said.stdout))
    assert peaks[1] - peaks[0] < 16 << 10  # KiB


def test_other_threads_run_while_a_file_is_sealed(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(24 << 20)
    sealing = threading.Thread(target=seal_file, args=(tmp_path / "a", tmp_path / "b", RECIPIENT))
    turns = 0
    wait = threading.Event()
    sealing.start()
    while sealing.is_alive():
        wait.wait(0.001)
        turns += 1
    assert turns > 5
    assert is_sealed(tmp_path / "b")


def test_a_folder_is_not_asked_for_a_seal(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        is_sealed(tmp_path)


def test_secrets_are_new_each_time() -> None:
    assert len({make_encryption_key() for _ in range(20)}) == 20
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 100_000
