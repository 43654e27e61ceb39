"""The SSH coordinates of a member, checked so that none of them can be taken for an option."""

from __future__ import annotations

import re

import msgspec

from neighborhoods.errors import BadMemberError
from twins.fs.untrusted_names import shown

_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,63}")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f]*:[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?")
_WITH_PORT = re.compile(r"(?:\[(?P<v6>[^\]]*)\]|(?P<name>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?")


class SshDestination(msgspec.Struct, frozen=True):
    """A host or an alias of the owner's SSH configuration; user "" and port 0 leave the choice to that."""

    host: str
    user: str = ""
    port: int = 0

    @classmethod
    def parse(cls, host: str, user: str = "") -> SshDestination:
        """``host`` is HOST or HOST:PORT, an IPv6 address with a port in brackets. Raises ``BadMemberError``."""
        found = _WITH_PORT.fullmatch(host)
        name, port = host, 0
        if found is not None:
            name, port = found["v6"] or found["name"] or "", int(found["port"] or 0)
        if _HOST.fullmatch(name) is None or port > 65535:
            raise BadMemberError(
                f"“{shown(host)}” is no host that SSH can be asked for.", do="Correct ssh_host in peers.json."
            )
        if user and _USER.fullmatch(user) is None:
            raise BadMemberError(
                f"“{shown(user)}” is no account that SSH can be asked for.",
                do="Correct ssh_user in peers.json.",
            )
        return cls(name, user, port)

    @property
    def arguments(self) -> list[str]:
        """The options that say where to; the host comes last, after ``--``."""
        user = ["-l", self.user] if self.user else []
        port = ["-p", str(self.port)] if self.port else []
        return [*user, *port]

    def __str__(self) -> str:
        """The command line that a person types to reach it."""
        port = f" -p {self.port}" if self.port else ""
        return f"{f'{self.user}@' if self.user else ''}{self.host}{port}"
