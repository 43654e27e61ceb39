"""Writes what mirrors the code: pages of this folder, and how the page and the command line ask for operations.

    python docs/make_reference.py [FOLDER]

Run it after changing errors, settings, routes, operations or commands; the tests compare with what it writes. The words
for error codes stand in ``error_words.toml``. FOLDER (this one, if left out) gets errors.md, settings.md, routes.md and
cli.md; commands.json and operations.js go to the page, operation_paths.py to the command line.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from aiohttp import web

import rappd.listeners
from envelopes.errors import ReportableError
from rappd.cli.app import rappd as command
from rappd.features.features import all_operations
from rappd.features.operation import Download, Operation, Stream
from rappd.listeners.federation.operation_routes import FEATURES as OF_PEERS
from rappd.listeners.tether_listener import FEATURES as OF_PHONES
from rappd.settings.registry import OTHER_SECRETS, SETTINGS, Setting

FLOORS = ("envelopes", "agents", "twins", "neighborhoods", "rappd")

_WORDS = tomllib.loads(Path(__file__).with_name("error_words.toml").read_text(encoding="utf-8"))
DO: dict[str, str] = _WORDS["do"]
DO = {
    "unanswered": "Connect a model, or see to what failed; then let the workflow go on.",
    "download": "The text has Ollama's words; try again, what has arrived is kept.",
    "no_model_calls_left": "Wait for tomorrow, or allow more: `rappd config set timers.model_calls`.",
    "webhook_signature": "Sign the body with the secret that `rappd webhooks add --signed` printed.",
    "no_moment": "Say the time another way: “tomorrow at 9”, “in 20 minutes”, “every weekday at 7”.",
    "model_server": "The text says what is wrong with the server; nothing was saved.",
    "unrecorded": "Do what the message says; the answer then comes by itself, and the same `turn_id` gets it.",
    "asked_elsewhere": "Ask again in the session that is open now.",
    "session_closed": "Start a new one: `rappd sessions open`.",
    "session_too_large": "Export it as lines: `rappd sessions export --format jsonl`.",
    "code_expired": "Ask for a new QR code: `rappd pair`.",
    "no_such_device": "`rappd devices list` names them.",
    "tether": "The text says more; `rappd logs` has the rest.",
    "tether_unavailable": "Do what the message says; `rappd pair` again.",
    "other_certificate": "Open the page again where WebRTC works in the browser that was paired; else pair it anew.",
    "xml_refused": "Send elements and text alone: no document type, no entity, no processing instruction.",
    "unknown_thread": "Send an empty `<thread/>` to begin a conversation; the reply names it.",
    "wrong_code": "Wait for the authenticator's next code; each counts once.",
    "code_ban": "Wait as long as the message says; from another address it can be tried at once.",
    "unknown_device": "Pair the phone anew: `rappd pair`.",
    "a2a": "The text says what A2A 1.0 takes here; [the wire](wire.md#a2a) has all of it.",
    "agent": "The text says more; `rappd logs` has the rest.",
    "agent_raised": "Look at the line in the agent's file, fix and save; it reloads by itself.",
    "ambiguous": "Type more of the name or id.",
    "away": "Nothing: a call waits and goes by itself. `rappd peers list` shows who is here.",
    "bad_anchor": "Update rappd on the other machine, or look why its event log was signed by another key.",
    "bad_address": "Write it as HOST or HOST:PORT.",
    "bad_body": "Send what [the route](routes.md) takes.",
    "bad_form": "Say in the file what the message names.",
    "bad_organism": "`rappd organism check` says each line; the version before works on.",
    "bad_capability": "Type what the message proposes.",
    "bad_cartridge": "Get the cartridge again from its maker.",
    "bad_certificate": "Update rappd there, or pair it anew.",
    "bad_code": "Type it as the other machine shows it: 417-copper-otter-violin.",
    "bad_egg": "Get the egg again. Nothing was written.",
    "member": "Do what the message says, then rerun; what was done stays.",
    "unstable_member": "Stop the twin there, or try again when it is quiet.",
    "bad_member_stream": "Try again; if it happens again, look what runs on that machine.",
    "member_too_large": "Look there for what is so large, or raise the limit.",
    "member_unreachable": "Wake it or look at the network, then rerun.",
    "member_refused": "Do what the message says: it names the command that shows why.",
    "member_disk_full": "Free space on that machine, rerun.",
    "member_busy": "Wait until the other snapshot is done, then rerun.",
    "no_such_snapshot": "`rappd neighborhood snapshots` lists them; or give the file's path.",
    "bad_snapshot_name": "Take a name without slashes and signs that Windows allows in no file name.",
    "not_a_snapshot": "Hatch it with `rappd egg hatch`.",
    "partial_snapshot": "Do what the message says; the next one tries again, or `rappd neighborhood snapshot`.",
    "drill_untried": "Make room on this machine, then `rappd neighborhood drill NAME`.",
    "drill_failed": "`rappd neighborhood drill NAME` says which file; take another.",
    "snapshot_running": "Wait until the other snapshot or restore is done, then rerun.",
    "bad_estate": "Put a good `estate.json` there, or make a new one: `rappd estate rebuild`.",
    "not_in_estate": "`rappd estate show` lists what is in it.",
    "bad_neighborhood": "Get the neighborhood's egg again, or do what the text says.",
    "no_neighborhood": "`rappd neighborhood list` names them.",
    "neighborhood_conflict": "Choose another name, or type the beginning of its key.",
    "bad_invite": "Ask for a new invite.",
    "invite_expired": "Ask for a new invite.",
    "no_such_member": "`rappd neighborhood members` names them.",
    "bad_member": "Correct the entry in `peers.json`.",
    "bad_offer": "Open the phone's page anew.",
    "offer_too_long": "Open the phone's page anew.",
    "bad_file": "Fix the file at the line named, or get it again.",
    "bad_filter": "Say the clauses as the text names them: `rappd twins archive --filter stopped_for_days=30`.",
    "bad_fingerprint": "Copy the whole fingerprint.",
    "bad_image": "Get the cartridge again, or go on from an earlier one.",
    "bad_introduction": "Update rappd on both machines, then try again.",
    "bad_key": "Restore the `keys` folder from a backup.",
    "bad_lispy_agent": "Correct the file where the text says, and save; it reloads by itself.",
    "bad_name": "Use one line of readable text; a kind is lower case.",
    "bad_pairing": "Start anew on both machines.",
    "bad_peers_file": "Correct the entry that the text names; the others work meanwhile.",
    "bad_rappid": "Take the rappid as `rappd twins show` tells it.",
    "bad_rapplication": "Correct the bundle as the text says. Nothing of it was installed.",
    "bad_sealing_key": "Restore the `keys` folder from a backup, or pair that machine anew.",
    "bad_signature": "Set the clock right, and send the record as it was signed.",
    "bad_token": "Ask the owner who gave the permission for a new one.",
    "bad_workflow": "Correct the field that the text names, and save.",
    "foreign_workflow": "Read it (`rappd workflows show`), then `rappd agents approve` its file.",
    "no_such_workflow": "`rappd workflows list` names them, and what runs.",
    "workflow_state": "`rappd workflows list` tells how far it is; do what the text says.",
    "bad_value": "Hand over text, numbers, true, false, lists and objects with text keys.",
    "call_timeout": "Ask again, or raise `agents.timeout`.",
    "callback_refused": "Approve the file (`rappd agents approve`), or raise `agents.model_calls`.",
    "cancelled": "Nothing: ask again when you want it.",
    "changed_since": "Keep the changed files elsewhere first. Nothing was touched.",
    "changed_on_disk": "Look at both texts, choose one, and save again. Nothing was written.",
    "memories_unreadable": "Look at the file that the message names; `rappd doctor`.",
    "memory_changed": "Look at the memory as it is now, then change it again.",
    "no_such_memory": "Look at the list again: an agent or somebody else deleted it.",
    "conflict": "Look at what is there (`rappd status`), then try again.",
    "disk_full": "Free some disk space, then run it again. Everything is as it was.",
    "egg_too_large": "Carry it by hand, on a stick.",
    "egg_token": "Try again from the conversation; the owner may have taken the right back.",
    "envelope": "Send a record as [wire.md](wire.md) has it.",
    "failed": "`rappd logs` says what happened.",
    "gone": "`rappd status` tells whether it still runs; the question was recorded.",
    "graph_refused": "Give each node its own name, and take circles out.",
    "home_taken": "`rappd open`, or `rappd stop` before another start.",
    "hostile_egg": "Don't use that egg.",
    "interrupted": "Ask again if it does no harm to do it twice.",
    "key_changed": "Reinstalled? Revoke it and pair anew; else keep away.",
    "lispy_failed": "Correct the program, or ask for less at once.",
    "login_failed": "Check the connection, then start the sign-in again.",
    "login_fixed": "Unset `GITHUB_TOKEN`, then switch.",
    "loop": "Ask the other machine directly.",
    "malformed": "Correct the key that the text names.",
    "media_type": "Send the file as multipart/form-data, in the field `file`.",
    "method": "See [routes.md](routes.md) for the methods of a path.",
    "mistyped": "Add `--help` to the command.",
    "model_unavailable": "Start the model server, or set `provider.url`. The turn was answered without it.",
    "picture_refused": "Choose a model that sees pictures, or describe the picture in words.",
    "needs_yes": "Say yes, or add `--yes` where nobody can be asked.",
    "neighborhood": "The text says what to do.",
    "no_agent": "`rappd peers show NAME` lists what it shares.",
    "rpc_refused": "The text says which part of the message to change; [wire.md](wire.md#mcp) has the shapes.",
    "no_such_event": "`rappd sessions open FILE` shows the egg; the text says how far its events go.",
    "no_pairing": "Start anew on both machines: `rappd peers pair`.",
    "no_peer": "`rappd peers list` shows who there is.",
    "no_such_agent": "`rappd agents list` shows what there is.",
    "no_such_checkpoint": "`rappd twins checkpoints NAME` lists them; `rappd twins checkpoint NAME` makes one.",
    "no_such_file": "`rappd agents list` shows what there is.",
    "no_such_hatching": "Take the receipt's name as the hatching told it.",
    "no_such_twin": "`rappd twins list` shows who lives here; `--archived` who is set aside.",
    "not_for_this_machine": "Ask for an egg that is sealed for this machine.",
    "not_found": "List what there is; the text names the command.",
    "not_in_outbox": "`rappd outbox list` shows what waits.",
    "not_now": "Nothing: it is tried again by itself.",
    "late_signature": "Load the page anew; it signs by the daemon's clock then.",
    "not_signed": "Open the page by the link of `rappd open`; only that browser's key signs for its session.",
    "used_signature": "Look what came of the request; it was done when it came first.",
    "not_operator": "`rappd open` prints a link that makes the page its operator's.",
    "not_paired": "Pair the machines: `rappd peers pair NAME` on both.",
    "home_unusable": "Do what the text says: it names what is in the way, and the account.",
    "not_running": "`rappd start`",
    "not_writable": "Look at the permissions of what the text names, then run it again.",
    "not_yet": "Wait, or ask again later.",
    "outbox_conflict": "Type more of the id; what is over stays over.",
    "pairing_busy": "Wait a minute, or end the other pairings.",
    "pairing_stopped": "Try once more; if the words differ again, change the network.",
    "path_refused": "Use a name inside the data folder.",
    "peer_conflict": "The text says what is in the way.",
    "peer_failed": "The text is the other machine's; its log says more.",
    "peer_refused": "Its owner can allow it: `rappd peers scopes` there.",
    "plan_changed": "Look at the new plan, then say yes to that.",
    "protocol_off": "Switch it on: `rappd config set programs.openai on`, or the one it names.",
    "missing_result": "Send the results of all calls that the answer had, together.",
    "no_model_server": "Configure a model server that does that, or ask one by itself: `rappd models connect`.",
    "no_such_call": "Ask again from the beginning: nobody waits for that result, or it is another caller's.",
    "tools_need_model": "Connect a model, or leave `tool_choice` out.",
    "unsupported": "Leave out the field that the text names.",
    "port_taken": "Stop the program it names, or choose another port: `PORT=7171 rappd start`",
    "quarantined": "Fix the class as the text says and save; it reloads by itself.",
    "rappd": "The text says what to do.",
    "refused": "The text says what would be allowed.",
    "secret_found": "Move what the text names into `.env`, and pack again.",
    "service_failed": "Fix the service file at the line named and save.",
    "stopped": "Nothing to do: somebody pressed Stop. What was said until then is recorded.",
    "stopping": "Ask again in a moment.",
    "store": "Free some disk space, or make the home folder yours; then ask again.",
    "system": "Look at the file that the text names, then `rappd doctor`.",
    "too_many_calls": "Ask for less at once.",
    "too_deep": "Ask the last machine directly.",
    "too_large": "Send less, or raise `http.body_mb`.",
    "too_late": "Wait for its end, then: rappd egg rollback with the id that the text names.",
    "too_many": "Wait as long as the text says.",
    "too_slow": "Send the body at once.",
    "twin": "The text says what to do.",
    "twin_conflict": "The text says in which state the twin is, or which twins may be meant.",
    "unavailable": "Change the agent so that it does without.",
    "unconfirmed": "Confirm it, once you have seen whom it means.",
    "unfit": "Correct the field that the text names.",
    "unknown_egg": "Open it with whatever made it.",
    "unknown_model": "Choose one of those the text lists, or `auto`.",
    "unreachable": "Check the address and the network, or connect a folder on this machine.",
    "used_up": "Ask for a new permission.",
    "worker_gone": "Ask again; if it stays, `rappd logs` says how the worker ended.",
    "worker_refused": "`rappd doctor`, then ask again.",
    "wrong_answer": "`rappd logs` says what was wrong; ask the author of the agent or service.",
    "wrong_passphrase": "Type the passphrase that the backup was made with.",
    "unsafe_file": "Remove the link or pipe, and put the file itself there.",
    "wrong_password": "Set `voice_zip_password`, or send the right one.",
    "wrong_recipient": "Send it to the machine it is for.",
    "wrong_sender": "Send your own id as `from`.",
}
"""The advice for each code, in one sentence."""
MEANING: dict[str, str] = _WORDS["meaning"]
"""The meaning of a code where no class says it."""


def errors() -> str:
    """errors.md: one row per code, with its status and exit codes."""
    rows: dict[str, tuple[str, str, str]] = {}
    for cls in sorted(_problems(), key=lambda one: (one.code, one.__module__)):
        told = _first_paragraph(cls)
        rows.setdefault(cls.code, (str(cls.status), str(cls.exit_code), MEANING.get(cls.code, told)))
    for code, status in _written_codes():
        rows.setdefault(code, (status, "1", MEANING.get(code, "")))
    missing = [code for code in sorted(rows) if code not in DO or not rows[code][2]]
    if missing:
        raise SystemExit(f"errors.md: say in docs/error_words.toml what {', '.join(missing)} is about.")
    table = _table(
        ("Code", "HTTP", "Exit", "What it means", "What to do"),
        ((f"`{code}`", *rows[code], DO[code]) for code in sorted(rows)),
    )
    return f"""# Errors

