"""Sessions are tested with phones in them."""

from __future__ import annotations

from tests.rappd.tether.conftest import desk, phone

__all__ = ["desk", "phone"]
