"""The cartridge document's own shape in the words of the Buddy's, and the other way about.

stats (mood, energy, xp, …) are numbers of the organism, ``continuation.frame`` is ``frames_survived``,
``memory`` is ``long_memory`` (items of type ``context``: ``context_memory``), ``lineage.evolutions`` are
the memories of type ``evolution``. Nothing else has words in both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twins.cartridges import json_patch
from twins.cartridges.buddy_schema import meta
from twins.cartridges.json_documents import Document, canonical
from twins.cartridges.shapes import CARRIED, ORGANISM, SEED_SCHEMA
from twins.workspace.rappid import label

KEYS = (
    "schema", "id", "name", "stage", "stats", "skills", "personality", "memory", "code", "continuation",
    "lineage",
)  # fmt: skip

_STATS = ("mood", "energy", "xp", "social", "posts_made", "comments_made")
_LAST = ("last_action", "last_fed", "last_petted")
_CONTEXT = "context"


def to_buddy(seed: Document) -> Document:
    """Everything that the Buddy's shape has words for. Raises ``ValueError`` for damaged carried edits."""
    organism: Document = {key: seed[key] for key in ("name", "stage") if key in seed}
    organism |= _fitting(seed.get("stats", {}), _STATS)
    continuation = seed.get("continuation", {})
    if "frame" in continuation:
        organism["frames_survived"] = continuation["frame"]
    organism |= _fitting(continuation.get("last_state"), _LAST)
    if "personality" in seed:
        organism["personality"] = seed["personality"].split(", ") if seed["personality"] else []
    if "memory" in seed:
        inside = [(item, isinstance(item, dict) and item.get("type") == _CONTEXT) for item in seed["memory"]]
        organism["long_memory"] = [
            _crossed(one, _to_long, _from_long) for one, context in inside if not context
        ]
        organism["context_memory"] = [
            _crossed(one, _to_context, _from_context) for one, context in inside if context
        ]
    lineage = seed.get("lineage", {})
    hatched_at = lineage.get("hatched_at")
    if "hatched_at" in lineage:
        organism["hatched_at"] = hatched_at
    if hatched_at is not None or "evolutions" in lineage:
        organism["memories"] = [] if hatched_at is None else [{"type": "hatch", "at": hatched_at}]
        organism["memories"] += [
            _crossed(one, _to_evolution, _from_evolution) for one in lineage.get("evolutions", [])
        ]
    return {"_meta": meta(), "organism": organism}


def from_buddy(buddy: Document) -> Document:
    """Everything that this shape has words for. Raises ``ValueError`` for damaged carried edits."""
    organism = buddy["organism"]
    seed: Document = {"schema": SEED_SCHEMA, "stats": {}, "continuation": {"last_state": {}}, "lineage": {}}
    seed |= {key: organism[key] for key in ("name", "stage") if key in organism}
    seed["stats"] = {key: organism[key] for key in _STATS if key in organism}
    if "frames_survived" in organism:
        seed["continuation"]["frame"] = organism["frames_survived"]
    seed["continuation"]["last_state"] = {key: organism[key] for key in _LAST if key in organism}
    if "personality" in organism:
        seed["personality"] = ", ".join(trait for trait in organism["personality"] if isinstance(trait, str))
    if "long_memory" in organism or "context_memory" in organism:
        seed["memory"] = [
            *(_crossed(one, _from_long, _to_long) for one in organism.get("long_memory", [])),
            *(_crossed(one, _from_context, _to_context) for one in organism.get("context_memory", [])),
        ]
    if "hatched_at" in organism:
        seed["lineage"]["hatched_at"] = organism["hatched_at"]
    if "memories" in organism:
        seed["lineage"]["evolutions"] = [
            _crossed(one, _from_evolution, _to_evolution)
            for one in organism["memories"]
            if isinstance(one, dict) and one.get("type") == "evolution"
        ]
    return seed


def complete(document: Document) -> None:
    """Fills in what the document's example has and nothing else has said."""
    document.setdefault("name", "???")
    document.setdefault("stage", "egg")
    document.setdefault("id", label(document["name"], otherwise="buddy"))
    document.setdefault("skills", [])
    document.setdefault("personality", "")
    document.setdefault("memory", [])
    document.setdefault("code", {"lang": "lispy", "entry": "", "agents_loaded": []})
    document.setdefault("stats", {})
    continuation = document.setdefault("continuation", {})
    for key, value in (("frame", 0), ("pending_inputs", []), ("last_state", {})):
        continuation.setdefault(key, value)
    lineage = document.setdefault("lineage", {})
    lineage.setdefault("hatched_at", None)
    lineage.setdefault("evolutions", [])


def _fitting(found: Any, keys: tuple[str, ...]) -> Document:
    """The entries of ``found`` that are what the organism's fields must be."""
    if not isinstance(found, dict):
        return {}
    return {key: found[key] for key in keys if key in found and ORGANISM[key].test(found[key])}


def _crossed(item: Any, there: Callable[[Any], Any], back: Callable[[Any], Any]) -> Any:
    """One memory in the other shape's words; what they cannot say rides inside it."""
    kept = item.get(CARRIED) if isinstance(item, dict) else None
    plain = {key: value for key, value in item.items() if key != CARRIED} if kept is not None else item
    new = there(plain)
    if kept is not None:
        new = json_patch.apply(kept, new)
    rest = json_patch.between(back(new), plain)
    return new | {CARRIED: rest} if rest and isinstance(new, dict) else new


def _to_long(item: Any) -> Any:
    if not isinstance(item, dict):
        return {"text": _text(item), "type": "memory", "saved_at": None}
    kind = item.get("type")
    return {
        "text": _memory_text(item),
        "type": kind if isinstance(kind, str) else "memory",
        "saved_at": item.get("ts"),
    }


def _from_long(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return {"type": "memory", "ts": None, "summary": _text(entry)}
    return {"type": entry.get("type"), "ts": entry.get("saved_at"), "summary": entry.get("text")}


def _to_context(item: Any) -> Any:
    found = item if isinstance(item, dict) else {"summary": _text(item)}
    return {"text": found.get("summary"), "at": found.get("ts"), "source": found.get("source")}


def _from_context(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return {"type": _CONTEXT, "ts": None, "summary": _text(entry), "source": None}
    return {
        "type": _CONTEXT,
        "ts": entry.get("at"),
        "summary": entry.get("text"),
        "source": entry.get("source"),
    }


def _to_evolution(item: Any) -> Any:
    found = item if isinstance(item, dict) else {}
    return {"type": "evolution", "to": found.get("to_stage"), "at": found.get("at")}


def _from_evolution(memory: Any) -> Any:
    found = memory if isinstance(memory, dict) else {}
    return {"to_stage": found.get("to"), "at": found.get("at")}


def _memory_text(item: Document) -> str:
    """A memory in a sentence: its summary, or what it says of a key, or all of it."""
    if isinstance(item.get("summary"), str):
        return str(item["summary"])
    if "key" in item and "value" in item:
        return f"{_text(item['key'])}: {_text(item['value'])}"
    return _text({key: value for key, value in item.items() if key not in ("type", "ts")})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).decode()
