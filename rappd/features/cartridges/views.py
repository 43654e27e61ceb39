"""Views of a cartridge that is not running: kind, content and signer."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from twins.cartridges import buddy_state, lispy_file
from twins.cartridges.buddy_status_cache import buddy_status
from twins.cartridges.cartridge_io import LoadedCartridge
from twins.cartridges.json_documents import Document
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape
from twins.errors import BadCartridgeError


def whose(path: Path, found: LoadedCartridge) -> dict[str, Any]:
    """Returns the file, owner and kind of a cartridge."""
    kind = "lispy" if found.shape is None else "buddy"
    shape = found.shape.value if found.shape else found.document.get("schema", lispy_file.TYPE)
    return {"file": path.name, "name": name_of(found.document, found.shape), "kind": kind, "shape": shape}


def name_of(document: Document, shape: Shape | None) -> str:
    """Returns the name of the agent in a cartridge."""
    if shape is None:
        return lispy_file.agent_id(document)
    organism: Document = document if shape is Shape.SEED else document["organism"]
    return str(organism.get("name") or organism.get("instance") or "???")


def about_lispy(document: Document) -> dict[str, Any]:
    """Describes a frozen LisPy agent: its content, and the place where it was frozen."""
    from twins.cartridges import lispy_runner

    continuation = document.get("continuation", {})
    programs = document.get("programs", {})
    return {
        "entry": _entry(document),
        "dialect": lispy_file.dialect_of(document),
        "programs": [
            {"name": name, "lines": source.count("\n") + 1, "bytes": len(source.encode())}
            for name, source in programs.items()
        ],
        "env": _shown_env(document),
        "tools": sorted(document.get("tools", {})),
        "frame": continuation.get("frame", 0),
        "pending_inputs": continuation.get("pending_inputs", []),
        "echoes": document.get("echoes", [])[-1:],
        "exported_at": document["_meta"].get("exported_at"),
        "frozen": continuation.get("image") is not None,
        "next": lispy_runner.inspect(document),
    }


def about_buddy(found: LoadedCartridge, now: datetime) -> dict[str, Any]:
    """Describes a buddy in a file."""
    assert found.shape is not None
    buddy = convert(found.document, Shape.BUDDY)
    buddy["_meta"].pop("as_of", None)  # in a file no time passes
    buddy = buddy_state.at(buddy, now)
    organism = buddy["organism"]
    return {
        "buddy": {
            **buddy_status(buddy),
            "frames_survived": organism["frames_survived"],
            "created_at": organism["created_at"],
            "hatched_at": organism["hatched_at"],
            "personality": organism["personality"],
            "memories": len(organism["long_memory"]),
            "context": len(organism["context_memory"]),
        },
        "exported_at": buddy["_meta"].get("exported_at"),
        "frozen": False,
        "next": "",
    }


def _entry(document: Document) -> str:
    try:
        return lispy_file.entry_of(document)
    except BadCartridgeError:
        return ""


def _shown_env(document: Document) -> dict[str, str]:
    from agents.runtimes.lispy.errors import BadValueError
    from agents.runtimes.lispy.printer import shortly
    from agents.runtimes.lispy.value_codec import from_wire

    shown: dict[str, str] = {}
    for name, wire in document.get("env_wire", {}).items():
        try:
            shown[name] = shortly(from_wire(wire), 200)
        except BadValueError as error:
            shown[name] = f"damaged: {error}"
    for name, value in document.get("env", {}).items():
        shown[name] = shortly(value, 200)
    return shown
