"""Descriptions of shipped agents are known before any worker has loaded them, and say what the files say."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import agents.library
from agents.contract import shipped_descriptions
from agents.contract.file_discovery import find_shipped_files

LIBRARY = Path(agents.library.__path__[0])


def test_descriptions_are_those_of_the_files() -> None:
    now = subprocess.run([sys.executable, "-m", "agents.library"], capture_output=True, check=True).stdout
    assert shipped_descriptions.PATH.read_bytes() == now, "make descriptions"


def test_each_shipped_file_is_known_and_a_changed_one_is_not() -> None:
    files = find_shipped_files(LIBRARY)
    for file in files:
        known = shipped_descriptions.description_of(file.rel, sha256(file.content()).hexdigest())
        assert known is not None and known["rel"] == file.rel and known["agents"], file.rel
    changed = sha256(files[0].content() + b"\n").hexdigest()
    assert shipped_descriptions.description_of(files[0].rel, changed) is None
