"""Looking for secrets in what is about to be packed: one reading, on the very bytes that would travel.

Cheap passes find the few places worth a look: long runs of the characters that keys are made of, and
words such as ``password``. Binary files are looked at for makers' keys only. What lies inside compressed
files is not seen.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from twins.eggs.packing.secret_shapes import (
    AZURE,
    HEAD,
    HEAD_ROOM,
    LEAST_RUN,
    RUN,
    STEMS,
    address_password,
    assigned,
    known_key,
    looks_random,
    private_key,
)
from twins.errors import SecretFound

MOST = 1000
"""Findings in one file after which the rest of it is not looked at."""

_REACH = 4096  # bytes that one secret spans at most, as far as it is looked at
_BEFORE = 512  # bytes before it that say whether it is one
_HEADS_END = 160  # bytes of a run in which a key may begin: a longer one is something else
_SNIFFED = 8192

_RUNS = bytes(ord("x") if octet in RUN else ord(" ") for octet in range(256))
_NEEDLE = b"x" * LEAST_RUN
_DIGIT = re.compile(rb"[0-9]")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_CODE = (
    ".py", ".pyw", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cpp", ".java",
    ".cs", ".rb", ".php", ".swift", ".kt", ".lua", ".html", ".css", ".lispy",
)  # fmt: skip

_Spot = tuple[int, int, str]


class Finding(NamedTuple):
    """One likely secret. ``line`` counts from 1 and is 0 in binary files. ``id`` (16 hex) stands for this
    secret in this file, wherever in it the line moves; it is what an override names."""

    path: str
    line: int
    what: str
    id: str

    def __str__(self) -> str:
        return f"{self.path}{f' line {self.line}' if self.line else ''} holds a likely {self.what}"


class SecretsFound(SecretFound):
    """Likely secrets in what was to be packed; ``findings`` are all of them."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        first, *others = self.findings
        more = f" ({len(others)} more like it)" if others else ""
        super().__init__(f"{first}{more}; not packed.", do="Move it to .env.")

    def as_json(self) -> dict[str, Any]:
        """With ``findings``: path, line, what and id of each."""
        return {**super().as_json(), "findings": [finding._asdict() for finding in self.findings]}


class SecretScan:
    """Looks at files one after the other. ``known`` maps values that must not travel to what they are."""

    def __init__(self, known: Mapping[bytes, str] | None = None) -> None:
        self._known = dict(known or {})
        self.findings: list[Finding] = []

    def look(self, path: str, content: bytes) -> None:
        """Looks at a whole file; what it finds joins ``findings``."""
        for _ in self.watch(path, (content,)):
            pass

    def watch(self, path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Lets a file's pieces through, each after it was looked at; ``findings`` is complete at the end."""
        source = iter(pieces)
        piece = next(source, b"")
        text = b"\0" not in piece[:_SNIFFED] or piece.startswith(_UTF16)
        left, lines, before, content = MOST, 0, 0, piece
        for following in source:
            end = max(before, len(content) - _REACH)  # what begins later may go on in the next piece
            left -= self._judge(path, content, before, end, lines, text, left)
            yield piece
            start = max(0, end - _BEFORE)
            lines += content.count(b"\n", 0, start)
            before = end - start
            content, piece = content[start:] + following, following
        self._judge(path, content, before, len(content), lines, text, left)
        yield piece

    def _judge(
        self, path: str, content: bytes, start: int, end: int, lines: int, text: bool, most: int
    ) -> int:
        """Takes down what begins from ``start`` to before ``end``, after so many ``lines``."""
        if text and start == 0 and content.startswith(_UTF16):
            content = content.decode("utf-16", "replace").encode()
            end = len(content)
        code = path.lower().endswith(_CODE)
        taken = 0
        for begin, stop, what in _apart(self._spots(content, text, code)):
            if start <= begin < end and taken < most:
                taken += 1
                line = lines + content.count(b"\n", 0, begin) + 1 if text else 0
                mark = hashlib.sha256(path.encode() + b"\n" + content[begin:stop]).hexdigest()[:16]
                self.findings.append(Finding(path, line, what, mark))
        return taken

    def _spots(self, content: bytes, text: bool, code: bool) -> Iterator[_Spot]:
        for value, what in self._known.items():
            for at in _all(content, value):
                yield at, at + len(value), what
        yield from _makers_keys(content)
        for word in AZURE:
            for at in _all(content, word):
                found = known_key(content, at)
                if found:
                    yield at, *found
        for at in _all(content, b"-----BEGIN"):
            stop = private_key(content, at)
            if stop:
                yield at, stop, "private key"
        if text:
            yield from _passwords(content, code)


def looks_secret(value: str) -> bool:
    """Whether a single value, of whatever name, looks like a secret by itself."""
    octets = value.encode()
    spots = (*_makers_keys(octets), *(at for at in _all(octets, b"@") if address_password(octets, at)))
    return bool(spots) or any(
        looks_random(piece, least=16) for piece in re.split(rb"[^A-Za-z0-9+]+", octets) if len(piece) >= 16
    )


def _makers_keys(content: bytes) -> Iterator[_Spot]:
    runs = content.translate(_RUNS)
    seen = 0
    begin = runs.find(_NEEDLE)
    while begin >= 0:
        end = runs.find(b" ", begin + LEAST_RUN)
        if end < 0:
            end = len(runs)
        if _DIGIT.search(content, begin, end) or content[begin:end].isupper():
            heads = HEAD.finditer(content, max(begin - HEAD_ROOM, seen), min(end, begin + _HEADS_END))
            seen = end
        else:  # nearly all long runs are names or lines of dashes
            head = HEAD.match(content, begin)
            heads = iter((head,) if head else ())
        for head in heads:
            found = known_key(content, head.start())
            if found:
                yield head.start(), *found
        begin = runs.find(_NEEDLE, end)


def _passwords(content: bytes, code: bool) -> Iterator[_Spot]:
    lower = content.lower()
    for stem, kind in STEMS:
        for at in _all(lower, stem):
            span = assigned(content, at, kind, code=code)
            if span:
                yield *span, kind
    for at in _all(content, b"@"):
        if content[at - 1 : at].isspace():
            continue
        span = address_password(content, at)
        if span:
            yield *span, "password"


def _all(content: bytes, word: bytes) -> Iterator[int]:
    at = content.find(word)
    while at >= 0:
        yield at
        at = content.find(word, at + 1)


def _apart(spots: Iterable[_Spot]) -> list[_Spot]:
    """One spot for each place, in their order; what was found first says what it is."""
    kept: list[_Spot] = []
    reached = 0
    for spot in sorted(spots, key=lambda spot: spot[0]):
        if spot[0] >= reached:
            kept.append(spot)
            reached = spot[1]
    return kept
