"""Looking for secrets in what is about to be packed: one reading, on the very bytes that would travel.

Cheap passes find the few places worth a look: long runs of the characters that keys are made of, and
words such as ``password``. Binary files are looked at for makers' keys only, SQLite databases like text.
Archives and compressed files are looked into (``unpacked``), and what no line holds whole is put together first
(``broken_lines``); other kinds of files are not seen into (``unread_kinds``).
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from twins.eggs.writers.archive_scan import MOST_PACKED, Allowance, is_packed, unpacked
from twins.eggs.writers.broken_lines import CLASSES, LONG_RUN, OtherReading, broken_value, other_readings
from twins.eggs.writers.secret_shapes import (
    OTHER,
    PASSWORD,
    address_password,
    assigned,
    assigned_key,
    authorization,
    cookies,
    lone_secrets,
    looks_random,
    netrc_password,
)
from twins.eggs.writers.spoken_secrets import spoken_code, spoken_number, spoken_password, spoken_words
from twins.eggs.writers.vendor_key_shapes import (
    AZURE,
    HEAD_ROOM,
    LEAST_RUN,
    azure_key,
    head_at,
    heads,
    known_key,
    private_key,
)
from twins.errors import SecretFoundError

MOST = 1000
"""Findings in one file after which the rest of it is not looked at."""

_REACH = 4096  # bytes that one secret spans at most, as far as it is looked at
_BEFORE = 512  # bytes before it that say whether it is one
_HEADS_END = 160  # bytes of a run in which a key may begin: a longer one is something else
_SNIFFED = 8192
_PACKED = " (packed)"
_AFTER_KEY = frozenset(bytes((octet,)) for octet in b"\"'`] \t:=")
_WORD = 24  # bytes before a promising word that say what it is about
_DEPTH = 3  # archives inside each other

_RUN_END = re.compile(rb"[^x]")
_NEEDLE = b"x" * LEAST_RUN
_WITH_K = re.compile(rb"k(?:e[yn]|ie)")
_WITH_P = re.compile(rb"p(?:ass|wd|in(?=[ :=\-\"'\\sc])|hrase)")
_WITH_P_IN_CODE = re.compile(rb"p(?:ass|wd)")
_WITH_C = re.compile(rb"c(?:redential|ret(?<=secret)|ode(?=[ :=]))")  # there are fewer c than s
_WITH_C_IN_CODE = re.compile(rb"c(?:redential|ret(?<=secret))")
_GEHEIMZAHL = re.compile(rb"z(?:ahl)")
_BEGIN = re.compile(rb"B(?:EGIN )")
_DIGIT = re.compile(rb"[0-9]")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LEAST_WIDE = 8  # signs from which on text in UTF-16 is told without a mark
_MOSTLY = 0.6
_SQLITE = b"SQLite format 3\0"
_MEMORIES = (".brainstem_data/", "data/")
_CODE = (
    ".py", ".pyw", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".tsx", ".go", ".rs", ".c", ".h", ".cpp", ".java",
    ".cs", ".rb", ".php", ".swift", ".kt", ".lua", ".html", ".css", ".lispy",
)  # fmt: skip

_Spot = tuple[int, int, str]


class Finding(NamedTuple):
    """One likely secret.

    ``line`` counts from 1 and is 0 in binary files. ``id`` (16 hex) stands for this secret in this file,
    wherever in it the line moves; it is what an override names.
    """

    path: str
    line: int
    what: str
    id: str

    def __str__(self) -> str:
        return f"{self.path}{f' line {self.line}' if self.line else ''} holds a likely {self.what}"


class SecretsFoundError(SecretFoundError):
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

    def __init__(
        self, known: Mapping[bytes, str] | None = None, *, depth: int = 0, allowance: Allowance | None = None
    ) -> None:
        """``depth`` and ``allowance``: how far inside a packed file this is, and what may still be unpacked of it."""
        self._known = known or {}
        self._depth, self._allowance = depth, allowance
        self.findings: list[Finding] = []

    def look(self, path: str, content: bytes) -> None:
        """Looks at a whole file; what it finds joins ``findings``."""
        for _ in self.watch(path, (content,)):
            pass

    def watch(self, path: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Lets a file's pieces through, each after it was looked at; ``findings`` is complete at the end."""
        source = iter(pieces)
        piece = next(source, b"")
        file = _File(path, piece)
        packed = bytearray(piece) if self._depth < _DEPTH and is_packed(piece[:_SNIFFED]) else None
        left, lines, before, content = MOST, 0, 0, file.read(piece)
        for following in source:
            if packed is not None:
                packed += following[: MOST_PACKED - len(packed)]
            end = max(before, len(content) - _REACH)  # what begins later may go on in the next piece
            left -= self._judge(file, content, before, end, lines, left)
            yield piece
            start = max(0, end - _BEFORE)
            lines += content.count(b"\n", 0, start)
            before = end - start
            content, piece = content[start:] + file.read(following), following
        content += file.rest()
        if lines == before == 0 and file.is_text:
            for begin, stop in lone_secrets(path, content):
                left -= 1
                self._note(path, content.count(b"\n", 0, begin) + 1, OTHER, content[begin:stop])
        left -= self._judge(file, content, before, len(content), lines, left)
        if packed is not None:
            self._look_into(path, bytes(packed), left)
        yield piece

    def _judge(self, file: _File, content: bytes, start: int, end: int, lines: int, most: int) -> int:
        """Takes down what begins from ``start`` to before ``end``, after so many ``lines``."""
        noted = 0
        classes = content.translate(CLASSES)
        long_runs: list[int] = []
        spots = _apart(self._spots(content, file, classes, long_runs))
        for begin, stop, what in spots:
            if start <= begin < end and noted < most:
                noted += 1
                line = lines + content.count(b"\n", 0, begin) + 1 if file.has_lines else 0
                self._note(file.path, line, what, content[begin:stop])
        for reading in other_readings(content, classes, long_runs) if file.is_text else ():
            is_known = not reading.joints and any(begin <= reading.begin < stop for begin, stop, _ in spots)
            if start <= reading.begin < end and not is_known:
                line = lines + content.count(b"\n", 0, reading.begin) + 1 if file.has_lines else 0
                for what, secret in self._within(reading, file, most - noted):
                    noted += 1
                    self._note(file.path, line, what, secret)
        return noted

    def _note(self, path: str, line: int, what: str, secret: bytes) -> None:
        mark = hashlib.sha256(path.encode() + b"\n" + secret).hexdigest()[:16]
        self.findings.append(Finding(path, line, what, mark))

    def _within(self, reading: OtherReading, file: _File, most: int) -> Iterator[tuple[str, bytes]]:
        """(what, secret) of another reading of a place in a file."""
        if is_packed(reading.content):
            inner = SecretScan(self._known, depth=self._depth + 1, allowance=self._allowance)
            inner.look(file.path, reading.content)
            yield from ((found.what, found.id.encode()) for found in inner.findings[:most])
            return
        spots = (
            _makers_keys(reading.content)
            if reading.joints
            else self._spots(reading.content, _File("", reading.content))
        )
        for begin, stop, what in _apart(spots)[:most]:
            joint = next((joint for joint in reading.joints if begin < joint < stop), 0)
            if not reading.joints or (joint and known_key(reading.content[:joint], begin) is None):
                yield what, reading.content[begin:stop]

    def _look_into(self, path: str, packed: bytes, most: int) -> None:
        """Looks at what lies in a packed file; findings name the file itself, and have no line."""
        allowance = self._allowance or Allowance()
        for name, content in unpacked(packed, allowance):
            inner = SecretScan(self._known, depth=self._depth + 1, allowance=allowance)
            inner.look(name or path, content)
            for found in inner.findings[:most]:
                most -= 1
                what = found.what if found.what.endswith(_PACKED) else found.what + _PACKED
                self._note(path, 0, what, found.id.encode())

    def _spots(
        self, content: bytes, file: _File, classes: bytes = b"", long_runs: list[int] | None = None
    ) -> Iterator[_Spot]:
        for value, what in self._known.items():
            for at in _all(content, value):
                yield at, at + len(value), what
        yield from _makers_keys(content, classes, long_runs)
        for word in () if file.is_text else AZURE:
            for at in _all(content, word):
                yield from _found(at, azure_key(content, at))
        for match in _BEGIN.finditer(content):
            begin = match.start() - 5
            stop = private_key(content, begin) if begin >= 0 else 0
            if stop:
                yield begin, stop, "private key"
        if file.is_text:
            yield from _passwords(content, file)


