"""Keys that can be told by their form alone: those of well-known makers, and private keys of programs.

Everything works on bytes at a given place; ``secret_scan`` finds the places. Each expression takes time in
proportion to what it is given, and no secret is looked at beyond 4 KB.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

RUN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
LEAST_RUN = 20
"""Every key of ``MAKERS`` has so many of ``RUN`` in a row."""
HEAD_ROOM = 72
"""Bytes before its run within which a key may begin."""

_NEAR = 2048
_LONGEST_HEAD = 60
_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Check = Callable[[bytes, int, bytes], bool]
"""True when a match is a key: (content, place in it, the matched bytes)."""


class KeyForm(NamedTuple):
    """One form of key: ``what`` a finding calls it, ``head`` as it begins, ``shape`` of the whole key."""

    what: str
    head: bytes
    shape: bytes
    check: Check | None = None


def _is_private_jwk(content: bytes, at: int, found: bytes) -> bool:
    """``d`` is private in every JSON Web Key, ``k`` in one of the kind ``oct``."""
    near = content[max(0, at - _NEAR) : at + len(found) + _NEAR]
    kind = re.search(rb'\\?"kty\\?"\s{0,8}:\s{0,8}\\?"(\w{1,8})', near)
    return kind is not None and (b"d" in found[:3] or kind[1] == b"oct")


def _is_encoded_private_key(content: bytes, at: int, found: bytes) -> bool:
    """True when base64, begun at any of its three places, holds the first line of a private key."""
    start = found[:120]
    for skipped in range(3):
        octets = start[skipped : skipped + (len(start) - skipped) // 4 * 4]
        try:
            if b"PRIVATE KEY" in base64.b64decode(octets):
                return True
        except binascii.Error:
            continue
    return False


def _is_base58_checked(content: bytes, at: int, found: bytes) -> bool:
    """True when the last four bytes of a Bitcoin key are the checksum of the others."""
    number = 0
    for sign in found:
        number = number * 58 + _BASE58.index(sign)
    octets = number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
    return hashlib.sha256(hashlib.sha256(octets[:-4]).digest()).digest()[:4] == octets[-4:]


def _has_digit(content: bytes, at: int, found: bytes) -> bool:
    return re.search(rb"[0-9]", found) is not None


_BEGIN_IN_BASE64 = rb"LS0tLS1CRUdJTi|0tLS0tQkVHSU4|tLS0tLUJFR0lOI"
MAKERS = (
    KeyForm("GitHub key", rb"gh[pousr]_|github_pat_", rb"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{40,255}"),
    KeyForm("Anthropic key", rb"sk-ant-", rb"sk-ant-[\w-]{24,}"),
    KeyForm("OpenRouter key", rb"sk-or-", rb"sk-or-(?:v1-)?[0-9a-f]{48,128}"),
    KeyForm("OpenAI key", rb"sk-", rb"sk-(?:(?:proj|svcacct|admin|None|service)-[\w-]{24,}|[A-Za-z0-9]{32,})"),
    KeyForm("AWS key", rb"A[KS]IA|ABIA|ACCA", rb"(?:A[KS]IA|ABIA|ACCA)[A-Z0-9]{16}"),
    KeyForm("Slack key", rb"xox[abeoprs]-|xoxe\.|xapp-", rb"(?:xoxe\.)?xox[abeoprs]-[0-9][\w-]{18,}|xoxe-[0-9]-[\w-]{40,}|xapp-[0-9]-[\w-]{24,}"),
    KeyForm("Slack address", rb"hooks\.slack\.com/", rb"hooks\.slack\.com/(?:services|workflows|triggers)/\w+/\w+/[\w/]{20,}"),
    KeyForm("Google key", rb"AIza|GOCSPX-|ya29\.|1//0", rb"AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{40,}|1//0[\w-]{40,}"),
    KeyForm("sign-in key (JWT)", rb"eyJ", rb"eyJ[\w-]{12,}\.eyJ[\w-]{8,}\.[\w-]{16,}"),
    KeyForm("sign-in key (JWE)", rb"eyJ", rb"eyJ[\w-]{12,}\.[\w-]{0,600}\.[\w-]{16}\.[\w-]{8,}\.[\w-]{22}"),
    KeyForm("Stripe key", rb"[sr]k_(?:live|test)_|whsec_", rb"[sr]k_(?:live|test)_[A-Za-z0-9]{24,}|whsec_[A-Za-z0-9+/]{32,}"),
    KeyForm("GitLab key", rb"gl(?:pat|dt|rt|ptt|ft|soat|agent|imt|ffct|cbt|oas)-", rb"gl(?:pat|dt|rt|ptt|ft|soat|agent|imt|ffct|cbt|oas)-[\w-]{20,}"),
    KeyForm("npm key", rb"npm_", rb"npm_[A-Za-z0-9]{36}"),
    KeyForm("PyPI key", rb"pypi-", rb"pypi-AgE[\w-]{60,}"),
    KeyForm("Hugging Face key", rb"hf_", rb"hf_[A-Za-z0-9]{34,}"),
    KeyForm("SendGrid key", rb"SG\.", rb"SG\.[\w-]{22}\.[\w-]{43}"),
    KeyForm("DigitalOcean key", rb"do[opr]_v1_", rb"do[opr]_v1_[0-9a-f]{64}"),
    KeyForm("Telegram key", rb"[0-9]{8,10}:AA", rb"[0-9]{8,10}:AA[\w-]{33}"),
    KeyForm("age key", rb"AGE-SECRET-KEY-", rb"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Za-z]{40,4000}"),
    KeyForm("Docker key", rb"dckr_[po]at_", rb"dckr_[po]at_[\w-]{20,}"),
    KeyForm("Groq key", rb"gsk_", rb"gsk_[A-Za-z0-9]{40,}"),
    KeyForm("xAI key", rb"xai-", rb"xai-[A-Za-z0-9]{40,}"),
    KeyForm("Perplexity key", rb"pplx-", rb"pplx-[A-Za-z0-9]{32,}"),
    KeyForm("Replicate key", rb"r8_", rb"r8_[A-Za-z0-9]{37,}"),
    KeyForm("NVIDIA key", rb"nvapi-", rb"nvapi-[\w-]{40,}"),
    KeyForm("Cerebras key", rb"csk-", rb"csk-[a-z0-9]{32,}"),
    KeyForm("Together key", rb"tgp_v1_", rb"tgp_v1_[\w-]{32,}"),
    KeyForm("Fireworks key", rb"fw_", rb"fw_[A-Za-z0-9]{22,}", _has_digit),
    KeyForm("Tavily key", rb"tvly-", rb"tvly-[A-Za-z0-9-]{24,}", _has_digit),
    KeyForm("Pinecone key", rb"pcsk_", rb"pcsk_\w{40,}"),
    KeyForm("LangSmith key", rb"lsv2_", rb"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    KeyForm("ElevenLabs key", rb"sk_", rb"sk_[0-9a-f]{48}"),
    KeyForm("Jina key", rb"jina_", rb"jina_[\w-]{50,}", _has_digit),
    KeyForm("Firecrawl key", rb"fc-", rb"fc-[0-9a-f]{32}"),
    KeyForm("Mailgun key", rb"key-", rb"key-[0-9a-f]{32}"),
    KeyForm("Twilio key", rb"SK[0-9a-f]", rb"SK[0-9a-f]{32}"),
    KeyForm("Mailchimp key", rb"-us[0-9]", rb"(?<=[0-9a-f]{32})-us[0-9]{1,2}"),
    KeyForm("Brevo key", rb"xkeysib-|xsmtpsib-", rb"(?:xkeysib|xsmtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    KeyForm("Discord key", rb"[MNO][\w-]{23,27}\.[\w-]{6}\.", rb"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}", _has_digit),
    KeyForm("Discord address", rb"discord(?:app)?\.com/api/webhooks/", rb"discord(?:app)?\.com/api/webhooks/[0-9]{16,20}/[\w-]{60,}"),
    KeyForm("Teams address", rb"webhook\.office\.com/webhookb2/", rb"webhook\.office\.com/webhookb2/[\w@-]{36,}/IncomingWebhook/[0-9a-f]{32}[\w/-]*"),
    KeyForm("Tailscale key", rb"tskey-", rb"tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}|tskey-[A-Za-z0-9]{24,}"),
    KeyForm("Cloudflare key", rb"v1\.0-|cf[uakt]{1,2}t?_", rb"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}|cf(?:ut|at|k)_[\w-]{40,}"),
    KeyForm("Vercel key", rb"vc[pikra]_|vercel_blob_rw_", rb"vc[pikra]_[A-Za-z0-9]{24,}|vercel_blob_rw_\w{30,}"),
    KeyForm("Netlify key", rb"nfp_", rb"nfp_[A-Za-z0-9]{36,}"),
    KeyForm("Supabase key", rb"sbp_|sb_secret_", rb"sbp_(?:oauth_)?[0-9a-f]{40}|sb_secret_[\w-]{31,}"),
    KeyForm("Notion key", rb"secret_|ntn_", rb"secret_[A-Za-z0-9]{43}|ntn_[A-Za-z0-9]{40,}", _has_digit),
    KeyForm("Linear key", rb"lin_(?:api|oauth)_", rb"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    KeyForm("Databricks key", rb"dapi", rb"dapi[0-9a-f]{32}(?:-[0-9])?"),
    KeyForm("Grafana key", rb"glsa_|glc_eyJ", rb"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_eyJ[\w+/-]{40,}={0,2}"),
    KeyForm("Vault key", rb"hv[sbr]\.", rb"hv[sbr]\.[\w-]{24,}", _has_digit),
    KeyForm("1Password key", rb"ops_eyJ", rb"ops_eyJ[\w-]{60,}"),
    KeyForm("1Password key", rb"A3-", rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-(?:[A-Z0-9]{5}-){2}[A-Z0-9]{5}"),
    KeyForm("Shopify key", rb"shp(?:at|ca|pa|ss)_", rb"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    KeyForm("Square key", rb"sq0(?:atp|csp)-", rb"sq0(?:atp|csp)-[\w-]{22,}"),
    KeyForm("Doppler key", rb"dp\.(?:pt|st|ct|sa|scim|audit)\.", rb"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    KeyForm("Pulumi key", rb"pul-", rb"pul-[0-9a-f]{40}"),
    KeyForm("Postman key", rb"PMAK-", rb"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    KeyForm("Atlassian key", rb"ATATT3|ATCTT3", rb"AT[AC]TT3[\w=-]{50,}"),
    KeyForm("Figma key", rb"figd_", rb"figd_[\w-]{40,}"),
    KeyForm("Airtable key", rb"pat[A-Za-z0-9]{14}\.", rb"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    KeyForm("Sentry key", rb"sntry[su]_", rb"sntrys_eyJ[\w+/-]{40,}={0,2}(?:_[\w+/-]{40,})?|sntryu_[0-9a-f]{64}"),
    KeyForm("New Relic key", rb"NRAK-", rb"NRAK-[A-Z0-9]{27}"),
    KeyForm("Dropbox key", rb"sl\.", rb"sl\.(?:u\.)?[\w-]{60,}", _has_digit),
    KeyForm("Terraform key", rb"\.atlasv1\.", rb"\.atlasv1\.[\w-]{60,}"),
    KeyForm("Fly key", rb"fm[12]r?_|fo1_", rb"fm[12]r?_[\w+/-]{80,}={0,2}|fo1_[\w-]{40,}"),
    KeyForm("Heroku key", rb"HRKU-", rb"HRKU-[\w-]{36,}"),
    KeyForm("PlanetScale key", rb"pscale_", rb"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}"),
    KeyForm("RubyGems key", rb"rubygems_", rb"rubygems_[0-9a-f]{48}"),
    KeyForm("Alibaba key", rb"LTAI", rb"LTAI[A-Za-z0-9]{16,24}", _has_digit),
    KeyForm("Nostr key", rb"nsec1", rb"nsec1[02-9ac-hj-np-z]{58}"),
    KeyForm("Bitcoin key", rb"[5KL][1-9A-HJ-NP-Za-km-z]{50}", rb"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}", _is_base58_checked),
    KeyForm("Bitcoin key", rb"[xyz]prv", rb"[xyz]prv[1-9A-HJ-NP-Za-km-z]{107}", _is_base58_checked),
    KeyForm("private key (JWK)", rb'\\?"[dk]\\?"\s{0,4}:', rb'\\?"[dk]\\?"\s{0,4}:\s{0,4}\\?"[\w-]{20,2000}', _is_private_jwk),
    KeyForm("private key (base64)", _BEGIN_IN_BASE64, rb"(?:%s)[A-Za-z0-9+/=]{20,}" % _BEGIN_IN_BASE64, _is_encoded_private_key),
    KeyForm("private key (OpenSSH)", rb"b3BlbnNzaC1rZXktdjE", rb"b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=\s]{40,}"),
    KeyForm("private key (PuTTY)", rb"PuTTY-User-Key-File-", rb"PuTTY-User-Key-File-[0-9]: [\x20-\x7e\r\n\\]{20,4000}?Private-Lines: ?[0-9]"),
)  # fmt: skip

_MIDDLE = (b"0tLS0tQkVHSU4", b"tLS0tLUJFR0lOI", b".atlasv1.", b"-us")
"""Heads that stand in the middle of a longer word."""
_HEADS = b"|".join(dict.fromkeys(maker.head for maker in MAKERS))
_ESCAPE = rb"\\[abfnrtv]|%[0-9A-Fa-f]{2}|\\(?:x|u00)[0-9A-Fa-f]{2}"
# A key stands for itself: after no letter or digit, unless that is the end of an escape.
_AT_BOUNDARY = re.compile(rb"(?<![A-Za-z0-9])(?=%s)" % _HEADS)
_AFTER_ESCAPE = re.compile(rb"(?:%s)(?=%s)" % (_ESCAPE, _HEADS))
_IN_THE_MIDDLE = re.compile(b"(?=%s)" % b"|".join(map(re.escape, _MIDDLE)))
_SHAPE = re.compile(
    b"|".join(
        b"(?P<s%d>%s)(?![A-Za-z0-9])" % (number, b"(?:%s)" % maker.shape)
        for number, maker in enumerate(MAKERS)
    ),
    re.ASCII,
)
# In manuals: AKIAIOSFODNN7EXAMPLE, ghp_xxxx…, and the sign-in key that explains what such a key is.
_IN_MANUALS = re.compile(
    rb"example|placeholder|redacted|x{4}|0{8}|\.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6", re.I
)

_PEM = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{2,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[\s\"'+,]|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): ?[^\r\n\\]{0,80})*"
    rb"(?:[A-Za-z0-9+/]{24}|[A-Za-z0-9+/=\s]{3,2000}-----END)"
)
_SSH2 = re.compile(rb"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----\s[\s\S]{0,600}?[A-Za-z0-9+/]{24}")

AZURE = (b"AccountKey=", b"SharedAccessKey=")
"""The beginnings of Azure's keys; text is looked at for ``sig=`` besides."""
_AZURE_KEY = re.compile(rb"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9])")
_AZURE_SIGNATURE = re.compile(rb"sig=(?:[A-Za-z0-9_-]|%2[BFbf]|[+/]){40,}(?:%3[Dd]|=){1,2}")


