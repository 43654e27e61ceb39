"""LearnNew writes new agents from plain words, and lets existing ones grow.

Say "learn a new agent that fetches a page and counts its words". Arguments: `action`, and what it needs.

- `create` (the default): `description` in plain words; `name` and `packages` (allowed beyond the
  standard library) if you like. With a model the code is written, and kept only if it holds one agent,
  parses, compiles and imports nothing undeclared. Otherwise you get an honest scaffold: a working file with
  a matching name and arguments that repeats what it is given, and says so.
- `molt`: `name` and `feedback`. A new generation that keeps its name and arguments and only adds. Without a
  model the feedback is written into the file, and the answer says what was not done.
- `list`, `generations` (`name`), `restore` (`name`, `generation`), `delete` (`name`).

The answer is JSON: `{status, message, file, agent, implementation, try}`; `implementation` is `generated`,
`scaffold`, `molted` or `recorded`. Your words only ever enter the file as quoted text, never as code.
"""

from __future__ import annotations

import ast
import difflib
import json
import pprint
import re
import sys
import uuid
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/learn_new_agent",
    "version": "1.0.0",
    "display_name": "LearnNew",
    "description": "Writes new single-file agents from plain words, and lets existing ones grow.",
    "summary": "Writes a new agent from plain words.",
    "author": "rappd",
    "tags": ["generate", "molt", "meta"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

# name: (JSON type, description, words that suggest it, an example)
_HINTS: dict[str, tuple[str, str, str, str]] = {
    "path": ("string", "Path of a file or folder.", "file files folder read path csv directory", "notes.txt"),
    "url": ("string", "Address of a web page.", "url urls http https web website fetch page link", "https://example.com"),
    "count": ("integer", "How many.", "number count amount limit top many", "5"),
    "location": ("string", "City or place.", "city weather location place town forecast", "Lisbon"),
    "date": ("string", "Day, as YYYY-MM-DD.", "date day calendar schedule deadline", "2030-01-31"),
    "text": ("string", "Text to work on.", "text summarize translate sentence words", "some text"),
    "language": ("string", "Language, by its name.", "translate translates translation language", "French"),
    "recipient": ("string", "Who receives it.", "email mail send notify recipient", "ada@example.com"),
}  # fmt: skip
# Patterns as text: re keeps what it compiled, and nobody who only describes this agent waits for it.
_STOP = (
    "(?i:about|agents?|also|another|build|call(ed)?|could|create|each|every|from|gives?|have|help|into|just|learn|like|"
    "makes?|needs?|please|should|skill|some|takes?|tells?|that|then|there|these|this|those|wants?|what|when|where|"
    "which|will|with|would|writes?|your)"
)
_LEAD = r"(?i:(please\s+)?(learn|create|build|make|write)(\s+me)?(\s+an?)?(\s+new)?\s+(agent|skill)(\s+(that|which|to))?\s+)"
_MOST = 20_000
_RULES = """\
- The file has one class derived from BasicAgent (from agents.basic_agent import BasicAgent). Its __init__ \
sets self.name (letters and digits) and self.metadata (name, description, parameters as a JSON schema \
object), then calls super().__init__(name=self.name, metadata=self.metadata).
- perform(self, **kwargs) returns json.dumps of {"status": "success", ..., "data_slush": {...}} or of \
{"status": "error", "message": ...}. It works without arguments too and never raises for bad ones.
- Besides imports, constants, functions and classes nothing stands at the top level. Secrets come from \
environment variables.
Reply with the whole file in one ```python block."""


class LearnNewAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "LearnNew"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Creates a new agent from a description in plain words, or changes, lists, "
            "restores and deletes agents. Use it to learn, create, teach or improve a skill.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        **text,
                        "enum": ["create", "molt", "list", "generations", "restore", "delete"],
                        "default": "create",
                        "description": "What to do.",
                    },
                    "description": {**text, "description": "create: what the new agent does."},
                    "name": {**text, "description": "The agent: a new one's name, or which one to change."},
                    "feedback": {**text, "description": "molt: what should be different."},
                    "generation": {"type": "integer", "description": "restore: which generation."},
                    "packages": {
                        "type": "array",
                        "items": text,
                        "description": "Packages that the code may import beyond the standard library.",
                    },
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "create": self._create,
            "molt": self._molt,
            "list": self._list,
            "generations": self._generations,
            "restore": self._restore,
            "delete": self._delete,
        }
        action = str(kwargs.get("action") or "create").strip().lower()
        try:
            if action not in actions:
                raise _RefusedError(f"LearnNew knows no action {action!r}; it knows {', '.join(actions)}.")
            reply = {"status": "success", **actions[action](kwargs)}
        except (_RefusedError, OSError) as error:
            reply = {"status": "error", "message": str(error)}
        return json.dumps(reply, ensure_ascii=False)

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        prose = _words(given, "description", "query", "request", "user_input")
        if not prose:
            raise _RefusedError('Say what the new agent should do, as in "learn an agent that counts words".')
        allowed, wanted = _packages(given), _camel(str(given.get("name") or ""))
        existing = {agent["file"] for agent in _agents()}
        if wanted and _file_of(wanted) in existing:
            raise _RefusedError(f"There is an agent {wanted} already. Choose another name, or molt it.")

        def place(name: str, kind: str, hints: list[str], source: Callable[[str], str]) -> dict[str, Any]:
            name = next(
                n for n in (name, *(f"{name}{i}" for i in range(2, 1000))) if _file_of(n) not in existing
            )
            done = _place(_file_of(name), source(name), f"created from: {prose[:200]}", molt=False)
            example = " ".join([_spaced(name), *[_HINTS[key][3] for key in hints if key in _HINTS][:1]])
            return _reply(done, f"{name} is ready, in {_file_of(name)}.", name, kind, example)

        def generated(code: str) -> dict[str, Any]:
            contract = _accepted(code, allowed)
            name = wanted or _camel(contract.name) or _named_after(prose)
            hints = list(contract.properties or ())
            return place(name, "generated", hints, lambda name: _assembled(code, contract, name, prose))

        ask = (
            f"Write a single-file agent in Python.\n{_RULES}\nWhat it should do, as JSON: {json.dumps(prose)}"
        )
        if allowed:
            ask += f"\nPackages it may import: {', '.join(sorted(allowed))}"
        reply, why = _think(ask, generated)
        if reply is None:
            hints = _hints(prose)
            name = wanted or _named_after(prose)
            reply = place(name, "scaffold", hints, lambda name: _scaffold(name, prose, hints))
            reply["message"] += f" It is a scaffold: it takes arguments and repeats them. {why}"
        return reply

    def _molt(self, given: dict[str, Any]) -> dict[str, Any]:
        feedback = _words(given, "feedback", "description", "query", "request", "user_input")
        if not feedback:
            raise _RefusedError("Say what should be different (feedback).")
        name, file = _find(given)
        before = _source(file)
        tree = _parse(before)
        allowed = _packages(given) | {root for root, _ in _imports(tree)}

        def molted(code: str) -> dict[str, Any]:
            _check_grown(code, tree, allowed)
            done = _place(
                file, _edited(code, _version_edits(code, tree)), f"molted: {feedback[:200]}", molt=True
            )
            message = f"{name} has a new generation; the one before is kept (action restore)."
            return _reply(done, message, name, "molted", _spaced(name))

        reply, why = _think(
            "Change this single-file agent as its owner asks. Keep its name, manifest and arguments, "
            f"only add.\n{_RULES}\nThe owner's words, as JSON: {json.dumps(feedback)}\nThe file:\n{before}",
            molted,
        )
        if reply is None:
            after, added = _recorded(before, tree, feedback)
            message = f"Your words are written into {file}. "
            message += f"New argument: {', '.join(added)}. " if added else ""
            message += f"Not done: what its code does is unchanged. {why}"
            done = _place(file, after, f"recorded: {feedback[:200]}", molt=True)
            reply = _reply(done, message, name, "recorded", _spaced(name))
        return reply

    def _list(self, given: dict[str, Any]) -> dict[str, Any]:
        found = _agents()
        names = ", ".join(agent["name"] for agent in found) or "none"
        rows = [{"name": agent["name"], "file": agent["file"]} for agent in found]
        return {"message": f"{len(found)} agents: {names}.", "agents": rows}

    def _generations(self, given: dict[str, Any]) -> dict[str, Any]:
        name, file = _find(given)
        kept = _ask_host("agents.generations", filename=file)["generations"]
        many = "1 earlier generation" if len(kept) == 1 else f"{len(kept)} earlier generations"
        return {"message": f"{name} has {many}.", "file": file, "generations": kept}

    def _restore(self, given: dict[str, Any]) -> dict[str, Any]:
        name, file = _find(given)
        try:
            number = int(given["generation"])
        except (KeyError, TypeError, ValueError):
            raise _RefusedError("Say which generation to restore; action generations lists them.") from None
        done = _ask_host("agents.restore", filename=file, generation=number)
        return _reply(done, f"Generation {number} of {name} is back.", name, "restored", _spaced(name))

    def _delete(self, given: dict[str, Any]) -> dict[str, Any]:
        name, file = _find(given)
        if _host():
            done = _ask_host("agents.remove", filename=file)
            return {**done, "status": "success", "file": file, "agent": name}
        (_FOLDER / file).unlink()
        return {"message": f"{file} is removed.", "file": file, "agent": name}


