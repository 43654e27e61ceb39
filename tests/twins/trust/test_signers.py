"""Keys that the operator trusts: exact, remembered, revocable."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.identity.keys import IdentityKey
from tests.twins.installer.a_home import KITCHEN, MEMORY, NOW, AHome
from twins.errors import BadFileError, NoSuchFileError, TwinError
from twins.installer.errors import BadFingerprintError
from twins.trust.signers import Signers


def test_trust_is_remembered_and_revoked(home: AHome) -> None:
    key = IdentityKey.generate().fingerprint
    home.signers.trust(key, " kitchen ", now=NOW)
    again = Signers(home.root / "signers.json")
    assert again.is_trusted(key)
    assert [(one.fingerprint, one.name, one.since) for one in again.listing()] == [
        (key, "kitchen", "2026-11-21T09:40:00Z")
    ]
    assert home.signers.revoke(key).name == "kitchen"
    assert not again.is_trusted(key)
    with pytest.raises(NoSuchFileError):
        home.signers.revoke(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bb",
        KITCHEN.upper(),
        KITCHEN + "b",
        KITCHEN + "\n",
        "0x" + KITCHEN[2:],
        "ｂ" * 64,
        KITCHEN[:-1] + "g",
    ],
)
def test_only_a_fingerprint_is_a_fingerprint(home: AHome, text: str) -> None:
    for verb in (lambda: home.signers.trust(text, "x"), lambda: home.signers.revoke(text)):
        with pytest.raises(BadFingerprintError):
            verb()
    assert not (home.root / "signers.json").exists()
    assert not home.signers.is_trusted(text)


@given(st.text(max_size=80))
def test_no_other_text_is_ever_trusted(text: str) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        signers = Signers(Path(folder) / "signers.json")
        signers.trust(KITCHEN, "kitchen")
        assert signers.is_trusted(text) == (text == KITCHEN)


def test_a_name_is_one_line(home: AHome) -> None:
    with pytest.raises(TwinError):
        home.signers.trust(KITCHEN, "a\x1b[2Jb")
    with pytest.raises(TwinError):
        home.signers.trust(KITCHEN, "  ")
    assert home.signers.name_of(KITCHEN) == ""


def test_a_damaged_file_trusts_nobody(home: AHome) -> None:
    home.signers.trust(KITCHEN, "kitchen")
    for content in (b"", b"[]", b'{"signers": {"x": {"name": "a", "since": "b"}}}', b'{"signers": []}'):
        (home.root / "signers.json").write_bytes(content)
        with pytest.raises(BadFileError, match="no key is trusted"):
            home.signers.is_trusted(KITCHEN)


def test_another_process_is_seen_at_once(home: AHome) -> None:
    assert not home.signers.is_trusted(KITCHEN)
    child = os.fork()
    if child == 0:
        Signers(Path(home.root / "signers.json")).trust(KITCHEN, "kitchen")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert home.signers.is_trusted(KITCHEN)