{_MADE}

Every error has one shape, in HTTP answers, in the last event of a stream and after `--json`:

```json
{{"error": "what happened", "do": "what to do next", "code": "port_taken"}}
```

The code is never renamed. On a terminal the first line is what happened, the second what to do.
**HTTP** is the status of the answer. **Exit** is what a command ends with when it meets the error itself.
A command that only passes on what the daemon refused ends by the answer's status: 400 and 422 with 2,
403 with 5, 404 with 4, 409 with 9, others with 1.

{table}
"""


def settings() -> str:
    """settings.md: the table of settings as it stands in the code."""
    rows = (
        (
            f"`{setting.name}`",
            f"`{setting.variable}`",
            f"`{setting.default}`" if setting.default else "",
            "at once" if setting.live else "next start",
            f"{setting.help}{' Secret.' if setting.secret else ''}{_range(setting)}",
        )
        for setting in SETTINGS
    )
    return f"""# Settings

{_MADE}

```sh
rappd config show
rappd config set agents.timeout 60
rappd config unset agents.timeout
```

A value that does not fit is refused: by `config set`, and by `rappd start`, which exits with 2 and names it.

A value comes from the first of these that has it: the environment (**Variable**), `.env` in the home
folder, `rappd.toml` beside it, the default. `rappd config show` says which. Secrets are written into
`.env`, everything else into `rappd.toml`, where `provider.url` is the key `url` of the table `[provider]`.
**Counts** says when a running daemon takes a changed value over. A switch takes `on` or `off`.

