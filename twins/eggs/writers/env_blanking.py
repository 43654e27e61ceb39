"""A ``.env`` without its secrets: keys stay, values go; and its values, to be found in other files.

A line survives only when it is understood. Whether a value may stay is decided by the whole key, however
it is spelled (``TOKEN``, ``export X_TOKEN``, ``my token``, ``"apiKey"``), and by what the value looks like.
Losing a harmless value costs a moment, keeping a secret one costs the secret: in doubt it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO

from agents.storage.text_file import readable
from twins.eggs.writers.secret_scan import looks_secret
from twins.eggs.writers.source_tree import SourceTree
from twins.workspace.workspace import Workspace

MAX_BYTES = 1 << 20
_MAX_KEY = 80

# Keys that end like this, as published; a prefix is not needed, and plurals and numbers count too.
_ENDINGS = (
    "token", "key", "secret", "password", "passwd", "passphrase", "pass", "credential", "pat", "apikey",
    "pwd", "creds", "auth", "bearer", "cookie", "session", "dsn", "connectionstring", "connstr", "salt",
    "signature", "sig", "cert", "certificate", "pem", "webhook", "pin", "otp", "jwt", "sas", "license",
)  # fmt: skip
_WITHIN = ("password", "passwd", "passphrase", "secret", "apikey", "privatekey", "accesskey", "credential")
_WORDS = frozenset(
    {"token", "key", "secret", "pass", "pwd", "pat", "pw", "auth", "bearer", "creds", "private", "webhook",
     "dsn", "jwt", "cookie", "salt", "pin", "otp", "sas"}
)  # fmt: skip

_ASSIGNMENT = re.compile(
    r"""\s*(?:(?:export|set|setx|setenv|declare(?:\s+-\w+)*|let|const|var|env)\s+|\$env:)*
        (?P<quote>["'`]?)(?P<key>[A-Za-z_$][\w.\- ]*?)(?P=quote)
        \s*(?P<sign>[=:])(?P<rest>.*)""",
    re.X | re.I | re.S | re.A,
)
_BEGIN = re.compile(r"-----\s*BEGIN")
_END = re.compile(r"-----\s*END")
_SAFE_VALUE = re.compile(r"[A-Za-z0-9_.,:/\\+ *-]{0,120}")
_ASSIGNING = re.compile(r"[=:\"`]|(?<![A-Za-z])'|'(?![A-Za-z])")  # or quotes, which may be the end of a value
_WRAPPED = re.compile(r"(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9]{16,}={1,2}")  # the last line of a wrapped key
_SPACED = re.compile(r"[A-Za-z_]+(?: [A-Za-z_]+){1,2} ?")
_NOTHING_MORE = re.compile(r"\s*[,;]?\s*(?:#.*)?")
_QUOTES = ("'", '"', "`")
_PIECES = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def blanked(content: bytes) -> bytes:
    """The file's text with secret values emptied; lines that are not understood are left out.

    Comments survive as long as they assign nothing and name no secret. What is not UTF-8 text comes out
    empty.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return b""
    if "\0" in text or not text.strip():
        return b""
    return "".join(f"{line}\n" for line in _kept(_logical(text.rstrip("\r\n")))).encode()


def is_secret_key(key: str) -> bool:
    """True when a variable of this name holds a secret."""
    words = [word.lower() for word in _PIECES.findall(key)]
    joined = re.sub(r"[0-9]+$", "", "".join(words))
    single = joined.removesuffix("s")
    return (
        joined.endswith(_ENDINGS)
        or single.endswith(_ENDINGS)
        or any(part in joined for part in _WITHIN)
        or not _WORDS.isdisjoint(words)
    )


def _kept(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            yield ""
        elif line.lstrip().startswith(("#", ";", "//")):
            comment = _comment(line)
            if comment is not None:
                yield comment
        else:
            found = _ASSIGNMENT.fullmatch(line)
            if found and _is_name(found["key"]) and not _WRAPPED.fullmatch(line.strip()):
                yield _assignment(found)


def _assignment(found: re.Match[str]) -> str:
    key = found["key"].strip()
    sign = "=" if found["sign"] == "=" else ": "
    value = found["rest"].strip()
    if value[:1] in _QUOTES:
        value = value.rstrip(",")
        bare = value[1:-1] if len(value) > 1 and value[0] == value[-1] else value
    else:
        value = bare = re.split(r"\s[#;]|,$", value)[0].rstrip()
    counted = key.lower().endswith("tokens") and bare.isdecimal()  # MAX_TOKENS=4096 is a number of words
    if (is_secret_key(key) and not counted) or not _SAFE_VALUE.fullmatch(bare) or looks_secret(bare):
        return f"{key}{sign}".rstrip()
    return f"{key}{sign}{value}".rstrip()


def _comment(line: str) -> str | None:
    body = line.lstrip().lstrip("#;/").strip()
    found = _ASSIGNMENT.fullmatch(body)
    if found and _is_name(found["key"]):
        key = found["key"].strip()
        return f"# {key}{'=' if found['sign'] == '=' else ':'}"
    words = re.findall(r"[A-Za-z]+", body)
    telling = _ASSIGNING.search(body) or any(is_secret_key(word) for word in words)
    return None if telling or any(looks_secret(word) for word in body.split()) else f"# {body}".rstrip()


def _is_name(key: str) -> bool:
    """True when this is a variable's name, and not prose or a piece of a key wrapped over several lines."""
    if len(key) > _MAX_KEY or looks_secret(key):
        return False
    return " " not in key or _SPACED.fullmatch(key) is not None


def _logical(text: str) -> Iterator[str]:
    """Lines as a reader of variables joins them: over an open quote, and a backslash at the end.

    Where a quote of several lines ends in the middle of one, nobody knows any more what is inside quotes
    and what is not: nothing comes after it.
    """
    lines = _without_blocks(iter(re.split(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)))
    for line in lines:
        while line.endswith("\\"):
            line = line[:-1] + next(lines, "")
        quote = _open_quote(line)
        end: re.Match[str] | None = None
        while quote and end is None:
            following = next(lines, None)
            if following is None:
                break
            line += "\n" + following
            end = _closing(following, quote)
        yield line
        if end and not _NOTHING_MORE.fullmatch(end.string, end.end()):
            return


def _without_blocks(lines: Iterator[str]) -> Iterator[str]:
    """The lines with every ``-----BEGIN`` block cut out, up to the end of the line that ends it."""
    for line in lines:
        begin = _BEGIN.search(line)
        if begin is None:
            yield line
            continue
        before = line[: begin.start()].rstrip("\"'` ")
        while not _END.search(line):
            following = next(lines, None)
            if following is None:
                break
            line = following
        yield before


def _open_quote(line: str) -> str:
    """The quote that the line's value opens and does not close; "" for none."""
    found = _ASSIGNMENT.fullmatch(line.lstrip().lstrip("#;/ "))
    value = found["rest"].lstrip() if found else ""
    for quote in ('"""', "'''", '"', "'", "`"):
        if value.startswith(quote):
            return "" if _closing(value[len(quote) :], quote) else quote
    return ""


def _closing(text: str, quote: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\\)(?:\\\\)*{quote}", text)


_LEAST = 8
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*[^A-Za-z])")


def known_values(workspace: Workspace) -> dict[bytes, str]:
    """Value to what a finding calls it. Empty without a ``.env``; short and everyday values are left out."""
    with ExitStack() as stack:
        content = stack.enter_context(SourceTree(workspace.root)).read(".env", MAX_BYTES)
    if not content:
        return {}
    from dotenv import dotenv_values  # most workspaces have no .env, and every packing would pay for it

    found = dotenv_values(stream=StringIO(readable(content)), interpolate=False)
    return {
        value.encode(): f"copy of {key[:60]}"
        for key, value in found.items()
        if value and len(value) >= _LEAST and (looks_secret(value) or _is_chosen(key, value))
    }


def _is_chosen(key: str, value: str) -> bool:
    return is_secret_key(key) and _MIXED.match(value) is not None
