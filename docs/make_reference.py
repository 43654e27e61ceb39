"""Writes what mirrors the code: pages of this folder, and how the page and the command line ask for operations.

    python docs/make_reference.py [FOLDER]

Run it after changing errors, settings, routes, operations or commands; the tests compare with what it writes. The words
for error codes stand in ``error_words.toml``. FOLDER (this one, if left out) gets errors.md, settings.md, routes.md,
cli.md and states.md; commands.json and operations.js go to the page, operation_paths.py to the command line,
route_paths.py to the listeners.
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

sys.path.insert(0, str(Path(__file__).parent))

from state_diagrams import states

FLOORS = ("envelopes", "agents", "twins", "neighborhoods", "rappd")

_WORDS = tomllib.loads(Path(__file__).with_name("error_words.toml").read_text(encoding="utf-8"))
DO: dict[str, str] = _WORDS["do"]
"""The advice for each code, in one sentence."""
MEANING: dict[str, str] = _WORDS["meaning"]
"""The meaning of a code where no class says it."""


def errors() -> str:
    """errors.md: one row per code, with its status and exit codes."""
    rows: dict[str, tuple[str, str, str]] = {}
    for code, _, status, exit_code, meaning in sorted(_kinds()):
        rows.setdefault(code, (str(status), str(exit_code), MEANING.get(code, meaning)))
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
    for module, table in _route_tables():
        rows = [
            (f"`{_method(route)}`", f"`{_path(route)}`", _right(route), _summary(route)) for route in table
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


def _route_tables() -> Iterator[tuple[ModuleType, list[web.RouteDef]]]:
    for module in _modules(rappd.listeners):
        table = getattr(module, "routes", None)
        if isinstance(table, web.RouteTableDef):
            yield module, [one for one in table if isinstance(one, web.RouteDef)]


def route_paths() -> str:
    """route_paths.py: the routes of each module of listeners, for those that their first request imports."""
    rows, shapes = [], []
    for module, table in _route_tables():
        name = json.dumps(module.__name__.removeprefix("rappd.listeners."))
        found = "".join(
            f"        ({json.dumps(one.method)}, {json.dumps(one.path)}, {one.kwargs}),\n" for one in table
        )
        rows.append(f"    {name}: (\n{found}    ),\n")
        if paths := "".join(f"{json.dumps(one)}, " for one in getattr(module, "SHAPES", ())):
            shapes.append(f"    {name}: ({paths}),\n")
    return f'''"""Routes of listeners, and the paths below which refusals have a shape of their own, by module.

Made by docs/make_reference.py from the code.
"""

from typing import Any

# fmt: off
ROUTE_PATHS: dict[str, tuple[tuple[str, str, dict[str, Any]], ...]] = {{
{"".join(rows)}}}
SHAPE_PATHS: dict[str, tuple[str, ...]] = {{
{"".join(shapes)}}}
'''


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


PAGES = {
    "errors.md": errors,
    "settings.md": settings,
    "routes.md": routes,
    "cli.md": cli,
    "states.md": lambda: states(_MADE),
}

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

/** The same for one that takes a form with a file in its field `file`. */
const sends = (path) => (given, form) => ask(filled(path, given)[0], {{ method: "POST", form }});

/** The same for one that answers with a file, which is saved under `name`. */
const saves = (path) => (given, name) => download(withQuery(filled(path, given)), name);

{body}"""


def _form(one: Operation) -> str:
    """The function of operations.js that makes the operation's."""
    path = f'"{_asked(one)}"'
    if one.takes_file:
        return f"takes({path})"
    if one.takes_form:
        return f"sends({path})"
    if one.is_long:
        return f"follows({path})"
    return f"saves({path})" if one.result is Download else f'asks("{one.method}", {path})'


def operation_paths() -> str:
    """operation_paths.py: method and path of each operation, for the command line and the listeners."""
    rows = [
        f'    "{one.name}": ("{one.method}", "{"@" if one.of_tenant else ""}{one.path}"),\n'
        for one in all_operations()
    ]
    about = '''"""Method and path of each operation; "@" begins one that may be a twin's.

Made by docs/make_reference.py from the code.
"""'''
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
    (folder if arguments else code / "listeners").joinpath("route_paths.py").write_text(route_paths())
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


def _kinds() -> Iterator[tuple[str, str, int, int, str]]:
    """Code, module, status, exit code and meaning of each class of errors, and of each code that a class has rows for."""
    for cls in _problems():
        yield cls.code, cls.__module__, cls.status, cls.exit_code, _first_paragraph(cls)
        for code, refusal in cls.__dict__.get("refusals", {}).items():
            status, exit_code, meaning = refusal
            yield code, cls.__module__, status, exit_code, meaning.replace("``", "`")


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
