"""The service units: a hardened systemd user unit, and a launchd agent."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

from rappd.daemon.home import Home

LAUNCHD_LABEL = "org.rappd.daemon"

_SYSTEMD = """\
[Unit]
Description=rappd, this machine's brainstem
After=network.target

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} start --quiet
Environment={home}
Restart=on-failure
RestartSec=2
TimeoutStopSec=20
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
KeyringMode=private
TasksMax=2048

[Install]
WantedBy=default.target
"""

_LAUNCHD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>{label}</string>
  <key>ProgramArguments</key>
  <array><string>{program}</string><string>start</string><string>--quiet</string></array>
  <key>EnvironmentVariables</key><dict><key>RAPP_HOME</key><string>{home}</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>Umask</key><integer>63</integer>
</dict>
</plist>
"""


def systemd_path() -> Path:
    """The folder of systemd units of this account."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "systemd" / "user" / "rappd.service"


def systemd_unit(home: Home) -> str:
    """The unit's text.

    Workers build namespaces of their own by ``clone3``, which RestrictNamespaces= would take away whole;
    what needs a namespace around the daemon (ProtectSystem= and the like) would keep them from it too.
    """
    program = _systemd_quoted(_program().replace("$", "$$"))
    return _SYSTEMD.format(program=program, home=_systemd_quoted(f"RAPP_HOME={home.root}"))


def launchd_path() -> Path:
    """The folder of launchd agents of this account."""
    return Path.home() / "Library" / "LaunchAgents" / f"{LAUNCHD_LABEL}.plist"


def launchd_plist(home: Home) -> str:
    """The property list's text."""
    return _LAUNCHD.format(label=LAUNCHD_LABEL, program=escape(_program()), home=escape(str(home.root)))


def _program() -> str:
    return str(Path(sys.executable).parent / "rappd")


def _systemd_quoted(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return quoted if re.fullmatch(r"[\w/.=@:+,$-]+", quoted, re.ASCII) else f'"{quoted}"'
