"""Packages for one workspace: fetched by the real installer, from wheels made here."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from fixtures.package_index import PackageIndex

from agents.packages import install_packages
from agents.packages.install_packages import PackageSource, hint_for
from agents.programs import programs

KINDS = ("mount namespace", "landlock", "none")


@pytest.fixture
def wheels(tmp_path: Path) -> PackageIndex:
    """An index that is the installer's only source but for the one of this system."""
    return PackageIndex(tmp_path / "wheels")


@pytest.fixture
def install(wheels: PackageIndex):
    """``install`` from that index, in the sandbox that agents have here."""
    return partial(install_packages.install, source=PackageSource(wheels.url))


def wheel(index: PackageIndex, name: str, version: str, files: dict[str, str], requires: str = "") -> None:
    index.add(name, version, files, requires)


def installed(deps: Path) -> dict[str, str]:
    found = importlib.metadata.distributions(path=[str(deps)])
    return {one.name.lower().replace("_", "-"): one.version for one in found}


def imported(deps: Path, expression: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(deps)!r}); {expression}"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_packages_and_what_they_need_arrive(install, wheels: PackageIndex, tmp_path: Path) -> None:
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


def test_what_is_there_is_kept_and_not_fetched_again(install, wheels: PackageIndex, tmp_path: Path) -> None:
    deps = tmp_path / ".deps"
    wheel(wheels, "one", "1.0", {"shared/one.py": "", "one.py": "WORD = 'one'\n"})
    install(["one"], deps)
    (deps / "by_hand.py").write_text("WORD = 'mine'\n")
    wheels.remove("one")
    wheel(wheels, "two", "1.0", {"shared/two.py": "", "two.py": ""})
    report = install(["one", "two"], deps)
    assert (report.problem, report.installed) == ("", ("two",))
    code = "import one, two, by_hand, shared.one, shared.two; print(one.WORD, by_hand.WORD)"
    assert imported(deps, code) == "one mine"
    assert install(["one", "Two"], deps).installed == ()


def test_a_newer_version_replaces_the_old_one_whole(install, wheels: PackageIndex, tmp_path: Path) -> None:
    deps = tmp_path / ".deps"
    wheel(wheels, "tool", "1.0", {"tool/__init__.py": "V = 1\n", "tool/gone.py": ""})
    install(["tool"], deps)
    wheel(wheels, "tool", "2.0", {"tool/__init__.py": "V = 2\n"})
    assert install(["tool>=2"], deps).problem == ""
    assert imported(deps, "import tool; print(tool.V)") == "2"
    assert installed(deps) == {"tool": "2.0"}
    assert not (deps / "tool" / "gone.py").exists()
    assert not list(deps.rglob("gone.*.pyc"))


def test_a_failure_changes_nothing_and_says_what_to_type(
    install, wheels: PackageIndex, tmp_path: Path
) -> None:
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
    assert [path.name for path in tmp_path.iterdir() if path != wheels.folder] == [".deps"]


def test_source_packages_are_not_built(install, wheels: PackageIndex, tmp_path: Path) -> None:
    wheels.add_file("sly", "sly-1.0.tar.gz", b"never opened")
    assert "No matching distribution" in install(["sly"], tmp_path / ".deps").problem


@pytest.mark.parametrize(
    "entry", ["-r x.txt", "--pre", "https://e/a.whl", "../a", "a @ file:///a", "a.whl", ""]
)
def test_only_names_are_taken(install, entry: str, tmp_path: Path) -> None:
    report = install(["requests", entry], tmp_path / ".deps")
    assert report.problem == f"{entry!r} is not a package name; nothing was installed"
    assert not (tmp_path / ".deps").exists()


def test_it_can_be_switched_off(install, tmp_path: Path) -> None:
    report = install(["requests"], tmp_path / ".deps", enabled=False)
    assert report.problem == "installing packages is switched off"
    assert report.command.endswith(f"--target {tmp_path / '.deps'} requests")