{_table(("Setting", "Variable", "Default", "Counts", "What it does"), rows)}

`RAPP_HOME` names the home folder (`~/.rapp` without it). These variables are never read, only kept away
from agents: {", ".join(f"`{name}`" for name in OTHER_SECRETS)}.
"""


def _range(setting: Setting) -> str:
    return f" {setting.least} to {setting.most}." if setting.kind == "number" else ""


def routes() -> str:
    """routes.md: what the listeners answer, room by room."""
    parts = []
    for module in _modules(rappd.listeners):
        table = getattr(module, "routes", None)
        if isinstance(table, web.RouteTableDef):
            rows = [
                (f"`{_method(route)}`", f"`{_path(route)}`", _right(route), _summary(route))
                for route in table
                if isinstance(route, web.RouteDef)
            ]
            about = (inspect.getdoc(module) or "").replace("``", "`")
            parts.append(f"{about}\n\n{_table(('Method', 'Path', 'Who', 'What it does'), rows)}")
    every = [*all_operations(), *all_operations(OF_PEERS), *all_operations(OF_PHONES)]
    for noun, found in groupby(every, key=lambda one: one.noun):
        rows = [
            (
                f"`{one.method}`",
                f"`{_plain(one.path)}`",
                _RIGHTS[one.right.kind].format(one.right.scope) + (", agents" if one.agents else ""),
                f"`{one.name}`: {_line(one.about)}",
            )
            for one in found
        ]
        parts.append(f"### {noun}\n\n{_table(('Method', 'Path', 'Who', 'What it does'), rows)}")
    body = "\n\n".join(parts)
    return f"""# Routes