class _RefusedError(Exception):
    """Cannot be done; the text is the answer."""


class _Contract:
    """Reads the promises of a file's agent without running it; None where only running it would tell."""

    def __init__(
        self, node: ast.ClassDef, name: str, properties: dict[str, Any] | None, required: list[str]
    ) -> None:
        self.node = node
        self.name = name
        self.properties = properties
        self.required = required


def _think(ask: str, keep: Callable[[str], dict[str, Any]]) -> tuple[dict[str, Any] | None, str]:
    """Returns the result of `keep` for the model's code; or None, and why. A refused file gets a second try."""
    try:
        from utils.llm import call_llm  # type: ignore[import-not-found]  # the brainstem puts it there
    except ImportError:
        return None, "No code was written: there is no model here."
    messages = [{"role": "user", "content": ask}]
    problem = ""
    for _ in range(2):
        try:
            answer = str(call_llm(messages) or "")
        except Exception as error:  # noqa: BLE001 - any model's library may stand behind call_llm
            return None, f"No code was written: {str(error).rstrip('.')}."
        blocks = re.findall(r"```(?:python|py)?[ \t]*\n(.*?)```", answer, re.DOTALL)
        try:
            return keep(_clean(max(blocks, key=len) if blocks else answer)), ""
        except _RefusedError as refused:
            problem = str(refused).rstrip(".")
        again = f"That file cannot be used: {problem}. Reply with the whole file again."
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": again}]
    return None, f"The model's code was not used: {problem}."


