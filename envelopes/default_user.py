"""The user of a chat that names none."""

from __future__ import annotations

from typing import Final

DEFAULT_USER_GUID: Final = "c0p110t0-aaaa-bbbb-cccc-123456789abc"
"""The same string in every implementation, intentionally invalid hex (RAPP v1 §0.1): never fix it."""
