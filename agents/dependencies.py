"""Putting packages that agents need into the workspace's own ``.deps`` folder (RAPP v1 §5.6).

Packages are fetched into a fresh folder beside it, joined with what is there, and exchanged with it
in one step, so that a worker sees the old folder or the new one. Only ready-made wheels are taken:
nothing of a package runs before a worker imports it.
"""

from __future__ import annotations

import csv
import ctypes
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.requirements import (
    checked_requirement,
    declared_requirements,
    normalised,
    package_for,
    requirements_for,
    suggestion_for,
)

__all__ = [
    "Report",
    "command_for",
    "declared_requirements",
    "install",
    "installed",
    "package_for",
    "requirements_for",
]

INSTALL_SECONDS = 120.0
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


@dataclass(slots=True, frozen=True)
class Report:
    """What an installation came to. ``problem`` is empty when ``installed`` is all that was asked;
    otherwise ``command`` is what the owner may type instead.
    """

    installed: tuple[str, ...] = ()
    problem: str = ""
    command: str = ""
    seconds: float = 0.0


def install(
    requirements: Sequence[str],
    deps_dir: Path,
    *,
    timeout: float = INSTALL_SECONDS,
    enabled: bool = True,
) -> Report:
    """Installs what is not there yet; blocks for up to ``timeout`` seconds, so call it in a thread.

    Takes requirements by name only: one option, address or path among them and nothing is installed.
    With ``enabled`` false it only says what to type. Uses uv if it is on the PATH, else pip.
    Raises nothing: an offline machine, an unknown name or a full disk is the report's ``problem``.
    """
    started = time.monotonic()
    unfit = [entry for entry in requirements if checked_requirement(entry) is None]
    if unfit:
        return Report(problem=f"{unfit[0]!r} is not a package name; nothing was installed")
    command = command_for("", requirements, deps_dir)
    if not enabled:
        return Report(problem="installing packages is switched off", command=command)
    target = Path(os.path.realpath(deps_dir))
    try:
        with _locked(target):
            present = installed(target)
            wanted = [entry for entry in requirements if entry.lower() not in _spellings(present)]
            problem = _install(wanted, target, timeout) if wanted else ""
    except OSError as error:
        problem = f"{deps_dir} could not be written: {error.strerror or error}"
    seconds = time.monotonic() - started
    if problem:
        return Report(problem=problem, command=command, seconds=seconds)
    return Report(tuple(wanted), seconds=seconds)


def command_for(missing: str, wanted: Sequence[str] = (), deps_dir: Path | None = None) -> str:
    """What the owner may type to install ``wanted``, or else what probably provides ``missing``."""
    names = list(wanted) or suggestion_for(missing)
    target = str(deps_dir) if deps_dir is not None else ".deps"
    return shlex.join([sys.executable, "-m", "pip", "install", "--target", target, *names])


def installed(deps_dir: Path) -> dict[str, str]:
    """Name (as indexes compare it) to version of every package in ``deps_dir``."""
    return dict(map(_name_and_version, deps_dir.glob("*.dist-info")))


def _name_and_version(info: Path) -> tuple[str, str]:
    name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
    return normalised(name), version


def _spellings(present: dict[str, str]) -> set[str]:
    return {
        spelling for name in present for spelling in (name, name.replace("-", "_"), name.replace("-", "."))
    }


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One installation at a time beside ``target``; what an interrupted one left is put right first."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        previous = _previous(target)
        if previous.exists() and not target.exists():
            previous.rename(target)
        for leftover in (previous, _fresh(target)):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def _fresh(target: Path) -> Path:
    return target.with_name(f"{target.name}.new")


def _previous(target: Path) -> Path:
    return target.with_name(f"{target.name}.old")


def _install(wanted: Sequence[str], target: Path, timeout: float) -> str:
    fresh = _fresh(target)
    try:
        problem = _fetch(wanted, fresh, timeout)
        if not problem:
            _join(target, fresh)
            _exchange(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return problem


def _fetch(wanted: Sequence[str], fresh: Path, timeout: float) -> str:
    fresh.mkdir(mode=0o700)
    uv = shutil.which("uv")
    if uv:
        command = [uv, "pip", "install", "--python", sys.executable, "--no-build", "--compile-bytecode"]
        command += ["--no-progress", "--quiet"]
    else:
        command = [sys.executable, "-I", "-m", "pip", "install", "--only-binary=:all:", "--no-input"]
        command += [
            "--no-user",
            "--no-warn-conflicts",
            "--disable-pip-version-check",
            "--retries=2",
            "--quiet",
        ]
    process = subprocess.Popen(
        [*command, "--target", str(fresh), *wanted],
        cwd=fresh,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"installing {', '.join(wanted)} took longer than {timeout:g} s"
    if process.returncode:
        return f"{', '.join(wanted)} could not be installed: {_complaint(output)}"
    return ""


def _complaint(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("error:")]
    return (errors or lines or ["no reason given"])[-1][:200]


def _join(old: Path, fresh: Path) -> None:
    """Adds to ``fresh`` what ``old`` holds of packages that ``fresh`` does not bring itself."""
    replaced = installed(fresh).keys()
    dropped = {
        file
        for entry in old.glob("*.dist-info")
        if _name_and_version(entry)[0] in replaced
        for file in (*_record(entry), *(str(part.relative_to(old)) for part in entry.iterdir()))
    }
    for folder, _, names in os.walk(old):
        for name in names:
            source = Path(folder, name)
            rel = source.relative_to(old)
            compiled_from = rel.parent.parent / f"{name.partition('.')[0]}.py"
            is_dropped = str(rel) in dropped or (
                rel.parent.name == "__pycache__" and str(compiled_from) in dropped
            )
            target = fresh / rel
            if is_dropped or target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                target.hardlink_to(source)
            except OSError:  # a file system without hard links
                shutil.copy2(source, target, follow_symlinks=False)


def _record(info: Path) -> Iterator[str]:
    record = info / "RECORD"
    if record.is_file():
        with record.open(newline="", encoding="utf-8") as rows:
            yield from (os.path.normpath(row[0]) for row in csv.reader(rows) if row)


def _exchange(fresh: Path, target: Path) -> None:
    """Puts ``fresh`` in the place of ``target``; what was there is where ``fresh`` was, or gone."""
    if not target.exists():
        fresh.rename(target)
        return
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    names = (os.fsencode(fresh), os.fsencode(target))
    if renameat2 and renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return
    previous = _previous(target)  # two steps: ``_locked`` puts it back should we die between them
    target.rename(previous)
    fresh.rename(target)
    shutil.rmtree(previous, ignore_errors=True)
