"""Writes the lock files: each package that is installed, its version, its conditions, and its files' hashes.

``python requirements/make_locks.py`` after a change of ``pyproject.toml`` or ``constraints.txt``. Versions are
those of ``constraints.txt``; what a package needs, and the hashes of its files, come from the package index that
pip is configured to ask. Needs the extra ``test``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from email.parser import HeaderParser
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

HERE = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = {"linux": ("x86_64", "aarch64", "armv7l"), "darwin": ("x86_64", "arm64")}
LOCKS = {
    "runtime": "what rappd runs with",
    "build": "what installs rappd",
    "test": "what its tests need besides",
}

_HEADER = """\
# Made by requirements/make_locks.py: {what}. Do not edit.
# Wheels for Linux (x86_64, aarch64, armv7l) and macOS (x86_64, arm64), Python {first} to {last}.
"""
_SIMPLE = "application/vnd.pypi.simple.v1+json"

Target = Mapping[str, str]


def targets() -> list[Target]:
    """Every system that rappd is installed on, as markers see it."""
    return [
        {
            "python_version": python, "python_full_version": f"{python}.0", "sys_platform": system,
            "platform_system": {"linux": "Linux", "darwin": "Darwin"}[system], "platform_machine": machine,
            "os_name": "posix", "implementation_name": "cpython", "platform_python_implementation": "CPython",
        }
        for python in PYTHONS for system, machines in MACHINES.items() for machine in machines
    ]  # fmt: skip


def pins() -> dict[str, str]:
    """Name to version, as ``constraints.txt`` has them."""
    lines = (HERE.parent / "constraints.txt").read_text().splitlines()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


def roots() -> dict[str, list[str]]:
    """For each lock what it begins with."""
    table = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    project, extras = table["project"], table["project"]["optional-dependencies"]
    return {
        "runtime": [*project["dependencies"], *extras["tether"]],
        "build": ["pip", "setuptools", "editables", *table["build-system"]["requires"]],
        "test": extras["test"],
    }


class Resolution:
    """All that some requirements come to: for each package the conditions of each way to it."""

    def __init__(self, requirements: Iterable[str]) -> None:
        self.markers: dict[str, set[str]] = {}
        for entry in requirements:
            self._add(Requirement(entry), "", frozenset())

    def _add(self, requirement: Requirement, above: str, line: frozenset[str]) -> None:
        name = canonicalize_name(requirement.name)
        if name in line:
            return
        if name not in pins():
            raise SystemExit(f"{name} is not in constraints.txt")
        if not requirement.specifier.contains(pins()[name], prereleases=True):
            raise SystemExit(f"constraints.txt has {name} {pins()[name]}, but {requirement} is needed")
        own = str(requirement.marker) if requirement.marker else ""
        way = " and ".join(f"({part})" if " or " in part else part for part in (above, own) if part)
        known = self.markers.setdefault(name, set())
        if not requirement.extras and (way in known or "" in known):
            return
        known.add(way)
        for entry in needs(name):
            inner = Requirement(entry)
            if _applies(inner, requirement.extras):
                self._add(_without_extra(inner), way, line | {name})

    def packages(self) -> Iterator[tuple[str, str]]:
        """Name and marker, "" for one that is always needed."""
        for name, ways in sorted(self.markers.items()):
            if "" in ways or all(any(Marker(way).evaluate(dict(one)) for way in ways) for one in targets()):
                yield name, ""
            else:
                yield name, " or ".join(sorted(ways))


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    if marker is None:
        return True
    return any(marker.evaluate({**one, "extra": extra}) for one in targets() for extra in ("", *extras))


def _without_extra(requirement: Requirement) -> Requirement:
    """The same, less a condition that speaks of an extra: that is known to be met, or it would not be here."""
    if requirement.marker is None or "extra" not in str(requirement.marker):
        return requirement
    parts = [part for part in str(requirement.marker).split(" and ") if "extra" not in part]
    requirement.marker = Marker(" and ".join(parts)) if parts else None
    return requirement


@cache
def needs(name: str) -> list[str]:
    """The requirements of the pinned version of a package, installed here or fetched."""
    try:
        here = distribution(name)
    except PackageNotFoundError:
        here = None
    if here is not None and here.version == pins()[name]:
        return here.requires or []
    with tempfile.TemporaryDirectory() as folder:
        what = ["--no-deps", "--only-binary=:all:", "--quiet", "--dest", folder, f"{name}=={pins()[name]}"]
        subprocess.run([sys.executable, "-m", "pip", "download", *what], check=True)
        with zipfile.ZipFile(next(Path(folder).iterdir())) as wheel:
            own = next(
                one for one in wheel.namelist() if one.count("/") == 1 and one.endswith(".dist-info/METADATA")
            )
            return HeaderParser().parsestr(wheel.read(own).decode()).get_all("Requires-Dist") or []


@cache
def files(name: str) -> list[dict[str, Any]]:
    """All files of the pinned version of a package."""
    page = json.loads(_fetch(f"{_index().rstrip('/')}/{name}/", _SIMPLE))
    return [file for file in page["files"] if _version(file["filename"]) == pins()[name]]


def hashes(name: str) -> dict[str, str]:
    """Filename to hash of the wheels that fit one of the targets; of the sources where there is no wheel at all."""
    found = {file["filename"]: file["hashes"]["sha256"] for file in files(name)}
    fitting = {file for file in found if any(fits(file, one) for one in targets())}
    return {file: found[file] for file in fitting or found}


def fits(filename: str, target: Target) -> bool:
    """True when a file is a wheel for that system."""
    try:
        tags = parse_wheel_filename(filename)[3]
    except InvalidWheelFilename:
        return False
    own = target["python_version"].replace(".", "")
    for tag in tags:
        exact = tag.interpreter == f"cp{own}" and tag.abi in (f"cp{own}", "none")
        stable = (
            tag.abi == "abi3"
            and tag.interpreter.startswith("cp3")
            and int(tag.interpreter[3:]) <= int(own[1:])
        )
        pure = tag.abi == "none" and tag.interpreter in ("py3", f"py{own}")
        if (exact or stable or pure) and _runs_on(tag.platform, target):
            return True
    return False


def _runs_on(platform: str, target: Target) -> bool:
    if platform == "any":
        return True
    machine = target["platform_machine"]
    if target["sys_platform"] == "darwin":
        return platform.startswith("macosx") and platform.endswith((f"_{machine}", "_universal2"))
    return platform.startswith(("manylinux", "musllinux", "linux")) and platform.endswith(f"_{machine}")


def _version(filename: str) -> str:
    if filename.endswith(".whl"):
        try:
            return str(parse_wheel_filename(filename)[1])
        except InvalidWheelFilename:
            return ""
    try:
        return str(parse_sdist_filename(filename)[1])
    except InvalidSdistFilename:
        return ""


@cache
def _index() -> str:
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    if os.environ.get("PIP_INDEX_URL") or told.returncode == 0:
        return os.environ.get("PIP_INDEX_URL") or told.stdout.strip()
    from pip._internal.models.index import PyPI

    return PyPI.simple_url


@cache
def _fetch(url: str, accept: str = "*/*") -> bytes:
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Accept": accept}), timeout=60
    ) as answer:
        return bytes(answer.read())


def lock_text(what: str, packages: Iterable[tuple[str, str]]) -> str:
    """The text of one lock file."""
    lines = [_HEADER.format(what=what, first=PYTHONS[0], last=PYTHONS[-1])]
    lines.append("--only-binary=:all:\n")
    for name, marker in packages:
        hashed = hashes(name)
        if not hashed:
            raise SystemExit(f"the index has no file of {name} {pins()[name]}")
        if not any(file.endswith(".whl") for file in hashed):
            lines.append(f"--no-binary={name}\n")
        lines += [f"# {name} has no wheel for {system}\n" for system in without_wheel(name, marker, hashed)]
        condition = f" ; {marker}" if marker else ""
        given = " \\\n".join(f"    --hash=sha256:{digest}" for digest in sorted(set(hashed.values())))
        lines.append(f"{name}=={pins()[name]}{condition} \\\n{given}\n")
    return "".join(lines)


def without_wheel(name: str, marker: str, filenames: Iterable[str]) -> list[str]:
    """The systems that need a package of which the index has no wheel for them."""
    if not any(file.endswith(".whl") for file in filenames):
        return []
    lacking: dict[tuple[str, str], list[str]] = {}
    for one in targets():
        if (not marker or Marker(marker).evaluate(dict(one))) and not any(
            fits(file, one) for file in filenames
        ):
            lacking.setdefault((one["sys_platform"], one["platform_machine"]), []).append(
                one["python_version"]
            )
    return [f"{' '.join(system)} (Python {', '.join(pythons)})" for system, pythons in lacking.items()]


def main() -> None:
    """Writes all lock files; the tests' one leaves out what the others have."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_try_files, pins()))
    begun = roots()
    runtime = dict(Resolution(begun["runtime"]).packages())
    build = dict(Resolution(begun["build"]).packages())
    test = dict(Resolution([*begun["runtime"], *begun["test"]]).packages())
    # one that is needed under a condition there, and always here, stays: pip joins the two
    test = {
        name: marker
        for name, marker in test.items()
        if runtime.get(name) != marker and build.get(name) != marker
    }
    for lock, packages in (("runtime", runtime), ("build", build), ("test", test)):
        (HERE / f"{lock}.lock").write_text(lock_text(LOCKS[lock], packages.items()))
        print(f"{lock}: {len(packages)} packages")


def _try_files(name: str) -> None:
    try:
        files(name)
    except OSError as problem:
        print(f"{name}: {problem}", file=sys.stderr)


if __name__ == "__main__":
    main()
