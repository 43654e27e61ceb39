"""A twin that has everything, and ways to look into its eggs with other people's programs."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from envelopes.identity.keys import IdentityKey
from twins.eggs import frames
from twins.eggs.writers.formats import EggFormat, EggMaker, PackedEgg
from twins.eggs.writers.pack import pack
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout, Workspace

AT = datetime(2026, 11, 22, 4, 34, 56, 789_000, tzinfo=UTC)
ITEMS = {
    EggFormat.AGENT: "mail_agent.py",
    EggFormat.RAPPLICATION: "kanban",
    EggFormat.RAPP1_RAPPLICATION: "kanban",
}
WHOLE = [form for form in EggFormat if not form.needs_item]


class Told:
    """Conversations as a daemon hands them in."""

    def __init__(self, count: int = 3) -> None:
        self.count = count
        self.asked_for: list[str] = []

    def frames(self, key: str) -> Iterator[frames.Frame]:
        self.asked_for.append(key)
        said = (("2026-11-22T04:34:00.000Z", "said", {"text": f"Hello {n}"}) for n in range(self.count))
        return frames.chained("thread-1", said)


class Nest:
    """A workspace, and packing it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key = IdentityKey.generate()
        self.maker = EggMaker("rappd", "1.2.3", "desk")
        twin = mint(TwinLayout(folder / "home"), "Gärtner", owner="kody", now=AT, entropy=b"sixteen octets!!")
        self.workspace: Workspace = twin.workspace
        self.rappid = twin.rappid

    def put(self, path: str, content: str | bytes = "x\n") -> Path:
        target = self.workspace.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def pack(
        self, form: EggFormat = EggFormat.TWIN, *, target: Path | None = None, **options: Any
    ) -> PackedEgg:
        options.setdefault("item", ITEMS.get(form, ""))
        options = {"at": AT, "key": self.key, "maker": self.maker, "overwrite": True} | options
        return pack(self.workspace, target or self.folder / f"{form}.egg", form=form, **options)

    def packed(self, form: EggFormat = EggFormat.TWIN, **options: Any) -> dict[str, bytes]:
        """Member to content, after every program here that reads archives found nothing wrong."""
        return contents(self.pack(form, **options).path)


def contents(path: Path) -> dict[str, bytes]:
    subprocess.run(["unzip", "-tqq", path], check=True, capture_output=True)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def manifest(members: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(members["manifest.json"])
    return found
