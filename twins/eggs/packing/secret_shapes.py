"""What secrets look like: keys of well-known makers, and literals assigned to names that promise one.

Everything works on bytes at a given place; finding the places fast is ``secret_scan``'s matter.
"""

from __future__ import annotations

import math
import re
from collections import Counter

RUN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
LEAST_RUN = 20
"""Every maker's key has so many of ``RUN`` in a row, except what follows ``AZURE``."""
AZURE = (b"AccountKey=", b"SharedAccessKey=")
HEAD_ROOM = 64
"""How far before its run a key may begin."""

HEAD = re.compile(
    rb"gh[pousr]_|github_pat_|sk-|A[KS]IA|xox[abeoprs]-|xapp-|hooks\.slack\.com/|AIza|GOCSPX-|ya29\.|eyJ"
    rb"|[sr]k_(?:live|test)_|whsec_|glpat-|npm_|pypi-|hf_|SG\.|dop_v1_|[0-9]{8,10}:AA"
)
"""How the makers' keys begin."""

_SHAPES = (
    ("GitHub key", rb"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,}"),
    ("Anthropic key", rb"sk-ant-[\w-]{24,}"),
    ("OpenAI key", rb"sk-(?:(?:proj|svcacct|admin)-[\w-]{24,}|(?:or-v1-)?[A-Za-z0-9]{32,})"),
    ("AWS key", rb"A[KS]IA[A-Z0-9]{16}"),
    ("Slack key", rb"xox[abeoprs]-[0-9][\w-]{18,}|xapp-[0-9]-[\w-]{24,}"),
    ("Slack address", rb"hooks\.slack\.com/(?:services|workflows)/\w+/\w+/[\w/]{20,}"),
    ("Google key", rb"AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{40,}"),
    ("sign-in key (JWT)", rb"eyJ[\w-]{12,}\.eyJ[\w-]{8,}\.[\w-]{16,}"),
    ("Stripe key", rb"[sr]k_(?:live|test)_[A-Za-z0-9]{24,}|whsec_[A-Za-z0-9+/]{32,}"),
    ("GitLab key", rb"glpat-[\w-]{20,}"),
    ("npm key", rb"npm_[A-Za-z0-9]{36}"),
    ("PyPI key", rb"pypi-AgE[\w-]{60,}"),
    ("Hugging Face key", rb"hf_[A-Za-z0-9]{34,}"),
    ("SendGrid key", rb"SG\.[\w-]{22}\.[\w-]{43}"),
    ("DigitalOcean key", rb"dop_v1_[0-9a-f]{64}"),
    ("Telegram key", rb"[0-9]{8,10}:AA[\w-]{33}"),
    ("Azure connection string", rb"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}={0,2}"),
)
_SHAPE = re.compile(
    b"|".join(b"(?P<s%d>%s)(?![A-Za-z0-9])" % (number, shape) for number, (_, shape) in enumerate(_SHAPES)),
    re.ASCII,
)
# A key stands for itself: after no letter or digit, unless that is the end of an escape.
_FREE = re.compile(rb"\A\Z|[^A-Za-z0-9]\Z|\\[abfnrtv]\Z|%[0-9A-Fa-f]{2}\Z|\\(?:x|u00)[0-9A-Fa-f]{2}\Z")
# In manuals: AKIAIOSFODNN7EXAMPLE, ghp_xxxx…, and the sign-in key that explains what such a key is.
_IN_MANUALS = re.compile(
    rb"example|placeholder|redacted|x{4}|0{8}|\.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6", re.I
)

_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[\s\"'+,]|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment): ?[^\r\n\\]{0,80})*"
    rb"(?:[A-Za-z0-9+/]{24}|[A-Za-z0-9+/=\s]{3,2000}-----END)"
)
_IN_ADDRESS = re.compile(rb"://[^\s/@:\"'<>]{0,64}:(?P<value>[^\s/@\"'<>]{3,128})\Z")

PASSWORD = "password"  # noqa: S105 - the word
OTHER = "secret"