{_MADE}

The loopback listener listens on `127.0.0.1` (port 7071, or the setting `port`). The control socket `rappd.sock`
in the home folder answers the same paths, to the operator's own account. **Operator**: only the control
socket, or the page after `rappd open`; others get 403 and the code `not_operator`. A running daemon
describes the same at `/openapi.json`, with what each operation takes. **Peers with** a capability: paired
machines, at the listener for other machines. **Phones with** one: paired phones, at theirs ([wire.md](wire.md)).
**Agents**: also structural agents that are trusted, in the operator's turn, by `utils.host`. Arguments are fields of
the body, or for GET and DELETE, and where the body is a file, of the query (of other machines and phones: of headers);
null counts as left out.

What `/chat` and `/agents` answer for the brainstem, `/twins/{{twin}}/chat` and `/twins/{{twin}}/agents` with
all that lies below them answer for a twin, by its name or its rappid. A booted twin's own port (7081 to
7199) answers what is below chat, health, agents, models, modes and services here, and nothing else. There the
operator's routes are refused, also with the operator's session.

{body}
"""


def cli() -> str:
    """cli.md: each verb's own help."""
    parts = []
    for words, found in _commands(command, ("rappd",)):
        text = found.get_help(click.Context(found, info_name=" ".join(words), **_HELP))
        parts.append(f"{'##' if len(words) < 3 else '###'} {' '.join(words)}\n\n```text\n{text}\n```")
    body = "\n\n".join(parts)
    return f"""# Command line

{_MADE}

What each command says about itself with `--help`. The exit codes:

```text
0 done        3 rappd not running  6 needs --yes              9 conflict
1 failed      4 no such thing      7 partly done            130 Ctrl-C
2 usage error 5 refused            8 not yet: queued, timed out, expired
```

With `--json` a command prints one object, keyed by its noun, and errors as one object on stderr.

{body}
"""


