"""Needs of code: the folders, hosts, programs and variables that it declares, to which the sandbox of its workers holds it."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

KINDS = ("read", "write", "hosts", "programs", "variables")
UNDECLARED = "may read your files and the network"
OWN_STORAGE = "uses its own storage alone"
_MOST = 32
_LONGEST = 300
_ANY = "*"
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?P<name>\*|(?:\*\.)?{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::(?P<port>\d{{1,5}}))?")
_VARIABLE = re.compile(r"\$([A-Z][A-Z0-9_]{0,63})")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}")
_LAST_PORT = 65535
_OF_THE_KERNEL = ("/proc", "/sys", "/dev")
AGENTS = "agents"
"""Among what is read: the folder of the agents beside it."""
_ORDINARY = (
    "PATH HOME USER LOGNAME SHELL TERM COLUMNS LANG LANGUAGE TZ TMPDIR TEMP TMP NO_COLOR VIRTUAL_ENV LLM_FAKE"
    " SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUTF8"
)
_ORDINARY_VARIABLES = frozenset(_ORDINARY.split())
"""Variables that say where programs, certificates and the clock are, and in which language people read."""
PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
"""Names in small letters of the variables that lead to the owner's own proxy."""

Use = tuple[str, str, bool]
"""A kind of needs, what a call asked for, and whether it was given."""
_MOST_USES = 50


class BadNeedsError(ValueError):
    """Needs that cannot be held to; the text says which and why."""


