"""The examination behind ``rappd doctor``: looks, starts nothing, changes nothing."""

from __future__ import annotations

import ast
import os
import shlex
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from agents import programs
from agents.discovery import find_agent_files
from agents.worker import landlock
from envelopes.problem import Problem
from rappd.cli.daemon import Answered, Daemon
from rappd.cli.peer_screens import trouble_of, way_out
from rappd.cli.phrases import count, size, tilde
from rappd.errors import Mistyped, NotRunning, RappdError
from rappd.home import Home
from rappd.local_models import local_urls
from rappd.offline import workspace_of
from rappd.ports import another, holder, is_free
from rappd.quarantine import Quarantine
from rappd.settings.doubts import doubts
from rappd.settings.load import Settings, unknown_names
from rappd.settings.write import nearest
from rappd.store.anchor import check as check_anchor
from rappd.store.anchor_file import NAME, AnchorFile
from rappd.store.catching_up import catch_up
from rappd.store.schema import VERSION, version_of
from rappd.workspace_variables import env_file_state
from twins.importer.holding import Held
from twins.listing import scan
from twins.places import TwinPlaces
from twins.refused_links import refused_links_of_home
from twins.workspace import Workspace

_ENOUGH_BYTES = 500_000_000
_ANSWER_SECONDS = 5.0
_VPNS = ("tun", "tap", "wg", "utun", "ppp", "tailscale", "zt")
_FROM_BACKUP = "stop rappd and put rappd.db back from a backup"


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


def examine(home: Home, looking_at: Callable[[str], None] = lambda about: None) -> list[Finding]:
    """Every finding, good ones included; a check that fails to look is a finding itself.

    ``looking_at`` is told each subject before it is looked at.
    """
    visit = _Visit(home)
    found: list[Finding] = []
    for about, check_it in _CHECKS:
        looking_at(about)
        try:
            found.extend(check_it(visit))
        except Problem as problem:
            found.append(Finding(about, "bad", str(problem).rstrip("."), problem.do))
        except OSError as error:
            what = f"cannot be looked at: {error.filename or ''} {error.strerror or error}".replace(
                ":  ", ": "
            )
            found.append(Finding(about, "bad", what, "look at the file's owner and rights"))
    return found


