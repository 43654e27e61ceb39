"""Putting packages that agents need into the workspace's own ``.deps`` folder (RAPP v1 §5.6).

Packages are fetched into a fresh folder beside it, joined with what is there, and exchanged with it
in one step, so that a worker sees the old folder or the new one. Only ready-made wheels are taken:
nothing of a package runs before a worker imports it. The installer itself runs in a sandbox.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from agents.packages import package_folder
from agents.packages.requirements import (
    checked_requirement,
    declared_requirements,
    package_for,
    packages_for_hint,
    requirements_for,
)
from agents.programs import programs
from agents.runtimes.python.sandbox.sandbox import AUTO

__all__ = [
    "InstallReport",
    "PackageSource",
    "command_for",
    "declared_requirements",
    "hint_for",
    "install",
    "package_for",
    "requirements_for",
]

INSTALL_SECONDS = 120.0
_PROGRAM = "from agents.packages.sandboxed_installer import main; main()"
_OF_THE_NETWORK = (
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)
_HOMES = ("/home", "/root", "/Users", "/run")


@dataclass(slots=True, frozen=True)
class PackageSource:
    """The source of packages, and the sandbox of the installer.

    ``index`` is the address of an index, "" for the one that pip asks on this system; ``sandbox`` a kind
    of sandbox; ``hidden`` folders that the installer must not see beside homes and temporary folders.
    """

    index: str = ""
    sandbox: str = AUTO
    hidden: tuple[Path, ...] = ()


@dataclass(slots=True, frozen=True)
class InstallReport:
    """The result of an installation.

    ``problem`` is empty when ``installed`` is all that was asked; otherwise ``command`` is what the owner may
    type instead.
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
    source: PackageSource | None = None,
) -> InstallReport:
    """Installs what is not there yet; blocks for up to ``timeout`` seconds, so call it in a thread.

    Takes requirements by name only: one option, address or path among them and nothing is installed.
    With ``enabled`` false it only says what to type. Uses uv if it lies where agents cannot write, else
    pip. Raises nothing: an offline machine, an unknown name or a full disk is the report's ``problem``.
    """
    started = time.monotonic()
    unfit = [entry for entry in requirements if checked_requirement(entry) is None]
    if unfit:
        return InstallReport(problem=f"{unfit[0]!r} is not a package name; nothing was installed")
    command = command_for(requirements, deps_dir)
    if not enabled:
        return InstallReport(problem="installing packages is switched off", command=command)
    problem, wanted = "", list(requirements)
    try:
        with package_folder.locked(deps_dir, timeout) as folder:
            present = _spellings(folder.installed())
            wanted = [entry for entry in requirements if entry.lower() not in present]
            if wanted:
                problem = _fetch(wanted, folder.work, deps_dir, timeout, source or PackageSource())
                if not problem:
                    folder.take_over()
    except TimeoutError as error:
        problem = f"{', '.join(wanted)} could not be installed: {error}"
    except OSError as error:
        problem = f"{deps_dir} could not be written: {error.strerror or error}"
    seconds = time.monotonic() - started
    if problem:
        return InstallReport(problem=problem, command=command, seconds=seconds)
    return InstallReport(tuple(wanted), seconds=seconds)


def command_for(packages: Sequence[str], deps_dir: Path) -> str:
    """The command by which the owner installs ``packages``."""
    return shlex.join([sys.executable, "-m", "pip", "install", "--target", str(deps_dir), *packages])


def hint_for(source: str | bytes, missing: str, deps_dir: Path) -> str:
    """The words that tell the owner of the file ``source`` how to install the module ``missing``."""
    return f"install it: {command_for(packages_for_hint(source, missing), deps_dir)}"


def _spellings(present: dict[str, str]) -> set[str]:
    return {
        spelling for name in present for spelling in (name, name.replace("-", "_"), name.replace("-", "."))
    }


def _fetch(wanted: Sequence[str], work: int, deps_dir: Path, timeout: float, source: PackageSource) -> str:
    path = deps_dir.parent.resolve() / f"{deps_dir.name}.new"
    hidden = [*programs.writable_folders(), *_HOMES, str(path.parent), *map(str, source.hidden)]
    order = {
        "work": work,
        "path": str(path),
        "requirements": list(wanted),
        "index": source.index,
        "uv": programs.find("uv") or "",
        "sandbox": source.sandbox,
        "hidden": hidden,
        "shown": _folder_of(source.index),
    }
    try:
        done = programs.run(
            programs.python("-X", "utf8", "-c", _PROGRAM),
            environment=programs.from_owner(*_OF_THE_NETWORK),
            given=json.dumps(order).encode(),
            seconds=timeout,
            pass_fds=[work],
        )
    except TimeoutError:
        return f"installing {', '.join(wanted)} took longer than {timeout:g} s"
    if done.code:
        return f"{', '.join(wanted)} could not be installed: {_complaint(done.output + done.errors)}"
    return ""


def _folder_of(index: str) -> list[str]:
    """The folder of an index on this machine: it is shown to the installer."""
    parts = urlsplit(index)
    return [unquote(parts.path)] if parts.scheme == "file" else []


def _complaint(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("error:")]
    complaints = [error for error in errors if error != "Exception:"]  # then comes a traceback
    return (complaints or lines or ["no reason given"])[-1][:200]