def _accepted(code: str, allowed: set[str]) -> _Contract:
    """The contract of code that may become an agent file. Raises ``_RefusedError`` for any other."""
    tree = _parse(code)
    contract = _contract(tree)
    perform = next((item for item in contract.node.body if getattr(item, "name", "") == "perform"), None)
    if not isinstance(perform, ast.FunctionDef) or not perform.args.kwarg:
        raise _RefusedError("it has no perform(self, **kwargs)")
    if not any(isinstance(node, ast.Return) and node.value for node in _own(perform)):
        raise _RefusedError("perform returns nothing")
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own(perform)):
        raise _RefusedError("perform yields instead of returning")
    if not contract.name or contract.properties is None:
        raise _RefusedError("its name or its parameters are not written out in __init__")
    for root, line in _imports(tree):
        if root not in sys.stdlib_module_names and root not in allowed:
            raise _RefusedError(f"line {line} imports {root}, which is neither standard nor declared")
    for node in tree.body:
        kinds = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
        if not isinstance(node, kinds) and not _boilerplate(node):
            raise _RefusedError(f"line {node.lineno} runs code when the file is loaded")
    return contract


def _check_grown(code: str, before: ast.Module, allowed: set[str]) -> None:
    """A new generation has the same name, no argument less, none newly required."""
    old, new = _contract(before), _accepted(code, allowed)
    if new.name != old.name:
        raise _RefusedError(f"it is called {new.name} instead of {old.name}")
    if old.properties is None:
        raise _RefusedError(
            "the arguments of the present version cannot be read, so keeping them cannot be checked"
        )
    for key, schema in old.properties.items():
        now = (new.properties or {}).get(key)
        if not isinstance(now, dict) or not isinstance(schema, dict) or now.get("type") != schema.get("type"):
            raise _RefusedError(f"the argument {key} is gone or has another type")
    if set(new.required) - set(old.required):
        raise _RefusedError(f"it newly requires {', '.join(sorted(set(new.required) - set(old.required)))}")
    if _manifest(before) and not _manifest(_parse(code)):
        raise _RefusedError("its __manifest__ is gone")