def heads(content: bytes, start: int, end: int) -> Iterator[int]:
    """Places from ``start`` to before ``end`` at which a key of ``MAKERS`` may begin."""
    window = content[start:end]
    escaped = b"\\" in window or b"%" in window
    for beginning in (
        (_AT_BOUNDARY, _AFTER_ESCAPE, _IN_THE_MIDDLE) if escaped else (_AT_BOUNDARY, _IN_THE_MIDDLE)
    ):
        for match in beginning.finditer(content, start, end + _LONGEST_HEAD):
            if match.end() < end:
                yield match.end()


def head_at(content: bytes, at: int) -> bool:
    """True when a key of ``MAKERS`` may begin at ``at``."""
    return _AT_BOUNDARY.match(content, at) is not None


def known_key(content: bytes, at: int) -> tuple[int, str] | None:
    """(end, name) of the maker's key that begins at ``at``, one of ``heads``; None when none does."""
    match = _SHAPE.match(content, at, at + 4096)
    if match is None or _IN_MANUALS.search(match[0]):
        return None
    maker = MAKERS[int((match.lastgroup or "s0")[1:])]
    if maker.check is not None and not maker.check(content, at, match[0]):
        return None
    return match.end(), maker.what


def azure_key(content: bytes, at: int) -> tuple[int, str] | None:
    """The same for one of ``AZURE``."""
    match = _AZURE_KEY.match(content, at) or _AZURE_SIGNATURE.match(content, at, at + 400)
    if match is None or _IN_MANUALS.search(match[0]):
        return None
    what = "Azure signature" if match[0].startswith(b"sig=") else "Azure connection string"
    return match.end(), what


def private_key(content: bytes, at: int) -> int:
    """The place where the piece of a private key block that begins at ``at`` ends; 0 when it is only its name."""
    match = _PEM.match(content, at, at + 4096) or _SSH2.match(content, at, at + 4096)
    return match.end() if match else 0
