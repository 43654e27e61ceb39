"""``.lispy.json``: a LisPy agent as a file. The published fields, and what makes it resume.

Published: ``_meta{type: "lispy-cartridge", version: 1, …}, env, programs{name: source}, tools, soul,
profile, echoes, state_snapshot``. Beside them:

    schema        "rappd-lispy/1.0"
    entry         which program a frame runs; without it the only one, or the one named "main"
    env_wire      {name: lispy-value@1}: what the programs defined, exactly; ``env`` is the same for
                  readers of the published shape, as far as JSON can say it
    dialect       "core", or "rappterbook" for what that line of programs has beyond it; a cartridge
                  without a schema comes from there
    continuation  {frame, pending_inputs[], last_state{prev-result}, image}: frames done so far, what
                  waits to be given to the next ones, the last value (lispy-value@1), and, when a frame
                  was frozen under way, the whole machine (``lispy-image/1.0``)

A cartridge without any of these loads as it is. Keys that nobody named are kept.
"""

from __future__ import annotations

import copy
from datetime import datetime

from twins.cartridges.field_specs import COUNT, FLAG, LIST, OBJECT, OBJECTS, TEXT, TEXTS, check, exactly
from twins.cartridges.json_documents import Document
from twins.errors import BadCartridgeError
from twins.workspace.identity_file import utc

TYPE = "lispy-cartridge"
SCHEMA = "rappd-lispy/1.0"
MAX_ECHOES = 5

FIELDS = {
    "_meta": OBJECT,
    "_meta.type": exactly(TYPE),
    "_meta.version": exactly(1),
    "_meta.format": TEXT,
    "_meta.agent_id": TEXT,
    "_meta.exported_at": TEXT.or_null(),
    "_meta.source_platform": TEXT.or_null(),
    "_meta.description": TEXT.or_null(),
    "_meta.bootable": FLAG,
    "schema": exactly(SCHEMA),
    "env": OBJECT,
    "env_wire": OBJECTS,
    "programs": TEXTS,
    "entry": TEXT,
    "dialect": exactly("core", "rappterbook"),
    "tools": OBJECTS,
    "soul": TEXT.or_null(),
    "profile": OBJECT.or_null(),
    "echoes": LIST,
    "state_snapshot": OBJECT.or_null(),
    "continuation": OBJECT,
    "continuation.frame": COUNT,
    "continuation.pending_inputs": LIST,
    "continuation.last_state": OBJECT,
    "continuation.last_state.prev-result": OBJECT,
    "continuation.image": OBJECT.or_null(),
}


def is_lispy(document: Document) -> bool:
    """True when this is a ``.lispy.json``, by what is in it."""
    meta = document.get("_meta")
    return isinstance(meta, dict) and meta.get("type") == TYPE


def checked(document: Document, *, name: str = "The cartridge") -> None:
    """Raises ``BadCartridgeError`` unless every field that has a name is what it should be."""
    if not is_lispy(document):
        raise BadCartridgeError(f"{name} is no .lispy.json.", do=f"rappd egg inspect {name}")
    check(document, FIELDS, required=("_meta.type",), name=name)
    entry = document.get("entry")
    if entry is not None and entry not in document.get("programs", {}):
        raise BadCartridgeError(
            f'{name} cannot be loaded: its entry "{entry[:60]}" is none of its programs.',
            do="Mend it, or get it again.",
        )


def agent_id(document: Document) -> str:
    """The owner of the cartridge; "agent" where it does not say."""
    return str(document["_meta"].get("agent_id") or "agent")


def entry_of(document: Document) -> str:
    """The program that a frame runs. Raises ``BadCartridgeError`` when there is none, or no telling which."""
    programs = document.get("programs", {})
    entry = document.get("entry") or ("main" if "main" in programs else "")
    if not entry and len(programs) == 1:
        entry = next(iter(programs))
    if not entry:
        some = "names no entry among its programs" if programs else "holds no program"
        raise BadCartridgeError(
            f"This cartridge {some}; it can be kept, not run.", do="Name one as its entry."
        )
    return str(entry)


def dialect_of(document: Document) -> str:
    """The dialect of LisPy of its programs."""
    return str(document.get("dialect") or ("core" if document.get("schema") == SCHEMA else "rappterbook"))


def new(agent: str, programs: dict[str, str], *, entry: str = "", description: str = "") -> Document:
    """A cartridge that has not run yet."""
    meta = {"agent_id": agent, "description": description}
    document: Document = {"_meta": meta, "schema": SCHEMA, "programs": dict(programs)}
    if entry:
        document["entry"] = entry
    return saved(document, None)


def saved(document: Document, now: datetime | None) -> Document:
    """The same with every published field, in the published order, dated ``now`` (None: not dated)."""
    meta = copy.deepcopy(_META) | document["_meta"]
    if now is not None:
        meta["exported_at"] = utc(now)
        meta["source_platform"] = _META["source_platform"]
    head = {"_meta": meta, "schema": SCHEMA, "dialect": dialect_of(document)}
    return head | copy.deepcopy(_EMPTY) | document | head


_META: Document = {
    "type": TYPE,
    "version": 1,
    "format": ".lispy.json",
    "agent_id": "agent",
    "exported_at": None,
    "source_platform": "rappd",
    "description": "",
}
_EMPTY: Document = {
    "env": {},
    "programs": {},
    "tools": {},
    "soul": "",
    "profile": {},
    "echoes": [],
    "state_snapshot": {},
}