_RIGHTS = {"owner": "operator", "anybody": "anybody", "peer": "peers with `{}`", "device": "phones with `{}`"}


def _plain(path: str) -> str:
    """The path without the patterns of its parts."""
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", path)


def _asked(one: Operation) -> str:
    """The path that callers fill; "@" begins one that may be a twin's."""
    return f"{'@' if one.of_tenant else ''}{_plain(one.path)}"


def _line(about: str) -> str:
    return " ".join(about.partition("\n\n")[0].split())


PAGES = {"errors.md": errors, "settings.md": settings, "routes.md": routes, "cli.md": cli}

_MADE = "<!-- Made by docs/make_reference.py from the code. -->"
_HELP: dict[str, Any] = {"terminal_width": 78, "help_option_names": ["-h", "--help"]}


def commands() -> str:
    """commands.json: name and first sentence of each command, for the page's search."""
    rows = []
    for words, found in _commands(command, ("rappd",)):
        text = " ".join((found.get_short_help_str(200) or "").split())
        if len(words) > 1:
            rows.append(json.dumps({"name": " ".join(words), "help": text}, ensure_ascii=False))
    return "[\n" + ",\n".join(rows) + "\n]\n"


def operations_js() -> str:
    """operations.js: a function for each operation, for the page."""
    parts = []
    for noun, found in groupby(all_operations(), key=lambda one: one.noun):
        rows = [f"  {_camel(one.name)}: {_form(one)},\n" for one in found if one.result is not Stream]
        parts.append(f"export const {noun} = {{\n{''.join(rows)}}};\n")
    body = "\n".join(parts)
    return f"""/**
 * The daemon's operations, by noun and verb; docs/routes.md says what each does. Made by docs/make_reference.py from
 * the code.
 */

import {{ ask, download, postWithEvents, upload }} from "./api.js";

/** The address, and the arguments that do not stand in it. "@" begins one of the brainstem, or of the `twin` that is given. */
const filled = (path, given) => {{
  const {{ ...rest }} = given;
  if (!rest.twin) delete rest.twin;
  const address = path.replace("@", rest.twin ? "/twins/{{twin}}" : "").replace(/\\{{(\\w+)\\}}/g, (_, name) => {{
    delete rest[name];
    return encodeURIComponent(given[name]);
  }});
  return [address, rest];
}};

const withQuery = ([address, rest]) => {{
  const query = new URLSearchParams(rest).toString();
  return query ? `${{address}}?${{query}}` : address;
}};

/** A function that takes an operation's arguments by name; `options` are those of `ask`. */
const asks = (method, path) => (given = {{}}, options = {{}}) => {{
  if (method === "GET" || method === "DELETE") return ask(withQuery(filled(path, given)), {{ ...options, method }});
  const [address, json] = filled(path, given);
  return ask(address, {{ ...options, method, json }});
}};

/** The same for one that takes a while: `told(event)` gets what comes before the answer. */
const follows = (path) => (given = {{}}, told = () => undefined) => postWithEvents(...filled(path, given), told);

/** The same for one that takes a file; `options` are those of `upload`. */
const takes = (path) => (given, file, options) => upload(withQuery(filled(path, given)), file, options);

/** The same for one that answers with a file, which is saved under `name`. */
const saves = (path) => (given, name) => download(withQuery(filled(path, given)), name);

{body}"""


