"""A neighborhood that lives in git repositories: read from clones; written, when its owner opted in, as a branch."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agents.programs import programs
from agents.storage.safe_walk import FileKind, LinkFreeFolder
from envelopes.codecs.bounded_json import bounded_json
from neighborhoods.errors import BadMemberStreamError, MemberError, MemberRefusedError, NoSuchMemberError
from neighborhoods.snapshot.member_transport import (
    MemberListing,
    MemberProbe,
    MemberTransport,
    MemberTwin,
    WriteOutcome,
    milliseconds_since,
    require_twin_hash,
)
from neighborhoods.snapshot.transports.git_clone import GITHUB, GitRepository, repository_url, sibling_url
from neighborhoods.snapshot.transports.listing_parser import MOST_RAPPID_BYTES, rappid_fields
from neighborhoods.snapshot.transports.twin_folder import batched, count_files, overlay_archive, tar_of
from twins.errors import BadFileError, BadRappidError
from twins.workspace.identity_file import Identity
from twins.workspace.rappid import Rappid

GithubWrite = Literal["off", "dry-run", "branch"]

_MOST_MEMBERS_BYTES = 4 << 20
_MOST_MEMBERS = 1000
_CLONES = 4
"""Repositories that are cloned at once: one that is slow keeps the others from nothing."""
_BRANCH = "rapp-neighborhood-restore"


class _Place(NamedTuple):
    """A twin's files: ``folder`` in the clone of ``repository``, "" for all of it."""

    repository: GitRepository
    folder: str
    listed_fields: dict[str, Any]


