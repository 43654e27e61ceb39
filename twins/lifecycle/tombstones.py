"""The two records that outlive a state: ``archived.json`` and the ledger of the purged (RAPP v1 §18.13.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from twins.errors import BadFileError
from twins.workspace.identity_file import read_regular

ARCHIVED_SCHEMA = "rapp-twin-tombstone/1.0"
PURGED_SCHEMA = "rapp-twin-purged/1.0"
ARCHIVED_NAME = "archived.json"
MAX_BYTES = 1 << 20
MAX_REASON = 1000

_BY = r"operator|fleet:archive_estate|migration|cron:[^\x00-\x1f\x7f]{1,200}"
_POLICY = r"operator-explicit|auto:[1-9][0-9]{0,4}d"


def archived_record(
    *,
    rappid: str,
    key: str,
    name: str,
    kind: str,
    at: datetime,
    by: str,
    reason: str,
    last_known: Mapping[str, Any],
) -> dict[str, Any]:
    """Reads ``archived.json``. Raises ``BadFileError`` where the schema does not allow a value.

    ``last_known`` holds ``alive_at_archive`` and, where known, ``port``, ``workspace_bytes``,
    ``workspace_files``, ``agents``. ``by`` is ``operator``, ``cron:<rule>``, ``fleet:archive_estate`` or
    ``migration``. Nothing is ever deleted by a timer, so no other ``purge_policy`` is written.
    """
    record: dict[str, Any] = {
        "schema": ARCHIVED_SCHEMA,
        "rappid": rappid,
        "hash": key,
        "name": name,
        "kind": kind,
        "archived_at": moment(at),
        "archived_by": by,
    }
    if reason:
        record["archived_reason"] = reason
    record["last_known"] = {known: value for known, value in last_known.items() if value is not None}
    record["retention"] = {"purge_after": None, "purge_policy": "operator-explicit"}
    check(record, ARCHIVED_SCHEMA)
    return record


def purged_record(archived: Mapping[str, Any], *, at: datetime, by: str, reason: str) -> dict[str, Any]:
    """The ledger's record of a twin whose ``archived.json`` was ``archived``: its identity, and who purged it.

    Nothing about the body: it is gone. Raises ``BadFileError`` where the schema does not allow a value.
    """
    record: dict[str, Any] = {"schema": PURGED_SCHEMA}
    for field in ("rappid", "hash", "name", "kind", "archived_at", "archived_by", "archived_reason"):
        if field in archived:
            record[field] = archived[field]
    record |= {"purged_at": moment(at), "purged_by": by}
    if reason:
        record["purged_reason"] = reason
    check(record, PURGED_SCHEMA)
    return record


def check(record: Mapping[str, Any], schema: str) -> None:
    """Raises ``BadFileError`` unless ``record`` is a whole record of that schema; fields it does not know may stay."""
    wrong = wrong_fields(record, schema)
    if wrong:
        raise BadFileError(f"{schema}: {', '.join(wrong)} missing or not as the schema has it.", do="")


def wrong_fields(record: Mapping[str, Any], schema: str) -> list[str]:
    """The fields that are missing though required, or hold what the schema does not allow."""
    required, optional = _FIELDS[schema]
    wrong = [field for field, allows in required.items() if field not in record or not allows(record[field])]
    wrong += [field for field, allows in optional.items() if field in record and not allows(record[field])]
    return wrong


def encode(record: Mapping[str, Any]) -> bytes:
    """The bytes of a record: indented, keys in the order the schemas give them."""
    return orjson.dumps(dict(record), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read(path: Path) -> dict[str, Any] | None:
    """The JSON object in the file at ``path``, unchecked; None where no file is. Raises ``BadFileError``."""
    content = read_regular(path, MAX_BYTES)
    if content is None:
        return None
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BadFileError(f"{path.name} is damaged: {error}.", do="") from error
    if not isinstance(record, dict):
        raise BadFileError(f"{path.name} is no record.", do="")
    return record


def proper_by(by: str) -> str:
    """``by`` as the schemas allow it. Raises ``BadFileError``."""
    if not _is_by(by):
        raise BadFileError(
            f"{by[:40]!r} cannot be who did it.",
            do="It is operator, cron:RULE, fleet:archive_estate or migration.",
        )
    return by


def proper_reason(reason: str) -> str:
    """A reason as it is kept: what cannot be written as UTF-8 is replaced, what is too long is cut."""
    return reason.strip()[:MAX_REASON].encode("utf-8", "replace").decode()


def moment(at: datetime) -> str:
    """A time as the records write it: ISO 8601 with its offset."""
    if at.tzinfo is None:
        raise ValueError("a time without its offset")
    return at.isoformat(timespec="seconds")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_filled(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_by(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(_BY, value) is not None


def _is_last_known(value: object) -> bool:
    if not isinstance(value, dict) or type(value.get("alive_at_archive")) is not bool:
        return False
    agents = value.get("agents", [])
    return (
        all(value.get(n) is None or type(value[n]) is int for n in ("port", "workspace_bytes", "workspace_files"))
        and isinstance(agents, list)
        and all(isinstance(agent, str) for agent in agents)
    )  # fmt: skip


def _is_retention(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    policy = value.get("purge_policy", "operator-explicit")
    return isinstance(policy, str) and re.fullmatch(_POLICY, policy) is not None


_Fields = Mapping[str, Callable[[object], bool]]
_WHO: _Fields = {
    "rappid": _is_filled,
    "hash": _is_filled,
    "name": _is_text,
    "kind": _is_text,
    "archived_at": _is_moment,
    "archived_by": _is_by,
}
_FIELDS: Mapping[str, tuple[_Fields, _Fields]] = {
    ARCHIVED_SCHEMA: (
        {"schema": ARCHIVED_SCHEMA.__eq__, **_WHO, "last_known": _is_last_known},
        {"archived_reason": _is_text, "retention": _is_retention},
    ),
    PURGED_SCHEMA: (
        {"schema": PURGED_SCHEMA.__eq__, **_WHO, "purged_at": _is_moment, "purged_by": _is_by},
        {"archived_reason": _is_text, "purged_reason": _is_text},
    ),
}
