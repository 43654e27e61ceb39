"""Without ISA-L everything works on zlib: the same checks, archives that either side reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.twins.eggs.hostile_corpus import HOSTILE
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

STORY = b"".join(b"line %d of a long story\n" % n for n in range(100_000))


def test_the_same_archives_on_zlib(tmp_path: Path) -> None:
    late = {one.name: one.says for one in HOSTILE if one.late}
    for one in HOSTILE:
        if one.late:
            (tmp_path / one.name).write_bytes(one.octets)
    with (tmp_path / "ours.egg").open("wb") as file:
        writer = ArchiveWriter(file)
        writer.add("short", STORY[:1000])
        writer.add("story", STORY)
        writer.finish()
    script = f"""
import json, sys
sys.modules["isal"] = None
from pathlib import Path
from twins.zip import deflate
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter
from twins.errors import BadEggError
root = Path({str(tmp_path)!r})
said = {{"codec": deflate.CODEC}}
for name in {sorted(late)!r}:
    try:
        with Archive.open(root / name) as archive:
            archive.verify()
    except BadEggError as refused:
        said[name] = str(refused)
with Archive.open(root / "ours.egg") as archive, (root / "theirs.egg").open("wb") as file:
    writer = ArchiveWriter(file)
    for member in archive.members:
        writer.add(member.name, archive.chunks(member.name))
    writer.finish()
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("codec") == "zlib"
    assert said.keys() == late.keys()
    assert all(says in said[name] for name, says in late.items())
    with Archive.open(tmp_path / "theirs.egg") as archive:
        assert archive.read("story") == STORY
        assert archive.read("short") == STORY[:1000]
        assert not any(member.stored for member in archive.members)
