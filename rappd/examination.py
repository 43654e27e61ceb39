"""The examination behind ``rappd doctor``: looks, starts nothing, changes nothing."""

from __future__ import annotations

import ast
import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agents.discovery import find_agent_files
from agents.worker import landlock
from envelopes.problem import Problem
from rappd.cli.daemon import Daemon
from rappd.home import Home
from rappd.offline import workspace_of
from rappd.ports import holder, is_free
from rappd.settings.load import Settings

_ENOUGH_BYTES = 500 << 20
_LOCAL_MODELS = {11434: "Ollama", 8080: "llama.cpp", 8000: "vLLM", 1234: "LM Studio"}


@dataclass(slots=True, frozen=True)
class Finding:
    """One row: what was looked at, the verdict, what is so, and what to do about it."""

    about: str
    verdict: Literal["good", "note", "bad"]
    what: str
    do: str = ""

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {"about": self.about, "verdict": self.verdict, "what": self.what, "do": self.do}


def examine(home: Home) -> list[Finding]:
    """Every finding, good ones included; a check that fails to look is a finding itself."""
    found: list[Finding] = []
    for about, check in _CHECKS:
        try:
            found.extend(check(home))
        except Problem as problem:
            found.append(Finding(about, "bad", str(problem), problem.do))
        except OSError as error:
            found.append(
                Finding(about, "bad", f"cannot be looked at: {error}", "Check the file's owner and rights.")
            )
    return found


def _data(home: Home) -> Iterator[Finding]:
    if not home.root.exists():
        yield Finding("Data", "note", f"{home.root} does not exist yet", "rappd start")
        return
    free = shutil.disk_usage(home.root).free
    shown = f"{free / 1e9:.0f} GB free"
    loose = [path for path in (home.root, home.keys, home.env_file, home.database) if _others_read(path)]
    if loose:
        yield Finding("Data", "bad", f"other accounts can read {loose[0]}", f"chmod go= {loose[0]}")
    elif free < _ENOUGH_BYTES:
        yield Finding("Data", "bad", f"{home.root} is nearly full, {free >> 20} MB left", "Free some space.")
    else:
        yield Finding("Data", "good", f"{_tilde(home.root)}, private, {shown}")


def _settings(home: Home) -> Iterator[Finding]:
    Settings.load(home)
    yield Finding("Settings", "good", str(home.config) if home.config.exists() else "defaults")


def _port(home: Home) -> Iterator[Finding]:
    port = Settings.load(home).number("port")
    if Daemon(home).running():
        yield Finding("Daemon", "good", "awake")
    elif is_free(port):
        yield Finding("Port", "good", f"{port} is free; rappd is not running")
    else:
        other = port + 100 if port + 100 < 65536 else 7171
        yield Finding(f"Port {port}", "bad", f"held by {holder(port)}", f"PORT={other} rappd start")


def _key(home: Home) -> Iterator[Finding]:
    if (home.keys / "identity.pem").exists():
        yield Finding("Key", "good", f"this machine is {home.identity().fingerprint[:4]}")


def _store(home: Home) -> Iterator[Finding]:
    if not home.database.exists():
        return
    try:
        with sqlite3.connect(f"file:{home.database}?mode=ro", uri=True) as connection:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            count = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
    except sqlite3.DatabaseError as error:
        yield Finding(
            "Record", "bad", f"the store cannot be read: {error}", "Restore rappd.db from a backup."
        )
        return
    if verdict == "ok":
        yield Finding("Record", "good", f"{count} records; to check each: rappd threads verify")
    else:
        yield Finding("Record", "bad", f"the store is damaged: {verdict}", "Restore rappd.db from a backup.")


