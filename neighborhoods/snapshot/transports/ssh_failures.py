"""Turns what ``ssh`` and the far side's tar complain of into one sentence and what to do."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from neighborhoods.errors import (
    MemberDiskFullError,
    MemberError,
    MemberRefusedError,
    MemberUnreachableError,
)
from neighborhoods.snapshot.transports.ssh_destination import SshDestination
from twins.fs.untrusted_names import shown

_FULL = re.compile(r"No space left on device|Disk quota exceeded|File too large", re.IGNORECASE)
_CHANGED = re.compile(r"IDENTIFICATION HAS CHANGED|host key.*has changed|revoked", re.IGNORECASE)
_KNOWN_AS = re.compile(r"^Host key for (\S+) has changed", re.MULTILINE)
_KNOWN_IN = re.compile(r"^Offending \S+ key in (.+):[0-9]+\r?$", re.MULTILINE)
_NOISE = re.compile(r"^(?:\s*|@+.*|Warning: Permanently added .*|Connection to .* closed\.?)$")


def ssh_failure(member: str, destination: SshDestination, errors: str) -> MemberError:
    """The error for an ``ssh`` that failed by itself: its exit code is 255."""
    if _CHANGED.search(errors):
        return _changed(member, destination, errors)
    for pattern, make in _CAUSES:
        if pattern.search(errors):
            return make(member, destination)
    reason = last_line(errors)
    return MemberUnreachableError(
        f"{member} cannot be reached by SSH{f': {reason}' if reason else ''}.",
        do=f"Look at it: ssh {destination}",
    )


def far_failure(member: str, what: str, errors: str) -> MemberError:
    """The error for a command that failed on the far side."""
    if _FULL.search(errors):
        return MemberDiskFullError(f"{member}'s disk is full; {what}.", do="Free space there, rerun.")
    reason = last_line(errors)
    return MemberError(
        f"{member}: {what}{f': {reason}' if reason else ''}.", do="Look at it there, then rerun."
    )


def last_line(errors: str) -> str:
    """The last line that says something, fit to be shown, without its full stop."""
    lines = [line for line in errors.splitlines() if not _NOISE.match(line)]
    return shown(lines[-1].strip()).rstrip(".") if lines else ""


def _changed(member: str, destination: SshDestination, errors: str) -> MemberError:
    return MemberRefusedError(
        f"{member} answers with another SSH host key than the known one; nothing was sent.",
        do=f"Reinstalled? {_forget(destination, errors)}, then ssh {destination} once. Else keep away.",
    )


def _unknown(member: str, destination: SshDestination) -> MemberError:
    return MemberRefusedError(
        f"{member}'s SSH host key is not known here; nothing was sent.",
        do=f"Connect once by hand and compare the key: ssh {destination}",
    )


def _denied(member: str, destination: SshDestination) -> MemberError:
    return MemberRefusedError(
        f"{member} lets nobody in without a password, and none is ever asked for here.",
        do=f"Give it your key: ssh-copy-id {destination} (or load it: ssh-add)",
    )


def _no_such_host(member: str, destination: SshDestination) -> MemberError:
    return MemberUnreachableError(
        f"{member}: no machine is called {destination.host}.", do="Correct ssh_host in peers.json."
    )


def _no_server(member: str, destination: SshDestination) -> MemberError:
    return MemberUnreachableError(
        f"{member} is there, and takes no SSH connections.", do="Switch on remote login there, rerun."
    )


def _no_answer(member: str, _destination: SshDestination) -> MemberError:
    return MemberUnreachableError(f"{member} does not answer.", do="Wake it, rerun.")


def _cut(member: str, _destination: SshDestination) -> MemberError:
    return MemberUnreachableError(f"The connection to {member} broke.", do="Rerun; it goes on there.")


def _configuration(member: str, destination: SshDestination) -> MemberError:
    return MemberError(
        f"SSH does not like its own settings here, so {member} was not asked.",
        do=f"See why: ssh -G {destination}",
    )


def _forget(destination: SshDestination, errors: str) -> str:
    """The command that forgets the old key: as ``ssh`` knows the machine, which may be called otherwise here."""
    name, file = _KNOWN_AS.search(errors), _KNOWN_IN.search(errors)
    known = f"[{destination.host}]:{destination.port}" if destination.port else destination.host
    words = ["ssh-keygen", "-R", name[1] if name and name[1].isprintable() else known]
    if file and file[1].isprintable() and Path(file[1]) != Path("~/.ssh/known_hosts").expanduser():
        words += ["-f", file[1]]
    return shlex.join(words)


_CAUSES = (
    (re.compile(r"Host key verification failed|host key is known"), _unknown),
    (re.compile(r"Permission denied \(|Too many authentication failures|Authentication failed"), _denied),
    (re.compile(r"Could not resolve hostname"), _no_such_host),
    (re.compile(r"Connection refused"), _no_server),
    (re.compile(r"timed out|No route to host|unreachable|Host is down|banner exchange", re.IGNORECASE), _no_answer),
    (re.compile(r"Bad configuration option|Bad owner or permissions|terminating, [0-9]+ bad"), _configuration),
    (
        re.compile(r"not responding|Broken pipe|closed by|reset by peer|Connection closed|mux_client|master"),
        _cut,
    ),
)  # fmt: skip