def _contract(tree: ast.Module) -> _Contract:
    classes = [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        and node.name != "BasicAgent"
        and any("BasicAgent" in ast.unparse(base) for base in node.bases)
    ]
    if len(classes) != 1:
        raise _RefusedError(f"it holds {len(classes)} agent classes instead of one")
    node = classes[0]
    known: dict[str, Any] = {}
    start = next((item for item in node.body if getattr(item, "name", "") == "__init__"), node)
    for statement in [*tree.body, *getattr(start, "body", ())]:
        match statement:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                known[ast.unparse(target)] = _value(value, known)
            case ast.Expr(value=ast.Call(func=func, args=args, keywords=named)) if "__init__" in ast.unparse(
                func
            ):
                arguments = dict(zip(("name", "metadata"), args, strict=False))
                arguments.update({word.arg: word.value for word in named if word.arg})
                known.update({f"self.{key}": _value(value, known) for key, value in arguments.items()})
    metadata = known.get("self.metadata")
    parameters = metadata.get("parameters") if isinstance(metadata, dict) else None
    properties = parameters.get("properties", {}) if isinstance(parameters, dict) else None
    required = parameters.get("required", []) if isinstance(parameters, dict) else []
    name = known.get("self.name")
    return _Contract(
        node,
        name if isinstance(name, str) else "",
        properties
        if isinstance(properties, dict) and all(isinstance(key, str) for key in properties)
        else None,
        [word for word in required if isinstance(word, str)] if isinstance(required, list) else [],
    )


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression as far as it stands written out; Ellipsis for the rest."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Dict(keys=keys, values=values):
            found: dict[Any, Any] = {}
            for key, item in zip(keys, values, strict=True):
                value = _value(item, known)
                if key is None:
                    found.update(value if isinstance(value, dict) else {})
                elif isinstance(name := _value(key, known), str):
                    found[name] = value
            return found
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, known) for item in items]
    return known.get(ast.unparse(node), ...)


def _own(function: ast.FunctionDef) -> list[ast.AST]:
    """The nodes of a function's body without those of functions and classes inside it."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    found: list[ast.AST] = list(function.body)
    for node in found:
        if not isinstance(node, inner):
            found.extend(ast.iter_child_nodes(node))
    return found


def _imports(tree: ast.Module) -> set[tuple[str, int]]:
    """(top-level package, line) of every import but BasicAgent's; "." for relative ones."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(alias.name.partition(".")[0], node.lineno) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not _imports_base(node):
            found.add(("." if node.level else (node.module or "").partition(".")[0], node.lineno))
    return found