class _File:
    """One file as it is looked at: text, source code, a memory, or none of them. UTF-16 becomes UTF-8."""

    __slots__ = ("_decoder", "has_lines", "is_code", "is_memory", "is_text", "path")

    def __init__(self, path: str, start: bytes) -> None:
        self.path = path
        wide = _wide(start[:_SNIFFED])
        self._decoder = codecs.getincrementaldecoder(wide)("replace") if wide else None
        is_database = start.startswith(_SQLITE)
        self.has_lines = bool(wide) or b"\0" not in start[:_SNIFFED]
        self.is_text = self.has_lines or is_database
        self.is_code = path.lower().endswith(_CODE)
        self.is_memory = path.startswith(_MEMORIES)

    def read(self, piece: bytes) -> bytes:
        """The piece as UTF-8."""
        return piece if self._decoder is None else self._decoder.decode(piece).encode("utf-8", "replace")

    def rest(self) -> bytes:
        """UTF-8 of what no piece ended."""
        return b"" if self._decoder is None else self._decoder.decode(b"", True).encode("utf-8", "replace")


def _wide(start: bytes) -> str:
    """The encoding of text in UTF-16, with its mark or without; "" for anything else."""
    if start.startswith(_UTF16):
        return "utf-16"
    if b"\0" not in start:
        return ""
    count = len(start) // 2
    if count < _LEAST_WIDE:
        return ""
    even, odd = start[::2].count(0), start[1::2].count(0)
    if odd > _MOSTLY * count and even * 20 < count:
        return "utf-16-le"
    return "utf-16-be" if even > _MOSTLY * count and odd * 20 < count else ""


