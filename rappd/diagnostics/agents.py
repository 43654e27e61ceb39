"""Checks of agents: their files, souls, variables, what waits for approval, and the sandbox that they run in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agents.brainstem.prompt import MAX_BYTES as MAX_SOUL_BYTES
from agents.contract.file_discovery import find_agent_files
from agents.contract.syntax import syntax_tree
from agents.programs import programs
from agents.runtimes.python.sandbox import landlock, seccomp
from agents.runtimes.python.sandbox.ssh_key_warning import can_use_ssh_keys
from agents.storage.text_file import SAVE_AS_UTF8, encoding_fault, fault_of
from rappd.cli.formatting import NOT_AS_ROOT, count, tilde
from rappd.diagnostics.finding import CheckContext, Finding
from rappd.settings.load import host_workspace
from rappd.tenants.workspace_variables import env_file_state
from twins.trust.quarantined_files import held_everywhere
from twins.trust.trust import Trust
from twins.workspace.listing import scan
from twins.workspace.workspace import TwinLayout, Workspace
from twins.workspace.workspace_env import FILE as ENV_FILE

_NAMED = 4


def check_agents(visit: CheckContext) -> Iterator[Finding]:
    """Reads the files without running them; a daemon that is running knows more."""
    if visit.health:
        faults = [one for one in visit.health["quarantined"] if not one["waits"]]
        for fault in faults:
            line = f" line {fault['line']}" if fault.get("line") else ""
            do = "fix and save" if fault["file"].startswith("services/") else "rappd agents list"
            yield Finding("Agents", "note", f"{fault['file']}{line}: {fault['reason']}", do)
        if not faults:
            yield Finding("Agents", "good", f"{len(visit.health['agents'])} ready")
        return
    settings = visit.settings
    workspace = Workspace.at(visit.home.brainstem, agents=settings.text("agents_path"))
    files = find_agent_files(workspace.agents, workspace.files)
    broken = 0
    for file in files:
        try:
            content = file.content()
        except OSError:  # it went away, or became a link
            continue
        try:
            syntax_tree(content)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken += 1
            if (fault := encoding_fault(content)) is not None:
                yield Finding("Agents", "note", f"{file.rel} {fault}", SAVE_AS_UTF8)
                continue
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            what = error.msg if isinstance(error, SyntaxError) else error
            yield Finding("Agents", "note", f"{file.rel}{line}: {what}", "fix and save")
    if not broken:
        what = f"{count(len(files), 'file')} of yours, read without fault" if files else "none of yours yet"
        yield Finding("Agents", "good", what)


def check_approvals(visit: CheckContext) -> Iterator[Finding]:
    """Code that came in eggs and that the owner has not approved; a ``.env`` is one of the variables' findings."""
    home = visit.home
    quarantine = Trust(home.root).quarantine
    found = held_everywhere(quarantine, host_workspace(home, visit.settings), TwinLayout(home.root))
    for twin, files in found:
        paths = [one.path for one in files if one.path != ENV_FILE]
        if paths:
            more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
            verb = "waits" if len(paths) == 1 else "wait"
            what = f"{twin.name if twin else 'brainstem'}: {', '.join(paths[:_NAMED])}{more} {verb} for your approval"
            option = f" --twin {twin.key[:12]}" if twin else ""
            yield Finding("Approvals", "note", what, f"read what waits, then: rappd agents approve{option}")


def check_souls(visit: CheckContext) -> Iterator[Finding]:
    """Souls in another encoding: they are used as well as they can be read."""
    home = visit.home
    workspaces = [("brainstem", host_workspace(home, visit.settings))]
    workspaces += [(twin.name, twin.workspace) for twin in scan(TwinLayout(home.root)).twins]
    for name, workspace in workspaces:
        with suppress(OSError):  # a link or a folder: the check of links names it
            content = workspace.files.read_if_there(workspace.soul, MAX_SOUL_BYTES)
            if (fault := fault_of(content or b"")) is not None:
                what = f"{name}: {workspace.soul.name} {fault}; what can be read of it is used"
                yield Finding("Soul", "note", what, SAVE_AS_UTF8)


def check_variables(visit: CheckContext) -> Iterator[Finding]:
    """The ``.env`` of the brainstem and of each twin: what agents do not get of it."""
    home = visit.home
    trust = Trust(home.root)
    workspaces = [("brainstem", "", host_workspace(home, visit.settings))]
    workspaces += [(twin.name, twin.key, twin.workspace) for twin in scan(TwinLayout(home.root)).twins]
    for name, key, workspace in workspaces:
        state = env_file_state(workspace, trust.may_run)
        if state.problem:
            yield Finding("Variables", "bad", f"{name}: {state.problem[0].rstrip('.')}", state.problem[1])
        elif state.waits_because:
            twin = f" --twin {key[:12]}" if key else ""
            what = f"{name}: its .env waits for approval, and agents have none of it"
            yield Finding(
                "Variables",
                "note",
                what,
                f"read {tilde(workspace.env_file)}, then: rappd agents approve .env{twin}",
            )
        if state.left_out:
            what = f"{name}: its .env sets what is never taken from it: {', '.join(state.left_out[:8])}"
            yield Finding("Variables", "note", what, f"remove it from {tilde(workspace.env_file)}")


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
