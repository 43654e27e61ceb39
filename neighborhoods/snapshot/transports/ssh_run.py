"""One run of a script on the far side: its mark, its beginning, its end, and the errors in between."""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator

from agents.programs.streamed_program import StreamedProgram
from envelopes.codecs.bounded_json import bounded_json
from neighborhoods.errors import (
    BadMemberStreamError,
    MemberError,
    MemberUnreachableError,
    NoSuchMemberError,
    UnstableMemberError,
)
from neighborhoods.snapshot.member_transport import WriteOutcome
from neighborhoods.snapshot.transports import shell_scripts
from neighborhoods.snapshot.transports.marked_lines import MarkedLines
from neighborhoods.snapshot.transports.ssh_connections import SshConnections
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from neighborhoods.snapshot.transports.ssh_failures import far_failure, last_line, ssh_failure
from neighborhoods.snapshot.transports.twin_files import TwinFiles
from twins.fs.untrusted_names import shown

_SSH_FAILED = 255
_MOST_BANNER = 1 << 20
_KEPT_LINES = 40
_LONGEST_LINE = 1000
"""Characters of a line that is kept: sentences are looked for in all of them."""
_LONGEST_REFUSAL = 8192
"""Octets of a refusal in JSON."""
_WORDS = frozenset({"kind", "fail", "end", "tar", "skipped", "written", "hatched", "finished"})
"""Lines that the scripts write of themselves on the channel of errors, beside the lists of files."""
_LISTS = 2
SILENT_SECONDS = 120.0
_LIST_SECONDS = 5.0
"""By which a list may come later than the beginning that the script writes after it, on another channel."""
MOST_SECONDS = 1800.0
_COUNT = re.compile(r"[0-9]{1,15}").fullmatch
_GROUPS = ("create", "replace", "keep", "refuse", "quarantine")
"""The groups of files in the answer of ``rappd egg hatch``."""