class GithubTransport(MemberTransport):
    """One neighborhood: ``twins/<hash>/`` in its repository, and the repositories of the rappids in its ``members.json``."""

    def __init__(
        self,
        member: str,
        neighborhood: str,
        *,
        token: str = "",
        auth_url: str = "",
        write: GithubWrite = "off",
        refusal: MemberRefusedError | None = None,
    ) -> None:
        """``neighborhood`` is OWNER/NAME or a URL; clones are deleted by ``aclose``.

        With ``refusal`` nothing is asked of it; each use raises that.
        """
        self._refusal = refusal
        self._member, self._write = member, write
        self._url = repository_url(neighborhood)
        self._token, self._auth_url = token, auth_url
        self._folders: list[Path] = []
        self._clones: dict[str, Path] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._cloning = asyncio.Semaphore(_CLONES)
        self._places: dict[str, _Place] | None = None

    async def probe(self) -> MemberProbe:
        """Asks for the last commit."""
        began = time.monotonic()
        try:
            await self._repository(self._url).head()
        except MemberError as error:
            return MemberProbe(False, error.with_advice(), took_ms=milliseconds_since(began))
        return MemberProbe(True, took_ms=milliseconds_since(began))

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists the twins; one whose repository cannot be cloned has a ``failure``. Archived ones are never published."""
        places = await self._found()
        twins = await asyncio.gather(*(self._listed(twin, place) for twin, place in places.items()))
        return MemberListing(tuple(twins), (), self._url)

    async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        """Streams the twin as the last commit has it."""
        place = None if archived else (await self._found()).get(twin)
        if place is None:
            raise NoSuchMemberError(f"{self._member} has no twin {twin}.", do="List its twins anew.")
        clone = await self._clone(place.repository)
        at = int(await place.repository.git("-C", str(clone), "log", "-1", "--format=%ct"))
        with LinkFreeFolder(clone) as files:
            pieces = batched(tar_of(files, place.folder, mtime=at, passed_over=(".git",)))
            while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
                yield piece

    async def read_agents(self) -> AsyncIterator[bytes]:
        """Raises ``NoSuchMemberError``: a neighborhood has no brainstem."""
        agents: tuple[bytes, ...] = ()
        for piece in agents:
            yield piece
        raise NoSuchMemberError(f"{self._member} has no brainstem.", do="Read its twins.")

    async def write_twin(
        self,
        twin: str,
        archive: Path,
        *,
        overwrite: bool = False,
        archived: bool = False,
        is_trusted: bool = True,
    ) -> WriteOutcome:
        """Pushes a branch with the twin's files; its owner merges it. Raises ``MemberRefusedError`` without the opt-in."""
        require_twin_hash(twin)
        if self._write == "off" or archived:
            raise MemberRefusedError(
                f"{self._member} is a repository, and is only read.",
                do="To propose branches: rappd config set neighborhood.github_write branch",
            )
        place = (await self._found()).get(twin) or _Place(self._repository(self._url), f"twins/{twin}", {})
        git = place.repository.git
        clone = await self._clone(place.repository)
        at = ("-C", str(clone))
        with LinkFreeFolder(clone) as files:
            if not overwrite and place.folder and files.find(place.folder).kind is not FileKind.NOTHING:
                return WriteOutcome(skipped=1, detail="it is there already")
        try:
            created, overwritten = await asyncio.to_thread(
                overlay_archive, clone, place.folder, twin, archive, overwrite=overwrite
            )
        except (OSError, MemberError) as error:
            await git(*at, "reset", "--hard", "--quiet")
            await git(*at, "clean", "-ffdxq")
            if isinstance(error, MemberError):
                raise
            raise MemberError(
                f"{self._member}: twin {twin} cannot be laid out there: {(error.strerror or str(error)).lower()}.",
                do="Look at that repository; nothing was pushed.",
            ) from error
        await git(*at, "add", "--all", "--", place.folder or ".")
        if not (await git(*at, "status", "--porcelain")).strip():
            return WriteOutcome(skipped=1, detail="nothing differs")
        if self._write == "dry-run":
            await git(*at, "reset", "--hard", "--quiet")
            return WriteOutcome(created, overwritten, staged=True, detail="dry run: nothing was pushed")
        base = (await git(*at, "rev-parse", "--abbrev-ref", "HEAD")).strip()
        branch = f"{_BRANCH}/{datetime.now(UTC):%Y%m%d-%H%M%S}-{twin[:8]}"
        before = (await git(*at, "rev-parse", "HEAD")).strip()
        await git(*at, "commit", "--quiet", "-m", f"Restore twin {twin[:16]} from a snapshot")
        await git(*at, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
        await git(*at, "reset", "--hard", "--quiet", before)
        detail = await self._proposed(place.repository.url, branch, base)
        return WriteOutcome(created, overwritten, staged=True, detail=detail)

    async def write_agents(
        self, archive: Path, *, overwrite: bool = False, is_trusted: bool = True
    ) -> WriteOutcome:
        """Raises ``MemberRefusedError``: a neighborhood has no brainstem."""
        raise MemberRefusedError(f"{self._member} has no brainstem.", do="Restore its twins.")

    async def aclose(self) -> None:
        """Removes the clones."""
        for folder in self._folders:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._places = None
        self._folders.clear()
        self._clones.clear()

    async def _found(self) -> dict[str, _Place]:
        if self._places is None:
            repository = self._repository(self._url)
            clone = await self._clone(repository)
            self._places = await asyncio.to_thread(self._read_places, repository, clone)
        return self._places

    def _read_places(self, repository: GitRepository, clone: Path) -> dict[str, _Place]:
        with LinkFreeFolder(clone) as files:
            try:
                content = files.content("members.json", _MOST_MEMBERS_BYTES)
                listed = bounded_json(content, most_bytes=_MOST_MEMBERS_BYTES)
            except FileNotFoundError:
                listed = []
            except (OSError, ValueError) as error:
                raise BadMemberStreamError(
                    f"{self._member}: members.json cannot be read.", do="Ask who keeps that repository."
                ) from error
            rows = listed.get("members", []) if isinstance(listed, dict) else listed
            found: dict[str, _Place] = {}
            for row in rows[:_MOST_MEMBERS] if isinstance(rows, list) else []:
                self._add(found, repository, files, row)
            if files.find("twins").kind is FileKind.FOLDER:
                for name, _ in files.entries("twins"):
                    if files.find(f"twins/{name}/rappid.json").kind is FileKind.FILE and not name.startswith(
                        "."
                    ):
                        found.setdefault(name, _Place(repository, f"twins/{name}", {}))
        return dict(sorted(found.items()))

    def _add(
        self, found: dict[str, _Place], repository: GitRepository, files: LinkFreeFolder, row: object
    ) -> None:
        """Takes one row of ``members.json``: a rappid, or an object with one."""
        fields = row if isinstance(row, dict) else {"rappid": row}
        try:
            rappid = Rappid.parse(str(fields.get("rappid", "")))
        except BadRappidError:
            return
        shown = {"rappid": rappid.text, "name": str(fields.get("name") or "")[:100]}
        if files.find(f"twins/{rappid.key}").kind is FileKind.FOLDER:
            found[rappid.key] = _Place(repository, f"twins/{rappid.key}", shown)
        elif rappid.owner and rappid.slug:
            url = sibling_url(self._url, rappid.owner, rappid.slug)
            found[rappid.key] = _Place(self._repository(url), "", shown)

    async def _listed(self, twin: str, place: _Place) -> MemberTwin:
        try:
            return await self._twin(twin, place)
        except MemberError as error:
            return MemberTwin(twin, place.listed_fields, failure=str(error))

    async def _twin(self, twin: str, place: _Place) -> MemberTwin:
        clone = await self._clone(place.repository)
        tree = f"HEAD:{place.folder}" if place.folder else "HEAD^{tree}"
        state = (await place.repository.git("-C", str(clone), "rev-parse", tree)).strip()

        def read() -> MemberTwin:
            with LinkFreeFolder(clone) as files:
                name = f"{place.folder}/rappid.json" if place.folder else "rappid.json"
                is_there = files.find(name).kind is FileKind.FILE
                content = files.content(name, MOST_RAPPID_BYTES) if is_there else b""
                is_twin = _is_identity(content)
                rappid = rappid_fields(content) if is_twin else place.listed_fields
                counted = count_files(files, place.folder)
                return MemberTwin(
                    twin,
                    rappid,
                    "active",
                    counted.bytes,
                    counted.files,
                    counted.has_soul,
                    counted.agents,
                    state,
                    has_rappid_json=is_twin,
                )

        return await asyncio.to_thread(read)

    async def _clone(self, repository: GitRepository) -> Path:
        async with self._locks.setdefault(repository.url, asyncio.Lock()):
            if repository.url not in self._clones:
                async with self._cloning:
                    into = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="clone-"))
                    self._folders.append(into)
                    await repository.clone(into)
                self._clones[repository.url] = into
            return self._clones[repository.url]

    async def _proposed(self, url: str, branch: str, base: str) -> str:
        """The next step for the owner: the pull request that gh made, or the command that makes it."""
        if not url.startswith(f"{GITHUB}/"):
            return f"pushed as {branch}; merge it into {base}"
        slug = url.removeprefix(f"{GITHUB}/").removesuffix(".git")
        where = ["--repo", slug, "--head", branch, "--base", base]
        arguments = ["pr", "create", *where, "--title", "Restore a twin", "--body", "From a snapshot."]
        if programs.find("gh") is not None:
            token = {"GH_TOKEN": self._token} if self._token else {}
            done = await programs.run_async(["gh", *arguments], environment=token, home=True, seconds=60)
            if done.code == 0:
                return f"proposed: {done.text.strip()}"
        return f"pushed; propose it: {shlex.join(['gh', 'pr', 'create', *where, '--fill'])}"

    def _repository(self, url: str) -> GitRepository:
        return GitRepository(
            self._member, url, token=self._token, auth_url=self._auth_url, refusal=self._refusal
        )


def _is_identity(content: bytes) -> bool:
    try:
        Identity.decode(content)
    except BadFileError:
        return False
    return True
