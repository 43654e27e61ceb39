"""A network for each story."""

from __future__ import annotations

from lan.conftest import lan

__all__ = ["lan"]
