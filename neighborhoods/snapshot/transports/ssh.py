"""Reads and writes a member through the system's ``ssh``; a POSIX shell and tar are all that it needs there."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain
from pathlib import Path

from agents.programs.streamed_program import StreamedProgram
from neighborhoods.errors import MemberError, MemberUnreachableError
from neighborhoods.snapshot.member_transport import (
    AGENTS,
    EggMaker,
    MemberListing,
    MemberProbe,
    MemberTransport,
    TwinActivity,
    WriteOutcome,
    milliseconds_since,
    require_trusted,
    require_twin_hash,
)
from neighborhoods.snapshot.sparse_members import LEAST, Run, data_runs
from neighborhoods.snapshot.tar_archive import Gunzip, gzipped, listing_headers, read_archive, tar_pieces
from neighborhoods.snapshot.tar_guard import TarEntry
from neighborhoods.snapshot.transports import shell_scripts
from neighborhoods.snapshot.transports.far_rappd import FarRappd, activity_of
from neighborhoods.snapshot.transports.listing_parser import ListingParser
from neighborhoods.snapshot.transports.marked_lines import MarkedLines
from neighborhoods.snapshot.transports.same_home import marked
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_run import SILENT_SECONDS, SshRun
from neighborhoods.snapshot.transports.twin_folder import batched

_MOST_ANSWER = 1 << 20
_PIECE = 1 << 18
_PROBE_SECONDS = 180.0
_PROBE_WORDS = frozenset({"begin", "end", "home", "tar", "free", "place", "version"})
_KILOBYTES = re.compile(r"[0-9]{1,15}").fullmatch


class SshTransport(MemberTransport):
    """One member by SSH. ``member`` is the name that messages use."""

    def __init__(
        self,
        member: str,
        destination: SshDestination,
        connections: SshConnections,
        *,
        make_egg: EggMaker | None = None,
        own_home: Path | None = None,
    ) -> None:
        """``make_egg`` serves machines with a rappd; a machine whose home is ``own_home`` is this one itself."""
        self._own_home = own_home
        self._member, self._destination, self._connections = member, destination, connections
        self._make_egg = make_egg
        self._has_rappd: bool | None = None

    async def probe(self) -> MemberProbe:
        """Connects, and asks for free space and rappd's version. Never raises for an unreachable member."""
        began = time.monotonic()
        run = SshRun(self._member, self._destination)
        answers: dict[str, str] = {}
        try:
            run.ends_within(_PROBE_SECONDS)
            async with (
                marked(self._own_home) as own,
                run.started(self._connections, shell_scripts.probe(run.mark, own_mark=own)) as program,
            ):
                lines = MarkedLines(run.mark, lambda text: _note(answers, text), run.banner)
                while piece := await run.read(program):
                    await lines.feed_beside(piece)
                lines.finish()
                await run.ended(program, "it did not say how it is")
        except MemberError as error:
            is_away = isinstance(error, MemberUnreachableError)
            return MemberProbe(False, error.with_advice(), took_ms=milliseconds_since(began), is_away=is_away)
        if "end" not in answers:
            return MemberProbe(False, str(run.no_shell()), took_ms=milliseconds_since(began))
        if answers.get("place") == "here":
            said_so = f"{self._member} is this machine itself. Take it out of peers.json."
            return MemberProbe(False, said_so, took_ms=milliseconds_since(began))
        version = answers.get("version", "").removeprefix("rappd").strip(" ,")
        self._has_rappd = bool(answers.get("version"))
        detail = ""
        if "tar" in answers:
            detail = f"{self._member} has no tar. Install tar there, rerun."
        elif answers.get("home") == "missing":
            detail = "no twins there yet"
        return MemberProbe(
            "tar" not in answers,
            detail,
            version[:64],
            _free(answers.get("free", "")),
            milliseconds_since(began),
        )

    async def list(self, *, include_archived: bool = False) -> MemberListing:
        """Lists the twins there in one run of the walk. Raises ``MemberError``."""
        run = SshRun(self._member, self._destination)
        parser = ListingParser(run.mark, run.banner)
        run.ends_within()
        async with run.started(
            self._connections, shell_scripts.listing(run.mark, archived=include_archived)
        ) as program:
            while piece := await run.read(program):
                await parser.lines.feed_beside(piece)
            await run.ended(program, "its twins could not be listed")
        parser.lines.finish()
        if not parser.began:
            raise run.no_shell()
        return await asyncio.to_thread(parser.listing)

    async def activity(self) -> dict[str, TwinActivity]:
        """Asks the rappd there; empty where there is none, or an older one. Raises ``MemberError``."""
        if not await self._has_a_rappd():
            return {}
        there = FarRappd(self._member, self._destination, self._connections, own_home=self._own_home)
        answer = await there.run(
            ["twins", "list", "--json"], "its twins could not be listed", silent=SILENT_SECONDS
        )
        return await asyncio.to_thread(activity_of, answer.output)

    async def read_twin(self, twin: str, *, archived: bool = False) -> AsyncIterator[bytes]:
        """Streams one pass; raises ``UnstableMemberError`` at its end when a file changed meanwhile: read it again."""
        require_twin_hash(twin)
        run = SshRun(self._member, self._destination)
        script = shell_scripts.read_twin(run.mark, twin, archived=archived)
        async with aclosing(self._tar(run, script, f"twin {twin}")) as pieces:
            async for piece in pieces:
                yield piece

    async def read_agents(self) -> AsyncIterator[bytes]:
        """Streams the brainstem's agents, as ``read_twin`` does."""
        run = SshRun(self._member, self._destination)
        async with aclosing(self._tar(run, shell_scripts.read_agents(run.mark), "its agents")) as pieces:
            async for piece in pieces:
                yield piece

    async def write_twin(
        self,
        twin: str,
        archive: Path,
        *,
        overwrite: bool = False,
        archived: bool = False,
        is_trusted: bool = True,
    ) -> WriteOutcome:
        """Hands an egg to the rappd there; without one, lays the files out beside their place and moves them in."""
        require_twin_hash(twin)
        if self._make_egg is not None and await self._has_a_rappd():
            make = partial(self._make_egg, archive, twin, is_signed=is_trusted)
            script = partial(shell_scripts.hatch_egg, twin=twin, overwrite=overwrite, archived=archived)
            return await self._hatch(make, script, f"twin {twin} is not hatched, not even half")
        run = SshRun(self._member, self._destination)
        laid_out = shell_scripts.write_twin(run.mark, twin, overwrite=overwrite, archived=archived)
        return await self._laid_out(
            run, laid_out, archive, twin, f"twin {twin} is not restored, not even half"
        )

    async def write_agents(
        self, archive: Path, *, overwrite: bool = False, is_trusted: bool = True
    ) -> WriteOutcome:
        """Hands an egg to the rappd there; without one, moves each file in whole."""
        if self._make_egg is not None and await self._has_a_rappd():
            make = partial(self._make_egg, archive, AGENTS, is_signed=is_trusted)
            script = partial(shell_scripts.hatch_agents, overwrite=overwrite)
            return await self._hatch(make, script, "its agents are not hatched")
        require_trusted(self._member, is_trusted)
        run = SshRun(self._member, self._destination)
        laid_out = shell_scripts.write_agents(run.mark, overwrite=overwrite)
        return await self._laid_out(run, laid_out, archive, AGENTS, "its agents are not all restored")

    async def aclose(self) -> None:
        """Keeps the connection, which serves the next command; it ends by itself after a minute without one."""

    async def _laid_out(self, run: SshRun, script: str, archive: Path, root: str, what: str) -> WriteOutcome:
        async with run.started(self._connections, script) as program:
            if await run.begun(program):
                holes = await asyncio.to_thread(_holes, archive, root) if run.takes_holes else {}
                pieces = _rebuilt(archive, root, f".complete.{run.mark}", holes)
                await _send(program, gzipped(pieces) if run.is_gzipped else pieces)
            while await program.read():
                pass
            await run.ended(program, what)
        return run.outcome()

    async def _hatch(self, make: Callable[[], Path], script: Callable[..., str], what: str) -> WriteOutcome:
        egg = await asyncio.to_thread(make)
        try:
            size = (await asyncio.to_thread(egg.stat)).st_size
            run = SshRun(self._member, self._destination)
            answer = bytearray()
            async with run.started(self._connections, script(run.mark, size=size)) as program:
                if await run.begun(program):
                    await _send(program, _pieces(egg))
                while piece := await program.read():
                    answer += piece[: _MOST_ANSWER - len(answer)]
                await run.ended(program, what)
        finally:
            await asyncio.to_thread(egg.unlink, missing_ok=True)
        return run.hatched(bytes(answer))

    async def _has_a_rappd(self) -> bool:
        if self._has_rappd is None:
            await self.probe()
        return bool(self._has_rappd)

    async def _tar(self, run: SshRun, script: str, what: str) -> AsyncGenerator[bytes, None]:
        async with run.started(self._connections, script) as program:
            stream = Gunzip(f"{self._member}: the stream of {what}", do="Rerun.")
            if await run.begun(program):
                for header in listing_headers(await run.listed()):
                    yield header
                piece = run.first or await run.read(program)
                while piece:
                    for content in stream.feed(piece) if run.is_gzipped else (piece,):
                        yield content
                    piece = await run.read(program)
            await run.ended(program, f"{what} could not be read", listed=True)
            for content in stream.end() if run.is_gzipped else ():
                yield content