def looks_secret(value: str) -> bool:
    """True when a single value, of whatever name, looks like a secret by itself."""
    octets = value.encode()
    spots = (*_makers_keys(octets), *(at for at in _all(octets, b"@") if address_password(octets, at)))
    return bool(spots) or any(
        looks_random(piece, least=16) for piece in re.split(rb"[^A-Za-z0-9+]+", octets) if len(piece) >= 16
    )


def _makers_keys(content: bytes, classes: bytes = b"", long_runs: list[int] | None = None) -> Iterator[_Spot]:
    """``long_runs`` takes in where long runs begin: base64 text has them, too."""
    runs = classes or content.translate(CLASSES)
    seen = 0
    begin = runs.find(_NEEDLE)
    while begin >= 0:
        match = _RUN_END.search(runs, begin + LEAST_RUN)
        end = match.start() if match else len(runs)
        if long_runs is not None and end - begin >= LONG_RUN:
            long_runs.append(begin)
        if _DIGIT.search(content, begin, end) or content[begin:end].isupper():
            places = heads(content, max(begin - HEAD_ROOM, seen), min(end, begin + _HEADS_END))
            seen = end
        else:  # nearly all long runs are names or lines of dashes
            places = iter((begin,) if head_at(content, begin) else ())
        for at in places:
            found = known_key(content, at)
            if found:
                yield at, *found
        begin = runs.find(_NEEDLE, end)


