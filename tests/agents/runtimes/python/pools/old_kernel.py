"""Loaded into the process that forks workers: it then runs as on a kernel before Linux 5.12.

There is no ``mount_setattr``: the number below is no system call, and the kernel says so.
"""

from __future__ import annotations

from agents.runtimes.python.sandbox import syscalls

syscalls._SYS_MOUNT_SETATTR = 9999