STEMS = (
    (b"pass", PASSWORD),
    (b"pwd", PASSWORD),
    (b"secret", OTHER),
    (b"token", OTHER),
    (b"api", OTHER),
)
"""Pieces of names, in lower case, that promise a secret, and which kind of one."""

_NAME = re.compile(
    rb"passw(?:or)?d|passwd|passw|passp(?:hrase)?|pwd|secret|token|api[_-]?(?:key|token|secret|pass)", re.I
)
_ASSIGNED = re.compile(
    rb"""(?P<name>[A-Za-z0-9_-]{0,48})(?P<close>\\?["'`]?\]?)[ \t]{0,8}
         (?::[ \t]{0,4}[A-Za-z][\w.]{0,20}(?:\[\w{1,20}\])?(?:[ ]?\|[ ]?None)?[ \t]{0,8}(?==))?
         (?P<sign>=>|[:!=]?={1,3}|:|,)[ \t]{0,8}
         (?:[rbuRBU]{0,2}(?P<quote>\\?["'`])(?P<quoted>[^"'`\\\r\n]{6,200})(?P=quote)
           |(?P<plain>[^\s"'`\#;,(){}\[\]<>$]{6,200})[ \t]*(?=[\r\n]|\Z))""",
    re.X | re.ASCII,
)
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
_PATHS = (b"/", b"./", b"../", b"~/")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_SIGN = re.compile(rb"[!@#$^&+=~]")


def known_key(content: bytes, at: int) -> tuple[int, str] | None:
    """(end, whose) of the maker's key that begins at ``at``; None when none does."""
    if not _FREE.search(content[max(0, at - 6) : at]):
        return None
    match = _SHAPE.match(content, at)
    if match is None or _IN_MANUALS.search(match[0]):
        return None
    return match.end(), _SHAPES[int((match.lastgroup or "s0")[1:])][0]


def private_key(content: bytes, at: int) -> int:
    """Where the piece of a private key block that begins at ``at`` ends; 0 when it is only its name."""
    match = _PRIVATE_KEY.match(content, at, at + 4096)
    return match.end() if match else 0


def address_password(content: bytes, at: int) -> tuple[int, int] | None:
    """Where the password lies in ``…://user:password@…``, ``at`` being the place of the ``@``."""
    begin = content.rfind(b"://", max(0, at - 256), at)
    match = _IN_ADDRESS.match(content, begin, at) if begin >= 0 else None
    if match is None or _MADE_UP.search(match["value"]) or not _is_chosen(match["value"]):
        return None
    return match.span("value")


def assigned(content: bytes, at: int, kind: str, *, code: bool) -> tuple[int, int] | None:
    """Where the literal lies that a name assigns, one of ``STEMS`` standing at ``at``.

    ``code``: only quoted text is a literal there.
    """
    match = _ASSIGNED.match(content, at)
    if match is None or not _NAME.match(match["name"]) or _ABOUT.search(match["name"]):
        return None
    quoted, plain, sign = match["quoted"], match["plain"], match["sign"]
    if plain is not None and (code or sign not in (b"=", b":")):
        return None
    if sign == b"," and not (match["close"] and quoted and _LOOKED_UP.search(content, max(0, at - 80), at)):
        return None
    value = plain if quoted is None else quoted
    if b" " in value or value.startswith(_PATHS) or _MADE_UP.search(value) or _COMMON.fullmatch(value):
        return None
    if kind == PASSWORD:
        told = quoted is not None and b"=" in sign and sign != b"=>"
        likely = _is_chosen(value) or (told and value.isascii())
    else:
        likely = looks_random(value, least=10 if match["name"][:6].lower() == b"secret" else 16)
    return match.span("plain" if quoted is None else "quoted") if likely else None


def looks_random(value: bytes, *, least: int) -> bool:
    """Whether ``least`` or more characters look drawn, not written: letters and digits mixed, no words."""
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
    """Whether it looks like a password that somebody chose: letters with digits or signs among them."""
    return (
        len(value) >= 6
        and _LETTER.search(value) is not None
        and (_DIGIT.search(value) is not None or _SIGN.search(value) is not None)
        and b"(" not in value
    )
