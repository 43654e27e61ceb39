"""Checks of workers: their sandbox, and the programs that the daemon starts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from agents.programs import programs
from agents.runtimes.python.sandbox import landlock, seccomp
from agents.runtimes.python.sandbox.ssh_key_warning import can_use_ssh_keys
from rappd.cli.formatting import NOT_AS_ROOT
from rappd.diagnostics.finding import CheckContext, Finding


def check_sandbox(visit: CheckContext) -> Iterator[Finding]:
    kind = ""
    if visit.status:
        kind = str(visit.status["sandbox"]["kind"])
    elif sys.platform == "linux":
        namespaces = os.geteuid() == 0 or _user_namespaces()
        kind = "mount namespace" if namespaces else ("landlock" if landlock.version() else "none")
    yield from _about_root_and_calls(visit)
    may_read = visit.settings.items("agents.may_read")
    if kind and can_use_ssh_keys(kind, may_read, os.environ):
        do = "stop the SSH agent, or run rappd as an account of its own (docs/how-to.md)"
        if may_read:
            do = "rappd config set agents.may_read '', then restart"
        yield Finding(
            "Workers", "note", "every agent can use your SSH keys, on all machines that take them", do
        )
    if not kind or kind == "none":
        what = "agents run as you: this system cannot hide keys and tokens from them, nor keep code from them"
        yield Finding("Workers", "note", what, "run only agents that you read, or allow user namespaces")
        return
    memory = str(visit.status["sandbox"].get("memory", "")) if visit.status else ""
    limits = f"; memory: {memory}" if memory else ""
    yield Finding(
        "Workers", "good", f"agents cannot read keys and tokens, nor write programs ({kind}){limits}"
    )
    if visit.settings.on("agents.may_write_code"):
        what = "agents may write agent files, soul.md and .env of their workspace (agents.may_write_code)"
        yield Finding("Workers", "note", what, "rappd config set agents.may_write_code off, then restart")


def _about_root_and_calls(visit: CheckContext) -> Iterator[Finding]:
    sandbox = visit.status.get("sandbox", {})
    if sandbox.get("root", os.geteuid() == 0):
        yield Finding("Workers", "note", "rappd runs as root, and agents have root's files", NOT_AS_ROOT)
    if why := sandbox.get("unfiltered", seccomp.missing() if sys.platform == "linux" else ""):
        what = f"system calls of agents are not filtered: {why}"
        yield Finding("Workers", "note", what, "run only agents that you read")


def check_programs(visit: CheckContext) -> Iterator[Finding]:
    """Programs of the owner's that the daemon would use if agents could not replace them."""
    unused = list(filter(None, map(programs.why_not_used, ("gh", "uv"))))
    for why in unused:
        yield Finding("Programs", "note", why, "nothing, or install it for the whole system")
    if not unused:
        yield Finding("Programs", "good", "only those are started that agents cannot replace")


def _user_namespaces() -> bool:
    try:
        allowed = Path("/proc/sys/user/max_user_namespaces").read_text().strip()
    except OSError:
        return False
    switch = Path("/proc/sys/kernel/unprivileged_userns_clone")
    return allowed != "0" and (not switch.exists() or switch.read_text().strip() == "1")
