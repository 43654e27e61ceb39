"""Opening eggs: from a file of any known kind to an ``Opened`` that can be inspected, compared and planned."""

from __future__ import annotations

from twins.eggs.opening.sniffing import open_egg

__all__ = ["open_egg"]
