"""Reads the packages that an agent file needs from its text, without running it (RAPP v1 §5.6).

Only two things are ever installed by themselves: what the file declares by name, and modules of the
table below. A name that merely appears in an import is never taken for a package's name.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from agents.contract.file_discovery import OWN_PACKAGES
from agents.contract.manifest import find_manifest
from agents.contract.syntax import syntax_tree
from agents.storage.text_file import shown_python

PACKAGES = {
    "bs4": "beautifulsoup4",
    "PIL": "Pillow",
    "cv2": "opencv-python",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "dotenv": "python-dotenv",
    "dateutil": "python-dateutil",
    # modules that agents of the public collections import and whose package has the same name
    **{
        name: name
        for name in (
            *("aiohttp", "feedparser", "html2text", "httpx", "jinja2", "lxml", "markdown", "matplotlib"),
            *("networkx", "numpy", "openpyxl", "pandas", "psutil", "pydantic", "pypdf", "pytz", "requests"),
            *("rich", "scipy", "tabulate", "tqdm", "websockets", "xlsxwriter"),
        )
    },
}
"""Module to package: the whole list of what may be installed for an import alone."""

SUGGESTED = {
    "azure": "azure-identity azure-storage-file-share",
    "google": "google-api-python-client",
    "opentelemetry": "opentelemetry-api",
    "github": "PyGithub",
    "jwt": "PyJWT",
    "serial": "pyserial",
    "OpenSSL": "pyOpenSSL",
}
"""Module to package names that are only ever proposed to the owner."""

# Compiled when they are used, which most starts never do.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_CLAUSE = r"(?:===|==|>=|<=|~=|!=|<|>)\ *[A-Za-z0-9][A-Za-z0-9.*+!_-]*"
_REQUIREMENT = (
    rf"(?P<name>{_NAME}) *(?:\[ *{_NAME}(?: *, *{_NAME})* *\])? *(?:{_CLAUSE}(?: *, *{_CLAUSE})*)?"
    r"""(?: *; *[A-Za-z0-9_.'"<>=!~() ]+)?"""
)
_LONGEST = 200
_FILE = r"(?i)\.(?:whl|zip|tar|tgz|gz|bz2|xz|egg|txt|toml|cfg|py)$"
_COMMENT = r"(?i)\s*#\s*(?:requirements?\s*:\s*)?(?:(?:python3?\s+-m\s+)?pip3?\s+install\s+)?(?P<rest>.+)"
_COMMENT_START = r"(?i)\s*#\s*(?:requirements?\s*:|(?:python3?\s+-m\s+)?pip3?\s+install\s)"
_SCRIPT = r"(?m)^# /// script\s*$\n(?P<content>(?:^#(?:| .*)$\n?)+?)^# ///\s*$"
_FLAGS = frozenset({"-q", "-qq", "-U", "--upgrade", "--quiet", "--user", "--pre", "--no-cache-dir"})
_PROSE = (
    "(?i)a|an|are|as|at|before|by|can|do|first|for|from|if|in|into|is|it|manually|need|needed|needs|no|none|not|"
    "nothing|of|on|only|optional|optionally|or|pip|please|python|python3|required|run|see|some|than|that|the|"
    "then|these|this|to|use|used|using|via|when|which|will|with|you|your"
)
_MANIFEST_KEYS = ("requirements", "pip", "requires_pip", "dependencies")


def declared_requirements(source: str | bytes) -> list[str]:
    """Requirements that the file names, in order of appearance, each name once.

    They are read from a PEP 723 block, from ``# requirements:`` and ``# pip install`` lines above the first
    class or function, or from the file's manifest. Each is a name with perhaps extras, versions and a marker,
    never an option, an address or a path.
    """
    text = (
        source if isinstance(source, str) else shown_python(source).replace("\r\n", "\n").replace("\r", "\n")
    )
    found: dict[str, str] = {}
    for entry in (*_script_block(text), *_comment_lines(text), *_manifest_entries(text)):
        requirement = checked_requirement(entry)
        if requirement:
            found.setdefault(normalised(requirement), requirement)
    return list(found.values())


def requirements_for(source: str | bytes, missing: str) -> list[str]:
    """Packages to install so that a file that lacks the module ``missing`` loads; none if unknown.

    That is what it declares, and the packages in the table of every module it imports unguarded.
    """
    wanted = declared_requirements(source)
    names = {normalised(requirement) for requirement in wanted}
    for module in (missing, *_plain_imports(source)):
        package = package_for(module)
        if package and normalised(package) not in names:
            names.add(normalised(package))
            wanted.append(package)
    return wanted


def package_for(module: str) -> str | None:
    """The package that provides ``module``, if it is in the table."""
    return PACKAGES.get(module.partition(".")[0])


def packages_for_hint(source: str | bytes, missing: str) -> list[str]:
    """The packages that provide the module ``missing``, to name to the owner.

    They come from one of the tables, else from the file's own declaration, else the module's name is used.
    """
    top = missing.partition(".")[0]
    named = SUGGESTED.get(top) or PACKAGES.get(top)
    declared = declared_requirements(source)
    wanted = [normalised(package) for package in (named or top).split()]
    exact = [requirement for requirement in declared if normalised(requirement) in wanted]
    return exact or (named.split() if named else declared or [top])


def checked_requirement(entry: Any) -> str | None:
    """``entry`` without spaces around it, if it is a requirement by name; None for anything else."""
    if not isinstance(entry, str) or len(entry) > _LONGEST or not entry.isprintable():
        return None
    match = re.fullmatch(_REQUIREMENT, entry.strip())
    if match is None:
        return None
    name = match["name"]
    is_own = name in OWN_PACKAGES or name.endswith("_agent")
    return None if is_own or re.search(_FILE, name) else match[0].strip()


def normalised(requirement: str) -> str:
    """The name of a requirement as package indexes compare it (PEP 503)."""
    match = re.match(_NAME, requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""


def _script_block(text: str) -> Iterator[Any]:
    block = re.search(_SCRIPT, text.replace("\r\n", "\n"))
    if block is None:
        return
    lines = (line[2:] if line.startswith("# ") else line[1:] for line in block["content"].splitlines())
    try:
        found = tomllib.loads("\n".join(lines)).get("dependencies")
    except tomllib.TOMLDecodeError:
        return
    yield from found if isinstance(found, list) else ()


def _comment_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith(("class ", "def ", "async def ")):
            return
        if re.match(_COMMENT_START, line) and (match := re.match(_COMMENT, line)):
            yield from _words(match["rest"])


def _words(line: str) -> Iterator[str]:
    """The entries of a line like ``requests, pyyaml>=6``, up to where it turns into prose."""
    line = re.sub(r" *(===|==|>=|<=|~=|!=|<|>) *", r"\1", re.split(r"\s#|[(;]|\s-\s", line)[0])
    for word in re.split(r",(?![^\[]*\])(?! *[<>=!~])|\s+", line):
        bare = word.strip("'\"`.:")
        if re.fullmatch(_PROSE, bare) or (bare.startswith("-") and bare not in _FLAGS):
            return
        if bare and bare not in _FLAGS and bare != "and":
            yield bare


def _manifest_entries(text: str) -> Iterator[Any]:
    found = find_manifest(text) or {}
    for key in _MANIFEST_KEYS:
        value = found.get(key)
        if isinstance(value, str):
            yield from _words(value)
        elif isinstance(value, (list, tuple)):
            yield from value


def _plain_imports(source: str | bytes) -> Iterator[str]:
    """Modules that the file imports at its top level outside ``try`` and ``if``."""
    try:
        body = syntax_tree(source).body
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
