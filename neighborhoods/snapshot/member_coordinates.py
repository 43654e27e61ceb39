"""The ways to a member that ``peers.json`` names beside its address: SSH, a folder, a GitHub neighborhood."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from neighborhoods.discovery.address_text import join
from neighborhoods.discovery.announcement import tame
from neighborhoods.discovery.peers_file import listed_entries, placed
from neighborhoods.errors import BadMemberError
from neighborhoods.snapshot.transports.ssh_destination import SshDestination

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")


class MemberCoordinates(msgspec.Struct, frozen=True):
    """One entry. Fields that it has not are empty; ``folder`` is a home of rappd that is reachable as files.

    ``auth_token_env`` names the variable with the token for ``github_neighborhood``; ``auth_url`` is the page that
    gives one. ``trouble`` says which coordinate cannot be used; the others work.
    """

    name: str
    url: str = ""
    address: str = ""
    fingerprint: str = ""
    ssh_user: str = ""
    ssh_host: str = ""
    folder: str = ""
    github_neighborhood: str = ""
    auth_url: str = ""
    auth_token_env: str = ""
    trouble: str = ""

    @property
    def ssh(self) -> SshDestination | None:
        """The member's SSH coordinates, if it has any. Raises ``BadMemberError``."""
        return SshDestination.parse(self.ssh_host, self.ssh_user) if self.ssh_host else None


def read_coordinates(path: Path) -> list[MemberCoordinates]:
    """The entries of ``peers.json``. Raises ``BadPeersFileError`` for a file that is none."""
    return [
        found
        for raw in listed_entries(path)
        if isinstance(raw, dict) and (found := _coordinates(raw)) is not None
    ]


def _coordinates(raw: dict[str, Any]) -> MemberCoordinates | None:
    text = {key: value.strip() for key, value in raw.items() if isinstance(value, str)}
    url, address = text.get("url", ""), ""
    if url:
        try:
            host, port, _ = placed(url)
            address = join(host, port)
        except ValueError:
            return None  # the list of addresses names it
    found = MemberCoordinates(
        name=tame(text.get("name", "")),
        url=url,
        address=address,
        fingerprint=text.get("fingerprint", "").lower(),
        ssh_user=text.get("ssh_user", ""),
        ssh_host=text.get("ssh_host", ""),
        folder=text.get("folder", ""),
        github_neighborhood=text.get("github_neighborhood", ""),
        auth_url=text.get("auth_url", ""),
        auth_token_env=text.get("auth_token_env", ""),
    )
    name = found.name or found.ssh_host or found.github_neighborhood or Path(found.folder).name
    return msgspec.structs.replace(found, name=name, trouble=_trouble(found))


def _trouble(found: MemberCoordinates) -> str:
    try:
        _ = found.ssh
    except BadMemberError as error:
        return str(error)
    if found.folder and not Path(found.folder).expanduser().is_absolute():
        return "folder is no absolute path."
    if found.github_neighborhood and not is_repository(found.github_neighborhood):
        return "github_neighborhood is neither OWNER/NAME nor the URL of a repository."
    if found.auth_token_env and not _VARIABLE.fullmatch(found.auth_token_env):
        return "auth_token_env is no name of a variable."
    if found.auth_url and not found.auth_url.startswith("https://"):
        return "auth_url is no https:// address."
    return ""


def is_repository(text: str) -> bool:
    """True for OWNER/NAME, or a URL that git is given: https, ssh or a folder."""
    if _REPOSITORY.fullmatch(text):
        return True
    return text.startswith(("https://", "file:///")) and not re.search(r"[\s\x00-\x1f@]", text)