def _form(one: Operation) -> str:
    """The function of operations.js that makes the operation's."""
    path = f'"{_asked(one)}"'
    if one.takes_file:
        return f"takes({path})"
    if one.is_long:
        return f"follows({path})"
    return f"saves({path})" if one.result is Download else f'asks("{one.method}", {path})'


def operation_paths() -> str:
    """operation_paths.py: method and path of each operation, for the command line."""
    rows = [f'    "{one.name}": ("{one.method}", "{_asked(one)}"),\n' for one in all_operations()]
    about = '"""Method and path of each operation. Made by docs/make_reference.py from the code."""'
    return f"{about}\n\nOPERATION_PATHS = {{\n{''.join(rows)}}}\n"


def _camel(name: str) -> str:
    first, *others = name.partition(".")[2].split("_")
    return first + "".join(map(str.title, others))


def main(arguments: list[str]) -> None:
    """Writes every page."""
    folder = Path(arguments[0]) if arguments else Path(__file__).parent
    page = folder if arguments else folder.parent / "rappd" / "web" / "components" / "search"
    (page / "commands.json").write_text(commands(), encoding="utf-8")
    code = folder.parent / "rappd"
    (folder if arguments else code / "web" / "lib").joinpath("operations.js").write_text(operations_js())
    (folder if arguments else code / "features").joinpath("operation_paths.py").write_text(operation_paths())
    for name, make in PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")


