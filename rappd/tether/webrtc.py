"""The library for WebRTC, which an installation may lack."""

from __future__ import annotations

import importlib.util


def webrtc_installed() -> bool:
    """True when aiortc is there; looks without importing it."""
    return importlib.util.find_spec("aiortc") is not None
