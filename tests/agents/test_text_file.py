"""Text of files that people edit, as editors of several systems save it."""

from __future__ import annotations

import pytest

from agents.storage.text_file import NotUtf8Error, decode, readable

MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"one\ntwo\n", "one\ntwo\n"),
        (MARK + b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"one\rtwo\r", "one\ntwo\n"),
        (b"one\r\ntwo\rthree\nfour", "one\ntwo\nthree\nfour"),
        ("Ros\u00e9 \U0001f339\u2028on".encode(), "Ros\u00e9 \U0001f339\u2028on"),
    ],
)
def test_text_is_read_whatever_editor_saved_it(content: bytes, text: str) -> None:
    assert decode(content).text == text
    assert readable(content) == text


@pytest.mark.parametrize(
    ("content", "words", "line"),
    [
        ("a=1\n".encode("utf-16"), "UTF-16", None),
        ("a=1\n".encode("utf-16-le"), "UTF-16", None),
        ("a=1\n".encode("utf-16-be"), "UTF-16", None),
        ("a=1\n".encode("utf-32"), "UTF-32", None),
        (b"a=1\r\nb=caf\xe9\r\n", "line 2", 2),
        (b"a=1\rb=2\rc=\xfc\r", "line 3", 3),
        (MARK + b"\xe9", "line 1", 1),
    ],
)
def test_another_encoding_is_named_with_its_line(content: bytes, words: str, line: int | None) -> None:
    with pytest.raises(NotUtf8Error, match=words) as raised:
        decode(content)
    assert raised.value.line == line


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_text_can_still_be_shown(encoding: str) -> None:
    assert readable("key = value\r\n".encode(encoding)) == "key = value\n"


@pytest.mark.parametrize(
    ("content", "change", "expected"),
    [
        (b"a=1\nb=2\n", ("b=2", "b=3"), b"a=1\nb=3\n"),
        (MARK + b"a=1\r\nb=2\r\n", ("b=2", "b=3\nc=4"), MARK + b"a=1\r\nb=3\r\nc=4\r\n"),
        (b"a=1\rb=2\r", ("b=2", "b=3"), b"a=1\rb=3\r"),
        (b"a=1\r\nb=2\nc=3\r\n", ("b=2", "b=9"), b"a=1\r\nb=9\r\nc=3\r\n"),
        (b"a=1\r\nb=2\nc=3\r\n", ("c=3", "c=9"), b"a=1\r\nb=2\nc=9\r\n"),
        (b"a=1\r\nb=2", ("b=2", "b=2\nc=3\n"), b"a=1\r\nb=2\r\nc=3\r\n"),
        (b"a=1\r\n", ("a=1\n", ""), b""),
        (b"", ("", "a=1\n"), b"a=1\n"),
    ],
)
def test_a_change_is_written_in_kind(content: bytes, change: tuple[str, str], expected: bytes) -> None:
    file = decode(content)
    assert file.rewritten(file.text.replace(*change, 1)) == expected
