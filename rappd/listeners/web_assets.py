"""Files of the page, as the listeners that serve them hold them: bundled, versioned, with their imports known."""

from __future__ import annotations

import hashlib
import mimetypes
import posixpath
import re
from dataclasses import dataclass
from pathlib import Path

WEB = Path(__file__).parents[1] / "web"

_TYPES = {"js": "text/javascript", "webmanifest": "application/manifest+json", "woff2": "font/woff2"}
"""Types that a computer may know under another name, or not at all."""


def type_of(name: str) -> str:
    """The Content-Type of a file of that name."""
    kind = _TYPES.get(name.rpartition(".")[2]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


_VERSION_LENGTH = 16
_STYLES = "page.css"
_SHEET = re.compile(r' *<link rel="stylesheet" href="/web/([^"]+)">\n')
_MAIN = re.compile(r' *<script type="module" src="/web/([^"]+)"></script>\n')
_IMPORT = re.compile(r"""^(?:import|export)\b[^;"']*?["'](\.{1,2}/[^"']+)["']""", re.MULTILINE)
_VERSIONED = re.compile(rf"([0-9a-f]{{{_VERSION_LENGTH}}})/(.+)")


@dataclass(frozen=True)
class WebAssets:
    """All files of the page by name, the page itself, and the hash of their contents."""

    files: dict[str, bytes]
    index: bytes
    version: str

    @classmethod
    def load(cls, folder: Path) -> WebAssets:
        """Read the page's files and prepare ``index.html``. Raises ``OSError``."""
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        index = files.pop("index.html").decode()
        sheets = _SHEET.findall(index)
        files[_STYLES] = b"\n".join(files[sheet] for sheet in sheets)
        digest = hashlib.sha256(index.encode())
        for name, content in files.items():
            digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
        version = digest.hexdigest()[:_VERSION_LENGTH]
        return cls(files, _prepared(index, files, version).encode(), version)

    def find(self, address: str) -> tuple[str, bytes, bool] | None:
        """Name and content of the file at ``address``, and whether browsers may keep it for good; or None."""
        versioned = _VERSIONED.fullmatch(address)
        name = versioned[2] if versioned else address
        content = self.files.get(name)
        if content is None:
            return None
        return name, content, versioned is not None and versioned[1] == self.version


def static_imports(files: dict[str, bytes], start: str) -> list[str]:
    """Names of the modules that ``start`` imports, directly or not, nearest first; ``start`` is the first."""
    found = [start]
    for name in found:  # grows while it is read
        for target in _IMPORT.findall(files[name].decode()):
            module = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if module not in found:
                found.append(module)
    return found


def _prepared(index: str, files: dict[str, bytes], version: str) -> str:
    def links(match: re.Match[str]) -> str:
        lines = [f'  <link rel="stylesheet" href="/web/{_STYLES}">\n']
        lines += [
            f'  <link rel="modulepreload" href="/web/{name}">\n' for name in static_imports(files, match[1])
        ]
        return "".join(lines) + match[0]

    return _MAIN.sub(links, _SHEET.sub("", index)).replace('"/web/', f'"/web/{version}/')
