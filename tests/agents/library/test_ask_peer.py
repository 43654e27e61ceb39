"""AskPeer by itself: what it asks of the house, and how it words what comes back."""

from __future__ import annotations

from typing import Any

import pytest
from agents_under_test import Desk  # type: ignore[import-not-found]
