"""Eggs written by hand from what is published about them, never by the project's own packer."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HEX = "0d51" + "a" * 60
RAPPID = f"rappid:@kody-w/gardener:{HEX}"
OTHER = "rappid:@kody-w/other:" + "b" * 64
AGENT = "class A:\n    pass\n"

Members = dict[str, Any]


class Eggs:
    """Writes eggs into a folder."""

    rappid = RAPPID
    other = OTHER
    key = HEX
    agent = AGENT

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def zip(self, members: Members, name: str = "some.egg", *, stored: bool = False) -> Path:
        """A ZIP as Python's zipfile writes it. Objects become JSON; order is kept."""
        path = self.folder / name
        how = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", how) as archive:
            for member, content in members.items():
                archive.writestr(zipfile.ZipInfo(member), octets(content), how)
        return path

    def json(self, document: Any, name: str = "some.egg") -> Path:
        """A JSON egg."""
        path = self.folder / name
        path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
        return path

    def rapp1(
        self,
        members: Members,
        *,
        variant: str = "organism",
        rappid: str = RAPPID,
        payload: Any = None,
        sig: str | None = None,
        name: str = "one.egg",
        change: Callable[[dict[str, Any]], None] | None = None,
    ) -> Path:
        """A ``rapp/1-egg`` ZIP the way published ones were made: stored, manifest first, attributes and all."""
        files = {path: octets(content) for path, content in members.items()}
        manifest = self.manifest1(files, variant=variant, rappid=rappid, payload=payload, sig=sig)
        if change:
            change(manifest)
        ordered = sorted(files, key=lambda path: path.encode())
        return self.zip(
            {"manifest.json": plain_canonical(manifest), **{path: files[path] for path in ordered}},
            name,
            stored=True,
        )

    def manifest1(
        self,
        files: dict[str, bytes],
        *,
        variant: str,
        rappid: str = RAPPID,
        payload: Any = None,
        sig: str | None = None,
    ) -> dict[str, Any]:
        """The manifest of a ``rapp/1-egg``."""
        return {
            "schema": "rapp/1-egg",
            "variant": variant,
            "rappid": rappid,
            "created_utc": "2026-07-16T22:41:23.842Z",
            "contents": [
                {"path": path, "hash": hashlib.sha256(b"rapp/1:egg\n" + files[path]).hexdigest()}
                for path in sorted(files, key=lambda path: path.encode())
            ],
            "payload": {} if payload is None else payload,
            "sig": sig,
        }


def octets(content: Any) -> bytes:
    """The content of a member."""
    if isinstance(content, bytes):
        return content
    return content.encode() if isinstance(content, str) else json.dumps(content).encode()


def plain_canonical(value: Any) -> bytes:
    """Canonical JSON of values without floats and without keys beyond ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.fixture
def eggs(tmp_path: Path) -> Eggs:
    folder = tmp_path / "eggs"
    folder.mkdir()
    return Eggs(folder)