async def _send(program: StreamedProgram, pieces: Iterator[bytes]) -> None:
    """Sends until the far side stops reading; its errors say why it did."""
    pieces = batched(pieces)  # each costs a change of threads
    try:
        while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
            await program.write(piece)
    except ConnectionError:
        return
    program.end_input()


def _holes(archive: Path, root: str) -> dict[str, list[Run]]:
    """The runs of data of each large file with holes. Reads the whole archive: a header has to tell them before."""
    found = {}
    for entry, content in read_archive(archive, root):
        if entry.size >= LEAST and (runs := data_runs(content)) is not None:
            found[entry.path] = runs
    return found


def _rebuilt(archive: Path, root: str, complete: str, holes: Mapping[str, Sequence[Run]]) -> Iterator[bytes]:
    """The archive as a tar stream again, without what the guard refuses, and an empty file that ends it."""
    end: tuple[TarEntry, Iterator[bytes]] = (TarEntry(complete, 0), iter(()))
    yield from tar_pieces(chain(read_archive(archive, root), (end,)), is_sorted=False, holes=holes)


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            yield piece


def _note(answers: dict[str, str], text: str) -> None:
    word, _, rest = text.partition(" ")
    if word in _PROBE_WORDS:
        answers[word] = rest.strip()


def _free(line: str) -> int:
    """The free octets in a line of ``df -Pk``; -1 where there are none."""
    numbers = [int(word) for word in line.split() if _KILOBYTES(word)]
    return numbers[2] * 1024 if len(numbers) >= 3 else -1
