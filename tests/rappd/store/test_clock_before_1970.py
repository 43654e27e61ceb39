"""A computer without a clock of its own may start before 1970: what it signs then is read later."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from envelopes.identity.keys import IdentityKey
from rappd.store.anchor import Anchorer
from rappd.store.records import Record
from rappd.store.store import Store


async def test_anchor_signed_before_1970_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, key = tmp_path / "rappd.db", IdentityKey.generate()
    store = await Store.open(path)
    await store.commit(Record("aaaaaaaa-0000-4000-8000-000000000001", "HELP", "guid", "desk", "1", b"{}", 1))
    with monkeypatch.context() as early:
        early.setattr(time, "time_ns", lambda: -86_400 * 10**9)
        anchorer = Anchorer(path, key)
        assert anchorer.open_log().signed
        anchorer.close()
    anchorer = Anchorer(path, key)
    assert anchorer.open_log().problems == []
    anchorer.close()
    await store.close()
