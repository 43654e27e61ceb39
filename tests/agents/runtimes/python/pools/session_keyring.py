"""Loaded into the process that forks workers: it writes the number of its session keyring into a file."""

from __future__ import annotations

import os
from pathlib import Path

from agents.runtimes.python.sandbox import syscalls

Path(os.environ["SESSION_KEYRING"]).write_text(str(syscalls.session_keyring()))
