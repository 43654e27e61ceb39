"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says more about the machine than about the code; a test that hangs has its timeout.
settings.register_profile("rappd", deadline=None)
settings.load_profile("rappd")
