"""The legacy listener is open to whom the settings name, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rappd.daemon.home import Home
from rappd.errors import StoreError
from rappd.features.peers.legacy import LegacyOperations
from rappd.settings.load import Settings
from rappd.settings.write import write


class _Listener:
    def __init__(self) -> None:
        self.listening: list[str] = []
        self.allowed: list[str] = []

    def check(self, allowed: Iterable[str]) -> None:
        pass

    async def open(self, allowed: Iterable[str], caps: Iterable[str], *, own: Iterable[str]) -> None:
        self.allowed, self.listening = list(allowed), ["192.0.2.2:7071"]

    async def close(self) -> None:
        self.allowed, self.listening = [], []


@pytest.mark.parametrize("before", [[], ["192.0.2.9"]])
async def test_opening_that_cannot_be_written_down_opens_it_to_nobody_new(
    tmp_path: Path, before: list[str]
) -> None:
    home = Home(tmp_path)

    async def keep(name: str, text: str) -> None:
        write(home, name, text)

    async def full(name: str, text: str) -> None:
        raise StoreError("The disk is full; this could not be written down.")

    listener = _Listener()
    operations = LegacyOperations(lambda: Settings.load(home, {}), keep, listener)
    if before:
        await operations.open(before)
    operations._write = full
    with pytest.raises(StoreError):
        await operations.open(["192.0.2.77"])
    assert listener.allowed == before
    assert operations.show()["open"] is bool(before)