class Needs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Beside its own storage: folders that it reads and writes, hosts, programs, variables. Each is sorted, without repeats.

    A folder is absolute or begins with ``~/``, or is ``AGENTS``, to be read. A host is ``name``, ``*.name``, an address or ``*`` (every public one),
    perhaps with ``:port``; ``$VARIABLE`` is the server that this variable names. A program is a name or a path. A
    variable is the name of one of the environment.
    """

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The needs as text: equal for equal ones."""
        return orjson.dumps(self.as_json()).decode()

    def as_json(self) -> dict[str, list[str]]:
        """The needs as a plain object."""
        return {kind: list(getattr(self, kind)) for kind in KINDS if kind != "variables" or self.variables}

    def words(self) -> list[str]:
        """The needs for people, a phrase each: ``["reads ~/Pictures", "talks to example.com"]``."""
        any_host = [one for one in self.hosts if one.partition(":")[0] == _ANY]
        named = [_host_in_words(one) for one in self.hosts if one not in any_host]
        phrases = [
            f"reads {_listed(map(_folder_in_words, self.read))}" if self.read else "",
            f"changes {_listed(self.write)}" if self.write else "",
            "talks to every server of the internet" if any_host else "",
            f"talks to {_listed(named)}" if named else "",
            f"starts the program{'s' * (len(self.programs) > 1)} {_listed(self.programs)}"
            if self.programs
            else "",
            f"is given your {_listed(self.variables)}" if self.variables else "",
        ]
        return [one for one in phrases if one] or [OWN_STORAGE]

    @property
    def folders(self) -> dict[str, list[str]]:
        """The folders of the machine, by ``read`` and ``write``."""
        return {kind: [one for one in getattr(self, kind) if one != AGENTS] for kind in ("read", "write")}

    def servers(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The hosts with ``$VARIABLE`` replaced by ``host:port`` of what ``environment`` has; left out where it has none."""
        named = (
            _server_of(environment.get(one[1:], "")) if one.startswith("$") else one for one in self.hosts
        )
        return tuple(filter(None, named))

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables of ``environment`` that code with these needs gets: ordinary ones, and those that it names."""
        named = {*self.variables, *(one[1:] for one in self.hosts if one.startswith("$"))}
        return {
            name: text
            for name, text in environment.items()
            if name in named
            or name in _ORDINARY_VARIABLES
            or name.startswith("LC_")
            or (self.hosts and name.lower() in PROXIES)
        }


NOTHING = Needs()
"""Own storage alone."""


class Confines(NamedTuple):
    """Bounds of the workers of one file. ``private``: the owner allowed the hidden paths that ``needs`` names.

    ``shown`` and ``imported`` are files of the workspace that code with needs may read: its own, and its modules.
    """

    needs: Needs | None = None
    private: bool = False
    shown: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()


UNCONFINED = Confines()
"""The limits of code that declares nothing."""


def in_words(needs: Needs | None) -> list[str]:
    """The needs of an agent for people; None is one that declares nothing."""
    return [UNDECLARED] if needs is None else needs.words()


def unheld(needs: Needs | None, sandbox: Mapping[str, Any]) -> str:
    """The reason why a machine with this ``sandbox`` (its report) cannot hold code to its needs; "" where it can."""
    kind = sandbox.get("kind")
    if needs is None or kind == "unknown":
        return ""
    if kind == "none":
        return "This computer cannot hold it to what it declares"
    if needs.hosts and not sandbox.get("network"):
        return "This computer cannot hold it to its servers: it can talk to every one"
    if not needs.hosts and sandbox.get("unfiltered"):
        return "This computer cannot keep it from the network"
    return ""


def yes_digest(sha256: str, needs: Needs | None) -> str:
    """The hash that the owner's yes to exactly these needs of exactly these bytes is kept by."""
    declaration = "undeclared" if needs is None else needs.key
    return hashlib.sha256(f"rappd/needs\n{sha256}\n{declaration}".encode()).hexdigest()


def read_needs(value: Any) -> Needs:
    """The needs that an agent file says. Raises ``BadNeedsError``."""
    if not isinstance(value, dict):
        raise BadNeedsError(f"needs is no dict with {', '.join(KINDS)}")
    if unknown := [str(key)[:40] for key in value if key not in KINDS]:
        raise BadNeedsError(f'needs has "{unknown[0]}"; it may have {", ".join(KINDS)}')
    return Needs(
        _each(value, "read", lambda text: text if text == AGENTS else _folder(text)),
        _each(value, "write", _folder),
        _each(value, "hosts", _host),
        _each(value, "programs", _program),
        _each(value, "variables", _variable),
    )


def together(all_needs: Iterable[Needs]) -> Needs:
    """The needs of a file whose agents declare these."""
    found = list(all_needs)
    return Needs(*(tuple(sorted({one for each in found for one in getattr(each, kind)})) for kind in KINDS))


def checked_uses(uses: Sequence[Use]) -> list[Use]:
    """Uses as a worker tells of them. Raises ``ValueError`` for what it cannot have noted."""
    if len(uses) > _MOST_USES or any(kind not in KINDS or len(what) > _LONGEST for kind, what, _ in uses):
        raise ValueError("no notes of uses")
    return [(kind, _shown(what), given) for kind, what, given in uses]


def _shown(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def split_host(text: str) -> tuple[str, int]:
    """``name:port`` as name and port; port 0 where none is said. The name of an address has no brackets."""
    name, sign, port = text.rpartition(":")
    if not sign or (text.endswith("]") and text.startswith("[")):
        name, port = text, "0"
    return name.strip("[]"), int(port)


def _each(value: Mapping[str, Any], kind: str, check: Any) -> tuple[str, ...]:
    listed = value.get(kind, ())
    if isinstance(listed, str) or not isinstance(listed, (list, tuple)):
        raise BadNeedsError(f"needs: {kind} is no list of texts")
    if len(listed) > _MOST:
        raise BadNeedsError(f"needs: {kind} has {len(listed)} entries, more than {_MOST}")
    for one in listed:
        if not isinstance(one, str) or not 0 < len(one) <= _LONGEST or not one.isprintable():
            raise BadNeedsError(f"needs: {kind} has an entry that is no text of up to {_LONGEST} characters")
    return tuple(sorted({check(one.strip()) for one in listed}))


def _folder(text: str) -> str:
    if not text.startswith(("/", "~/")) and text != "~":
        raise BadNeedsError(f'needs: the folder "{text}" begins with neither / nor ~/')
    if ".." in text.split("/"):
        raise BadNeedsError(f'needs: the folder "{text}" has ".." in it')
    if "*" in text or "?" in text:
        raise BadNeedsError(f'needs: "{text}" is no folder: name each one')
    path = "/" + os.path.normpath(text).lstrip("/") if text.startswith("/") else os.path.normpath(text)
    if path == "/" or path.startswith(tuple(f"{one}/" for one in _OF_THE_KERNEL)) or path in _OF_THE_KERNEL:
        raise BadNeedsError(f'needs: "{text}" is not given to any agent: name the folders that it works with')
    return path


def _host(text: str) -> str:
    if text.startswith("$") and _VARIABLE.fullmatch(text):
        return text
    text = text.lower().rstrip(".")
    found = _HOST.fullmatch(text)
    if found is None or int(found["port"] or 1) not in range(1, _LAST_PORT + 1):
        raise BadNeedsError(
            f'needs: "{text}" is no host: a name, *.name, an address or *, perhaps with :port'
        )
    name = found["name"].strip("[]")
    if "[" in text or re.fullmatch(r"[\d.]+", name):
        try:
            address = ipaddress.ip_address(name)
        except ValueError as error:
            raise BadNeedsError(f'needs: "{text}" is no address') from error
        name = f"[{address}]" if address.version == 6 else str(address)
        return name + (f":{found['port']}" if found["port"] else "")
    return text


def _program(text: str) -> str:
    if text.startswith("/") and ".." not in text.split("/"):
        return os.path.normpath(text)
    if not _PROGRAM.fullmatch(text):
        raise BadNeedsError(f'needs: "{text}" is no program: a name such as git, or a path')
    return text


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(f"${text}"):
        raise BadNeedsError(f'needs: "{text}" is no variable: a name such as WEATHER_KEY')
    return text


def _server_of(address: str) -> str:
    """``host:port`` of a web address or of a host; "" for what is neither."""
    scheme, sign, rest = address.strip().rpartition("://")
    server = rest.partition("/")[0].rpartition("@")[2]
    try:
        host = _host(server)
    except BadNeedsError:
        return ""
    if split_host(host)[1] or not sign:
        return host
    return f"{host}:{443 if scheme.lower() == 'https' else 80}"


def _host_in_words(host: str) -> str:
    return f"the server that your {host[1:]} names" if host.startswith("$") else host


def _folder_in_words(name: str) -> str:
    return "the files of the agents beside it" if name == AGENTS else name


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
