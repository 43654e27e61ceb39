"""Messages in XML (``<message>``, AgentServer 2.0): bytes to a record and back, without loss.

The record stays the JSON object of the Rulebook. What it has no place for in ``<message>`` (id, verb, extensions, the
thread's UUID) travels as elements of another namespace in ``<meta>``. A payload is an element of its own namespace, or
``<data>`` with the record's ``data`` as JSON text. Importing this loads lxml (10 ms, 4 MB): it is imported where XML comes.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from lxml import etree

from envelopes.codecs.emergence import MAX_BYTES, MAX_DEPTH
from envelopes.codecs.privileged import refuse_privileged
from envelopes.codecs.strict_json import deeper_than, repeated_key, says_a_key_twice
from envelopes.codecs.xml_repair import IMPOSSIBLE, check_harmless, repair
from envelopes.envelope import HELP, PREFIX, SIG, THREAD, Envelope, check_extensions, is_uuid, new_id
from envelopes.errors import BadSignatureError, EnvelopeError, MalformedError
from envelopes.payloads.form import typed_of

if TYPE_CHECKING:
    from lxml.etree import _Element

ENVELOPE_NS = "https://xml-pipeline.org/ns/envelope/v1"
RAPPD_NS = "urn:rappd:message:1"
"""Of elements in ``<meta>`` that ``envelope.xsd`` has no name for, and of ``<data>``."""
HUH_NS = "https://xml-pipeline.org/ns/huh/1"
CONTENT_TYPE = "application/xml; charset=utf-8"

HUH = "_x_huh"
"""Repairs on the way in: ``{"sha256": of the bytes that came, "repairs": [sentence]}``."""
FOREIGN = "_x_xml_meta"
"""Elements in ``<meta>`` that nobody here knows, in canonical form."""
MOST_ELEMENTS = 20_000
MOST_ATTRIBUTES = 256
"""Of one element: canonical form sorts them in square time (60,000 in 1 MB: measured, 49 s)."""
SCHEMA_FILE = Path(__file__).with_name("envelope.xsd")

_MESSAGE, _FROM, _TO, _THREAD = (f"{{{ENVELOPE_NS}}}{one}" for one in ("message", "from", "to", "thread"))
_ID, _VERB, _UUID, _EXTENSION, _DATA = (
    f"{{{RAPPD_NS}}}{one}" for one in ("id", "verb", "thread", "extension", "data")
)
_KNOWN = frozenset((_ID, _VERB, _UUID))
_OWN = _KNOWN | {_EXTENSION}
_HUH = f"{{{HUH_NS}}}"
_OPENING = re.compile(r"<(?P<prefix>[^\s:<>/=]+:)?[^\s:<>/=]+(?=[ >])")
_UNPREFIXED = re.compile(r"<[^\s:<>/=]+[ >]")
_ADVICE = "Send <message><meta><from/><to/><thread/></meta>, and one payload."


class XmlMessage(NamedTuple):
    """A message as it came. ``thread`` is the text of ``<thread>``; where the UUID came, too, the record has that."""

    envelope: Envelope
    thread: str


def decode(raw: bytes, *, recipient: str, max_bytes: int = MAX_BYTES) -> XmlMessage:
    """The message in ``raw``; ``recipient`` is whom one without ``<to>`` is for.

    XML that is not well-formed is repaired, and the record says so under ``_x_huh``. Raises ``xml_refused``;
    ``MalformedError``, which names the element and its line; and ``BadSignatureError`` for a repaired message that
    claims a signature.
    """
    if len(raw) > max_bytes:
        raise MalformedError(
            f"The message has {len(raw)} bytes; {max_bytes} are allowed.", do="Send less at once."
        )
    root, repairs = _parsed(raw)
    refuse_privileged({"ns": _name(root)[0]}, listener="for messages in XML")
    if root.tag != _MESSAGE:
        raise MalformedError(f"The root is {_shown(root)}, and no message of {ENVELOPE_NS}.", do=_ADVICE)
    if repairs and any(SIG in (one.text or "") for one in root.iter(_EXTENSION)):
        raise BadSignatureError("A message that had to be repaired is not a signed one.", do="Send it whole.")
    try:
        return _message(root, repairs, raw, recipient)
    except MalformedError as problem:
        named = next(root.iter(_ID), None)
        problem.id = named.text or "" if named is not None else ""
        raise


def _message(root: _Element, repairs: list[str], raw: bytes, recipient: str) -> XmlMessage:
    _check(root)
    sender, to, thread = "", recipient, ""
    known: dict[str, str] = {}
    extensions: dict[str, Any] = {}
    foreign: list[str] = []
    for element in root[0]:
        tag, text = element.tag, element.text or ""
        if tag in _OWN and (len(element) or element.attrib):
            raise _at(element, "holds text alone")
        if tag == _FROM:
            sender = text.strip()
        elif tag == _TO:
            to = text.strip()
        elif tag == _THREAD:
            thread = text
        elif tag in _KNOWN:
            if tag in known:
                raise _at(element, "comes twice")
            known[tag] = text
        elif tag == _EXTENSION:
            extensions |= _extension(element, extensions)
        elif not tag.startswith(_HUH):
            foreign.append(canonical(element))
    if _UUID in known:
        extensions[THREAD] = known[_UUID]
    if foreign:
        extensions[FOREIGN] = foreign
    if repairs:
        extensions[HUH] = {"sha256": sha256(raw).hexdigest(), "repairs": repairs}
    ident = known.get(_ID) or new_id()
    if not is_uuid(ident):
        raise MalformedError("'id' is not a UUID.", do="Send a UUIDv4.", key="id")
    if extensions:
        check_extensions(extensions)
    return XmlMessage(
        Envelope(ident, sender, to, known.get(_VERB) or HELP, _data(root[1]), extensions), thread
    )


def encode(envelope: Envelope, *, thread: str = "") -> bytes:
    """The record as exclusive canonical XML; ``thread`` is its path as people read it.

    Raises ``MalformedError`` for data that is no JSON, and for names that XML cannot hold.
    """
    foreign = _foreign_elements(envelope.extensions.get(FOREIGN))
    meta = [_text("from", envelope.sender)]
    if envelope.recipient:
        meta.append(_text("to", envelope.recipient))
    meta += [
        _text("thread", thread),
        _text("id", envelope.id, RAPPD_NS),
        _text("verb", envelope.verb, RAPPD_NS),
    ]
    for key, value in sorted(envelope.extensions.items()):
        if key == THREAD and is_uuid(value):
            meta.append(_text("thread", value, RAPPD_NS))
        elif key != FOREIGN or not foreign:
            meta.append(_text("extension", _json({key: value}), RAPPD_NS))
    meta += foreign
    meta.append(_told_repairs(envelope.extensions.get(HUH)))
    whole = f'<message xmlns="{ENVELOPE_NS}"><meta>{"".join(meta)}</meta>{_payload(envelope.data)}</message>'
    if IMPOSSIBLE.search(whole):
        raise MalformedError("A name has characters that XML cannot hold.", do="Leave them out.")
    return whole.encode()


def canonical(element: _Element) -> str:
    """An element by itself in exclusive canonical XML, without comments."""
    return _octets(element).decode()


def element_of(text: str) -> _Element:
    """The element in ``text``, which is well-formed XML. Raises ``xml_refused``, ``MalformedError``."""
    check_harmless(text)
    return _strictly(text.encode())


def _octets(element: _Element) -> bytes:
    try:
        found = etree.tostring(element, method="c14n", exclusive=True, with_comments=False, with_tail=False)
    except etree.C14NError as error:
        raise MalformedError(
            "A namespace is not a whole URI.", do='Write one like "urn:example:1".'
        ) from error
    assert isinstance(found, bytes)
    return found


def _parsed(raw: bytes) -> tuple[_Element, list[str]]:
    if b"<!" in raw or b"<?" in raw:
        check_harmless(_text_of(raw))
    try:
        return _strictly(raw), []
    except MalformedError:
        mended = repair(_text_of(raw).strip())
        if not mended.repairs:
            raise
        return _strictly(mended.text.encode()), mended.repairs


def _text_of(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedError(f"The message is not UTF-8 (byte {error.start}).", do="Send UTF-8.") from error


def _strictly(raw: bytes) -> _Element:
    try:
        root = etree.fromstring(raw, _parser())
    except etree.XMLSyntaxError as error:
        line = error.position[0] if error.position else 0
        raise MalformedError(f"Line {line}: {error.msg}.", do="Send well-formed XML in UTF-8.") from error
    if raw.count(b"<") > 2 * MAX_DEPTH or raw.count(b"=") > MOST_ATTRIBUTES:  # else neither large nor deep
        _check_size(root)
    return root


@cache
def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, encoding="utf-8"
    )


def _check_size(root: _Element) -> None:
    """Bounds elements and levels as lists and objects of JSON are, and the attributes of each."""
    depth = count = 0
    for event, element in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        count += event == "start"
        if depth > MAX_DEPTH:
            raise MalformedError(f"The XML is nested more than {MAX_DEPTH} deep.", do="Flatten it.")
        if count > MOST_ELEMENTS:
            raise MalformedError(f"The XML has more than {MOST_ELEMENTS} elements.", do="Send less at once.")
        if event == "start" and len(element.attrib) > MOST_ATTRIBUTES:
            raise _at(element, f"has more than {MOST_ATTRIBUTES} attributes")


@cache
def _schema() -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMA_FILE))


def _check(root: _Element) -> None:
    schema = _schema()
    if schema.validate(root):
        return
    log: Any = schema.error_log
    error = log[0]
    what = error.message.replace(f"{{{ENVELOPE_NS}}}", "")
    raise MalformedError(f"Line {error.line}: {what}", do=_ADVICE)


def _data(payload: _Element) -> dict[str, Any]:
    if payload.tag != _DATA:
        ns, name = _name(payload)
        return {"ns": ns, "root": name, "body": canonical(payload)}
    if payload.attrib:
        raise _at(payload, "holds text alone")
    found = _read_json(payload)
    if not isinstance(found, dict):
        raise _at(payload, "is not a JSON object")
    return found


def _payload(data: dict[str, Any]) -> str:
    """The element itself where it is typed, and canonical already; else its JSON."""
    typed = typed_of(data)
    if typed is not None and (inside := _inside(typed.body, (typed.ns, typed.root))) is not None:
        return inside
    return _text("data", _json(data), RAPPD_NS)


def _foreign_elements(texts: object) -> list[str]:
    """The elements as they stand in ``<meta>``, where each comes back as the same text; else none."""
    if not isinstance(texts, list):
        return []
    found = [_inside(one) for one in texts]
    return [one for one in found if one is not None] if None not in found else []


def _inside(text: object, named: tuple[str, str] | None = None) -> str | None:
    """A canonical element as it stands inside a message; None for what would not come back as the same text.

    ``named`` is its namespace and local name; without it, it has a namespace that nobody here knows.
    """
    found = _OPENING.match(text) if isinstance(text, str) else None
    if found is None:
        return None
    assert isinstance(text, str)
    try:
        element = element_of(text)
        if canonical(element) != text:
            return None
    except (EnvelopeError, ValueError):
        return None
    ns, _ = name = _name(element)
    if ns in (ENVELOPE_NS, RAPPD_NS) or (named is None and ns in ("", HUH_NS)) or named not in (None, name):
        return None
    if found["prefix"] is not None:  # it, and nothing in it, may mean the default namespace
        return text if _UNPREFIXED.search(text) is None else None
    return text if ns else f'{found[0]} xmlns=""{text[found.end() :]}'


def _extension(element: _Element, before: dict[str, Any]) -> dict[str, Any]:
    found = _read_json(element)
    if not isinstance(found, dict) or len(found) != 1 or not next(iter(found)).startswith(PREFIX):
        raise _at(element, 'is not {"_x_name": value}')
    if next(iter(found)) in {*before, THREAD}:
        raise _at(element, "comes twice")
    return found


def _read_json(element: _Element) -> object:
    raw = (element.text or "").encode()
    if len(element) or deeper_than(raw, MAX_DEPTH):
        raise _at(element, "is not JSON text of at most 64 levels")
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _at(element, f"is not JSON: {error}") from error
    if isinstance(found, dict) and says_a_key_twice(raw, found):
        raise _at(element, f"says the key '{repeated_key(raw)}' twice")
    return found


def _json(value: dict[str, Any]) -> str:
    """JSON text of characters that XML can hold: JSON escapes the others."""
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise MalformedError(
            f"'data' cannot be written: {error}.", do="Send JSON alone.", key="data"
        ) from error
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _text(name: str, text: str, ns: str = "") -> str:
    """An element with text, as canonical XML writes it."""
    if "&" in text or "<" in text or ">" in text or "\r" in text:
        text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
    opening = f'{name} xmlns="{ns}"' if ns else name
    return f"<{opening}>{text}</{name}>"


def _told_repairs(huh: object) -> str:
    """The ``<huh>`` of repairs, for readers that know it; the whole of them is an extension."""
    repairs = huh.get("repairs") if isinstance(huh, dict) else None
    if not isinstance(repairs, list) or not all(
        isinstance(one, str) and one.isprintable() for one in repairs
    ):
        return ""
    return f'<huh xmlns="{HUH_NS}">{"".join(_text("repair", one) for one in repairs)}</huh>'


def _name(element: _Element) -> tuple[str, str]:
    ns, _, name = element.tag.rpartition("}")
    return ns[1:], name


def _at(element: _Element, what: str) -> MalformedError:
    return MalformedError(f"<{_name(element)[1]}> in line {element.sourceline} {what}.", do=_ADVICE)


def _shown(element: _Element) -> str:
    return f"<{_name(element)[1][:60]}>"