def _problems() -> Iterator[type[ReportableError]]:
    for floor in FLOORS:
        for _ in _modules(importlib.import_module(floor)):
            continue  # importing is what makes the classes known
    pending: list[type[ReportableError]] = [ReportableError]
    while pending:
        cls = pending.pop()
        pending += cls.__subclasses__()
        if cls.__module__.partition(".")[0] in FLOORS and isinstance(cls.code, str):
            yield cls


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def _written_codes() -> Iterator[tuple[str, str]]:
    """(code, HTTP status or "") of answers that are written where they are made."""
    for path in sorted(Path(rappd.listeners.__path__[0]).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Call(
                    func=ast.Name("plain"), args=[ast.Constant(status), _, ast.Constant(str(code)), *_]
                ):
                    yield code, str(status)
                case ast.Call(func=ast.Name("complain"), args=[_, _, ast.Constant(str(code)), *_]):
                    yield code, ""
                case ast.Dict(keys=keys, values=values):
                    told = dict(zip(map(_constant, keys), map(_constant, values), strict=True))
                    if "error" in told and isinstance(told.get("code"), str) and told["code"]:
                        yield str(told["code"]), str(told.get("status") or "")


def _constant(node: ast.AST | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else None


def _commands(
    found: click.Command, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield words, found
    if isinstance(found, click.Group):
        context = click.Context(found)
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            assert below is not None
            yield from _commands(below, (*words, name))


def _method(route: web.RouteDef) -> str:
    return "any" if route.method == "*" else route.method


def _path(route: web.RouteDef) -> str:
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.path)


def _right(route: web.RouteDef) -> str:
    return "operator" if getattr(route.handler, "operator_only", False) else "anybody here"


def _summary(route: web.RouteDef) -> str:
    return _first_paragraph(route.handler)


def _first_paragraph(documented: object) -> str:
    text = (inspect.getdoc(documented) or "").split("\n\n", 1)[0]
    return " ".join(text.replace("``", "`").split())


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(header)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    main(sys.argv[1:])
