"""Text of files that people edit: read as UTF-8 whatever editor saved it, and written back in kind.

A byte order mark and the line ends of Windows and of old Macs are no faults. Another encoding is named, with
the line where it shows: guessing one would change names and keys without a word.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

_MARK = codecs.BOM_UTF8
_OTHER_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32", "utf-32"),
    (codecs.BOM_UTF32_BE, "UTF-32", "utf-32"),
    (codecs.BOM_UTF16_LE, "UTF-16", "utf-16"),
    (codecs.BOM_UTF16_BE, "UTF-16", "utf-16"),
)
_SAMPLE = 4096
_LINE_END = re.compile(r"\r\n|\r|\n")
SAVE_AS_UTF8 = "Save it as UTF-8 in your editor."


class NotUtf8Error(ValueError):
    """Content that is no text in UTF-8. The message is a clause: "is text in UTF-16, not UTF-8"."""

    def __init__(self, clause: str, line: int | None = None) -> None:
        """``line``: the first one that is not UTF-8; None when none of the file is."""
        super().__init__(clause)
        self.line = line


class TextFile(NamedTuple):
    """``text`` with a line feed as the end of each line, and the ``content`` that it was read from."""

    text: str
    content: bytes

    def rewritten(self, text: str) -> bytes:
        """``text`` as bytes with the mark and line ends of the file. Lines before and after a change keep theirs."""
        mark = _MARK if self.content.startswith(_MARK) else b""
        old = _lines(self.content[len(mark) :].decode())
        new = _lines(text)
        usual = next((end for line in old if (end := _end(line))), "\n")
        ahead = _common([_bare(line) for line in old], [_bare(line) for line in new])
        rest_old, rest_new = old[ahead:], new[ahead:]
        behind = _common([_bare(line) for line in rest_old[::-1]], [_bare(line) for line in rest_new[::-1]])
        changed = rest_new[: len(rest_new) - behind]
        lines = [*old[:ahead], *(_bare(line) + (usual if _end(line) else "") for line in changed)]
        lines += rest_old[len(rest_old) - behind :]
        ended = [line if _end(line) else line + usual for line in lines[:-1]] + lines[-1:]
        return mark + "".join(ended).encode()


def decode(content: bytes) -> TextFile:
    """The text of a file. Raises ``NotUtf8Error`` for content in another encoding."""
    _refuse_wide(content)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + (len(_MARK) if content.startswith(_MARK) else 0)
        line = len(_LINE_END.findall(content[:start].decode("latin-1"))) + 1
        raise NotUtf8Error(f"is not UTF-8 in line {line}; it may be Latin-1 or Windows-1252", line) from error
    return TextFile(_LINE_END.sub("\n", text), content)


def readable(content: bytes) -> str:
    """The text as well as it can be read, for showing and searching; never raises. Unreadable bytes are ``U+FFFD``."""
    return _LINE_END.sub("\n", _shown(content))


def _shown(content: bytes) -> str:
    codec = next((codec for mark, _, codec in _OTHER_MARKS if content.startswith(mark)), "")
    if not codec and _wide_without_mark(content):
        codec = "utf-16-le" if content[1:2] == b"\0" else "utf-16-be"
    return content.decode(codec or "utf-8-sig", "replace")


def decode_python(content: bytes) -> str:
    """The text of a Python file, in the encoding that its first lines name (PEP 263), with the line ends it has.

    Raises ``NotUtf8Error``.
    """
    import tokenize  # only an editor and a fault need it
    from io import BytesIO

    try:
        encoding = tokenize.detect_encoding(BytesIO(content).readline)[0]
    except SyntaxError:
        encoding = "utf-8"
    if encoding in ("utf-8", "utf-8-sig"):
        decode(content)
    try:
        return content.decode(encoding if encoding != "utf-8" else "utf-8-sig")
    except (UnicodeError, LookupError) as error:
        raise NotUtf8Error(f"is not {encoding}, which its first lines name") from error


def shown_python(content: bytes) -> str:
    """The text of an agent file for showing and searching, with the line ends it has; never raises."""
    try:
        return decode_python(content)
    except NotUtf8Error:
        return _shown(content)


def fault_of(content: bytes, read: Callable[[bytes], object] = decode) -> NotUtf8Error | None:
    """The reason why ``content`` is no text; None when it is."""
    try:
        read(content)
    except NotUtf8Error as fault:
        return fault
    return None


def encoding_fault(content: bytes) -> NotUtf8Error | None:
    """The reason why a Python file is no text; None when it is."""
    return fault_of(content, decode_python)


def _refuse_wide(content: bytes) -> None:
    name = next((name for mark, name, _ in _OTHER_MARKS if content.startswith(mark)), "")
    if not name and _wide_without_mark(content):
        name = "UTF-16"
    if name:
        raise NotUtf8Error(f"is text in {name}, not UTF-8")


def _wide_without_mark(content: bytes) -> bool:
    """True when every second byte of the beginning is zero: Latin letters in UTF-16."""
    sample = content[:_SAMPLE]
    if len(sample) < 4 or len(sample) % 2:
        return False
    return any(not any(sample[at::2]) and all(sample[1 - at :: 2]) for at in (0, 1))


def _lines(text: str) -> list[str]:
    """The lines with their ends; only line feeds and carriage returns end one."""
    ends = [found.end() for found in _LINE_END.finditer(text)]
    starts = [0, *ends]
    lines = [text[start:end] for start, end in zip(starts, ends, strict=False)]
    return [*lines, text[starts[-1] :]] if starts[-1] < len(text) else lines


def _bare(line: str) -> str:
    return line.rstrip("\r\n")


def _end(line: str) -> str:
    return line[len(_bare(line)) :]


def _common(one: list[str], other: list[str]) -> int:
    """The number of lines at the beginning that are the same in both."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))
