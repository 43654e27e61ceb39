"""``bonds.json``: the events of a life, and how many upgrades it went through.

Shape as published: ``{"events": [{at, kind, from_version, to_version, from_commit, to_commit, note}]}``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from twins.errors import BadFileError
from twins.workspace.identity_file import Identity, indented, read_regular, utc
from twins.workspace.workspace import Workspace, exclusive_lock

FILE = "bonds.json"
MAX_BYTES = 16 << 20
KINDS = ("birth", "bond", "adoption", "hatch", "graft", "launch", "rhythm", "dock")


def events(workspace: Workspace) -> list[dict[str, Any]]:
    """Every event, oldest first, as written. Raises ``BadFileError`` for a damaged file."""
    found: list[dict[str, Any]] = _read(workspace)["events"]
    return found


def record_event(
    workspace: Workspace,
    kind: str,
    *,
    at: datetime | None = None,
    from_version: str | None = None,
    to_version: str | None = None,
    from_commit: str | None = None,
    to_commit: str | None = None,
    note: str = "",
) -> dict[str, Any]:
    """Appends one event, whole or not at all, and returns it. A damaged file is left as it is."""
    event = {
        "at": utc(at or datetime.now(UTC)),
        "kind": kind,
        "from_version": from_version,
        "to_version": to_version,
        "from_commit": from_commit,
        "to_commit": to_commit,
        "note": note,
    }
    with exclusive_lock(workspace.root):
        life = _read(workspace)
        life["events"].append(event)
        workspace.files.write_durably(FILE, indented(life))
    return event


def record_bond(
    workspace: Workspace,
    *,
    at: datetime | None = None,
    from_version: str | None = None,
    to_version: str | None = None,
    from_commit: str | None = None,
    to_commit: str | None = None,
    note: str = "",
) -> int:
    """One upgrade lived through: ``incarnations`` goes up by one, then a ``bond`` is written.

    Returns the count. In a crash between the two the count is ahead of the events, as it is wherever
    the published installer stopped there.
    """
    with exclusive_lock(workspace.root):
        _read(workspace)  # damaged: say so before anything is counted
        identity = Identity.read(workspace.root)
        identity = identity.changed(incarnations=identity.incarnations + 1)
        identity.write(workspace.root)
        record_event(
            workspace,
            "bond",
            at=at,
            from_version=from_version,
            to_version=to_version,
            from_commit=from_commit,
            to_commit=to_commit,
            note=note,
        )
    return identity.incarnations


def _read(workspace: Workspace) -> dict[str, Any]:
    content = read_regular(workspace.root / FILE, MAX_BYTES)
    if content is None:
        return {"events": []}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadFileError(f"{FILE} is damaged; it was left as it is: {error}", do="Restore it.") from error
    if not isinstance(found, dict) or not isinstance(found.get("events"), list):
        raise BadFileError(f"{FILE} holds no events; it was left as it is.", do="Restore it.")
    return found
