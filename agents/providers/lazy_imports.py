"""Heavy libraries, imported when first needed and never on the event loop."""

from __future__ import annotations

import asyncio
import importlib
import sys
from types import ModuleType


async def load(name: str) -> ModuleType:
    """The imported module ``name``; the first import runs in a thread."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        return module
    return await asyncio.to_thread(importlib.import_module, name)
