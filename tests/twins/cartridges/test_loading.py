from __future__ import annotations

import os
import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest

from envelopes.identity.keys import IdentityKey
from tests.twins.cartridges.test_shapes_and_crossing import FLUFFY
from twins.cartridges.cartridge_io import load, loaded, save
from twins.cartridges.json_documents import encode
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape
from twins.errors import BadCartridgeError, NoSuchFileError
from twins.workspace import workspace as workspaces

NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)
KEY = IdentityKey.generate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fluffy.rappter.egg"


def test_a_signed_cartridge_says_who_signed_it(path: Path) -> None:
    save(path, FLUFFY, key=KEY, at=NOON)
    assert path.with_name("fluffy.rappter.egg.sig").exists()
    found = load(path)
    assert (found.document, found.shape, found.signer, found.notes) == (
        FLUFFY,
        Shape.SEED,
        KEY.fingerprint,
        (),
    )
    renamed = path.with_name("renamed.egg")
    path.rename(renamed)
    path.with_name("fluffy.rappter.egg.sig").rename(path.with_name("renamed.egg.sig"))
    assert load(renamed).signer == KEY.fingerprint


def test_one_edited_by_hand_loads_as_unsigned_and_says_so(path: Path) -> None:
    save(path, FLUFFY, key=KEY, at=NOON)
    path.write_bytes(path.read_bytes().replace(b'"snark": 81', b'"snark": 99'))
    found = load(path)
    assert found.document["stats"]["snark"] == 99
    assert found.signer == ""
    assert found.notes == ("fluffy.rappter.egg was changed after it was signed; it counts as unsigned.",)


@pytest.mark.parametrize("signature", [b"", b"{}", b"\xff", b"x" * (1 << 20)])
def test_a_damaged_signature_signs_nothing(path: Path, signature: bytes) -> None:
    save(path, FLUFFY)
    path.with_name("fluffy.rappter.egg.sig").write_bytes(signature)
    if len(signature) > 1 << 16:
        with pytest.raises(BadCartridgeError, match="larger than"):
            load(path)
    else:
        found = load(path)
        assert found.signer == ""
        assert "counts as unsigned" in found.notes[0]


def test_keyless_save_keeps_only_a_valid_signature(path: Path) -> None:
    save(path, FLUFFY, key=KEY, at=NOON)
    save(path, FLUFFY)
    assert load(path).signer == KEY.fingerprint
    save(path, {**FLUFFY, "name": "Rex"})
    found = load(path)
    assert (found.document["name"], found.signer, found.notes) == ("Rex", "", ())


def test_a_body_that_does_not_match_is_refused_unless_forced(path: Path) -> None:
    egg = convert(FLUFFY, Shape.SPEC)
    egg["body"]["content"]["xp"] = 9999
    path.write_bytes(encode(egg))
    with pytest.raises(BadCartridgeError, match="changed by hand") as refused:
        load(path)
    assert "--force" in refused.value.do
    found = load(path, force=True)
    assert found.document["body"]["content"]["xp"] == 9999
    assert "does not match its own hash" in found.notes[0]
    assert convert(convert(found.document, Shape.BUDDY), Shape.SPEC)["body"]["content"]["xp"] == 9999


def test_what_is_no_cartridge_is_refused(path: Path) -> None:
    with pytest.raises(NoSuchFileError):
        load(path)
    for octets, why in (
        (b"PK\x03\x04rest", "is a packed egg"),
        (b"{}", "is no .rappter.egg"),
        (b'{"_meta": {"type": "lispy-cartridge"}, "_format": "egg"}', "two kinds at once"),
        (b'{"schema": "rappter-egg/1.0", "name": "x"}', "stage is missing"),
    ):
        path.write_bytes(octets)
        with pytest.raises(BadCartridgeError, match=why):
            load(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadCartridgeError, match="is not a file"):
        load(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(BadCartridgeError, match="is not a file"):
        load(path)


def test_a_lispy_cartridge_is_told_apart() -> None:
    found = loaded(b'{"_meta": {"type": "lispy-cartridge", "version": 1}}', name="ant.lispy.json")
    assert found.shape is None


@pytest.mark.parametrize(
    ("call", "after", "name"),
    [
        ("unlink", 0, "Fluffy"),
        ("fsync", 0, "Fluffy"),
        ("replace", 0, "Fluffy"),
        ("fsync", 1, "Rex"),
        ("replace", 1, "Rex"),
    ],
)
def test_killed_save_leaves_whole_file_and_signature(path: Path, call: str, after: int, name: str) -> None:
    save(path, FLUFFY, key=KEY, at=NOON)
    child = os.fork()
    if child == 0:
        try:
            _dies_at(call, after)
            save(path, {**FLUFFY, "name": "Rex"}, key=KEY, at=NOON)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    found = load(path)
    assert found.document["name"] == name
    assert found.notes == ()
    save(path, FLUFFY, key=KEY, at=NOON)
    assert load(path).signer == KEY.fingerprint


def _dies_at(call: str, after: int) -> None:
    """Kills this process when ``os.<call>`` is called for the nth time."""
    original, calls = getattr(os, call), 0

    def deadly(*args: object, **kwargs: object) -> object:
        nonlocal calls
        if calls == after:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1
        return original(*args, **kwargs)

    setattr(workspaces.os, call, deadly)
