"""Forms of secrets: keys of well-known makers, sign-in headers, and literals assigned to names that promise one.

Everything works on bytes at a given place; finding the places fast is ``secret_scan``'s matter.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator

_IN_ADDRESS = re.compile(rb"://[^\s/@:\"'<>]{0,64}:(?P<value>[^\s/@\"'<>]{3,128})\Z")

PASSWORD = "password"  # noqa: S105 - the word
OTHER = "secret"

_AFTER_KEY = frozenset(bytes((octet,)) for octet in b"\"'`\\] \t:=!,")
_BEFORE_KEY = re.compile(
    rb"(?:api|app|private|secret|access|signing|sign|encryption|encrypt|cipher|master|account|service|auth|license"
    rb"|session|shared|preshared|storage|deploy|stream|admin|root|subscription|bot|webhook|wallet|aes|hmac|jwt|rsa"
    rb"|consumer|client|web|bearer|provider|model|llm|x)[_. -]?\Z|(?-i:[A-Z0-9]{3}_)\Z",
    re.I,
)
_NO_KEY = re.compile(
    rb"(?:public|primary|foreign|cache|sort|partition|row|group|index|map|dict|hash|object|file|host|idempotency"
    rb"|unique|config|lookup|translation|registry|thread|dedup|store|data|json|query|search|item|node|room|user"
    rb"|site|recaptcha_site|measurement|etag|content)[_. -]?\Z",
    re.I,
)

_NAME = re.compile(
    rb"pass(?=[_-]?[0-9]{0,2}\Z)|passw(?:or)?d|passwd|passwort|passw|passp(?:hrase)?|passcode|pwd|secret|token|credential",
    re.I,
)
_BEFORE_PASS = re.compile(
    rb"(?:\A|[^A-Za-z0-9]|(?i:db|user|my|smtp|mail|imap|ftp|admin|root|wifi|http|proxy|mqtt))\Z"
)
_ASSIGNED = re.compile(
    rb"""(?P<name>[A-Za-z0-9_-]{0,48})(?P<close>\\?["'`]?\]?)[ \t]{0,8}
         (?::[ \t]{0,4}[A-Za-z][\w.]{0,20}(?:\[\w{1,20}\])?(?:[ ]?\|[ ]?None)?[ \t]{0,8}(?==))?
         (?P<sign>=>|[:!=]?={1,3}|:|,)[ \t]{0,8}
         (?:(?:\(\s{0,80})?[rbuRBU]{0,2}(?P<quote>\\?["'`])(?P<quoted>[^"'`\\\r\n]{6,200})(?P=quote)
           |(?P<plain>[^\s"'`\\]{6,200})(?=[ \t]*(?:[\r\n]|\Z|["'\\]|[#;])))""",
    re.X | re.ASCII,
)
_NETRC = re.compile(rb"password[ \t\r\n]{1,40}(?P<value>[^\s]{3,200})")
_MOST_LONE = 4096
_LONE_FILE = re.compile(
    r"\.?(?:[\w.-]{0,60}[_.-])?(?P<what>tokens?|secrets?|passwords?|passwd|passphrase|pass|api[_-]?keys?|apikey|access[_-]?keys?"
    r"|secret[_-]?keys?|auth[_-]?(?:tokens?|keys?)|credentials?|cred|pat)(?:[_.-][\w-]{1,20})?"
    r"(?:\.(?:txt|md|text|dat|conf|cfg|json|key|asc|bin|lst|csv|yml|yaml))?",
    re.I,
)
_LONE_LINE = re.compile(rb"^[ \t]{0,8}[\"']?(?P<value>[!-~]{6,400}?)[\"']?[ \t]{0,8}\r?$", re.M)
_LOOKED_UP = re.compile(rb"get(?:env)?\([ \t]{0,4}[\"'][A-Za-z0-9_-]{0,48}\Z")
# What follows the promising word and takes the promise back: PASSWORD_FIELD = "user_password"
_ABOUT = re.compile(
    rb"(?:name|type|field|file|path|dir|folder|url|uri|endpoint|env|var|id|label|prompt|hint|title|text|message|msg"
    rb"|error|re|regex|pattern|prefix|suffix|header|format|policy|hash|digest|algorithm|scheme|length|len|size|count"
    rb"|limit|chars?|placeholder|reset|change|forgot|required|option|param|arg|attr|column|row|selector|class|icon"
    rb"|usage|expiry|expires|version|host|base|help|doc|description|source|provider|manager|store|location)s?\Z",
    re.I,
)
_MADE_UP = re.compile(
    rb"<[^>]*>|\{[^}]*\}|%[sdr(]|\$\{?[A-Za-z_]|\*{3}|\.{3}|x{4}|your|example|change.?me|placeholder|redacted|dummy"
    rb"|insert|fake|sample|replace|environ|getenv",
    re.I,
)
_COMMON = re.compile(
    rb"(?:password|passwd|passphrase|pass|pwd|pw|secret|token|key|api|access|auth|client|username|user|name|admin|root"
    rb"|testing|tests?|my|the|an?|some|any|new|old|bad|good|wrong|right|invalid|valid|incorrect|correct|empty|foo|bar"
    rb"|baz|spam|eggs|ham|qux|hello|world|none|null|nil|true|false|string|str|text|input|field|value|data|here"
    rb"|default|hidden|unknown|required|optional|basic|bearer|login|logout|cancel|encrypted|plain|public|private"
    rb"|session|cookie|id|type|code|grant|refresh|oauth|csrf|is|of|for|in|to|with|enter|confirm|show|hide|s"
    rb"|[-_.: /!?@#,;])*",
    re.I,
)
_IDENTIFIER = re.compile(
    rb"(?:[A-Za-z]{2,}[0-9]{0,2}|[0-9]{1,4})(?:[-_.:/ ]+(?:[A-Za-z]+[0-9]{0,2}|v?[0-9]{1,4}))*/?"
)
_CALL = re.compile(rb"[(){}\[\]<>]")
_PATHS = (b"/", b"./", b"../", b"~/")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_SIGN = re.compile(rb"[!@#$^&+=~]")


def address_password(content: bytes, at: int) -> tuple[int, int] | None:
    """The position of the password in ``…://user:password@…``, ``at`` being the place of the ``@``."""
    begin = content.rfind(b"://", max(0, at - 256), at)
    match = _IN_ADDRESS.match(content, begin, at) if begin >= 0 else None
    if match is None or _MADE_UP.search(match["value"]) or not _is_chosen(match["value"]):
        return None
    return match.span("value")


def assigned(content: bytes, at: int, kind: str, *, code: bool) -> tuple[int, int] | None:
    """The position of the literal that a name assigns, one of ``STEMS`` standing at ``at``.

    ``code``: only quoted text is a literal there.
    """
    match = _ASSIGNED.match(content, at)
    if match is None or not _NAME.match(match["name"]) or _ABOUT.search(match["name"]):
        return None
    if len(match["name"]) == 4 and not _BEFORE_PASS.search(content[max(0, at - 6) : at]):
        return None
    return _literal(content, at, match, kind, code)


def assigned_key(content: bytes, at: int, *, code: bool) -> tuple[int, int] | None:
    """The same for a name that ends in ``key``, which stands at ``at``."""
    if content[at + 3 : at + 4] not in _AFTER_KEY:
        return None
    match = _ASSIGNED.match(content, at)
    if match is None or len(match["name"]) != 3:
        return None
    before = content[max(0, at - 24) : at]
    if _NO_KEY.search(before) or not _BEFORE_KEY.search(before):
        return None
    return _literal(content, at, match, OTHER, code)


def _literal(
    content: bytes, at: int, match: re.Match[bytes], kind: str, code: bool
) -> tuple[int, int] | None:
    name = match["name"].lower()
    quoted: bytes | None = match["quoted"]
    plain: bytes | None = match["plain"]
    sign = match["sign"]
    if plain is not None and (code or sign not in (b"=", b":")):
        return None
    if sign == b"," and not (match["close"] and quoted and _LOOKED_UP.search(content, max(0, at - 80), at)):
        return None
    if plain is not None:
        plain = plain.rstrip(b",;")
        if _CALL.search(plain):
            return None
    value = quoted if quoted is not None else plain or b""
    if _is_phrase(name, value):
        return match.span("quoted")
    if b" " in value or value.startswith(_PATHS) or _MADE_UP.search(value) or _COMMON.fullmatch(value):
        return None
    if kind == PASSWORD:
        is_assigned = quoted is not None and b"=" in sign and sign != b"=>"
        likely = _is_chosen(value) or (is_assigned and value.isascii())
    else:
        likely = looks_random(value, least=10 if name[:6] in (b"secret", b"creden") else 16)
    begin = match.start("plain" if quoted is None else "quoted")
    return (begin, begin + len(value)) if likely else None


def netrc_password(content: bytes, at: int) -> tuple[int, int] | None:
    """The position of the password in ``machine … login … password …``, ``at`` being the place of that word."""
    match = _NETRC.match(content, at, at + 200)
    before = content[max(0, at - 200) : at].split()
    if match is None or len(before) < 3 or before[-2] != b"login" or not _is_chosen(match["value"]):
        return None
    return match.span("value") if b"machine" in before[-4:-2] or b"default" in before[-4:-2] else None


def lone_secrets(path: str, content: bytes) -> Iterator[tuple[int, int]]:
    """The positions of values that stand alone, a line each, in a small file whose name promises a secret."""
    name = path.rpartition("/")[2]
    if len(content) > _MOST_LONE or not _LONE_FILE.fullmatch(name):
        return
    about = _LONE_FILE.fullmatch(name)
    is_password = about is not None and about["what"].lower().startswith("pass")
    lines = list(_LONE_LINE.finditer(content))
    if sum(1 for line in content.splitlines() if line.strip()) != len(lines):
        return  # a text
    for line in lines:
        value = line["value"]
        if is_made_up(value) or value.startswith(_PATHS):
            continue
        if looks_random(value, least=16) or (is_password and _is_chosen(value)):
            yield line.span("value")


def is_made_up(value: bytes) -> bool:
    """True when a value stands for another one, as in manuals and templates."""
    return _MADE_UP.search(value) is not None or _COMMON.fullmatch(value) is not None


def _is_phrase(name: bytes, value: bytes) -> bool:
    return (
        name.startswith(b"passphrase")
        and re.fullmatch(rb"[a-z]{3,12}(?: [a-z]{3,12}){3,11}", value) is not None
    )


def looks_random(value: bytes, *, least: int) -> bool:
    """True when ``least`` or more characters look drawn, not written: letters and digits mixed, no words."""
    return (
        len(value) >= least
        and _DIGIT.search(value) is not None
        and _LETTER.search(value) is not None
        and b"://" not in value
        and not _IDENTIFIER.fullmatch(value)
        and entropy(value) >= 2.8
    )


def entropy(value: bytes) -> float:
    """Bits per character, by how often each one occurs."""
    count = len(value)
    return -sum(n / count * math.log2(n / count) for n in Counter(value).values())


def _is_chosen(value: bytes) -> bool:
    """True when it looks like a password that somebody chose: letters with digits or signs among them."""
    return (
        len(value) >= 6
        and _LETTER.search(value) is not None
        and (_DIGIT.search(value) is not None or _SIGN.search(value) is not None)
        and b"(" not in value
    )


_REACH = 2048
_AUTHORIZATION = re.compile(
    rb"""authorization[\\"'`\]]{0,4}[ \t]{0,4}(?P<sign>[:=,])[ \t]{0,4}[\\"'`]{0,3}
         (?:(?P<scheme>[A-Za-z-]{3,16})[ \t]{1,4})?(?P<value>[A-Za-z0-9+/._~:|-]{8,2000}={0,2})""",
    re.X | re.I,
)
_AUTH = re.compile(
    rb"""auth[\\"'`]{0,2}[ \t]{0,4}[:=][ \t]{0,4}(?P<quote>[\\"'`]{0,2})(?P<value>[A-Za-z0-9+/._~:-]{12,400}={0,2})""",
    re.X | re.I,
)
_COOKIE = re.compile(
    rb"""cookie2?[\\"'`\]]{0,4}[ \t]{0,4}[:=,][ \t]{0,4}[\\"'`]{0,3}(?=[\w.-]{1,80}=)""", re.I
)
_PAIR = re.compile(rb"""[\w.-]{1,80}=(?P<value>[^;\s"'\\`,]{16,1000})""")
_SCHEMES = frozenset(
    {b"bearer", b"basic", b"token", b"apikey", b"bot", b"key", b"splunk", b"negotiate", b"ntlm"}
)
_COOKIE_FILE = re.compile(rb"cookie file[^\0]{0,600}?\t(?:TRUE|FALSE)\t", re.I)


def authorization(content: bytes, at: int, *, code: bool) -> Iterator[tuple[int, int, str]]:
    """The secret of an ``Authorization`` header, or of a setting ``auth``, whose name begins at ``at``.

    ``code``: only quoted text is a literal there.
    """
    match = _AUTHORIZATION.match(content, at, at + 4200)
    if match is not None:
        scheme, value = (match["scheme"] or b"").lower(), match["value"]
        if is_made_up(value) or (scheme and scheme not in _SCHEMES):
            return
        listed = match["sign"] == b"," and not scheme
        if _is_user_and_password(value) or (looks_random(value, least=16) and not listed):
            yield *match.span("value"), "sign-in header"
        return
    match = _AUTH.match(content, at, at + 2100)
    if match is None or (code and not match["quote"]) or is_made_up(match["value"]):
        return
    if _is_user_and_password(match["value"]) or looks_random(match["value"], least=20):
        yield *match.span("value"), "secret"


def cookies(content: bytes, at: int) -> Iterator[tuple[int, int, str]]:
    """The values of a ``Cookie`` or ``Set-Cookie`` header, or of a cookie file, whose name begins at ``at``."""
    match = _COOKIE.match(content, at, at + 160)
    if match is not None:
        end = min(p for p in (content.find(b"\n", at), content.find(b"\r", at), at + _REACH) if p >= 0)
        for pair in _PAIR.finditer(content, match.end(), end):
            if looks_random(pair["value"], least=16) and not is_made_up(pair["value"]):
                yield *pair.span("value"), "cookie"
                return
    elif found := _COOKIE_FILE.match(content, at, at + 1000):
        yield at, found.end(), "cookie file"


def _is_user_and_password(value: bytes) -> bool:
    """True when it is base64 of ``user:password``, as ``Basic`` has it."""
    try:
        text = base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    _, colon, password = text.partition(b":")
    return bool(colon) and len(password) > 2 and text.isascii() and text.decode("ascii").isprintable()