def _passwords(content: bytes, file: _File) -> Iterator[_Spot]:
    """Passes over a letter each are faster than one pass for each word."""
    lower, code = content.lower(), file.is_code
    for match in (_WITH_P_IN_CODE if code else _WITH_P).finditer(lower):
        at, word = match.start(), match[0]
        if word in (b"pass", b"pwd"):
            yield from _assigned(content, at, PASSWORD, file)
            if lower.startswith(b"password ", at):
                yield from _of(netrc_password(content, at), PASSWORD)
        elif word == b"phrase":
            yield from _of(spoken_words(content, at), "words of a wallet")
        elif not lower[at - 1 : at].isalpha():
            yield from _of(spoken_number(content, at), "PIN")
        if word == b"pass" and not code and lower.startswith(b"phrase", at + 4):
            yield from _of(spoken_words(content, at + 4), "words of a wallet")
    for at in _all(lower, b"sig="):
        yield from _found(at, azure_key(content, at))
    for match in (_WITH_C_IN_CODE if code else _WITH_C).finditer(lower):
        if match[0] == b"credential":
            yield from _assigned(content, match.start(), OTHER, file)
        elif match[0] == b"cret":
            yield from _assigned(content, match.start() - 2, OTHER, file)
        else:
            yield from _of(spoken_code(content, match.start()), "code")
    for match in _WITH_K.finditer(lower):
        yield from _with_k(content, lower, match.start(), match[0], file)
    for at in _all(lower, b"auth"):
        yield from authorization(content, at, code=code)
    for at in _all(lower, b"mnemonic"):
        yield from _of(spoken_words(content, at), "words of a wallet")
    for match in _GEHEIMZAHL.finditer(lower) if not code else ():
        yield from _of(spoken_number(content, match.start() - 6), "PIN")
    for at in _all(content, b"@"):
        if content[at - 1 : at].isspace():
            continue
        yield from _of(address_password(content, at), PASSWORD)


def _with_k(content: bytes, lower: bytes, at: int, word: bytes, file: _File) -> Iterator[_Spot]:
    if word == b"key":
        span = assigned_key(content, at, code=file.is_code)
        yield from _of(span, OTHER)
        if (
            not span
            and content[at + 3 : at + 4] in _AFTER_KEY
            and (broken := broken_value(content, at)) is not None
        ):
            begin, end, line = broken
            before = content[max(0, at - _WORD) : at]
            if assigned_key(before + line, len(before), code=file.is_code):
                yield begin, end, OTHER
        yield from _azure(content, lower, at)
    elif word == b"kie":
        if lower.startswith(b"coo", at - 3):
            yield from cookies(content, at - 3)
    elif lower.startswith(b"to", at - 2):
        yield from _assigned(content, at - 2, OTHER, file)
    elif not file.is_code and lower.startswith(b"nwort", at + 3):
        yield from _of(spoken_password(content, at, in_memory=file.is_memory), PASSWORD)


def _assigned(content: bytes, at: int, kind: str, file: _File) -> Iterator[_Spot]:
    span = assigned(content, at, kind, code=file.is_code)
    if span:
        yield *span, kind
    elif (broken := broken_value(content, at)) is not None:
        begin, end, line = broken
        before = content[max(0, at - _WORD) : at]
        if assigned(before + line, len(before), kind, code=file.is_code):
            yield begin, end, kind
    elif kind == PASSWORD and not file.is_code:
        yield from _of(spoken_password(content, at, in_memory=file.is_memory), PASSWORD)


def _azure(content: bytes, lower: bytes, at: int) -> Iterator[_Spot]:
    for before in (b"account", b"sharedaccess"):
        if lower.startswith(before, at - len(before)):
            begin = at - len(before)
            yield from _found(begin, azure_key(content, begin))


def _of(span: tuple[int, int] | None, what: str) -> Iterator[_Spot]:
    if span:
        yield *span, what


def _found(at: int, found: tuple[int, str] | None) -> Iterator[_Spot]:
    if found:
        yield at, *found


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
