"""Two eggs side by side."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twins.eggs.readers.detect import open_egg
from twins.eggs.readers.diff import TEXT_BYTES, Difference, compare_eggs
from twins.errors import BadEggError


def twin(eggs: Any, name: str, **files: Any) -> Any:
    members = {
        "manifest.json": {"schema": "rapp-egg/2.0", "exported_at": f"2026-11-{len(files):02}T00:00:00Z"},
        "rappid.json": {"rappid": eggs.rappid, "name": "Rose"},
        **{path.replace("__", "/"): content for path, content in files.items()},
    }
    return eggs.zip(members, name)


def difference(left: Any, right: Any) -> Difference:
    with open_egg(left) as before, open_egg(right) as after:
        return compare_eggs(before, after)


def test_added_removed_and_changed(eggs: Any) -> None:
    a = twin(eggs, "a.egg", **{"soul.md": "# Rose\nwarm\nkind\n", "agents__a_agent.py": "x", "data__m": "1"})
    b = twin(eggs, "b.egg", **{"soul.md": "# Rose\ncool\nkind\n", "agents__b_agent.py": "xy", "data__m": "1"})
    found = difference(a, b)
    assert [(one.what, one.target, one.before, one.after) for one in found.files] == [
        ("changed", "soul.md", 17, 17),
        ("removed", "agents/a_agent.py", 1, None),
        ("added", "agents/b_agent.py", None, 2),
    ]
    assert found.same == 2
    assert [line for line in found.files[0].text if line[:1] in "+-"] == [
        "--- before",
        "+++ after",
        "-warm",
        "+cool",
    ]
    texts = [line.text for line in found.lines()]
    assert "changed  soul.md  soul, 17 bytes → 17 bytes" in texts
    assert "    +cool" in texts
    assert json.loads(json.dumps(found.as_json()))["diff"]["same"] == 2


def test_equal_eggs(eggs: Any) -> None:
    a, b = twin(eggs, "a.egg", **{"soul.md": "x"}), twin(eggs, "b.egg", **{"soul.md": "x"})
    found = difference(a, b)
    assert not found
    assert [line.text for line in found.lines()] == ["The same: 2 files."]


def test_eggs_of_two_families_are_compared_by_target(eggs: Any) -> None:
    a = twin(eggs, "a.egg", **{"soul.md": "x", "data__memory.json": "{}"})
    b = eggs.zip(
        {
            "manifest.json": {"schema": "brainstem-egg/2.1"},
            "repo/rappid.json": {"rappid": eggs.rappid, "name": "Rose"},
            "repo/soul.md": "x",
            "data/memory.json": "{}",
        },
        "b.egg",
    )
    found = difference(a, b)
    assert found.files == ()
    assert {what: new for what, _, new in found.facts}["schema"] == "brainstem-egg/2.1"


def test_json_is_compared_as_what_it_says(eggs: Any) -> None:
    a = twin(eggs, "a.egg", **{"data__m.json": '{"a":1,"b":[1,2]}'})
    b = twin(eggs, "b.egg", **{"data__m.json": '{"b":[1,3],"a":1}'})
    (one,) = difference(a, b).files
    assert [line for line in one.text if line[:1] in "+-"][2:] == ["-    2", "+    3"]
    laid_out = twin(eggs, "c.egg", **{"data__m.json": '{"a": 1, "b": [1,2]}'})
    (one,) = difference(a, laid_out).files
    assert one.what == "changed"
    assert one.text  # only its layout differs, and that is shown as it is


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\x00b", b"x" * (TEXT_BYTES + 1), b"x\n" * 2000])
def test_no_text_for_what_is_none_or_too_large(eggs: Any, content: bytes) -> None:
    a = twin(eggs, "a.egg", data__m=content)
    b = twin(eggs, "b.egg", data__m=content + b"y")
    (one,) = difference(a, b).files
    assert (one.what, one.text) == ("changed", ())


def test_the_same_size_is_not_the_same(eggs: Any) -> None:
    a, b = twin(eggs, "a.egg", data__m=b"\xff1"), twin(eggs, "b.egg", data__m=b"\xff2")
    assert [one.what for one in difference(a, b).files] == ["changed"]


def test_a_file_that_does_not_read_is_damage_and_no_difference(eggs: Any) -> None:
    good = twin(eggs, "a.egg", data__m="x" * 100)
    octets = good.read_bytes()
    bad = eggs.folder / "b.egg"
    at = octets.index(b"data/m") + len("data/m")
    bad.write_bytes(octets[:at] + b"\x00" + octets[at + 1 :])
    with (
        open_egg(good) as before,
        open_egg(bad, check_up_to=0) as after,
        pytest.raises(BadEggError, match="data/m"),
    ):
        compare_eggs(before, after)
