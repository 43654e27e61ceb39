"""Tells for warnings if agents can use the SSH keys of this account."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence

from agents.runtimes.python.sandbox.private_paths import EVERYTHING
from agents.runtimes.python.sandbox.protected_paths import home_folders, secret_sockets
from agents.runtimes.python.sandbox.sandbox import LANDLOCK, MOUNT_NAMESPACE

_SOCKETS = (
    *("/tmp/ssh-*/agent.*", "/run/user/{uid}/keyring/ssh", "/run/user/{uid}/gcr/ssh"),  # noqa: S108
    *("/run/user/{uid}/openssh_agent", "/run/user/{uid}/ssh-agent*", "/run/user/{uid}/gnupg/S.gpg-agent.ssh"),
)
_SOCKETS_IN_HOME = (
    ".ssh/agent/*",
    ".gnupg/S.gpg-agent.ssh",
    ".1password/agent.sock",
    ".bitwarden-ssh-agent.sock",
)


def can_use_ssh_keys(kind: str, may_read: Sequence[str], environment: Mapping[str, str]) -> bool:
    """True when agents in a sandbox of ``kind`` reach a key of SSH: its file, or a program that signs with it.

    ``environment`` is that of the owner's programs. A mount namespace closes both, Landlock the files alone.
    """
    homes = home_folders(environment)
    if any(_opens(text, homes) for text in may_read):
        return True
    if kind == MOUNT_NAMESPACE:
        return False
    named = list(secret_sockets({"SSH_AUTH_SOCK": environment.get("SSH_AUTH_SOCK", "")}))
    patterns = [one.format(uid=os.getuid()) for one in _SOCKETS]
    patterns += [f"{home}/{name}" for home in homes for name in _SOCKETS_IN_HOME]
    if any(map(os.path.exists, named)) or any(path for one in patterns for path in glob.glob(one)):
        return True
    return kind != LANDLOCK and any(glob.glob(f"{home}/.ssh/id_*") for home in homes)


def _opens(text: str, homes: Sequence[str]) -> bool:
    name = text.strip().removeprefix("~/").rstrip("/")
    keys = [f"{home}/.ssh" for home in homes]
    return name == EVERYTHING or any(
        f"{os.path.join(home, name)}/".startswith(f"{key}/") or key.startswith(f"{os.path.join(home, name)}/")
        for home, key in zip(homes, keys, strict=True)
        if name
    )