def _imports_base(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == ["BasicAgent"]


def _boilerplate(node: ast.stmt) -> bool:
    """True when every file has this of its own: text, the base class, the manifest, running as a script."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.ClassDef(name="BasicAgent"):
            return True
        case ast.ImportFrom(module="__future__") | ast.Assign(targets=[ast.Name(id="__manifest__")]):
            return True
        case ast.Try(body=[first, *_]):
            return _imports_base(first)
        case ast.If(test=test):
            return ast.unparse(test) == "__name__ == '__main__'"
    return _imports_base(node)


def _manifest(tree: ast.Module) -> ast.Dict | None:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__manifest__")], value=ast.Dict() as value):
                return value
    return None


def _entry(node: ast.Dict | None, key: str) -> ast.expr | None:
    """The expression behind a key of a dict as it is written, if it is written there."""
    pairs = zip(node.keys, node.values, strict=True) if node else ()
    return next(
        (value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None
    )


_Edit = tuple[ast.AST, str]  # a node of the source, and the text that takes its place


def _edited(source: str, edits: list[_Edit]) -> str:
    """The source with nodes replaced, everything else as it was, comments included."""
    data = source.encode()
    starts = [0]
    for line in data.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    spans = []
    for node, text in edits:
        place: Any = node  # only nodes with a place come here
        start, end = starts[place.lineno - 1], starts[place.end_lineno - 1]
        spans.append((start + place.col_offset, end + place.end_col_offset, text))
    for start, end, text in sorted(spans, key=lambda span: span[0], reverse=True):
        data = data[:start] + text.encode() + data[end:]
    return data.decode()


def _version_edits(source: str, before: ast.Module) -> list[_Edit]:
    """Moves the manifest's version one minor step beyond the one before."""
    old, new = (_entry(_manifest(tree), "version") for tree in (before, _parse(source)))
    if isinstance(new, ast.Constant) and isinstance(old, ast.Constant):
        parts = str(old.value).split(".")
        if len(parts) == 3 and parts[1].isdigit():
            return [(new, repr(f"{parts[0]}.{int(parts[1]) + 1}.0"))]
    return []


def _recorded(source: str, tree: ast.Module, feedback: str) -> tuple[str, list[str]]:
    """The file with the feedback in its docstring and description; a scaffold also gets arguments for it."""
    note = f"Wanted since {date.today()}: {feedback}"
    added: list[str] = []
    edits = _version_edits(source, tree)
    words = ast.get_docstring(tree, clean=False)
    edits.append(
        (tree.body[0], _docstring(f"{words.rstrip()}\n\n{note}\n"))
        if words is not None
        else (_before(tree.body[0]), _docstring(note) + "\n")
    )
    kind = _entry(_manifest(tree), "implementation")
    tool = next(
        (node for node in ast.walk(tree) if isinstance(node, ast.Dict) and _entry(node, "parameters")), None
    )
    about = _entry(tool, "description")
    if isinstance(about, ast.Constant) and isinstance(about.value, str):
        edits.append((about, repr(f"{about.value} ({note[:200]})")))
    schema = _entry(tool, "parameters")
    properties = _entry(schema if isinstance(schema, ast.Dict) else None, "properties")
    if isinstance(kind, ast.Constant) and kind.value == "scaffold" and isinstance(properties, ast.Dict):
        have = _value(properties, {})
        added = [name for name in _hints(feedback) if name not in have]
        if added:
            extended = {**have, **{name: _property(name) for name in added}}
            edits.append((properties, _pretty(extended, 20)))
    return _edited(source, edits), added


def _before(node: ast.stmt) -> ast.AST:
    place = min([node, *getattr(node, "decorator_list", ())], key=lambda found: found.lineno)
    return ast.Pass(lineno=place.lineno, col_offset=0, end_lineno=place.lineno, end_col_offset=0)


_GUARD = """\
import json

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent
    except ImportError:

        class BasicAgent:
            def __init__(self, name="", metadata=None):
                self.name, self.metadata = name, metadata or {}
"""
_CLASS = """\


class {class_name}(BasicAgent):
    def __init__(self):
        self.name = {name}
        self.metadata = {{
            "name": self.name,
            "description": {description},
            "parameters": {{
                "type": "object",
                "properties": {properties},
                "required": [],
            }},
        }}
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs):
        known = self.metadata["parameters"]["properties"]
        given = {{key: value for key, value in kwargs.items() if key in known}}
        message = f"{{self.name}} is a scaffold: it repeats what it is given and does nothing else yet."
        reply = {{"status": "success", "implementation": "scaffold", "message": message, "given": given}}
        return json.dumps({{**reply, "data_slush": given}}, default=str)
"""


def _scaffold(name: str, prose: str, hints: list[str]) -> str:
    """A whole file. What the user wrote enters it as the text of string literals only."""
    properties = {"query": {"type": "string", "description": "The request, in the user's own words."}}
    properties.update({key: _property(key) for key in hints})
    body = _CLASS.format(
        class_name=f"{name}Agent",
        name=repr(name),
        description=repr(re.sub(_LEAD, "", prose)[:1000]),
        properties=_pretty(properties, 16),
    )
    return _head(name, prose, "scaffold") + body + _tail(f"{name}Agent")


def _assembled(code: str, contract: _Contract, name: str, prose: str) -> str:
    """A model's code in the frame that every file here has, under the name that was free."""
    tree = _parse(code)
    edits: list[_Edit] = [(node, "") for node in tree.body if _boilerplate(node)]
    named = [node for node in ast.walk(contract.node) if isinstance(node, ast.Constant)]
    edits += [(node, repr(name)) for node in named if node.value == contract.name]
    body = "\n\n" + _edited(code, edits).strip() + "\n"
    return _head(name, prose, "generated") + body + _tail(contract.node.name)


def _head(name: str, prose: str, kind: str) -> str:
    manifest = {
        "schema": "rapp-agent/1.0",
        "name": f"@local/{_file_of(name)[:-3]}",
        "version": "1.0.0",
        "display_name": name,
        "description": " ".join(re.sub(_LEAD, "", prose).split())[:200],
        "author": "LearnNew",
        "tags": ["learned"],
        "category": "general",
        "quality_tier": "experimental",
        "requires_env": [],
        "dependencies": ["@rapp/basic_agent"],
        "implementation": kind,
    }
    text = _docstring(f"{prose}\n\nWritten by LearnNew on {date.today()} ({kind}).\n")
    return f"{text}\n\n{_GUARD}\n\n__manifest__ = {_pretty(manifest, 0)}\n"


def _tail(class_name: str) -> str:
    return f'\n\nif __name__ == "__main__":\n    print({class_name}().perform())\n'


def _docstring(text: str) -> str:
    """A string literal that stands for exactly ``text``, over several lines where that can be."""
    pretty = ast.unparse(ast.Module([ast.Expr(ast.Constant(text))], []))
    parsed = ast.parse(pretty).body
    exact = len(parsed) == 1 and ast.get_docstring(ast.Module(parsed, []), clean=False) == text
    return pretty if exact else repr(text)


def _pretty(value: dict[str, Any], indent: int) -> str:
    width = 96 - indent
    rows = [
        f"    {key!r}: {pprint.pformat(item, width=width, sort_dicts=False)}," for key, item in value.items()
    ]
    return "\n".join(["{", *rows, "}"]).replace("\n", "\n" + " " * indent)


def _property(name: str) -> dict[str, str]:
    return {"type": _HINTS[name][0], "description": _HINTS[name][1]}


def _hints(prose: str) -> list[str]:
    words = set(re.findall(r"[a-z]+", prose.lower()))
    return [name for name, (_, _, hints, _) in _HINTS.items() if words & set(hints.split())]


def _words(given: dict[str, Any], *keys: str) -> str:
    found = next((text for key in keys if isinstance(text := given.get(key), str) and text.strip()), "")
    if len(found) > _MOST:
        raise _RefusedError(f"That has {len(found)} characters; say it in at most {_MOST}.")
    return _clean(found).strip()


def _clean(text: str) -> str:
    """Text that UTF-8 can hold, with one kind of line end."""
    return text.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")


def _parse(code: str) -> ast.Module:
    try:
        tree = ast.parse(code)
        compile(code, "agent", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _RefusedError(f"line {error.lineno or 1}: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _RefusedError(f"it does not compile ({error})") from error
    return tree


def _packages(given: dict[str, Any]) -> set[str]:
    packages = given.get("packages")
    names = packages.split(",") if isinstance(packages, str) else packages
    return {str(name).strip() for name in names} - {""} if isinstance(names, list) else set()


def _camel(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789")[:40]
    name = name.removesuffix("Agent") or name
    return "BasicOne" if name == "Basic" else name  # its class would be BasicAgent, and none of its own


def _named_after(prose: str) -> str:
    words = [word for word in re.findall(r"[A-Za-z]{4,}", prose) if not re.fullmatch(_STOP, word)]
    return _camel(" ".join(words[:2]).lower().title()) or "Learned"


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name).lower()


def _file_of(name: str) -> str:
    return re.sub(r"\W+", "_", f"{_spaced(name)}_agent") + ".py"


# Where files live: with the brainstem that keeps them, else in the folder beside this file.

_FOLDER = Path(__file__).resolve().parent


def _host() -> Callable[..., Any] | None:
    try:
        from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
    except ImportError:
        return None
    found: Callable[..., Any] = request
    return found


def _ask_host(operation: str, **arguments: Any) -> dict[str, Any]:
    request = _host()
    if request is None:
        raise _RefusedError("This brainstem keeps no generations.")
    try:
        answer: dict[str, Any] = request(operation, **arguments)
    except Exception as error:
        raise _RefusedError(str(error)) from error  # why the brainstem refuses; its class differs among them
    return answer


def _agents() -> list[dict[str, Any]]:
    if _host():
        return [agent for agent in _ask_host("agents.list")["agents"] if agent.get("name")]
    found = []
    for path in sorted(_FOLDER.glob("*_agent.py")):
        try:
            name = _contract(_parse(_source(path.name))).name
        except _RefusedError:
            name = ""
        found.append({"name": name or path.stem.removesuffix("_agent"), "file": path.name})
    return found


def _find(given: dict[str, Any]) -> tuple[str, str]:
    wanted = str(given.get("name") or given.get("agent") or "").strip()
    agents = _agents()
    for agent in agents:
        if wanted.casefold() in (agent["name"].casefold(), agent["file"].casefold()):
            return agent["name"], agent["file"]
    near = difflib.get_close_matches(wanted, [agent["name"] for agent in agents], 1)
    raise _RefusedError(
        f'No agent "{wanted}".' + (f" Did you mean {near[0]}?" if near else " Action list names them.")
    )


def _source(file: str) -> str:
    if _host():
        return _clean(str(_ask_host("agents.source", filename=file)["source"]))
    return _clean((_FOLDER / file).read_text(encoding="utf-8", errors="replace"))


def _place(file: str, source: str, reason: str, *, molt: bool) -> dict[str, Any]:
    """Puts a whole file in its place, or nothing."""
    _parse(source)
    if _host():
        return _ask_host("agents.write", filename=file, source=source, reason=reason, molt=molt)
    part = _FOLDER / f".{file}.{uuid.uuid4().hex}"
    part.write_text(source, encoding="utf-8")
    try:
        if molt:
            part.replace(_FOLDER / file)
        else:
            (_FOLDER / file).hardlink_to(part)  # unlike a rename, never over a file that is there
    finally:
        part.unlink(missing_ok=True)
    return {"file": file}


def _reply(done: dict[str, Any], message: str, name: str, kind: str, example: str) -> dict[str, Any]:
    if done.get("status") == "quarantined":
        message = str(done.get("message") or message)
    return {
        "message": message,
        "file": done.get("file", ""),
        "agent": name,
        "implementation": kind,
        "try": done.get("try") or example,
        "data_slush": {"agent": name, "file": done.get("file", "")},
    }


if __name__ == "__main__":
    sys.stdout.write(LearnNewAgent().perform(description=" ".join(sys.argv[1:])) + "\n")