def _agents(home: Home) -> Iterator[Finding]:
    """Reads the files without running them; a daemon that is awake knows more."""
    daemon = Daemon(home)
    if daemon.running():
        faults = daemon.get("/health")["quarantined"]
        for fault in faults:
            line = f" line {fault['line']}" if fault.get("line") else ""
            yield Finding("Agents", "note", f"{fault['file']}{line}: {fault['reason']}", "rappd agents list")
        if not faults:
            yield Finding("Agents", "good", f"{len(daemon.get('/health')['agents'])} ready")
        return
    folder = workspace_of(home, Settings.load(home)).agents
    files = find_agent_files(folder) if folder.is_dir() else []
    broken = 0
    for file in files:
        try:
            ast.parse(file.path.read_bytes())
        except (SyntaxError, ValueError) as error:
            broken += 1
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) else ""
            what = error.msg if isinstance(error, SyntaxError) else error
            yield Finding("Agents", "note", f"{file.rel}{line}: {what}", "Fix the file.")
    if not broken:
        yield Finding("Agents", "good", f"{len(files)} files of yours, read without fault")


def _thinking(home: Home) -> Iterator[Finding]:
    settings = Settings.load(home)
    daemon = Daemon(home)
    if daemon.running():
        provider = daemon.get("/health")["provider"]
        if provider["state"] == "ready":
            yield Finding("Thinking", "good", f"{provider['name']}, {provider['model']}")
            return
    if settings.on("llm_fake"):
        yield Finding("Thinking", "note", "a scripted model answers (LLM_FAKE)", "Unset LLM_FAKE.")
    elif settings.text("provider.url"):
        url = settings.text("provider.url")
        yield from _model_server(url)
    elif settings.text("azure.endpoint"):
        yield Finding("Thinking", "good", f"Azure OpenAI, {settings.text('azure.deployment')}")
    elif (found := _local_model()) and settings.on("provider.local"):
        yield Finding("Thinking", "good", f"{found} answers on this machine")
    elif settings.text("github.token") or (home.keys / "github_token.json").exists():
        yield Finding("Thinking", "good", "GitHub Copilot, by the token that is there")
    else:
        yield Finding(
            "Thinking",
            "note",
            "no model answers; offline brain",
            "start Ollama, or rappd config set provider.url URL",
        )


def _model_server(url: str) -> Iterator[Finding]:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.hostname and _listens(parts.hostname, port):
        yield Finding("Thinking", "good", f"{parts.hostname} answers on port {port}")
    else:
        yield Finding("Thinking", "bad", f"nothing answers at {url}", "rappd config set provider.url URL")


def _sandbox(home: Home) -> Iterator[Finding]:
    daemon = Daemon(home)
    kind = ""
    if daemon.running():
        report = daemon.get("/operator/status")["sandbox"]
        kind = str(report["kind"])
    elif sys.platform == "linux":
        namespaces = os.geteuid() == 0 or _user_namespaces()
        kind = "mount namespace" if namespaces else ("landlock" if landlock.version() else "none")
    if kind and kind != "none":
        yield Finding("Workers", "good", f"agents cannot read keys and tokens ({kind})")
    else:
        yield Finding(
            "Workers",
            "note",
            "agents run as you: this system cannot hide keys and tokens from them",
            "Run only agents that you read, or allow user namespaces.",
        )


def _python(home: Home) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", "good", version)


def _user_namespaces() -> bool:
    try:
        allowed = Path("/proc/sys/user/max_user_namespaces").read_text().strip()
    except OSError:
        return False
    switch = Path("/proc/sys/kernel/unprivileged_userns_clone")
    return allowed != "0" and (not switch.exists() or switch.read_text().strip() == "1")


def _local_model() -> str:
    return next((name for port, name in _LOCAL_MODELS.items() if _listens("127.0.0.1", port)), "")


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=0.5):
            return True
    except OSError:
        return False


def _others_read(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & 0o077)


def _tilde(path: Path) -> str:
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home) :]}" if text.startswith(home) else text


_CHECKS: tuple[tuple[str, Callable[[Home], Iterator[Finding]]], ...] = (
    ("Data", _data),
    ("Settings", _settings),
    ("Port", _port),
    ("Key", _key),
    ("Record", _store),
    ("Agents", _agents),
    ("Thinking", _thinking),
    ("Workers", _sandbox),
    ("Python", _python),
)
