"""Secrets that somebody told in a sentence, in English or German: "the password is X", "meine PIN ist 1234".

In memories and other prose; source code is not looked at for these. A word of everyday language counts
only in a memory, and only where the sentence ends with it.
"""

from __future__ import annotations

import re

from twins.eggs.writers.secret_shapes import is_made_up

_SAID = rb"""(?:[ ](?:is|was|ist|war|lautet|hei\xc3\x9ft|heisst|to|auf)(?:[ ](?:now|jetzt|still|noch))?[ ]?:?|[ ]?[:=]|[ ]?->)"""
_OPEN = rb"""(?P<open>["'`(*\\]|\xe2\x80\x9e|\xe2\x80\x9c|\xc2\xbb){0,3}"""
_PASSWORD = re.compile(
    rb"""(?:pass(?:word|wort|code|phrase|wd)|kennwort)s?
         (?P<about>(?:[ ][\w.@\\\x80-\xff-]{1,24}){0,6}?)%s[ ]{1,3}%s(?P<value>[^\s"'`\\]{3,64})(?P<after>[ ]?.?)"""
    % (_SAID, _OPEN),
    re.X | re.I | re.S,
)
_PIN = re.compile(
    rb"""(?<![a-z0-9_])(?:pins?|pin[- ]?(?:code|nummer|number)|geheimzahl)(?![a-z])
         (?P<about>(?:[ ][\w.\\\x80-\xff-]{1,24}){0,5}?)["'\\]{0,2}%s[ ]{0,3}%s(?P<value>[0-9]{4,8})(?![\w.,%%:/-][0-9a-z])"""
    % (_SAID, _OPEN),
    re.X | re.I,
)
_CODE_OF = re.compile(
    rb"(?:alarm|door|gate|garage|safe|entry|access|unlock|lock|vault|t\xc3\xbcr|tuer|zugangs|tresor|handy)[- ]?\Z",
    re.I,
)
_CODE = re.compile(
    rb"""code(?P<about>(?:[ ][\w.\\\x80-\xff-]{1,24}){0,5}?)%s[ ]{0,3}%s(?P<value>[0-9]{4,8})(?![\w.,%%:/-][0-9a-z])"""
    % (_SAID, _OPEN),
    re.X | re.I,
)
_WORDS = re.compile(
    rb"""(?:mnemonic|(?:seed|recovery|backup|wallet|mnemonic)[ _-]?(?:phrase|words?))
         [^\r\n"'=:a-z]{0,8}(?:[ ]?(?:words|phrase|is|are|ist|lautet))?["'\\]{0,2}[ ]{0,3}[:=]?[ ]{0,3}[\\"'`(]{0,3}
         (?P<value>[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23})(?![ ,]{1,2}[a-z])""",
    re.X | re.I,
)
_EVERYDAY = frozenset(
    b"""wrong right correct incorrect required missing invalid valid empty stored secret hashed encrypted weak strong
    safe secure there here gone known unknown lost forgotten expired set unset not the now then still always never
    optional needed changed reset given asked checked too very also only just what where who how that this it mine
    yours ours theirs none null true false long short fine good bad okay old new same different easy hard saved sent
    kept shown hidden visible private public protected unique sensitive important accepted rejected refused falsch
    richtig korrekt leer gesetzt bekannt unbekannt weg geheim sicher unsicher da dort hier vergessen abgelaufen nicht
    das der die ein eine kein keine noch jetzt immer nie zu sehr auch nur schwach stark lang kurz neu alt gleich
    nothing something anything everything masked printed logged written read string text default""".split()
)
_SIGN = re.compile(rb"[!@#$^&+=~_%*?-]")
_ENDS = (b".", b",", b"!", b"?", b";", b'"', b"'", b"`", b"\\", b"\n", b"\r", b")", b"")


def spoken_password(content: bytes, at: int, *, in_memory: bool) -> tuple[int, int] | None:
    """The place of the password that a sentence tells, the word for it standing at ``at``."""
    match = _PASSWORD.match(content, at, at + 320)
    if match is None:
        return None
    raw = match["value"]
    value = raw if match["open"] else raw.rstrip(b".,;:!?)*")
    if len(value) < 4 or is_made_up(value) or b"(" in value or b"://" in value or b"</" in value:
        return None
    ends = len(value) < len(raw) or match["after"].strip() in _ENDS
    if not _was_told(value, bool(match["open"]), ends, in_memory):
        return None
    return match.start("value"), match.start("value") + len(value)


def spoken_number(content: bytes, at: int) -> tuple[int, int] | None:
    """The place of the number, the word ``pin`` or its like standing at ``at``."""
    match = _PIN.match(content, at, at + 240)
    return match.span("value") if match else None


def spoken_code(content: bytes, at: int) -> tuple[int, int] | None:
    """The place of the number, the word ``code`` standing at ``at`` and its kind before it."""
    match = _CODE.match(content, at, at + 240) if _CODE_OF.search(content[max(0, at - 12) : at]) else None
    return match.span("value") if match else None


def spoken_words(content: bytes, at: int) -> tuple[int, int] | None:
    """The place of the 12 to 24 words of a wallet whose name begins at ``at`` or a word before it."""
    for begin in (at, at - 5, at - 6, at - 7, at - 9):
        match = _WORDS.match(content, begin, begin + 420) if begin >= 0 else None
        if match is not None:
            return match.span("value")
    return None


def _was_told(value: bytes, quoted: bool, ends: bool, in_memory: bool) -> bool:
    letters = re.search(rb"[A-Za-z\x80-\xff]", value) is not None
    digits = re.search(rb"[0-9]", value) is not None
    if (
        letters
        and digits
        and not re.fullmatch(rb"[0-9]+(?:st|nd|rd|th|[a-z]{1,2})|[a-z]+-?[0-9]", value, re.I)
    ):
        return True
    if letters and _SIGN.search(value[1:-1]) and not re.fullmatch(rb"[A-Za-z]+(?:[-_'][A-Za-z]+)*", value):
        return True
    if not letters and digits:
        return value.isdigit() and ends
    everyday = value.lower() in _EVERYDAY or not letters
    return in_memory and not everyday and (ends or quoted)