class _Visit:
    """What the checks share: the home, its settings, and what a daemon says if one answers."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.trouble: Mistyped | None = None
        try:
            self.settings = Settings.load(home)
        except Mistyped as problem:
            self.settings, self.trouble = Settings.without_files(), problem
        self.awake = Daemon(home).running()
        self.health: dict[str, Any] = {}
        self.status: dict[str, Any] = {}
        self.peers: dict[str, Any] = {}
        self.silence = ""
        if self.awake:
            try:
                daemon = Daemon(home, timeout=_ANSWER_SECONDS)
                self.health, self.status = daemon.get("/health"), daemon.get("/operator/status")
                self.peers = daemon.get("/peers")
            except NotRunning:
                self.awake = False
            except (Answered, RappdError) as problem:
                self.silence = str(problem).rstrip(".")


def _data(visit: _Visit) -> Iterator[Finding]:
    home = visit.home
    if not home.root.exists():
        yield Finding("Data", "note", f"{tilde(home.root)} does not exist yet", "rappd start")
        return
    free = shutil.disk_usage(home.root).free
    private = (home.root, home.keys, *sorted(home.keys.glob("*")), home.env_file, home.config, home.database)
    loose = [path for path in private if _others_may(path)]
    for path in loose:
        yield Finding(
            "Data", "bad", f"other accounts can read {tilde(path)}", f"chmod go= {shlex.quote(str(path))}"
        )
    if free < _ENOUGH_BYTES:
        yield Finding(
            "Data", "bad", f"{tilde(home.root)} is nearly full, {size(free)} left", "free some space"
        )
    elif not loose:
        yield Finding("Data", "good", f"{tilde(home.root)}, private, {size(free)} free")


def _links(visit: _Visit) -> Iterator[Finding]:
    """Links that an earlier version followed."""
    settings = visit.settings
    soul, agents = settings.text("soul_path"), settings.text("agents_path")
    host = Workspace.at(visit.home.brainstem, soul=soul, agents=agents)
    for link in refused_links_of_home(visit.home.root, host):
        yield Finding("Links", "note", link.text, link.do)


def _settings(visit: _Visit) -> Iterator[Finding]:
    home = visit.home
    if visit.trouble is not None:
        raise visit.trouble
    fits = True
    for name in unknown_names(home):
        fits = False
        near = nearest(name)
        do = f"did you mean `{near}`?" if near else "rappd config show"
        yield Finding("Settings", "note", f"{home.config.name} sets {name}, which nobody reads", do)
    for doubt in doubts(visit.settings):
        fits = False
        yield Finding("Settings", "note", f"{doubt.what}; {doubt.value.source} has something else", doubt.do)
    if fits:
        yield Finding("Settings", "good", tilde(home.config) if home.config.exists() else "defaults")


def _port(visit: _Visit) -> Iterator[Finding]:
    port = visit.settings.number("port")
    if visit.silence:
        yield Finding("Daemon", "bad", visit.silence, "`rappd stop`, then `rappd start`")
    elif visit.awake:
        yield Finding("Daemon", "good", f"awake on port {visit.status['port']}")
    elif is_free(port):
        yield Finding("Port", "good", f"{port} is free; rappd is not running")
    else:
        yield Finding(f"Port {port}", "bad", f"held by {holder(port)}", f"PORT={another(port)} rappd start")


def _key(visit: _Visit) -> Iterator[Finding]:
    if not (visit.home.keys / "identity.pem").exists():
        return
    try:
        yield Finding("Key", "good", f"this machine is {visit.home.identity().fingerprint[:4]}")
    except (ValueError, Problem):
        yield Finding("Key", "bad", "keys/identity.pem is damaged", "put it back from a backup")


def _store(visit: _Visit) -> Iterator[Finding]:
    path = visit.home.database
    if not path.exists():
        return
    # Without a log of unfinished writes nothing else is needed, and nothing is made beside the file.
    waiting = path.with_name(f"{path.name}-wal").exists()
    where = f"{path.absolute().as_uri()}?mode=ro{'' if waiting else '&immutable=1'}"
    connection = sqlite3.connect(where, uri=True, timeout=2)
    try:
        catch_up(path, connection)
        anchor = _anchor_problems(visit, connection)
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        records = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
    except sqlite3.DatabaseError as error:
        yield Finding("Record", "bad", f"rappd.db cannot be read: {error}", _FROM_BACKUP)
        return
    finally:
        connection.close()
    if verdict == "ok":
        yield Finding("Record", "good", f"{count(records, 'record')}; to check each: rappd threads verify")
        for what in anchor:
            yield Finding("Record", "bad", what, "rappd threads verify")
    else:
        yield Finding("Record", "bad", f"rappd.db is damaged: {' '.join(verdict.split())}", _FROM_BACKUP)


def _anchor_problems(visit: _Visit, db: sqlite3.Connection) -> list[str]:
    """How the event log contradicts its newest anchor; a daemon that is awake knows more."""
    if visit.status:
        return list(visit.status["anchor"]["problems"])
    if not (visit.home.keys / "identity.pem").exists() or version_of(db) < VERSION:
        return []
    try:
        with AnchorFile(visit.home.database.with_name(NAME), traceless=True) as file:
            return check_anchor(db, file, visit.home.identity().public).problems
    except Problem as problem:
        return [str(problem).rstrip(".")]


def _agents(visit: _Visit) -> Iterator[Finding]:
    """Reads the files without running them; a daemon that is awake knows more."""
    if visit.health:
        faults = visit.health["quarantined"]
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
            ast.parse(file.content())
        except OSError:  # it went away, or became a link
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            broken += 1
            line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            what = error.msg if isinstance(error, SyntaxError) else error
            yield Finding("Agents", "note", f"{file.rel}{line}: {what}", "fix and save")
    if not broken:
        what = f"{count(len(files), 'file')} of yours, read without fault" if files else "none of yours yet"
        yield Finding("Agents", "good", what)


def _variables(visit: _Visit) -> Iterator[Finding]:
    """The ``.env`` of the brainstem and of each twin: what agents do not get of it."""
    home = visit.home
    held = Held(home.held, home.root)
    workspaces = [("brainstem", "", workspace_of(home, visit.settings))]
    workspaces += [(twin.name, twin.key, twin.workspace) for twin in scan(TwinPlaces(home.root)).twins]
    for name, key, workspace in workspaces:
        state = env_file_state(workspace, Quarantine(held, workspace))
        if state.problem:
            yield Finding("Variables", "bad", f"{name}: {state.problem[0].rstrip('.')}", state.problem[1])
        elif state.held:
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


def _thinking(visit: _Visit) -> Iterator[Finding]:
    settings, home = visit.settings, visit.home
    for server in visit.status.get("local_models", {}).get("refused", ()):
        what = f"{server} is an agent's process that poses as a model server; it is not used"
        yield Finding("Thinking", "bad", what, "remove the agent that you do not know, then restart rappd")
    provider = visit.health.get("provider", {})
    if provider.get("state") == "ready":
        yield Finding("Thinking", "good", ", ".join(filter(None, (provider["name"], provider["model"]))))
    elif settings.on("llm_fake"):
        yield Finding("Thinking", "note", "a scripted model answers (LLM_FAKE)", "unset LLM_FAKE")
    elif settings.text("provider.url"):
        yield from _model_server(settings.text("provider.url"))
    elif settings.text("azure.endpoint"):
        yield Finding("Thinking", "good", f"Azure OpenAI, {settings.text('azure.deployment')}")
    elif offered := visit.status.get("local_models", {}).get("offered"):
        what = f"{offered['name']} ({offered['model']}) answers at {offered['where']} and waits for your yes"
        yield Finding("Thinking", "note", what, "rappd models use local")
    elif not visit.status and (found := _local_model(settings)):
        yield found
    elif settings.text("github.token") or (home.keys / "github_token.json").exists():
        yield Finding("Thinking", "good", "GitHub Copilot, by the token that is there")
    else:
        do = "start Ollama, or rappd config set provider.url URL"
        yield Finding("Thinking", "note", "no model answers; offline brain", do)


def _model_server(url: str) -> Iterator[Finding]:
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.hostname and _listens(parts.hostname, port):
        yield Finding("Thinking", "good", f"{parts.hostname} answers on port {port}")
    else:
        do = "start it, or rappd config set provider.url URL"
        yield Finding("Thinking", "bad", f"nothing answers at {url}", do)


def _sandbox(visit: _Visit) -> Iterator[Finding]:
    kind = ""
    if visit.status:
        kind = str(visit.status["sandbox"]["kind"])
    elif sys.platform == "linux":
        namespaces = os.geteuid() == 0 or _user_namespaces()
        kind = "mount namespace" if namespaces else ("landlock" if landlock.version() else "none")
    if not kind or kind == "none":
        what = "agents run as you: this system cannot hide keys and tokens from them, nor keep code from them"
        yield Finding("Workers", "note", what, "run only agents that you read, or allow user namespaces")
        return
    memory = str(visit.status["sandbox"].get("memory", "")) if visit.status else ""
    told = f"; memory: {memory}" if memory else ""
    yield Finding("Workers", "good", f"agents cannot read keys and tokens, nor write programs ({kind}){told}")
    if visit.settings.on("agents.may_write_code"):
        what = "agents may write agent files, soul.md and .env of their workspace (agents.may_write_code)"
        yield Finding("Workers", "note", what, "rappd config set agents.may_write_code off, then restart")


def _door(visit: _Visit) -> Iterator[Finding]:
    """The door for other machines; a taken port never stops a start."""
    wanted = visit.settings.number("peers.port")
    open_at = visit.status.get("machines", {}).get("port", 0)
    if not visit.settings.on("peers.door"):
        yield Finding("Door", "good", "closed for other machines")
    elif visit.status and not open_at:
        what = f"the door for other machines cannot open at {visit.settings.text('peers.address')}"
        yield Finding("Door", "bad", what, "`rappd logs` says why")
    elif visit.status and open_at != wanted:
        what = f"other machines find this one at port {open_at}: {wanted} was taken"
        yield Finding("Door", "note", what, f"nothing, or rappd config set peers.port {open_at}")
    elif visit.status:
        yield Finding("Door", "good", f"open on port {open_at}; strangers may only say hello")
    elif is_free(wanted):
        yield Finding("Door", "good", f"port {wanted} is free for other machines")
    else:
        what = f"port {wanted} for other machines is held by {holder(wanted)}; another will be used"
        yield Finding("Door", "note", what, f"nothing, or rappd config set peers.port {another(wanted)}")


def _nearby(visit: _Visit) -> Iterator[Finding]:
    from neighborhoods.discovery.interfaces import interfaces, multicast_trouble

    settings = visit.settings
    if not (settings.on("peers.nearby") and settings.on("peers.door")):
        yield Finding("Nearby", "good", "this machine is not announced")
        return
    told = [rung for rung in visit.peers.get("rungs", ()) if rung["rung"] == "nearby"]
    seen = sum(rung["found"] for rung in told)
    found = interfaces(loopback=settings.on("peers.loopback"))
    vpn = "" if seen else _vpn_in_between([(one.name, one.addresses) for one in found])
    # whoever is awake has tried it; a link that says no and yet brings machines does no harm
    trouble = "" if seen else multicast_trouble(found) or next((rung["trouble"] for rung in told), "")
    if vpn:
        do = "allow local network in it, or rappd peers add ADDRESS"
        yield Finding("Nearby", "note", f"a VPN ({vpn}) hides this machine", do)
    elif trouble:
        what = trouble[0].lower() + trouble[1:].rstrip(".")
        yield Finding("Nearby", "note", what, "join a network, or rappd peers add ADDRESS")
    else:
        ways = [one for one in found if not multicast_trouble((one,))]
        where = ", ".join(one.name for one in ways or found)
        heard = f"; {count(seen, 'machine')} seen" if visit.peers else ", once rappd runs"
        yield Finding("Nearby", "good", f"announced on {where}{heard}")


def _vpn_in_between(found: Sequence[tuple[str, Sequence[str]]]) -> str:
    """The VPN that takes what is meant for everybody nearby, or the only link there is; "" for none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("224.0.0.251", 5353))  # sends nothing; asks the kernel which link it would take
            own = asking.getsockname()[0]
        except OSError:
            own = ""
    private = [name for name, addresses in found if name.startswith(_VPNS)]
    taken = [name for name, addresses in found if own in addresses and name in private]
    return (taken or (private if len(private) == len(found) else []) or [""])[0]