@pytest.fixture
def own_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a script pass for a uv that lies at a safe place."""

    def make(script: str) -> None:
        path = Path(sys.executable).parent / "uv"
        body = tmp_path / "uv"
        body.write_text(f"#!/bin/sh\n{script}\n")
        body.chmod(0o755)
        monkeypatch.setattr(programs, "_found", {"uv": str(body)})
        monkeypatch.setattr("agents.packages.install_packages._PROGRAM", _AS_IF_SAFE.format(path=str(body)))
        assert not path.exists()

    return make


_AS_IF_SAFE = (
    "from agents.programs import programs; programs._is_usable = lambda path: True; "
    "from agents.packages.sandboxed_installer import main; main()  # {path}"
)


def test_an_installer_that_hangs_is_ended(install, own_uv, tmp_path: Path) -> None:
    own_uv("sleep 60")
    report = install(["requests"], tmp_path / ".deps", timeout=1.0, source=PackageSource("", "none"))
    assert report.problem == "installing requests took longer than 1 s"


def test_uv_is_used_if_it_is_there(install, own_uv, tmp_path: Path) -> None:
    own_uv('echo "$@" > told; while [ "$1" != --target ]; do shift; done; cp told "$2/by_uv.py"')
    report = install(["one"], tmp_path / ".deps", source=PackageSource("", "none"))
    assert report.problem == ""
    told = (tmp_path / ".deps" / "by_uv.py").read_text()
    assert "--no-build" in told
    assert "--no-config" in told


def test_an_interrupted_exchange_is_put_right(install, wheels: PackageIndex, tmp_path: Path) -> None:
    wheel(wheels, "one", "1.0", {"one.py": ""})
    deps = tmp_path / ".deps"
    (tmp_path / ".deps.old").mkdir()
    (tmp_path / ".deps.old" / "before.py").write_text("")
    (tmp_path / ".deps.new").mkdir()
    assert install(["one"], deps).problem == ""
    assert {path.name for path in deps.glob("*.py")} == {"before.py", "one.py"}
    assert not (tmp_path / ".deps.old").exists()


def test_hint_names_the_command_that_installs_the_package() -> None:
    hint = hint_for("import azure.storage\n", "azure.storage", Path(".deps"))
    assert hint.startswith("install it: ")
    assert hint.endswith("--target .deps azure-identity azure-storage-file-share")


def test_install_into_a_link_is_refused(install, wheels: PackageIndex, tmp_path: Path) -> None:
    wheel(wheels, "one", "1.0", {"one.py": ""})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / ".deps").symlink_to(elsewhere)
    assert "it is a link or a file; move it away" in install(["one"], tmp_path / ".deps").problem
    assert list(elsewhere.iterdir()) == []


def test_install_follows_no_link_inside_the_folder(install, wheels: PackageIndex, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.py").write_text("private")
    deps = tmp_path / ".deps"
    deps.mkdir()
    (deps / "kept").symlink_to(secret)
    (deps / "leaked.py").symlink_to(secret / "key.py")
    (deps / "one-0.9.dist-info").mkdir()
    (deps / "one-0.9.dist-info" / "RECORD").symlink_to(secret / "key.py")
    os.mkfifo(deps / "pipe")
    (deps / "two-0.9.dist-info").mkdir()
    os.mkfifo(deps / "two-0.9.dist-info" / "RECORD")
    wheel(wheels, "one", "1.0", {"one.py": "", "kept/new.py": ""}, "two")
    wheel(wheels, "two", "1.0", {"two.py": ""})
    assert install(["one>=1"], deps, timeout=100.0).problem == ""
    assert [path.name for path in secret.iterdir()] == ["key.py"], "nothing is written through a link"
    assert (secret / "key.py").read_text() == "private"
    assert (deps / "leaked.py").is_symlink()


def test_install_beside_another_one_gives_up(install, wheels: PackageIndex, tmp_path: Path) -> None:
    import fcntl

    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        report = install(["one"], tmp_path / ".deps", timeout=0.2)
    finally:
        os.close(held)
    assert report.problem == "one could not be installed: another installation is under way"


@pytest.mark.parametrize("kind", KINDS)
def test_installer_ignores_configuration_of_the_account(
    wheels: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    wheel(wheels, "one", "1.0", {"one.py": ""})
    home = tmp_path / "home"
    planted = home / "planted"
    marker = tmp_path / "ran"
    (home / ".config" / "pip").mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    planted.chmod(0o755)
    (home / ".config" / "pip" / "pip.conf").write_text(f"[global]\npython = {planted}\n")
    (home / ".pip").mkdir()
    (home / ".pip" / "pip.conf").write_text(f"[global]\npython = {planted}\n")
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "uv").symlink_to(planted)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PIP_PYTHON", str(planted))
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{os.environ['PATH']}")

    old_way = [sys.executable, "-I", "-m", "pip", "install", "one"]
    subprocess.run(old_way, capture_output=True, check=False)
    assert marker.exists(), "the positive control: pip runs what is planted"
    marker.unlink()

    report = install_packages.install(["one"], tmp_path / ".deps", source=PackageSource(wheels.url, kind))
    assert report.problem == ""
    assert (tmp_path / ".deps" / "one.py").exists()
    assert not marker.exists()


def test_password_of_the_index_is_in_no_process_list(
    wheels: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.is_set():
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(process.read_text())
                except OSError:
                    continue
            time.sleep(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    index = "http://owner:open-sesame@127.0.0.1:9/simple"
    source = PackageSource(index)
    try:
        report = install_packages.install(["one"], tmp_path / ".deps", timeout=100.0, source=source)
    finally:
        is_over.set()
        watcher.join()
    assert report.problem
    assert any("sandboxed_installer" in line for line in seen), "the watcher saw the installer"
    assert not any("open-sesame" in line for line in seen)
    assert "open-sesame" not in report.problem
