"""The lock files say the same as the project does, pip refuses what they do not list, and everybody can have each pin."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from fixtures.package_index import PackageIndex
from fixtures.running_daemon import REPO
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

FOLDER = REPO / "requirements"
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
_ENTRY = re.compile(
    r"^([a-z0-9-]+)==(\S+?)(?: ; (.+?))? \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


class Entry(NamedTuple):
    """A package of a lock file."""

    version: str
    marker: str
    hashes: list[str]


def entries(lock: str) -> dict[str, Entry]:
    text = (FOLDER / f"{lock}.lock").read_text()
    found = {
        name: Entry(version, marker, re.findall(r"sha256:(\w+)", given))
        for name, version, marker, given in _ENTRY.findall(text)
    }
    assert len(found) == len(re.findall(r"^\w\S*==", text, re.MULTILINE)), "each entry was understood"
    return found


def script(name: str) -> ModuleType:
    """A script of the folder, as a module."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def locks() -> ModuleType:
    return script("make_locks")


@pytest.mark.parametrize("lock", ["runtime", "build", "test"])
def test_lock_has_the_pinned_versions_with_hashes(locks: ModuleType, lock: str) -> None:
    found = entries(lock)
    assert found
    for name, entry in found.items():
        assert locks.pins()[name] == entry.version, name
        assert entry.hashes, name


def test_lock_agrees_with_the_project_on_every_system(locks: ModuleType) -> None:
    """The packages installed here, followed from the project's own dependencies."""
    wanted = dict(locks.Resolution(locks.roots()["runtime"]).packages())
    found = entries("runtime")
    assert wanted.keys() == found.keys(), "run requirements/make_locks.py"
    for target in locks.targets():
        needed = {
            name for name, marker in wanted.items() if not marker or Marker(marker).evaluate(dict(target))
        }
        listed = {
            name for name, one in found.items() if not one.marker or Marker(one.marker).evaluate(dict(target))
        }
        assert needed == listed, target


def test_tether_is_an_extra_that_the_lock_installs(locks: ModuleType) -> None:
    plain = {canonicalize_name(Requirement(one).name) for one in PROJECT["dependencies"]}
    extra = {canonicalize_name(Requirement(one).name) for one in PROJECT["optional-dependencies"]["tether"]}
    assert extra == {"aiortc", "qrcode"}
    assert not extra & plain
    assert extra <= entries("runtime").keys()


def test_dependencies_have_lower_bounds() -> None:
    tether = PROJECT["optional-dependencies"]["tether"]
    for one in [*PROJECT["dependencies"], *tether]:
        assert [bound.operator for bound in Requirement(one).specifier] == [">="], one


def test_lock_of_the_tests_completes_the_one_of_the_runtime(locks: ModuleType) -> None:
    wanted = locks.Resolution([*locks.roots()["runtime"], *locks.roots()["test"]]).packages()
    assert dict(wanted).keys() <= {*entries("runtime"), *entries("test"), *entries("build")}


def test_markers_of_one_system_stay(locks: ModuleType) -> None:
    found = entries("runtime")
    assert found["asyncinotify"].marker == 'sys_platform == "linux"'
    assert "platform_machine" in found["isal"].marker
    assert found["aiohttp"].marker == ""
    assert len(found["aiohttp"].hashes) > 30, "wheels of every system"


@pytest.mark.parametrize(
    ("filename", "fits"),
    [
        ("a-1-py3-none-any.whl", True),
        ("a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("a-1-cp39-abi3-manylinux_2_28_x86_64.whl", True),
        ("a-1-cp311-cp311-musllinux_1_2_x86_64.whl", True),
        ("a-1-cp312-abi3-manylinux_2_28_x86_64.whl", False),
        ("a-1-cp312-cp312-manylinux_2_17_x86_64.whl", False),
        ("a-1-cp311-cp311-manylinux_2_17_aarch64.whl", False),
        ("a-1-cp311-cp311-macosx_11_0_arm64.whl", False),
        ("a-1-cp311-cp311-win_amd64.whl", False),
        ("a-1.tar.gz", False),
    ],
)
def test_wheel_is_listed_for_the_systems_that_it_runs_on(
    locks: ModuleType, filename: str, fits: bool
) -> None:
    target = next(
        one
        for one in locks.targets()
        if (one["python_version"], one["platform_machine"]) == ("3.11", "x86_64")
    )
    assert locks.fits(filename, target) is fits


@pytest.mark.parametrize("altered", [False, True])
def test_pip_refuses_a_file_whose_hash_differs(tmp_path: Path, altered: bool) -> None:
    index = PackageIndex(tmp_path / "index")
    wheel = index.add("sample", "1.0", {"sample.py": ""})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if altered:
        wheel.write_bytes(wheel.read_bytes() + b"\0")
    lock = tmp_path / "sample.lock"
    lock.write_text(f"--only-binary=:all:\nsample==1.0 \\\n    --hash=sha256:{digest}\n")
    options = ["--isolated", "install", "--require-hashes", "--no-index", "--find-links", str(wheel.parent)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *options, "--target", str(tmp_path / "target"), "-r", str(lock)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode != 0) is altered, done.stderr
    assert (tmp_path / "target" / "sample.py").exists() is not altered
    assert ("DO NOT MATCH THE HASHES" in done.stderr) is altered


def test_installation_is_checked_and_downloads_nothing() -> None:
    text = (REPO / "Makefile").read_text()
    assert "--require-hashes --no-build-isolation" in text
    assert "install --no-deps --no-build-isolation -e ." in text


def test_notice_covers_every_package_and_library() -> None:
    made = script("make_notice").notice()
    assert (REPO / "NOTICE").read_text() == made, "run requirements/make_notice.py"
    for name, entry in entries("runtime").items():
        assert re.search(rf"^  {name} +{re.escape(entry.version)} +\S", made, re.MULTILINE), name
    vendored = [path.name for path in (REPO / "rappd" / "web" / "vendor").iterdir() if path.is_dir()]
    for name in vendored:
        assert re.search(rf"^  {name} +\d\S* +\S", made, re.MULTILINE), name


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
