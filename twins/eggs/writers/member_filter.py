"""The members of an egg on their way into it: opened, looked at for secrets, counted."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator

from twins.eggs.writers import rapp1
from twins.eggs.writers.contents import Content, EggContents, Member
from twins.eggs.writers.secret_scan import Finding, SecretScan, SecretsFoundError
from twins.work_progress import LOOK, PACK, Progress
from twins.zip.writer import ArchiveWriter, WrittenArchive


class MemberFilter:
    """One load on its way. Secrets whose ids are in ``allow`` may pass."""

    def __init__(
        self, load: EggContents, scan: SecretScan, allow: Collection[str], progress: Progress | None
    ) -> None:
        self._load = load
        self._scan = scan
        self._allow = frozenset(allow)
        self._progress = progress
        self._done = 0
        self._looked_at = False

    @property
    def allowed(self) -> tuple[Finding, ...]:
        """Findings that were allowed."""
        return tuple(finding for finding in self._scan.findings if finding.id in self._allow)

    def into(self, writer: ArchiveWriter) -> Iterator[WrittenArchive]:
        """Adds every member that is still there. Raises ``SecretsFoundError``, after a look at all of them."""
        for number, member in enumerate(self._load.members):
            content = self._opened(member)
            if content is None:
                continue
            yield writer.add(member.name, self._counted(PACK, content))
            if self._refused():
                for other in self._load.members[number + 1 :]:
                    _drain(self._opened(other))
                raise SecretsFoundError(self._refused())
        self._finish(PACK)

    def hashed(self) -> tuple[dict[str, str], dict[str, str]]:
        """(name to hash as RAPP/1 has it, name to SHA-256) of every member. Raises ``SecretsFoundError``."""
        contents, plain = {}, {}
        for member in self._load.members:
            content = self._opened(member)
            if content is None:
                continue
            inner, outer = hashlib.sha256(), hashlib.sha256(rapp1.SPACE)
            counted = self._counted(LOOK, content)
            for piece in (counted,) if isinstance(counted, bytes) else counted:
                inner.update(piece)
                outer.update(piece)
            contents[member.name], plain[member.name] = outer.hexdigest(), inner.hexdigest()
        if self._refused():
            raise SecretsFoundError(self._refused())
        self._finish(LOOK)
        self._looked_at = True
        return contents, plain

    def _opened(self, member: Member) -> Content | None:
        """The member's content; it is looked at on its way, once."""
        content = member.open()
        if content is None or self._looked_at:
            return content
        path = member.path.removeprefix("agents/")
        if isinstance(content, bytes):
            self._scan.look(path, content)
            return content
        return self._scan.watch(path, content)

    def _counted(self, phase: str, content: Content) -> Content:
        if self._progress is None:
            return content
        if isinstance(content, bytes):
            self._tell(phase, len(content))
            return content
        return self._telling(phase, content)

    def _telling(self, phase: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._tell(phase, len(piece))
            yield piece

    def _tell(self, phase: str, count: int) -> None:
        assert self._progress is not None
        self._done += count
        self._progress(phase, self._done, max(self._done, self._load.size))

    def _finish(self, phase: str) -> None:
        """The phase is over; what was left out on its way counts as done."""
        if self._progress is not None:
            whole = max(self._done, self._load.size)
            self._progress(phase, whole, whole)
        self._done = 0

    def _refused(self) -> list[Finding]:
        return [finding for finding in self._scan.findings if finding.id not in self._allow]


def _drain(content: Content | None) -> None:
    if content is not None and not isinstance(content, bytes):
        for _ in content:
            pass
