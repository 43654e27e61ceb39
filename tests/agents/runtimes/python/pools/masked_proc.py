"""Loaded into the process that forks workers: it then runs as in a container that masks ``/proc``, and refuses a new one."""

from __future__ import annotations

from agents.runtimes.python.sandbox import namespaces

namespaces._mount_proc = lambda: False
