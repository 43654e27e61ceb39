"""Egg Spec v1 in the words of the Buddy's shape, and the other way about.

A body of kind ``state_json`` holds the organism. XML has no place in an organism's life and is kept beside
it, as ``cartridge_xml``; an organism that has one makes a ``hybrid`` body.
"""

from __future__ import annotations

from typing import Any

from twins.cartridges.buddy_schema import meta
from twins.cartridges.json_documents import Document
from twins.cartridges.shapes import CARRIED, ORGANISM
from twins.workspace.rappid import label

KEYS = ("_format", "_schema_version", "organism", "body", "lineage", "validation")
_XML = "cartridge_xml"


def to_buddy(egg: Document) -> Document:
    """The organism that the body tells of, and its name."""
    body = egg["body"]
    state = _state(body)
    xml = None
    if body["kind"] == "hybrid":
        xml = body["content"].get(_XML, body["content"].get("cartridge"))
    elif body["kind"] != "state_json":
        xml = body["content"]
    organism = {
        key: value
        for key, value in (state.items() if isinstance(state, dict) else ())
        if key != CARRIED and (key not in ORGANISM or ORGANISM[key].test(value))
    }
    if isinstance(xml, str):
        organism[_XML] = xml
    name = egg["organism"].get("name")
    if "name" not in organism and ORGANISM["name"].test(name):
        organism["name"] = name
    return {"_meta": meta(), "organism": organism}


def from_buddy(buddy: Document) -> Document:
    """The organism as a body, and as the state part of a hybrid one when it has XML beside it."""
    state = dict(buddy["organism"])
    body: Document = {"kind": "state_json", "content": state}
    if isinstance(state.get(_XML), str):
        xml = state.pop(_XML)
        body = {"kind": "hybrid", "content": {_XML: xml, "state_json": state}}
    organism = {"name": state["name"]} if "name" in state else {}
    return {
        "_format": "egg",
        "_schema_version": 1,
        "organism": organism,
        "body": body,
        "lineage": {},
        "validation": {},
    }


def complete(document: Document) -> None:
    """Fills in what Egg Spec v1 asks for: a Buddy is of scale daemon."""
    body = document["body"]
    state = _state(body)
    organism = document["organism"]
    slug = organism.setdefault("slug", label(str(organism.get("name") or ""), otherwise="buddy"))
    organism.setdefault("species", "rappter-buddy")
    organism.setdefault("instance", slug)
    organism.setdefault("scale", "daemon")
    organism.setdefault("substrate", "json")
    body.setdefault("filename", f"{organism['instance']}.json")
    lineage = document.setdefault("lineage", {})
    lineage.setdefault("created_at", state.get("created_at") if isinstance(state, dict) else None)
    lineage.setdefault("created_by", state.get("github_user") if isinstance(state, dict) else None)
    lineage.setdefault("engine_version", "rappter.egg/1")
    lineage.setdefault("parent_egg_sha256", None)
    lineage.setdefault("birth_tick", None)
    validation = document.setdefault("validation", {})
    validation.setdefault("ok", True)
    validation.setdefault("issues", [])


def _state(body: Document) -> Any:
    """The organism's fields in a body, alone or beside XML."""
    if body["kind"] == "state_json":
        return body["content"]
    return body["content"].get("state_json", body["content"].get("state")) if body["kind"] == "hybrid" else {}
