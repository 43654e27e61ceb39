"""Files of the phone's page, with those of the computer's page that it uses: bundled, compressed, fetched when needed."""

from __future__ import annotations

import functools
import gzip
import re
from pathlib import Path
from typing import NamedTuple

from rappd.listeners.web_assets import WEB, static_imports, type_of

PAGE = Path(__file__).parents[1] / "tether" / "page"
_FIRST, _THEN = "main.js", "talk.js"
"""The module that shows the first screen, and the one that is fetched after it."""
_STYLES = "page.css"
_SHEET = re.compile(r' *<link rel="stylesheet" href="/t/([^"]+)">\n')
_MAIN = re.compile(rf' *<script type="module" src="/t/{_FIRST}"></script>\n')
_SMALL = 400
"""Octets that are not worth compressing."""


class PageFile(NamedTuple):
    """A file as it goes out."""

    content: bytes
    compressed: bytes
    """Empty where that is no gain."""
    kind: str


@functools.cache
def page_files() -> dict[str, PageFile]:
    """The page's files by name; ``index.html`` is the page. Those of the computer's page begin with ``web/``."""
    files = {path.name: path.read_bytes() for path in PAGE.iterdir() if path.is_file()}
    for path in sorted(WEB.rglob("*")):
        if path.is_file() and path.name != "index.html":
            files[f"web/{path.relative_to(WEB).as_posix()}"] = path.read_bytes()
    index = files["index.html"].decode()
    files[_STYLES] = b"\n".join(files[sheet] for sheet in _SHEET.findall(index))
    files["index.html"] = _prepared(index, files).encode()
    return {name: _ready(name, content) for name, content in files.items()}


def _prepared(index: str, files: dict[str, bytes]) -> str:
    """The page with one style sheet, and the modules of its first screen named, so that none waits for another."""
    first = static_imports(files, _FIRST)
    then = [name for name in static_imports(files, _THEN) if name not in first]
    lines = [f'  <link rel="stylesheet" href="/t/{_STYLES}">\n', *map(_preload, first)]
    later = f'  <template id="then">\n{"".join(map(_preload, then))}  </template>\n'
    return _MAIN.sub(lambda found: f"{''.join(lines)}{found[0]}{later}", _SHEET.sub("", index))


def _preload(name: str) -> str:
    return f'  <link rel="modulepreload" href="/t/{name}">\n'


def _ready(name: str, content: bytes) -> PageFile:
    kind = type_of(name)
    is_text = kind.startswith("text/") or kind.endswith(("+json", "+xml"))
    packed = gzip.compress(content, mtime=0) if is_text and len(content) > _SMALL else b""
    return PageFile(content, packed if len(packed) < len(content) else b"", kind)
