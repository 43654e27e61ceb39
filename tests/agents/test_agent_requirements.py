"""The packages that a file asks for, read without running it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.packages.requirements import (
    checked_requirement,
    declared_requirements,
    package_for,
    packages_for_hint,
    requirements_for,
)

SCRIPT = '''# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "rich>=13,<15",
#   "httpx[http2]; python_version < '3.13'",
# ]
# ///
"""Reads a page. pip install this-is-prose"""
'''


def test_a_script_block_declares() -> None:
    assert declared_requirements(SCRIPT) == ["rich>=13,<15", "httpx[http2]; python_version < '3.13'"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("# requirements: requests, pyyaml>=6", ["requests", "pyyaml>=6"]),
        ("# Requirements: requests >= 2, < 3 beautifulsoup4", ["requests>=2,<3", "beautifulsoup4"]),
        ("# pip install requests", ["requests"]),
        ("#pip3 install -q -U requests numpy", ["requests", "numpy"]),
        ("# python -m pip install 'uvicorn[standard]'", ["uvicorn[standard]"]),
        ("# requirements: pip install requests and lxml", ["requests", "lxml"]),
        ("# pip install requests (for the web)", ["requests"]),
        ("# pip install requests if you want the web", ["requests"]),
        ("# pip install requests.", ["requests"]),
        ("# requirements: none", []),
        ("# pip install -r requirements.txt", []),
        ("# pip install --index-url http://example.com evil", []),
        ("# pip install git+https://example.com/evil.git", []),
        ("# pip install ./evil ../evil /evil", []),
        ("# pip install evil.whl", []),
        ("# pip installs are not needed", []),
        ("x = 1  # see the list of requirements: requests", []),
    ],
)
def test_comment_lines_declare(line: str, found: list[str]) -> None:
    assert declared_requirements(f'"""Doc."""\n{line}\nimport os\n') == found


def test_only_comments_above_the_first_definition_count() -> None:
    assert declared_requirements("class A:\n    # pip install requests\n    pass\n# pip install lxml\n") == []


@pytest.mark.parametrize("key", ["requirements", "pip", "requires_pip", "dependencies"])
def test_a_manifest_declares(key: str) -> None:
    listed = f"__manifest__ = {{'{key}': ['requests>=2', '@rapp/basic_agent', 'other_agent', 'agents', 7]}}\n"
    assert declared_requirements(listed) == ["requests>=2"]
    text = f"__manifest__ = {{'{key}': 'requests, lxml'}}\n"
    assert declared_requirements(text) == ["requests", "lxml"]


def test_each_name_once_and_bytes_as_well_as_text() -> None:
    source = b"# requirements: PyYAML>=6\n# pip install pyyaml\n\xff\n"
    assert declared_requirements(source) == ["PyYAML>=6"]


def test_a_missing_module_is_found_in_the_table_only() -> None:
    assert package_for("bs4") == "beautifulsoup4"
    assert package_for("yaml.nodes") == "pyyaml"
    assert package_for("requests") == "requests"
    assert package_for("reqeusts") is None
    assert package_for("azure.storage.blob") is None


def test_one_file_lacking_several_packages_gets_all_of_them() -> None:
    source = "import bs4\nimport os, yaml\nfrom PIL import Image\ntry:\n    import cv2\nexcept ImportError:\n    pass\n"
    assert requirements_for(source, "bs4") == ["beautifulsoup4", "pyyaml", "Pillow"]
    assert requirements_for("# requirements: opencv-contrib-python\nimport cv2\n", "cv2") == [
        "opencv-contrib-python",
        "opencv-python",
    ]


@pytest.mark.parametrize(
    ("source", "missing", "packages"),
    [
        ("import requests, leftpad\n", "leftpad", ["leftpad"]),
        ("import requests\nfrom PIL import Image\n", "PIL", ["Pillow"]),
        ("# requirements: pillow>=10, requests\nfrom PIL import Image\n", "PIL", ["pillow>=10"]),
        ("# requirements: left-pad-kit\nimport leftpad\n", "leftpad", ["left-pad-kit"]),
        ("import azure.identity\n", "azure.identity", ["azure-identity", "azure-storage-file-share"]),
        ("import msal\n", "msal", ["msal"]),
    ],
)
def test_hint_names_the_missing_package(source: str, missing: str, packages: list[str]) -> None:
    assert packages_for_hint(source, missing) == packages


def test_nothing_unknown_is_ever_asked_for() -> None:
    assert requirements_for("import azure.storage.blob\nimport leftpad\n", "azure") == []


PIECES = st.sampled_from(
    [
        *("-r", "--index-url=http://e", "-e.", "--target", "requests", "a[b]", "a==1", "a @ http://e/a.whl"),
        *("../a", "/a", "C:\\a", "git+ssh://e/a", "file:a", "a;b", "a; python_version<'3'", "@x/y", "a.whl"),
        *("# requirements:", "# pip install", "#", "\n", "\r\n", ",", '"', "'", "\0", "é", " "),
        *(
            "# /// script",
            "# dependencies = [",
            "# ]",
            "# ///",
            "__manifest__ = {'pip': ['",
            "']}",
            "class A:",
        ),
    ]
)
UNSAFE = re.compile(r"^-|[/\\@:\r\n\0]|\.(whl|zip|tar|gz|txt)$")


@given(st.one_of(st.lists(PIECES, max_size=12).map(" ".join), st.text()))
def test_no_source_yields_an_option_an_address_or_a_path(source: str) -> None:
    for found in declared_requirements(source):
        assert not UNSAFE.search(found), found
        assert checked_requirement(found) == found


@given(st.text())
def test_only_requirements_by_name_are_taken(entry: str) -> None:
    found = checked_requirement(entry)
    assert found is None or (found[0].isalnum() and not UNSAFE.search(found))
