"""The view of a worker whose code declares its needs: its own storage, what Python is made of, and what it declares.

Everything else is hidden: all folders of people, services and other programs, the rest of its workspace, the settings of
the machine, and the programs themselves. Needs only narrow: a declared folder is given as far as any worker may read or
write it; what is hidden from all of them, once the owner allowed it.
"""

from __future__ import annotations

import contextlib
import glob
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import agents
from agents.runtimes.python.sandbox.file_access import is_within
from agents.runtimes.python.sandbox.namespaces import DATA_FOLDERS, MountNamespace
from agents.runtimes.python.sandbox.needs import AGENTS, Confines, Needs
from agents.runtimes.python.sandbox.protected_paths import MachinePaths

_SHOWN = {
    "/": "bin sbin lib lib32 lib64 libx32 usr etc dev proc sys nix gnu",
    "/usr": "bin sbin lib lib32 lib64 libx32 libexec share local games",
    "/usr/local": "bin sbin lib lib32 lib64 share games",
}
"""Names in these folders of programs and libraries; in ``etc`` and ``sys`` a little is shown, and devices are replaced."""

_OF_LIBRARIES = (
    "alternatives ld.so.cache ld.so.conf ld.so.conf.d python3* localtime timezone mime.types os-release"
)
_OF_LIBRARIES += " locale.alias locale.conf fonts magic ssl/certs ssl/cert.pem ssl/openssl.cnf pki/tls/certs pki/tls/cert.pem"
_OF_LIBRARIES += " pki/tls/openssl.cnf pki/ca-trust ca-certificates ca-certificates.conf crypto-policies"
_OF_HOSTS = "resolv.conf hosts nsswitch.conf host.conf gai.conf services protocols"
_KERNEL = ("/sys/devices/system/cpu", "/sys/devices/system/node")
"""The number of processors, which numeric libraries read."""
_CLOSED = ("/etc", "/sys", "/proc/keys", "/proc/key-users", "/proc/locks", "/proc/cmdline")
_PROGRAM_FOLDERS = "/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /usr/games /usr/libexec"
SCRATCH = "/tmp"  # noqa: S108
"""Gets an own, empty file system."""
_IDENTITY = "rappid.json"
"""Tells code to whom its workspace belongs; there is nothing in it but what others are told, too."""
_PACKAGES = ("/site-packages", "/dist-packages")
_INTERPRETERS = 3
"""Scripts that run scripts are followed so far."""
_FIRST_LINE = 256


def confined(
    view: MountNamespace, confines: Confines, machine: MachinePaths, environment: Mapping[str, str]
) -> MountNamespace:
    """``view`` narrowed to ``confines``, whose needs are declared.

    ``environment`` says where programs are looked for, and which certificates count.
    """
    needs = confines.needs or Needs()
    path = environment.get("PATH", os.defpath)
    programs = _program_folders(path)
    places = _Places(machine, [view.workspace, view.private_root or view.workspace], private=confines.private)
    reads, writes = places.given(needs.folders["read"]), places.writable(needs.folders["write"])
    own = (*reads, *writes)
    data, deps = (f"{view.workspace}/{name}" for name in DATA_FOLDERS)
    beside = [*confines.shown, *confines.imported, deps, f"{view.workspace}/{_IDENTITY}"]
    if AGENTS in needs.read:
        beside.append(f"{view.workspace}/{AGENTS}")
    return replace(
        view,
        programs=tuple(
            one
            for one in view.programs
            if one not in programs and _is_library(one) and not places.is_around_homes(one)
        ),
        writable=(data, *writes) if os.path.isdir(data) and not os.path.islink(data) else tuple(writes),
        read_only=(
            *(one for one in view.read_only if _is_inside(one, own)),
            *reads,
            *places.given(_certificates(environment)),
            *(one for one in beside if os.path.exists(one) and not os.path.islink(one)),
            *_settings(_OF_LIBRARIES),
            *(_settings(_OF_HOSTS) if needs.hosts else ()),
            *filter(os.path.isdir, _KERNEL),
            *_shown_programs(needs.programs, path, own),
        ),
        private=(
            *_hidden_names(),
            *machine.private.hidden,
            *programs,
            view.workspace,
            *(one for one in view.read_only if is_within(one, data)),
        ),
        scratch=(SCRATCH,) if not os.path.islink(SCRATCH) else (),
        listed=tuple(dict.fromkeys(os.path.dirname(one) for one in confines.imported)),
        confined=True,
    )


