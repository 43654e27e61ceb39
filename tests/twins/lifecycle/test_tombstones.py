"""The two records, against the published schemas written down here once more, by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twins.errors import BadFileError
from twins.lifecycle import tombstones
from twins.lifecycle.tombstones import ARCHIVED_SCHEMA, PURGED_SCHEMA, archived_record, purged_record

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MOMENTS = st.datetimes(
    datetime(1980, 1, 1),
    datetime(2200, 1, 1),
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
BY = st.sampled_from(["operator", "fleet:archive_estate", "migration"]) | st.from_regex(
    r"cron:[ -~]{1,20}", fullmatch=True
)
ARCHIVED = st.builds(
    archived_record,
    rappid=TEXT.filter(bool),
    key=TEXT.filter(bool),
    name=TEXT,
    kind=TEXT,
    at=MOMENTS,
    by=BY,
    reason=TEXT,
    last_known=st.fixed_dictionaries(
        {"alive_at_archive": st.booleans()},
        optional={
            "port": st.none() | st.integers(7081, 7199),
            "workspace_bytes": st.integers(0, 2**53),
            "workspace_files": st.integers(0, 2**31),
            "agents": st.lists(TEXT),
        },
    ),
)

REQUIRED = {"schema", "rappid", "hash", "name", "kind", "archived_at", "archived_by"}


@given(ARCHIVED)
def test_archived_json_has_the_published_fields_and_no_others(record: dict[str, Any]) -> None:
    again = orjson.loads(tombstones.encode(record))
    assert again == record
    assert record["schema"] == "rapp-twin-tombstone/1.0"
    assert set(record) - {"archived_reason"} == REQUIRED | {"last_known", "retention"}
    assert set(record["last_known"]) <= {
        "alive_at_archive",
        "port",
        "workspace_bytes",
        "workspace_files",
        "agents",
    }
    assert None not in record["last_known"].values()
    assert record["retention"] == {"purge_after": None, "purge_policy": "operator-explicit"}
    assert datetime.fromisoformat(record["archived_at"]).tzinfo is not None
    assert record.get("archived_reason") != ""


@given(ARCHIVED, MOMENTS, BY, TEXT)
def test_a_tombstone_says_who_it_was_and_nothing_of_the_body(
    archived: dict[str, Any], at: datetime, by: str, reason: str
) -> None:
    record = purged_record({**archived, "extra": 1}, at=at, by=by, reason=reason)
    assert orjson.loads(tombstones.encode(record)) == record
    assert record["schema"] == "rapp-twin-purged/1.0"
    assert set(record) - {"archived_reason", "purged_reason"} == (REQUIRED - {"schema"}) | {
        "schema",
        "purged_at",
        "purged_by",
    }
    kept = {field: archived[field] for field in (REQUIRED | {"archived_reason"}) & set(archived) - {"schema"}}
    assert kept.items() <= record.items()


@given(ARCHIVED, st.data())
def test_record_without_required_field_is_distinguished(
    archived: dict[str, Any], data: st.DataObject
) -> None:
    purged = purged_record(archived, at=datetime.now(UTC), by="operator", reason="")
    for record, schema in ((archived, ARCHIVED_SCHEMA), (purged, PURGED_SCHEMA)):
        assert tombstones.wrong_fields(record, schema) == []
        required = sorted(set(record) - {"archived_reason", "purged_reason", "retention"})
        field = data.draw(st.sampled_from(required))
        without = {name: value for name, value in record.items() if name != field}
        assert tombstones.wrong_fields(without, schema) == [field]
        with pytest.raises(BadFileError, match=field):
            tombstones.check(without, schema)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "rapp-twin-purged/1.0"),
        ("rappid", ""),
        ("hash", 5),
        ("name", None),
        ("archived_at", "2026-11-21T09:40:00"),
        ("archived_at", "yesterday"),
        ("archived_at", 1763717000),
        ("archived_by", "cron"),
        ("archived_by", "cron:"),
        ("archived_by", "root"),
        ("archived_by", "operator\n"),
        ("archived_reason", None),
        ("last_known", {}),
        ("last_known", {"alive_at_archive": 1}),
        ("last_known", {"alive_at_archive": True, "port": "7081"}),
        ("last_known", {"alive_at_archive": True, "agents": "dice"}),
        ("last_known", {"alive_at_archive": True, "agents": [1]}),
        ("retention", {"purge_policy": "auto:d"}),
        ("retention", {"purge_policy": "tomorrow"}),
        ("retention", []),
    ],
)
def test_values_that_the_schema_does_not_have_are_told(field: str, value: object) -> None:
    record = archived_record(
        rappid="r",
        key="k",
        name="n",
        kind="project",
        at=datetime.now(UTC),
        by="operator",
        reason="",
        last_known={"alive_at_archive": False},
    )
    assert tombstones.wrong_fields({**record, field: value}, ARCHIVED_SCHEMA) == [field]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("archived_at", "2026-05-19T10:00:00Z"),
        ("archived_at", "2026-05-19T10:00:00.123456-07:00"),
        ("archived_by", "cron:nightly sweep"),
        ("retention", {"purge_after": None, "purge_policy": "auto:30d"}),
        ("retention", {}),
        ("last_known", {"alive_at_archive": True, "port": None, "anything": [1]}),
        ("anything", "else"),
    ],
)
def test_what_others_may_write_is_read(field: str, value: object) -> None:
    record = archived_record(
        rappid="r",
        key="k",
        name="n",
        kind="project",
        at=datetime.now(UTC),
        by="operator",
        reason="",
        last_known={"alive_at_archive": False},
    )
    assert tombstones.wrong_fields({**record, field: value}, ARCHIVED_SCHEMA) == []


def test_a_reason_is_kept_so_that_it_can_be_written() -> None:
    assert tombstones.proper_reason(" done \n") == "done"
    assert tombstones.proper_reason("a\ud800b") == "a?b"
    assert len(tombstones.proper_reason("x" * 5000)) == tombstones.MAX_REASON


@given(st.binary(max_size=200))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, octets: bytes) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "record.json"
    path.write_bytes(octets)
    try:
        record = tombstones.read(path)
    except BadFileError:
        return
    assert isinstance(record, dict)
