"""What agent files import from the house under names that published brainstems gave it.

``finder`` says which name is which; each other room is one of those modules.
"""

from __future__ import annotations

from agents.compat.finder import install_shims

__all__ = ["install_shims"]
