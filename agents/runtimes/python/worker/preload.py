"""Modules that the zygote loads once, so that no worker has to: the usual parts of the standard library."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_USUAL = """
abc ast base64 binascii bisect calendar collections collections.abc concurrent.futures contextlib
copy csv ctypes dataclasses datetime decimal difflib email email.message enum fnmatch functools glob
graphlib gzip hashlib heapq hmac html html.parser http.client http.cookiejar importlib.machinery
importlib.util inspect io itertools json logging math mimetypes numbers operator os pathlib platform
pprint queue random re secrets select shlex shutil signal socket sqlite3 ssl statistics string
struct subprocess tempfile textwrap threading time traceback types typing unicodedata urllib.error
urllib.parse urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo
"""
USUAL = tuple(_USUAL.split())


def load(names: Iterable[str]) -> dict[str, str]:
    """Import ``names``, and call what ``module:function`` names; returns why, where that cannot be done."""
    missing = {}
    for name in names:
        module, _, function = name.partition(":")
        try:
            loaded = importlib.import_module(module)
            if function:
                getattr(loaded, function)()
        except Exception as problem:  # noqa: BLE001 - a broken room must be reported, not end the zygote
            missing[name] = f"{type(problem).__name__}: {problem}"
    return missing


def keep_only_standard_library() -> None:
    """Take everything but the standard library off ``sys.path``: packages of the daemon are not an agent's.

    What is loaded stays loaded, and modules below loaded packages (``agents.…``) are still found.
    """
    library = Path(os.__file__).parent
    inside = (library, library / "lib-dynload")
    sys.path[:] = [path for path in sys.path if Path(path) in inside or path.endswith(".zip")]
    sys.path_importer_cache.clear()
