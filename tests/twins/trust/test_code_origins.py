from __future__ import annotations

import hashlib
from pathlib import Path

import orjson

from twins.trust.trust import CodeOrigins


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def test_code_origins_with_receipts_names_the_egg(tmp_path: Path) -> None:
    home = tmp_path / "home"
    receipts = home / "eggs" / "receipts"
    receipts.mkdir(parents=True)
    origins = CodeOrigins(home)
    nothing = origins.look()
    assert origins.look() is nothing
    path = home / "brainstem" / "agents" / "a_agent.py"
    assert origins.egg_of(path, _hash("one")) == ""
    row = {"path": "agents/a_agent.py", "sha256": _hash("one"), "moved_to": ""}
    receipt = {"sha256": "ab" * 32, "workspace": "brainstem", "files": [row]}
    (receipts / "20260101T000000Z-aaaaaa.json").write_bytes(orjson.dumps(receipt))
    assert origins.look() is not nothing
    assert origins.egg_of(path, _hash("one")) == "egg:abababababab"
    assert origins.egg_of(path.with_name("copy_agent.py"), _hash("one")) == "egg:abababababab"
    changed = origins.egg_of(path, _hash("two"))
    assert changed.startswith("egg:abababababab:")
    assert origins.egg_of(path.with_name("own_agent.py"), _hash("two")) == ""


def test_code_origins_with_damaged_receipt_reads_the_others(tmp_path: Path) -> None:
    receipts = tmp_path / "eggs" / "receipts"
    receipts.mkdir(parents=True)
    (receipts / "bad.json").write_text("{")
    origins = CodeOrigins(tmp_path)
    origins.look()
    assert origins.egg_of(tmp_path / "x.py", _hash("x")) == ""
