"""The manifests of the ZIP shapes before RAPP/1, key by key as published."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from twins.eggs.frames import MEMBER
from twins.eggs.parsed_egg import ANCESTORS
from twins.eggs.writers.contents import EggContents
from twins.eggs.writers.formats import EggFormat, EggMaker
from twins.workspace.identity_file import indented, utc
from twins.workspace.rappid import label

NAME = "manifest.json"


def manifest(
    form: EggFormat, load: EggContents, hashes: Mapping[str, str], *, at: datetime, maker: EggMaker
) -> bytes:
    """The manifest of an egg whose members have these SHA-256 hashes, itself left out."""
    counted = _Counted(hashes)
    if form is EggFormat.AGENT:
        manifest = _agent(load, at, maker)
    elif form is EggFormat.ORGANISM:
        manifest = _organism(load, counted, hashes, at, maker)
    elif form is EggFormat.RAPPLICATION:
        manifest = _rapplication(load, counted, at, maker)
    else:
        manifest = _workspace(form, load, counted, at, maker)
    return indented(manifest)


def manifest_hash(hashes: Mapping[str, str]) -> str:
    """As the published packer makes it: over the sorted lines ``path TAB hash``, without a last line end."""
    return hashlib.sha256(
        "\n".join(sorted(f"{path}\t{one}" for path, one in hashes.items())).encode()
    ).hexdigest()


class _Counted:
    """The number of members in each place."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = tuple(names)

    def below(self, folder: str) -> int:
        return sum(name.startswith(f"{folder}/") for name in self._names)

    def one(self, name: str) -> int:
        return int(name in self._names)


def _agent(load: EggContents, at: datetime, maker: EggMaker) -> dict[str, Any]:
    return {
        "schema": "rapp-egg/2.0",
        "scale": "agent",
        "id": label(load.name, otherwise="agent"),
        "name": load.name,
        **load.facts,
        "exported_at": utc(at),
        **_by(maker),
    }


def _workspace(
    form: EggFormat, load: EggContents, counted: _Counted, at: datetime, maker: EggMaker
) -> dict[str, Any]:
    assert load.identity is not None
    identity = load.identity
    return {
        "schema": "rapp-egg/2.0",
        "scale": form.value,
        "rappid": identity.rappid.text,
        "hash": identity.rappid.key,
        "name": load.name,
        "kind": identity.kind,
        "parent_rappid": identity.parent_text or None,
        "born_at": identity.born_at or None,
        "incarnations": identity.incarnations,
        "exported_at": utc(at),
        **({"lifecycle": load.lifecycle} if load.lifecycle else {}),
        **_by(maker),
        "counts": {
            **{
                name: counted.below(name)
                for name in ("agents", "services", "senses", "organs", "rapps", "data")
            },
            "soul": counted.one("soul.md"),
            "conversations": counted.one(MEMBER),
        },
        **(
            {ANCESTORS: {path: sorted(load.ancestors[path]) for path in sorted(load.ancestors)}}
            if load.ancestors
            else {}
        ),
    }


def _organism(
    load: EggContents, counted: _Counted, hashes: Mapping[str, str], at: datetime, maker: EggMaker
) -> dict[str, Any]:
    assert load.identity is not None
    identity = load.identity
    tools, quickstart = counted.below("tools"), counted.one("lan-quickstart.sh")
    manifest = {
        "schema": "brainstem-egg/2.2-organism",
        "type": "organism",
        "exported_at": utc(at),
        "kernel_version": maker.version,
        "host": maker.host,
        "rappid": identity.rappid.text,
        "parent_rappid": identity.parent_text or None,
        "parent_repo": identity.fields.get("parent_repo"),
        "incarnations_at_egg": identity.incarnations,
        "counts": {
            **{name: counted.below(name) for name in ("agents", "organs", "senses", "services", "data")},
            "soul": counted.one("soul.md"),
            "env": counted.one(".env"),
            "rappid": counted.one("rappid.json"),
            **({"lan_tools": tools, "quickstart": quickstart} if tools or quickstart else {}),
        },
    }
    if tools or quickstart:
        manifest["lan_federation_ready"] = bool(tools and quickstart)
    manifest["provenance"] = {
        **provenance(hashes, at, identity.rappid.text),
        "origin_url": identity.fields.get("url"),
        "origin_repo": identity.fields.get("parent_repo"),
        "origin_commit_sha": identity.fields.get("parent_commit"),
        "state_at_seal": {
            "schema": "rapp-organism-state/1.0",
            "name": load.name,
            "kind": identity.kind,
            "incarnations": identity.incarnations,
        },
    }
    return manifest


def provenance(hashes: Mapping[str, str], at: datetime, rappid: str | None) -> dict[str, Any]:
    """The envelope of hashes that eggs of this family carry in their manifest (RAPP v1 §18.10)."""
    return {
        "schema": "rapp-egg-provenance/1.0",
        "scheme": "sha256",
        "file_hashes": dict(sorted(hashes.items())),
        "manifest_hash": manifest_hash(hashes),
        "sealed_at": utc(at),
        "sealed_by_rappid": rappid,
    }


def _rapplication(load: EggContents, counted: _Counted, at: datetime, maker: EggMaker) -> dict[str, Any]:
    assert load.identity is not None
    facts = load.facts
    return {
        "schema": "brainstem-egg/2.2-rapplication",
        "type": "rapplication",
        "exported_at": utc(at),
        "rappid": load.identity.rappid.text,
        "rapp_id": facts["rapp_id"],
        "name": load.name,
        "version": facts["version"],
        "publisher": facts["publisher"],
        "host": maker.host,
        "agent_filename": facts["agent_filename"],
        "organ_filename": facts["organ_filename"],
        "has_skin": facts["has_skin"],
        "counts": {
            "agent": counted.below("agents"),
            "organ": counted.below("organs"),
            "ui": counted.below("rapp_ui"),
            "data": counted.below("data"),
            "soul": counted.one("soul.md"),
        },
    }


def _by(maker: EggMaker) -> dict[str, str]:
    return {**({"host": maker.host} if maker.host else {}), "created_by": maker.signature}
