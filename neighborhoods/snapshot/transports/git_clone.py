"""Clones of repositories that may be anybody's: no hook, filter or prompt runs, no token is seen on a command line."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path

from agents.programs import programs
from neighborhoods.errors import MemberError, MemberRefusedError, MemberUnreachableError
from neighborhoods.snapshot.transports.ssh_failures import last_line

GITHUB = "https://github.com"
_SECONDS = 600.0
ANSWER_SECONDS = 30.0
"""A host that says nothing for so long does not answer. git itself waits for minutes, or for ever."""
_SAFE = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "commit.gpgSign": "false",
    "core.autocrlf": "false",
    "submodule.recurse": "false",
    "user.name": "rappd",
    "user.email": "rappd@localhost",
}
_NO_ENTRY = (
    "Authentication failed",
    "could not read Username",
    "403",
    "not found",
    "does not appear to be a git",
)


class GitRepository:
    """A repository by its URL, ``https://`` or ``file://``; ``member`` is the name that messages use."""

    def __init__(
        self,
        member: str,
        url: str,
        *,
        token: str = "",
        auth_url: str = "",
        refusal: MemberRefusedError | None = None,
    ) -> None:
        """``refusal``: why it is not used at all."""
        self.member, self.url = member, url
        self._token, self._auth_url, self._refusal = token, auth_url, refusal

    async def head(self) -> str:
        """The commit that the default branch is at. Raises ``MemberError``."""
        return (
            (await self.git("ls-remote", "--", self.url, "HEAD", seconds=ANSWER_SECONDS))
            .split("\t")[0]
            .strip()
        )

    async def clone(self, into: Path) -> None:
        """Clones the last commit alone. Raises ``MemberError``, soon for a host that says nothing."""
        await self.head()
        await self.git(
            "clone", "--quiet", "--depth", "1", "--no-tags", "--single-branch", "--no-recurse-submodules", "--", self.url, str(into),
        )  # fmt: skip

    async def git(self, *arguments: str, seconds: float = _SECONDS) -> str:
        """The output of a git command. Raises ``MemberError``."""
        if self._refusal is not None:
            raise self._refusal
        try:
            done = await programs.run_async(
                ["git", *arguments], environment=self._environment(), home=True, seconds=seconds
            )
        except programs.ProgramNotFoundError as error:
            raise MemberError("git is not installed here.", do="Install git, rerun.") from error
        except TimeoutError:
            raise MemberUnreachableError(f"{self.member} does not answer.", do="Rerun.") from None
        if done.code == 0:
            return done.text
        raise self._failure(done.errors.decode("utf-8", "replace"))

    def _failure(self, errors: str) -> MemberError:
        reason = last_line(errors)
        if any(word in errors for word in _NO_ENTRY):
            where = f"Get a token at {self._auth_url} and" if self._auth_url else "Look at the address;"
            return MemberRefusedError(
                f"{self.member} does not open {self.url}: {reason}.",
                do=f"{where} name its variable as auth_token_env in peers.json.",
            )
        return MemberUnreachableError(
            f"{self.member}: git failed: {reason}.", do=f"See why: git ls-remote -- {shlex.quote(self.url)}"
        )

    def _environment(self) -> dict[str, str]:
        """Neither this account's settings nor the machine's; the token goes to its own host alone."""
        stalled = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": str(int(ANSWER_SECONDS))}
        settings = {**_SAFE, **stalled}
        if self._token and self.url.startswith("https://"):
            host = "/".join(self.url.split("/")[:3])
            secret = base64.b64encode(f"x-access-token:{self._token}".encode()).decode()
            settings[f"http.{host}/.extraHeader"] = f"Authorization: Basic {secret}"
        found = {
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ALLOW_PROTOCOL": "https" if self.url.startswith("https://") else "file",
            "GIT_CONFIG_COUNT": str(len(settings)),
        }
        for number, (key, value) in enumerate(settings.items()):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return found


def repository_url(text: str) -> str:
    """The URL of OWNER/NAME at GitHub; a URL stays what it is."""
    return text if "://" in text else f"{GITHUB}/{text}"


def sibling_url(neighborhood: str, owner: str, name: str) -> str:
    """The URL of another repository of the place where ``neighborhood`` lies: two parts of a path below it."""
    base = neighborhood.rstrip("/").rsplit("/", 2)[0]
    ending = ".git" if neighborhood.endswith(".git") else ""
    return f"{base}/{owner}/{name}{ending}"