def _peers(visit: _Visit) -> Iterator[Finding]:
    """Peers that answer and are not talked to, and strangers who go by a peer's name."""
    rows = [row for row in visit.peers.get("peers", ()) if not row["legacy"]]
    paired = [row for row in rows if row["paired"]]
    odd = 0
    for row in paired:
        if trouble := trouble_of(row):
            odd += 1
            yield Finding("Peers", "bad", trouble.rstrip("."), way_out(row["name"], trouble))
    names = {row["called"]: row for row in paired}
    for row in rows:
        if not row["paired"] and (peer := names.get(row["name"])) is not None:
            odd += 1
            what = f"{peer['name']} is {peer['short']}, yet {row['short']} calls itself so too"
            yield Finding("Peers", "note", what, way_out(peer["name"], "key"))
    if paired and not odd:
        here = sum(row["presence"] == "here" for row in paired)
        yield Finding("Peers", "good", f"{len(paired)} paired, {here} here")


def _programs(visit: _Visit) -> Iterator[Finding]:
    """Programs of the owner's that the daemon would use if agents could not replace them."""
    unused = list(filter(None, map(programs.why_not_used, ("gh", "uv"))))
    for why in unused:
        yield Finding("Programs", "note", why, "nothing, or install it for the whole system")
    if not unused:
        yield Finding("Programs", "good", "only those are started that agents cannot replace")


