"""The shipped rapplications as they travel: each file alone, so what several share is written into each.

In this folder the store of a rapplication is one module, which its agent and its service import; the look of the pages
and what their scripts have in common lie in ``page/``.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

SHIPPED = Path(__file__).parent
_PAGE = SHIPPED / "page"
_IMPORT = re.compile(r"^from agents\.rapps\.\w+\.store import (\(.*?\)|.*?)\n", re.DOTALL | re.MULTILINE)
_HEAD = re.compile(r'\A""".*?"""\n\nfrom __future__ import annotations\n\n', re.DOTALL)


def shipped_bundle(name: str) -> dict[str, bytes]:
    """The files of a shipped rapplication, by their paths in the bundle. Blocks on the disk."""
    folder = SHIPPED / name
    service, agent = f"service/{name}_service.py", f"singleton/{name}_agent.py"
    store = _HEAD.sub("", (folder / "store.py").read_text("utf-8"))
    texts = {
        path: _IMPORT.sub(lambda _: store, (folder / path).read_text("utf-8")) for path in (service, agent)
    }
    texts["ui/index.html"] = (folder / "ui/index.html").read_text("utf-8")
    texts["ui/app.js"] = _joined(folder / "ui/app.js", _PAGE / "page.js")
    texts["ui/style.css"] = _joined(_PAGE / "page.css", folder / "ui/style.css")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["singleton_sha256"] = hashlib.sha256(texts[agent].encode()).hexdigest()
    texts["manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return {path: text.encode() for path, text in texts.items()}


def _joined(*parts: Path) -> str:
    return "\n".join(part.read_text("utf-8") for part in parts)