class _Places:
    """Declared paths as real ones."""

    def __init__(self, machine: MachinePaths, never: Sequence[str], *, private: bool) -> None:
        """``never``: folders of rappd, which no needs open."""
        self._machine = machine
        self._never = never
        self._private = private

    def is_around_homes(self, path: str) -> bool:
        return any(is_within(home, path) for home in self._machine.homes)

    def given(self, declared: Sequence[str]) -> list[str]:
        """The existing paths among ``declared`` that may be shown."""
        found = [place for text in declared for place in self._named(text)]
        return [
            one
            for one in dict.fromkeys(found)
            if not _is_inside(one, self._never)
            and (self._private or not _is_inside(one, self._machine.private.hidden))
        ]

    def writable(self, declared: Sequence[str]) -> list[str]:
        """The parts of these paths that a worker without needs may write, too."""
        found: list[str] = []
        for place in self.given(declared):
            if _is_inside(place, self._machine.writable):
                found.append(place)
            else:
                found += [one for one in self._machine.writable if is_within(one, place)]
        return found

    def _named(self, text: str) -> Iterator[str]:
        if not text.startswith("~"):
            starts = [text]
        else:
            starts = [home + text[1:] for home in self._machine.homes]
        for start in starts:
            place = self._followed(start)
            if place and os.path.exists(place):
                yield place

    def _followed(self, path: str) -> str:
        """The real path; "" where a link leads there that a worker may have laid."""
        place = ""
        for name in path.strip("/").split("/"):
            place = f"{place}/{name}" if place != "/" else f"/{name}"
            if os.path.islink(place):
                if _is_inside(place, self._machine.writable):
                    return ""
                place = os.path.realpath(place)
        return place or "/"


def _certificates(environment: Mapping[str, str]) -> list[str]:
    """The files of certificates that the owner has programs trust."""
    named = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    return [text for name in named if (text := environment.get(name, "")).startswith("/")]


def _is_inside(path: str, folders: Sequence[str]) -> bool:
    return any(is_within(path, folder) for folder in folders)


def _is_library(path: str) -> bool:
    """True for a folder that Python or this program is made of; else its owner's, such as the folder where rappd was started."""
    installed = (sys.prefix, sys.base_prefix, os.path.dirname(next(iter(agents.__path__))))
    return _is_inside(path, [os.path.realpath(one) for one in installed]) or path.endswith(_PACKAGES)


def _hidden_names() -> Iterator[str]:
    """The paths beside programs and libraries, and those of the machine's settings."""
    for folder, shown in _SHOWN.items():
        if os.path.islink(folder):
            continue
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            yield from (one.path for one in entries if one.name not in shown.split() and not one.is_symlink())
    yield from filter(os.path.exists, _CLOSED)


def _settings(names: str) -> Iterator[str]:
    """The files and folders of these names in ``/etc``, and what those that are links lead to."""
    for name in names.split():
        for path in glob.glob(f"/etc/{name}") if "*" in name else (f"/etc/{name}",):
            real = os.path.realpath(path)
            if os.path.exists(real):
                yield from dict.fromkeys((path, real))


def _program_folders(path: str) -> dict[str, None]:
    """The folders of programs, as real paths."""
    environment = [f"{prefix}/bin" for prefix in (sys.prefix, sys.base_prefix)]
    named = [
        *path.split(os.pathsep),
        *_PROGRAM_FOLDERS.split(),
        *environment,
        os.path.dirname(sys.executable),
    ]
    found = (os.path.realpath(one) for one in named if one.startswith("/"))
    return dict.fromkeys(one for one in found if one != "/" and os.path.isdir(one))


def _shown_programs(names: Sequence[str], path: str, own: Sequence[str]) -> list[str]:
    """The files of programs, and of the interpreters of those that are scripts."""
    found: dict[str, None] = {}
    ahead = [(name, 0) for name in names]
    while ahead:
        name, depth = ahead.pop()
        for file in _files_of(name, path):
            if file not in found and not _is_inside(file, own):
                found[file] = None
                ahead += [(one, depth + 1) for one in _interpreters(file) if depth < _INTERPRETERS]
    return list(found)


def _files_of(name: str, path: str) -> list[str]:
    """A program's file, and what it is a link to."""
    folders = [*path.split(os.pathsep), *_PROGRAM_FOLDERS.split(), os.path.dirname(sys.executable)]
    places = [name] if name.startswith("/") else [f"{folder}/{name}" for folder in folders if folder]
    for place in places:
        real = os.path.realpath(place)
        if os.path.isfile(real) and os.access(real, os.X_OK):
            beside = f"{os.path.realpath(os.path.dirname(place))}/{os.path.basename(place)}"
            return list(dict.fromkeys((beside, real)))
    return []


def _interpreters(file: str) -> list[str]:
    """The programs that the first line of a script names: itself, and what ``env`` looks for."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a pipe by now
    except OSError:
        return []
    try:
        line = os.read(opened, _FIRST_LINE).partition(b"\n")[0]
    except OSError:
        return []
    finally:
        os.close(opened)
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    of_env = words[1:] if words and words[0].endswith("/env") else []
    return [*words[:1], *[one for one in of_env if not one.startswith("-") and "=" not in one][:1]]
