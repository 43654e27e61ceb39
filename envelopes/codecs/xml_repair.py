"""Repair of XML that somebody's program, or a model, wrote carelessly: no character of its text is lost.

lxml's own recovery drops text without a word (``1 & 2`` becomes ``1  2``), so that the text is taken apart here, put
together well-formed, and what was changed is said. What results is parsed strictly afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envelopes.codecs.emergence import MAX_DEPTH
from envelopes.errors import EnvelopeError, MalformedError

MOST_REPAIRS_TOLD = 20

_PART = re.compile(
    r"""<!--(?P<comment>)
    |<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    |<\?(?P<instruction>.*?)(?:\?>|\Z)
    |<!(?P<declaration>[A-Za-z].*?)(?:>|\Z)
    |</(?P<end>[A-Za-z_][\w.:-]*)\s*(?:>|\Z)
    |<(?P<start>[A-Za-z_][\w.:-]*)(?P<attributes>(?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*)\s*(?P<close>/?)>""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_CUT_OFF = re.compile(r"</?\Z")
"""The first of an end, after which a message was cut off."""
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_REFERENCE = re.compile(r"&#(?:([0-9]{1,7})|x([0-9a-fA-F]{1,6}));")
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that no XML can hold."""


class Repaired(NamedTuple):
    """Well-formed text, and sentences that say what was changed, none where nothing was."""

    text: str
    repairs: list[str]


def check_harmless(text: str) -> None:
    """Raises ``xml_refused`` for a document type, an entity or a processing instruction; nothing is expanded."""
    if "<!" not in text and "<?" not in text:
        return
    for part, _ in _parts(text):
        if part["declaration"] is not None:
            raise EnvelopeError(
                "A document type or an entity is not taken.",
                do="Send elements and text alone.",
                code="xml_refused",
            )
        if part["instruction"] is not None and not _is_declaration(part):
            raise EnvelopeError(
                "A processing instruction is not taken.",
                do="Send elements and text alone.",
                code="xml_refused",
            )


def _parts(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The parts of a text that are no text, each with its end. A comment without an end is text.

    Ends of comments are looked for here: by the pattern, each beginning would look through all that follows.
    """
    at, last = 0, text.rfind("-->")
    while part := _PART.search(text, at):
        at = part.end()
        if part["comment"] is not None:
            if at > last:
                continue
            at = text.index("-->", at) + 3
        yield part, at


def repair(text: str) -> Repaired:
    """``text`` with each element closed, in order, and with each character that XML gives a meaning written as text.

    Characters that XML cannot hold become pictures of themselves (U+2400 and following). Raises ``xml_refused``
    where ``check_harmless`` does.
    """
    check_harmless(text)
    repairs: list[str] = []
    open_names: list[str] = []
    out: list[str] = []
    at = 0
    for part, end in _parts(text):
        out.append(_as_text(text[at : part.start()], repairs))
        at = end
        if part["comment"] is not None or part["instruction"] is not None:
            continue
        if part["cdata"] is not None:
            out.append(
                _without_impossible(part["cdata"], repairs)
                .replace("&", "&amp;")
                .replace("<", "&lt;")
                .replace(">", "&gt;")
            )
            if not part[0].endswith("]]>"):
                _tell(repairs, "a CDATA section without an end was closed")
        elif part["start"] is not None:
            attributes = _attributes(part["attributes"], repairs)
            out.append(f"<{part['start']}{attributes}{part['close']}>")
            if not part["close"]:
                open_names.append(part["start"])
                if len(open_names) > MAX_DEPTH:
                    raise MalformedError(f"The XML is nested more than {MAX_DEPTH} deep.", do="Flatten it.")
        else:
            if not part[0].endswith(">"):
                _tell(repairs, f"</{part['end']} was ended")
            out.append(_ended(part["end"], open_names, repairs))
    rest = text[at:]
    if open_names and (cut := _CUT_OFF.search(rest)) is not None:
        _tell(repairs, f"{cut[0]} at the end was left out")
        rest = rest[: cut.start()]
    out.append(_as_text(rest, repairs))
    for name in reversed(open_names):
        out.append(f"</{name}>")
        _tell(repairs, f"<{name}> was closed")
    return Repaired("".join(out), repairs)


def _ended(name: str, open_names: list[str], repairs: list[str]) -> str:
    """The end tags that close ``name``, with what is open inside it."""
    if name not in open_names:
        _tell(repairs, f"</{name}> closed nothing and was left out")
        return ""
    closed = ""
    while True:
        inner = open_names.pop()
        closed += f"</{inner}>"
        if inner == name:
            return closed
        _tell(repairs, f"<{inner}> was closed")


def _as_text(text: str, repairs: list[str]) -> str:
    if not text:
        return ""
    text = _without_impossible(text, repairs)
    if "&" in text:
        text = _plain_references(text, repairs)
    if "<" in text:
        _tell(repairs, "a < that begins no element was written as text")
        text = text.replace("<", "&lt;")
    if "]]>" in text:
        _tell(repairs, "]]> was written as text")
        text = text.replace("]]>", "]]&gt;")
    return text


def _attributes(text: str, repairs: list[str]) -> str:
    """The attributes with each name once; a later value of a name is told of, since it is no text."""
    if not text:
        return ""
    text = _without_impossible(text, repairs)
    if "&" in text:
        text = _plain_references(text, repairs)
    found: dict[str, str] = {}
    for name, value in re.findall(r"""([\w.:-]+)\s*=\s*("[^"]*"|'[^']*')""", text, re.ASCII):
        if name in found:
            _tell(repairs, f"a second {name}={value} was left out")
        elif not re.match(r"[A-Za-z_]", name):
            _tell(repairs, f"{name}={value} is no attribute and was left out")
        else:
            found[name] = value
    return "".join(f" {name}={value}" for name, value in found.items())


def _plain_references(text: str, repairs: list[str]) -> str:
    bare = _BARE.sub("&amp;", text)
    if bare != text:
        _tell(repairs, "a & that begins no reference was written as text")

    def possible(found: re.Match[str]) -> str:
        number = int(found[1]) if found[1] else int(found[2], 16)
        if number <= 0x10FFFF and not IMPOSSIBLE.match(chr(number)):
            return found[0]
        _tell(repairs, f"{found[0]} names no character of XML and was written as text")
        return f"&amp;{found[0][1:]}"

    return _REFERENCE.sub(possible, bare)


def _without_impossible(text: str, repairs: list[str]) -> str:
    if IMPOSSIBLE.search(text) is None:
        return text
    _tell(repairs, "a character that XML cannot hold was written as its picture")
    return IMPOSSIBLE.sub(lambda found: _picture(found[0]), text)


def _picture(character: str) -> str:
    return chr(0x2400 + ord(character)) if character < " " else "\ufffd"


def _is_declaration(part: re.Match[str]) -> bool:
    return part.start() == 0 and re.match(r"xml\s", part["instruction"]) is not None


def _tell(repairs: list[str], what: str) -> None:
    if what not in repairs and len(repairs) < MOST_REPAIRS_TOLD:
        repairs.append(what)
