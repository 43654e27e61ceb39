"""Members with holes as the tars of other machines lay them out."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from neighborhoods.snapshot.sparse_members import Run, sparse_header


@pytest.mark.parametrize("tar", ["tar", "bsdtar"])
@pytest.mark.parametrize("size", [8 << 30, 10 << 30])
def test_file_of_more_than_eight_gigabytes_is_laid_out_with_its_hole(
    tmp_path: Path, tar: str, size: int
) -> None:
    if shutil.which(tar) is None:
        pytest.skip(f"needs {tar}")
    info = tarfile.TarInfo("disk.img")
    info.size = size
    stream = sparse_header(info, [Run(0, 512), Run(size - 512, 512)]) + b"one".ljust(512) + b"x" * 512
    stream += bytes(1024)
    subprocess.run([tar, "-xf", "-"], input=stream, cwd=tmp_path, check=True)
    found = tmp_path / "disk.img"
    assert (found.stat().st_size, found.stat().st_blocks < 100) == (size, True)
    with found.open("rb") as file:
        assert file.read(514) == b"one".ljust(512) + b"\0\0"
        file.seek(size - 514)
        assert file.read() == b"\0\0" + b"x" * 512
