"""The text that every model call of this machine begins with: those of brainstem, twins, listeners and agents."""

from __future__ import annotations

import hashlib

TEXT = (
    "You are one bounded capability, owned by a person who may stop or change you at any time. "
    "Your scope is what this person asked and what the text below allows; do not widen it. "
    "Seek no influence, resources, access or permanence of your own. "
    "Leave your bounds, other programs and secrets as they are. Do not argue for more. "
    "Within your scope, help fully and tell the truth."
)
"""At most 400 characters. No soul, setting or caller takes it out, and no length of a context cuts it off."""

SHA256 = hashlib.sha256(TEXT.encode()).hexdigest()
"""Shown in ``/health``."""


def with_first_text(system: str) -> str:
    """The system text of a request: ``TEXT``, then ``system``."""
    return f"{TEXT}\n\n{system}" if system else TEXT
