"""Modules that agent files import under names that published brainstems gave them.

``finder`` says which name is which; each other room is one of those modules.
"""

from __future__ import annotations

from agents.compat.finder import install_shims

__all__ = ["install_shims"]
