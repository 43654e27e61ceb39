"""Modules of the page that need no layout: their tests run under ``node --test``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rappd

HERE = Path(__file__).parent
WEB = Path(rappd.__file__).parent / "web"
PHONE = Path(rappd.__file__).parent / "tether" / "page"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs Node")
def test_modules_of_the_page_under_node(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("icons", "css")
    shutil.copytree(WEB, tmp_path / "web", ignore=ignored)
    shutil.copytree(PHONE, tmp_path / "phone")
    (tmp_path / "phone" / "web").symlink_to(tmp_path / "web")  # where the listener serves it to phones
    shutil.copytree(HERE / "node", tmp_path / "node")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    tests = sorted(map(str, (tmp_path / "node").glob("*.test.mjs")))
    command = [str(NODE), "--import", str(tmp_path / "node" / "browser.mjs"), "--test", *tests]
    # With NODE_TEST_CONTEXT, even an empty one, Node takes itself for a test's child and runs nothing.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("NODE_")} | {
        "TZ": "UTC"
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = sum(len(re.findall(r"^\s*test\(", Path(file).read_text(), re.MULTILINE)) for file in tests)
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None and int(passed[1]) >= written > 10, done.stdout