def _python(visit: _Visit) -> Iterator[Finding]:
    yield Finding("Python", "good", ".".join(map(str, sys.version_info[:3])))


def _user_namespaces() -> bool:
    try:
        allowed = Path("/proc/sys/user/max_user_namespaces").read_text().strip()
    except OSError:
        return False
    switch = Path("/proc/sys/kernel/unprivileged_userns_clone")
    return allowed != "0" and (not switch.exists() or switch.read_text().strip() == "1")


def _local_model(settings: Settings) -> Finding | None:
    """The model server of this machine that would be used, or waits for a yes, once rappd runs."""
    import asyncio

    from agents.thinking import local_servers

    found = asyncio.run(local_servers.find(local_urls(settings), within=1.0))
    accepted = settings.text("provider.local_server")
    for one in found:
        if one.label == accepted or settings.choice("provider.local") == "on":
            return Finding("Thinking", "good", f"{one.name}, {one.models[0]}, answers on this machine")
    if not found:
        return None
    what = f"{found[0].name} ({found[0].models[0]}) answers on this machine and waits for your yes"
    return Finding("Thinking", "note", what, "rappd start, then rappd models use local")


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except (OSError, UnicodeError):
        return False


def _others_may(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & 0o077)


_CHECKS: tuple[tuple[str, Callable[[_Visit], Iterator[Finding]]], ...] = (
    ("Data", _data),
    ("Settings", _settings),
    ("Links", _links),
    ("Port", _port),
    ("Key", _key),
    ("Record", _store),
    ("Agents", _agents),
    ("Variables", _variables),
    ("Thinking", _thinking),
    ("Workers", _sandbox),
    ("Programs", _programs),
    ("Door", _door),
    ("Nearby", _nearby),
    ("Peers", _peers),
    ("Python", _python),
)
