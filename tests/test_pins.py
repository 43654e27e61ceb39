"""Pinned packages can be had by everybody who may install rappd."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution, distributions
from importlib.util import find_spec

import pytest
from fixtures.running_daemon import REPO
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

PINS = [line.partition("==")[::2] for line in (REPO / "constraints.txt").read_text().splitlines()]
OLDEST = "3.11.0"


def test_the_oldest_python_is_what_the_project_says() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    assert SpecifierSet(project["requires-python"]) == SpecifierSet(f">={OLDEST.removesuffix('.0')}")


def test_everything_installed_is_pinned() -> None:
    pinned = {canonicalize_name(name): version for name, version in PINS}
    found = {canonicalize_name(one.name): one.version for one in distributions() if one.name != "rappd"}
    unpinned = {name: version for name, version in found.items() if pinned.get(name) != version}
    assert unpinned == {}


@pytest.mark.parametrize(("name", "version"), PINS, ids=[name for name, _ in PINS])
def test_a_pin_is_there_for_the_oldest_python(name: str, version: str) -> None:
    try:
        pinned = distribution(name)
    except PackageNotFoundError:
        assert find_spec("a2a") is None, f"nothing needs {name}"
        pytest.skip("perhaps it comes with the extra `bench`, which is not installed")
    assert pinned.version == version
    needs = pinned.metadata["Requires-Python"]
    assert SpecifierSet(needs or "").contains(OLDEST), f"{name} {version} needs Python {needs}"
