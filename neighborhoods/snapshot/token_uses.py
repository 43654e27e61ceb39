"""The operator's list of variables with tokens and the hosts that may get them, because ``peers.json`` travels.

A copied or edited ``peers.json`` could else name any variable of the daemon, such as a model's key, for a host of its
writer. ``$RAPP_HOME/token_uses.json``, where no worker can write:

    {"schema": "rappd-token-uses/1.0", "allowed": [{"variable", "host", "at"}]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import orjson

from agents.storage.atomic_write import write_atomically
from neighborhoods.errors import BadMemberError, MemberRefusedError
from twins.errors import BadFileError
from twins.trust.quarantine import CachedFile
from twins.workspace.identity_file import utc
from twins.workspace.workspace import exclusive_lock

SCHEMA = "rappd-token-uses/1.0"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


class TokenUse(msgspec.Struct, frozen=True):
    """One variable and the host, with its port where a URL names one, that gets its value."""

    variable: str
    host: str
    at: str = ""


class TokenUses:
    """The operator's list of allowed uses. Other processes' changes are seen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: CachedFile[Mapping[tuple[str, str], TokenUse]] = CachedFile(path, _decode, dict)

    def is_allowed(self, variable: str, host: str) -> bool:
        """True when the operator said yes to exactly this pair. Raises ``BadFileError`` for a damaged list."""
        return (variable, host) in self._file.content()

    def allow(self, variable: str, host: str) -> TokenUse:
        """Records the operator's yes. Raises ``BadMemberError`` for what names no variable or no host."""
        use = TokenUse(*_proper(variable, host), utc(datetime.now(UTC)))
        with exclusive_lock(self._path.parent):
            self._write({**self._file.content(), (use.variable, use.host): use})
        return use

    def remove(self, variable: str, host: str) -> bool:
        """Takes a yes back; False when there was none."""
        with exclusive_lock(self._path.parent):
            known = dict(self._file.content())
            was = known.pop(_proper(variable, host), None)
            if was is not None:
                self._write(known)
        return was is not None

    def listing(self) -> list[TokenUse]:
        """Allowed uses, by variable and host."""
        return [use for _, use in sorted(self._file.content().items())]

    def _write(self, uses: Mapping[tuple[str, str], TokenUse]) -> None:
        rows = [msgspec.to_builtins(use) for _, use in sorted(uses.items())]
        content = orjson.dumps({"schema": SCHEMA, "allowed": rows}, option=orjson.OPT_INDENT_2)
        write_atomically(self._path, content)
        self._file.forget()


def host_of(url: str) -> str:
    """The host of an ``https://`` URL as uses name it; "" for a URL that no token is sent to."""
    parts = urlsplit(url)
    return parts.netloc.lower() if parts.scheme == "https" else ""


def refusal(member: str, use: TokenUse) -> MemberRefusedError:
    """The error of a member whose token nobody allowed yet, with the command that allows it."""
    return MemberRefusedError(
        f"peers.json sends the value of {use.variable} to {use.host} for {member}; you have not allowed that.",
        do=f"rappd neighborhood token {use.variable} {use.host}",
    )


def _proper(variable: str, host: str) -> tuple[str, str]:
    host = host.lower()
    if not _VARIABLE.fullmatch(variable):
        raise BadMemberError(
            f"“{variable[:80]}” is no name of a variable.", do="Write it in capitals, as in peers.json."
        )
    if not _HOST.fullmatch(host):
        raise BadMemberError(f"“{host[:80]}” is no host.", do="Write it as in its URL, such as github.com.")
    return variable, host


def _decode(content: bytes) -> Mapping[tuple[str, str], TokenUse]:
    try:
        found: Any = orjson.loads(content)
        uses = msgspec.convert(found["allowed"], list[TokenUse])
    except (orjson.JSONDecodeError, msgspec.ValidationError, KeyError, TypeError) as error:
        raise BadFileError(
            "token_uses.json is damaged; no token is sent until it is whole.",
            do="Delete it; you are asked anew.",
        ) from error
    return {(use.variable, use.host): use for use in uses}
