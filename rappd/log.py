"""The log: one file under the home, the terminal only for what a person must see; never a secret."""

from __future__ import annotations

import logging
import logging.handlers
import os
import re
from pathlib import Path

MAX_BYTES = 8 << 20
_SECRET = re.compile(
    r"(gh[a-z]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|sk-[A-Za-z0-9_-]{8,}|Bearer\s+\S{8,}|(?<=#k=)[\w-]{8,})"
)


class _WithoutSecrets(logging.Formatter):
    """Masks whatever looks like a token, whoever logged it."""

    def format(self, record: logging.LogRecord) -> str:
        return _SECRET.sub("[secret]", super().format(record))


def start(path: Path, *, terminal: bool) -> None:
    """Sends all logging to ``path`` (rotated at 8 MB), and warnings to stderr when ``terminal``."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.close(descriptor)
    file = logging.handlers.RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=2, encoding="utf-8")
    file.setFormatter(_WithoutSecrets("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.addHandler(file)
    for noisy in ("httpx", "httpcore", "openai", "watchfiles", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    if terminal:
        shown = logging.StreamHandler()
        shown.setLevel(logging.WARNING)
        shown.setFormatter(_WithoutSecrets("! %(message)s"))
        root.addHandler(shown)


def tail(path: Path, count: int) -> list[str]:
    """The last ``count`` lines; [] when there is no log yet."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 400 * count))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    return lines[-count:]
