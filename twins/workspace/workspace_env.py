"""Variables that a workspace's ``.env`` gives to its agents (RAPP v1 §5.6).

Values may refer to earlier entries of the same file (``${OTHER}``, ``${OTHER:-default}``) and to nothing
else: the daemon's environment never gets into them. Names that decide which programs, libraries, settings
or servers a process uses are always left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO
from typing import NamedTuple

from agents.storage import text_file
from twins.errors import BadFileError

FILE = ".env"
MAX_BYTES = 64 << 10
MAX_VARIABLES = 1000

_MAX_VALUE = 64 << 10  # Linux starts no program with a variable of 128 KiB
_MAX_ALL = 1 << 20
_MAX_BLANKS = 200  # the parser takes quadratic time over blanks in a row
_DO = "Mend the file."

_RESERVED = frozenset(
    {
        "PATH", "HOME", "RAPP_HOME", "USER", "LOGNAME", "SHELL", "ENV", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "IFS",
        "CDPATH", "PS4", "PROMPT_COMMAND", "NODE_OPTIONS", "NODE_PATH", "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "VIRTUAL_ENV", "GCONV_PATH", "GLIBC_TUNABLES",
        "LOCPATH", "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
        "JDK_JAVA_OPTIONS", "CLASSPATH", "EDITOR", "VISUAL", "PAGER", "BROWSER", "GPG_AGENT_INFO",
    }
)  # fmt: skip
_RESERVED_STARTS = (
    "LD_", "DYLD_", "PYTHON", "SSL_", "OPENSSL_", "PIP_", "UV_", "RAPPD_", "GIT_", "SSH_", "PERL5", "RUBY", "GEM_",
    "BUNDLE_", "NPM_CONFIG_", "CONDA_", "BASH_FUNC_", "MALLOC_", "XDG_", "DBUS_", "GNOME_KEYRING_",
)  # fmt: skip
_RESERVED_ENDS = ("_PROXY",)

DAEMON_SECRETS = frozenset(
    {
        "VOICE_ZIP_PASSWORD", "OPENAI_API_KEY", "GITHUB_TOKEN", "AZURE_OPENAI_API_KEY", "COPILOT_TOKEN", "GH_TOKEN",
        "GITHUB_COPILOT_TOKEN", "ANTHROPIC_API_KEY", "AZURE_OPENAI_KEY",
    }
)  # fmt: skip
"""Variables that hold the daemon's own secrets. A value of that name is meant for it, and stays with it."""

_NAME = re.compile(r"[^\s=\0-\x1f\x7f]{1,200}")
_REFERENCE = re.compile(r"\$\{(?P<name>[^{}:$]{0,200})(?::-(?P<default>[^{}]{0,1000}))?\}")
_BLANKS = re.compile(rf"[^\S\r\n]{{{_MAX_BLANKS}}}")


class WorkspaceVariables(NamedTuple):
    """Variables of one ``.env``. ``accepted``: name to value; ``left_out``: names that are never taken."""

    accepted: dict[str, str]
    left_out: tuple[str, ...] = ()


def parse(text: str) -> WorkspaceVariables:
    """The variables in the text of a ``.env``.

    Raises ``BadFileError`` for a text that is too large, or holds what no variable can.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise BadFileError(f"{FILE} has more than {MAX_BYTES >> 10} KB; none of it is used.", do=_DO)
    if "\0" in text:
        raise BadFileError(f"{FILE} holds a zero byte; none of it is used.", do=_DO)
    if _BLANKS.search(text):
        raise BadFileError(f"{FILE} holds {_MAX_BLANKS} blanks in a row; none of it is used.", do=_DO)
    from dotenv.parser import parse_stream  # most workspaces have no .env, and every start would pay for it

    found = [
        (one.key, one.value) for one in parse_stream(StringIO(text)) if one.key and one.value is not None
    ]
    if len(found) > MAX_VARIABLES:
        raise BadFileError(f"{FILE} has more than {MAX_VARIABLES} variables; none of it is used.", do=_DO)
    known = _resolved(found)
    accepted = {name: value for name, value in known.items() if not is_reserved(name)}
    return WorkspaceVariables(accepted, tuple(sorted(known.keys() - accepted.keys())))


def decode(content: bytes) -> str:
    """The text of a ``.env``. Raises ``BadFileError`` for bytes that are no UTF-8."""
    try:
        return text_file.decode(content).text
    except text_file.NotUtf8Error as error:
        raise BadFileError(f"{FILE} {error}; none of it is used.", do=text_file.SAVE_AS_UTF8) from error


def is_reserved(name: str) -> bool:
    """True when a variable of this name, in any case, is never taken from a workspace."""
    key = name.upper()
    return (
        key in _RESERVED
        or key in DAEMON_SECRETS
        or key.startswith(_RESERVED_STARTS)
        or key.endswith(_RESERVED_ENDS)
        or not _NAME.fullmatch(name)
    )


def masked(content: bytes) -> str:
    """The names in a ``.env``, one a line, with ``…`` for each value that is not empty."""
    try:
        found = parse(decode(content))
    except BadFileError as problem:
        return f"# {problem}\n"
    rows = [f"{name}={'…' if value else ''}" for name, value in found.accepted.items()]
    rows += [f"# {name}: never taken from a workspace" for name in found.left_out]
    return "".join(f"{row}\n" for row in rows)


def _resolved(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values with references to earlier entries replaced. Raises ``BadFileError`` when they grow too large."""
    known: dict[str, str] = {}

    def referred(match: re.Match[str]) -> str:
        return known.get(match["name"], match["default"] or "")

    size = 0
    for name, value in values:
        grown = sum(len(known.get(match["name"], "")) for match in _REFERENCE.finditer(value))
        if len(value) + grown > _MAX_VALUE:
            raise BadFileError(f"{FILE}: {name[:60]} is too large; none of the file is used.", do=_DO)
        known[name] = _REFERENCE.sub(referred, value)
        size += len(known[name])
        if size > _MAX_ALL:
            raise BadFileError(f"{FILE} grows past {_MAX_ALL >> 20} MB; none of it is used.", do=_DO)
    return known
