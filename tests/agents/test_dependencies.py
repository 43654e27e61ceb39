"""Packages for one workspace: fetched by the real installer, from wheels made here."""

from __future__ import annotations

import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from agents.dependencies import command_for, install, installed


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the installer's only source."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


def wheel(folder: Path, name: str, version: str, files: dict[str, str], requires: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content = {
        **files,
        f"{info}/METADATA": metadata + (f"Requires-Dist: {requires}\n" if requires else ""),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*content, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)


def imported(deps: Path, expression: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(deps)!r}); {expression}"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_packages_and_what_they_need_arrive(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "first_pkg", "1.0", {"first_pkg/__init__.py": "import second_pkg\n"}, "second-pkg")
    wheel(wheels, "second_pkg", "2.0", {"second_pkg.py": "WORD = 'here'\n"})
    wheel(wheels, "third", "3.0", {"third.py": ""})
    deps = tmp_path / "workspace" / ".deps"
    report = install(["first-pkg", "third"], deps)
    assert report.problem == ""
    assert report.installed == ("first-pkg", "third")
    assert imported(deps, "import first_pkg, third; print(first_pkg.second_pkg.WORD)") == "here"
    assert installed(deps) == {"first-pkg": "1.0", "second-pkg": "2.0", "third": "3.0"}
    assert [path.name for path in deps.parent.iterdir()] == [".deps"], "nothing is left beside it"


def test_what_is_there_is_kept_and_not_fetched_again(wheels: Path, tmp_path: Path) -> None:
    deps = tmp_path / ".deps"
    wheel(wheels, "one", "1.0", {"shared/one.py": "", "one.py": "WORD = 'one'\n"})
    install(["one"], deps)
    (deps / "by_hand.py").write_text("WORD = 'mine'\n")
    (wheels / "one-1.0-py3-none-any.whl").unlink()
    wheel(wheels, "two", "1.0", {"shared/two.py": "", "two.py": ""})
    report = install(["one", "two"], deps)
    assert (report.problem, report.installed) == ("", ("two",))
    code = "import one, two, by_hand, shared.one, shared.two; print(one.WORD, by_hand.WORD)"
    assert imported(deps, code) == "one mine"
    assert install(["one", "Two"], deps).installed == ()


def test_a_newer_version_replaces_the_old_one_whole(wheels: Path, tmp_path: Path) -> None:
    deps = tmp_path / ".deps"
    wheel(wheels, "tool", "1.0", {"tool/__init__.py": "V = 1\n", "tool/gone.py": ""})
    install(["tool"], deps)
    wheel(wheels, "tool", "2.0", {"tool/__init__.py": "V = 2\n"})
    assert install(["tool>=2"], deps).problem == ""
    assert imported(deps, "import tool; print(tool.V)") == "2"
    assert installed(deps) == {"tool": "2.0"}
    assert not (deps / "tool" / "gone.py").exists()
    assert not list(deps.rglob("gone.*.pyc"))


def test_a_failure_changes_nothing_and_says_what_to_type(wheels: Path, tmp_path: Path) -> None:
    deps = tmp_path / ".deps"
    wheel(wheels, "one", "1.0", {"one.py": ""})
    install(["one"], deps)
    before = {path: path.stat().st_ino for path in deps.rglob("*")}
    report = install(["one", "no-such-package"], deps)
    assert report.installed == ()
    assert "no-such-package could not be installed: No matching distribution found" in report.problem
    typed = shlex.split(report.command)
    assert typed[1:5] == ["-m", "pip", "install", "--target"]
    assert typed[5:] == [str(deps), "one", "no-such-package"]
    assert {path: path.stat().st_ino for path in deps.rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir() if path != wheels] == [".deps"]


def test_source_packages_are_not_built(wheels: Path, tmp_path: Path) -> None:
    (wheels / "sly-1.0.tar.gz").write_bytes(b"never opened")
    assert "No matching distribution" in install(["sly"], tmp_path / ".deps").problem


@pytest.mark.parametrize(
    "entry", ["-r x.txt", "--pre", "https://e/a.whl", "../a", "a @ file:///a", "a.whl", ""]
)
def test_only_names_are_taken(entry: str, tmp_path: Path) -> None:
    report = install(["requests", entry], tmp_path / ".deps")
    assert report.problem == f"{entry!r} is not a package name; nothing was installed"
    assert not (tmp_path / ".deps").exists()


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    report = install(["requests"], tmp_path / ".deps", enabled=False)
    assert report.problem == "installing packages is switched off"
    assert report.command.endswith(f"--target {tmp_path / '.deps'} requests")


def test_an_installer_that_hangs_is_ended(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").write_text("#!/bin/sh\nsleep 60\n")
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    report = install(["requests"], tmp_path / ".deps", timeout=0.2)
    assert report.problem == "installing requests took longer than 0.2 s"


def test_uv_is_used_if_it_is_there(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(wheels, "one", "1.0", {"one.py": ""})
    programs = tmp_path / "bin"
    programs.mkdir()
    told = tmp_path / "told"
    script = (
        f'#!/bin/sh\necho "$@" > {told}\nwhile [ "$1" != --target ]; do shift; done\ntouch "$2/by_uv.py"\n'
    )
    (programs / "uv").write_text(script)
    (programs / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    assert install(["one"], tmp_path / ".deps").problem == ""
    assert (tmp_path / ".deps" / "by_uv.py").exists()
    assert "--no-build" in told.read_text()


def test_an_interrupted_exchange_is_put_right(wheels: Path, tmp_path: Path) -> None:
    wheel(wheels, "one", "1.0", {"one.py": ""})
    deps = tmp_path / ".deps"
    (tmp_path / ".deps.old").mkdir()
    (tmp_path / ".deps.old" / "before.py").write_text("")
    (tmp_path / ".deps.new").mkdir()
    assert install(["one"], deps).problem == ""
    assert {path.name for path in deps.glob("*.py")} == {"before.py", "one.py"}
    assert not (tmp_path / ".deps.old").exists()


def test_a_command_for_what_nothing_installs_by_itself() -> None:
    assert command_for("azure.storage").endswith("--target .deps azure-identity azure-storage-file-share")