class SshRun:
    """One run. Use once."""

    def __init__(self, member: str, destination: SshDestination) -> None:
        self.mark = secrets.token_hex(16)
        self.first = b""
        """The octets that came together with the beginning."""
        self.is_gzipped = False
        """True when the stream is compressed, as the beginning says."""
        self.takes_holes = False
        """True when the tar there lays out files with holes as such, as the beginning says."""
        self._member, self._destination = member, destination
        self._until = float("inf")
        self._errors = MarkedLines(self.mark, self._marked, self._other)
        self._complaints: deque[str] = deque(maxlen=_KEPT_LINES)
        self._banner: deque[str] = deque(maxlen=_KEPT_LINES)
        self._answers: dict[str, str] = {}
        self._kind = ""
        self._lists: list[TwinFiles] = []
        self._is_listing = False
        self._has_begun = False
        self._lists_ended = 0
        self._has_first_list = asyncio.Event()

    @contextlib.asynccontextmanager
    async def started(self, connections: SshConnections, script: str) -> AsyncIterator[StreamedProgram]:
        """The program that runs the script there. Raises ``MemberError`` when no connection comes about."""
        command = shell_scripts.command(script)
        channel = connections.channel(self._member, self._destination, command, self._take_errors)
        async with channel as program:
            with contextlib.suppress(ConnectionError):  # it ended: its errors tell why
                await program.write(script.encode())
            yield program

    def ends_within(self, seconds: float = MOST_SECONDS) -> None:
        """Bounds all that follows: a machine that goes on in trifles keeps nobody waiting for ever."""
        self._until = time.monotonic() + seconds

    async def read(self, program: StreamedProgram, *, silent: float = SILENT_SECONDS) -> bytes:
        """The next piece of its output, b"" at its end. Raises ``MemberUnreachableError`` when none comes in time."""
        async with self._in_time(silent):
            return await program.read()

    def banner(self, line: bytes) -> None:
        """Notes a line that is not the script's."""
        if kept := line[:_LONGEST_LINE].strip():
            self._banner.append(kept.decode("utf-8", "replace"))

    async def begun(self, program: StreamedProgram) -> bool:
        """Reads past banners to the script's own beginning; False when it does not come."""
        sign = f"\n{self.mark} begin".encode()
        read = bytearray()
        looked = end = 0  # octets before ``looked`` do not begin the sign
        while not end:
            piece = await self.read(program)
            read += piece
            at = read.find(sign, looked)
            end = max(0, read.find(b"\n", at + len(sign))) if at >= 0 else 0
            looked = at if at >= 0 else max(0, len(read) - len(sign))
            is_endless = len(read) > _MOST_BANNER or (at >= 0 and len(read) - at > _LONGEST_LINE)
            if not end and (not piece or is_endless):
                self._note_banner(read)
                return False
        self._note_banner(read[:at])
        words = read[at + len(sign) : end].split()
        self.is_gzipped, self.takes_holes = b"gzip" in words, b"holes" in words
        self.first = bytes(read[end + 1 :])
        self._has_begun = True
        return True

    def _note_banner(self, octets: bytearray) -> None:
        for line in octets[-_KEPT_LINES * _LONGEST_LINE :].split(b"\n"):
            self.banner(bytes(line))

    async def listed(self) -> list[bytes]:
        """The paths of the first list, which the script tells before its stream begins; none where it does not."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LIST_SECONDS):
                await self._has_first_list.wait()
        return self._lists[0].names if self._lists_ended else []

    async def ended(self, program: StreamedProgram, what: str, *, listed: bool = False) -> None:
        """Waits for the end. Raises ``MemberError`` when it failed; ``what`` says what that means.

        ``listed``: the script lists the files before and after, and they must be the same.
        """
        async with self._in_time(SILENT_SECONDS if self._until < float("inf") else None):
            code = await program.wait()
        self._errors.finish()
        errors = "\n".join(self._complaints)
        if (cause := self._answers.get("fail")) is not None:
            raise self._failed(cause, what, errors)
        if code == _SSH_FAILED:
            if self._has_begun:
                raise MemberUnreachableError(
                    f"The connection to {self._member} broke; {what}.", do="Rerun; what was done stays."
                )
            raise ssh_failure(self._member, self._destination, errors)
        if listed and "end" in self._answers:
            self._require_stable(what, errors)
        elif code != 0 or (listed and self._has_begun):
            raise far_failure(self._member, what, errors) if self._answers or code != 127 else self.no_shell()
        elif listed:
            raise self.no_shell()

    def no_shell(self) -> MemberError:
        """The error for a machine where something else than a shell answers."""
        reason = last_line("\n".join([*self._complaints, *self._banner]))
        return BadMemberStreamError(
            f"{self._member} answered, but not by a POSIX shell{f': {reason}' if reason else ''}.",
            do=f"Look what answers there: ssh {self._destination} true",
        )

    def outcome(self) -> WriteOutcome:
        """The result of a write by tar. Raises ``MemberError`` when it never came to its end."""
        if "skipped" in self._answers:
            return WriteOutcome(skipped=1, detail="it is there already")
        counts = self._answers.get("written", "").split()
        if len(counts) not in (2, 3) or not all(map(_COUNT, counts)):
            raise self.no_shell()
        created, overwritten, skipped = [*map(int, counts), 0][:3]
        return WriteOutcome(created, overwritten, skipped)

    def hatched(self, answer: bytes) -> WriteOutcome:
        """The result of ``rappd egg hatch`` there. Raises ``MemberError`` for its refusal."""
        if "skipped" in self._answers:
            return WriteOutcome(skipped=1, detail="it is there already")
        if self._answers.get("hatched") != "0":
            raise self._refused_hatching()
        try:
            found = bounded_json(answer)["hatched"]
            counts = {name: _count(found[name]["count"]) for name in _GROUPS}
        except (KeyError, TypeError, ValueError):
            return WriteOutcome(detail="hatched there")
        waiting, refused = counts["quarantine"], counts["refuse"]
        notes = (
            [f"{waiting} file{'s wait' if waiting > 1 else ' waits'} for approval there"] if waiting else []
        )
        notes += [f"{refused} file{'s were' if refused > 1 else ' was'} refused there"] if refused else []
        return WriteOutcome(
            counts["create"] + waiting, counts["replace"], counts["keep"], detail=", ".join(notes)
        )

    def finished(self, what: str) -> tuple[int, str]:
        """The exit code and the errors of a rappd that ran there. Raises ``MemberError`` when it never ended."""
        errors = "\n".join(self._complaints)
        if not _COUNT(self._answers.get("finished", "")):
            raise far_failure(self._member, what, errors) if self._has_begun else self.no_shell()
        return int(self._answers["finished"]), errors

    def _refused_hatching(self) -> MemberError:
        errors = "\n".join(self._complaints)
        if refusal := refusal_in(errors):
            return MemberError(f"{self._member} did not hatch it: {refusal[0]}", do=refusal[1])
        return far_failure(self._member, "the egg was not hatched there", errors)

    def _require_stable(self, what: str, errors: str) -> None:
        before, after = (*self._lists, None, None)[:2]
        if before is None or after is None or before.fingerprint != after.fingerprint:
            raise UnstableMemberError(
                f"{self._member}: {what} without a change meanwhile.", do="Stop what writes there, rerun."
            )
        if self._answers.get("tar") != "0":
            raise far_failure(self._member, what, errors)

    def _failed(self, cause: str, what: str, errors: str) -> MemberError:
        if cause == "missing":
            return NoSuchMemberError(f"{self._member}: {what}: it is not there.", do="List its twins anew.")
        if cause == "no tar":
            return MemberError(f"{self._member} has no tar; {what}.", do="Install tar there, rerun.")
        if cause == "no rappd":
            return MemberError(
                f"{self._member} has no rappd; {what}.",
                do="Install rappd there, or put it into the PATH of SSH.",
            )
        if cause == "itself":
            return MemberError(f"{self._member} is this machine itself.", do="Correct peers.json.")
        if cause == "cut":
            return MemberUnreachableError(
                f"The connection to {self._member} broke; {what}.", do="Rerun; what was done stays."
            )
        return far_failure(self._member, what, errors)

    async def _take_errors(self, piece: bytes) -> None:
        await self._errors.feed_beside(piece)
        if self._lists_ended:
            self._has_first_list.set()

    def _marked(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "files":
            if len(self._lists) == _LISTS:
                raise BadMemberStreamError(
                    f"{self._member} lists its files again and again.", do="Look what answers there."
                )
            by_content = self._answers.get("kind") == "content"
            self._lists.append(TwinFiles(by_content=by_content, keeps_names=not self._lists))
            self._is_listing = True
        elif word == "done":
            self._is_listing = False
            self._lists_ended += 1
        elif word in _WORDS:
            self._answers[word] = rest

    def _other(self, line: bytes) -> None:
        if self._is_listing:
            self._lists[-1].take(line)
        elif kept := line[: _LONGEST_REFUSAL if line.startswith(b'{"') else _LONGEST_LINE].strip():
            self._complaints.append(kept.decode("utf-8", "replace"))

    @contextlib.asynccontextmanager
    async def _in_time(self, silent: float | None) -> AsyncIterator[None]:
        left = self._until - time.monotonic()
        try:
            async with asyncio.timeout(None if silent is None else max(0.0, min(silent, left))):
                yield
        except TimeoutError:
            raise MemberUnreachableError(
                f"{self._member} does not go on with its answer.", do="Look at it there, then rerun."
            ) from None


def refusal_in(errors: str) -> tuple[str, str] | None:
    """(error, what to do) in the first line of JSON among the errors of a ``rappd --json``, fit to be shown."""
    start = errors.find('{"')
    line, _, _ = errors[start:].partition("\n") if start >= 0 else ("", "", "")
    try:
        refusal = bounded_json(line.encode("utf-8", "replace"), most_bytes=_LONGEST_REFUSAL)
    except ValueError:
        return None
    if not isinstance(refusal, dict) or not isinstance(refusal.get("error"), str):
        return None
    do = refusal.get("do")
    return shown(refusal["error"]), shown(do) if isinstance(do, str) else ""


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise ValueError("it is no count")
    return value
