"""SwarmFactory turns a workshop, a folder of agents, into one agent file that runs anywhere.

A workshop is `agents/workspace_agents/<swarm>/`, or another folder of the workspace. Arguments: `action`
(`build`, the default with a swarm; `preview`, the same without writing; `list`), `swarm` (the folder),
`name` (of the result, else the folder's), `exclude` (files to leave out).

What comes out is `<name>_agent.py`: every agent of the folder, and helper files they import, in one file
that needs no build step. Imports stand at the top, once. Each file's names are kept apart (`_<file>_<name>`),
its agents become `_Internal<Name>`, and what they say to each other is rewritten to fit. One public agent
offers them all: a single agent's arguments as they are; otherwise `agent` picks one, and `chain` runs
several in order, each handing its `data_slush` to the next. The source files' SHA-256 are inside.

The result is loaded and every agent in it is made before it is written. Comments do not survive; docstrings
do. Refused: `from x import *`, circles of imports.
"""

from __future__ import annotations

import ast
import builtins
import graphlib
import hashlib
import json
import os
import pprint
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
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
    "name": "@rappd/swarm_factory_agent",
    "version": "1.0.0",
    "display_name": "SwarmFactory",
    "description": "Turns a folder of agents into one agent file that runs anywhere.",
    "summary": "Builds one agent out of a folder of agents.",
    "author": "rappd",
    "tags": ["swarm", "singleton", "distribution"],
    "category": "core",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {"read": ["agents"]},
}

_MOST_FILES = 200
_MOST_BYTES = 1 << 20


class SwarmFactoryAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "SwarmFactory"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Builds one portable agent file out of a workshop folder of agents (a swarm). "
            "Use it when the user wants to converge, bundle or share several agents as one file.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {**text, "enum": ["build", "preview", "list"], "description": "What to do."},
                    "swarm": {**text, "description": "The workshop: its name, or a folder in the workspace."},
                    "name": {**text, "description": "Name of the resulting agent, else the folder's."},
                    "exclude": {"type": "array", "items": text, "description": "Files to leave out."},
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        action = str(kwargs.get("action") or ("build" if kwargs.get("swarm") else "list")).strip().lower()
        try:
            if action == "list":
                reply = _workshops()
            elif action in ("build", "preview"):
                reply = self._build(kwargs, write=action == "build")
            else:
                raise _RefusedError(
                    f"SwarmFactory knows no action {action!r}; it knows build, preview, list."
                )
        except (_RefusedError, OSError, ValueError, RecursionError) as error:
            return json.dumps({"status": "error", "message": str(error)}, ensure_ascii=False)
        return json.dumps({"status": "success", **reply}, ensure_ascii=False)

    def _build(self, given: dict[str, Any], *, write: bool) -> dict[str, Any]:
        folder = _folder(str(given.get("swarm") or ""))
        name = _camel(str(given.get("name") or folder.name))
        sources = _read(folder, _listed(given.get("exclude")))
        singleton = _Singleton(name, folder.name, sources)
        text = singleton.text()
        file = f"{_snake(name)}_agent.py"
        raw = text.encode()
        reply = {
            "file": file,
            "agent": name,
            "agents": [{"name": row["name"], "from": row["file"]} for row in singleton.inner],
            "files": {source.path.name: source.sha256 for source in sources},
            "lines": text.count("\n"),
            "bytes": len(raw),
            "sha256": hashlib.sha256(raw).hexdigest(),
            "notes": singleton.notes,
            "data_slush": {"agent": name, "file": file},
        }
        count = f"{len(singleton.inner)} agents" if len(singleton.inner) != 1 else "1 agent"
        if not write:
            return {**reply, "message": f"{file} would hold {count}. Nothing was written."}
        placed = _place(file, text, folder.name)
        return {
            **reply,
            "message": f"{name} is ready, in {file}, with {count} inside.",
            "try": placed.get("try") or _snake(name).replace("_", " "),
        }


class _RefusedError(Exception):
    """Cannot be built; the text is the answer."""


class _Source:
    """One file of a workshop. ``names`` maps its module-level names to those in the singleton."""

    def __init__(
        self, path: Path, tree: ast.Module, text: str, sha256: str, manifest: dict[str, Any]
    ) -> None:
        self.path = path
        self.tree = tree
        self.text = text
        self.sha256 = sha256
        self.manifest = manifest
        self.needs: set[str] = set()  # stems of the files it imports
        self.bound: set[str] = set()  # names bound at module level by other than its imports
        self.performing: list[str] = []  # classes with perform
        self.agents: list[str] = []  # those of them that are agents
        self.names: dict[str, str] = {}

    @property
    def prefix(self) -> str:
        """One underscore, never two: a name that starts with two means another one inside a class."""
        return f"_{self.path.stem.lstrip('_')}"

    def at(self, node: Any) -> str:
        return f"{self.path.name} line {node.lineno}"

    def siblings(self, node: ast.AST) -> dict[str, tuple[str, str]]:
        """Local name to (file stem, name there), for an import from a file of the same folder."""
        match node:
            case ast.ImportFrom(module=module, names=aliases, level=level):
                package, _, last = (module or "").rpartition(".")
                local = (
                    level > 0
                    or package.partition(".")[0] == "agents"
                    or (not package and not _standard(last))
                )
                if local and self._is_file(last):
                    return {alias.asname or alias.name: (last, alias.name) for alias in aliases}
                whole = [
                    alias.name
                    for alias in aliases
                    if (level or last == "agents") and self._is_file(alias.name)
                ]
                if level and not whole:
                    raise _RefusedError(f"{self.at(node)}: there is no {last}.py in the folder.")
            case ast.Import(names=aliases):
                lasts = [alias.name.removeprefix("agents.") for alias in aliases if not _standard(alias.name)]
                whole = [last for last in lasts if self._is_file(last)]
            case _:
                return {}
        if whole:
            raise _RefusedError(
                f"{self.at(node)}: import the names from {whole[0]}.py instead of the whole file."
            )
        return {}

    def _is_file(self, stem: str) -> bool:
        return stem.isidentifier() and stem != "basic_agent" and (self.path.parent / f"{stem}.py").is_file()


def _standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


# Reading the workshop.


def _read(folder: Path, exclude: set[str]) -> list[_Source]:
    """The folder's agent files and the helpers they import; those that others need first."""
    found: dict[str, _Source] = {}
    left_out = {"basic_agent", "swarm_factory_agent", *(name.removesuffix(".py") for name in exclude)}
    todo = [path.stem for path in sorted(folder.glob("*_agent.py"))]
    order: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    while todo:
        stem = todo.pop(0)
        if stem in found or stem in left_out:
            continue
        source = found[stem] = _parse(folder / f"{stem}.py")
        source.needs = {
            other for node in ast.walk(source.tree) for other, _ in source.siblings(node).values()
        }
        first = {other for node in _run_at_import(source.tree) for other, _ in source.siblings(node).values()}
        if left_out & source.needs:
            raise _RefusedError(
                f"{source.path.name} imports {min(left_out & source.needs)}.py, which is left out."
            )
        order.add(stem, *sorted(first))
        todo += sorted(source.needs)
        if len(found) > _MOST_FILES:
            raise _RefusedError(f"{folder.name} has more than {_MOST_FILES} files.")
    if not found:
        raise _RefusedError(f"{folder.name} holds no agent file (*_agent.py).")
    try:
        return [found[stem] for stem in order.static_order()]
    except graphlib.CycleError as error:
        raise _RefusedError(
            f"These files import each other in a circle: {', '.join(error.args[1])}."
        ) from error


def _parse(path: Path) -> _Source:
    if path.is_symlink() or path.stat().st_size > _MOST_BYTES:
        raise _RefusedError(f"{path.name} is a link, or larger than 1 MB.")
    raw = path.read_bytes()
    try:
        exec(compile("", str(path), "exec"))  # noqa: S102 - refused by the daemon's guard where the file is quarantined
    except ImportError as error:
        raise _RefusedError(str(error)) from error
    try:
        tree = ast.parse(raw)
    except SyntaxError as error:
        raise _RefusedError(f"{path.name} line {error.lineno or 1}: {error.msg}. Fix it first.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _RefusedError(f"{path.name} is not Python: {error}") from error
    text, sha256 = raw.decode("utf-8", "replace"), hashlib.sha256(raw).hexdigest()
    return _Source(path, tree, text, sha256, _take_manifest(tree))


def _take_manifest(tree: ast.Module) -> dict[str, Any]:
    """The file's ``__manifest__``, taken out of it unless its code refers to it."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__manifest__")], value=value):
                names = [part for part in ast.walk(tree) if isinstance(part, ast.Name)]
                if sum(name.id == "__manifest__" for name in names) == 1:
                    tree.body.remove(node)
                try:
                    found = ast.literal_eval(value)
                except ValueError:
                    return {}
                return found if isinstance(found, dict) else {}
    return {}


def _run_at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module outside its functions."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _run_at_import(node)


# Scopes: which names mean the module's.

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _in_scope(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of one scope, without the insides of functions, classes and comprehensions."""
    todo = list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _COMPREHENSIONS):
            todo += [part.target for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)


def _binds(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these statements bind in their own scope."""
    names: set[str | None] = set()
    for node in _in_scope(nodes):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.MatchMapping(rest=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                names.add(name)
            case ast.alias(name=name, asname=asname):
                names.add(asname or name.partition(".")[0])
    return {name for name in names if name}


def _declared(nodes: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    return {name for node in _in_scope(nodes) if isinstance(node, kind) for name in node.names}


class _Scope:
    """``is_class``: it binds one statement after the other, and not for the functions inside."""

    def __init__(
        self, bound: set[str], is_global: set[str] | frozenset[str] = frozenset(), *, is_class: bool = False
    ) -> None:
        self.bound = bound
        self.is_global = is_global
        self.is_class = is_class


class _Rewriter(ast.NodeTransformer):
    """Gives a file's module-level names their new form wherever they are meant, and only there."""

    def __init__(self, source: _Source, sources: dict[str, _Source]) -> None:
        self.source = source
        self.sources = sources
        self.scopes: list[_Scope] = []

    def rewritten(self, node: ast.stmt) -> list[ast.stmt]:
        return self._each([node])

    def _read(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.is_global:
                break
            if name in scope.bound and (not scope.is_class or scope is self.scopes[-1]):
                return name
        return self.source.names.get(name, name)

    def _bound(self, name: str) -> str:
        scope = self.scopes[-1] if self.scopes else None
        in_class = scope is not None and scope.is_class and name not in scope.is_global
        return name if in_class else self._read(name)

    def _within(self, scope: _Scope, nodes: list[Any]) -> list[Any]:
        self.scopes.append(scope)
        done = self._each(nodes)
        self.scopes.pop()
        return done

    def _each(self, nodes: list[Any]) -> list[Any]:
        done: list[Any] = []
        for node in nodes:
            new = self.visit(node)
            done += new if isinstance(new, list) else [new]
        return done

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._read(node.id) if isinstance(node.ctx, ast.Load) else self._bound(node.id)
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:
        node.names = [self.source.names.get(name, name) for name in node.names]
        return node

    def _named(self, node: Any) -> Any:
        for key in ("name", "rest"):
            if isinstance(getattr(node, key, None), str):
                setattr(node, key, self._bound(getattr(node, key)))
        return self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = _named  # noqa: N815

    def visit_FunctionDef(self, node: Any) -> Any:
        node.name = self._bound(node.name)
        node.decorator_list = self._each(node.decorator_list)
        node.returns = node.returns and self.visit(node.returns)
        return self._function(node, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return self._function(node, [node.body])

    def _function(self, node: Any, body: list[Any]) -> Any:
        node.args = self.visit(node.args)  # defaults and annotations belong to the scope around
        args = node.args
        named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        parameters = {part.arg for part in named if part}
        is_global = _declared(body, ast.Global)
        bound = (parameters | _binds(body)) - is_global - _declared(body, ast.Nonlocal)
        done = self._within(_Scope(bound, is_global), body)
        node.body = done if isinstance(node.body, list) else done[0]
        return node

    def _comprehension(self, node: Any) -> Any:
        first = node.generators[0]
        first.iter = self.visit(first.iter)  # the one part that belongs to the scope around
        targets = [part for generator in node.generators for part in ast.walk(generator.target)]
        self.scopes.append(_Scope(_binds(targets)))
        for number, generator in enumerate(node.generators):
            generator.target = self.visit(generator.target)
            generator.iter = generator.iter if number == 0 else self.visit(generator.iter)
            generator.ifs = self._each(generator.ifs)
        for key in ("elt", "key", "value"):
            if hasattr(node, key):
                setattr(node, key, self.visit(getattr(node, key)))
        self.scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._bound(node.name)
        node.decorator_list = self._each(node.decorator_list)
        node.bases, node.keywords = self._each(node.bases), self._each(node.keywords)
        scope = _Scope(set(), _declared(node.body, ast.Global), is_class=True)
        self.scopes.append(scope)
        body = []
        for statement in node.body:
            binds = _binds([statement]) - scope.is_global
            simple = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr))
            scope.bound |= set() if simple else binds
            body += self._each([statement])
            scope.bound |= binds
        node.body = body
        self.scopes.pop()
        return node

    def visit_Import(self, node: Any) -> Any:
        for alias in node.names:
            name = alias.asname or alias.name
            if "." not in name and self._bound(name) != name:
                alias.asname = self._bound(name)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Any:
        siblings = self.source.siblings(node)
        if not siblings:
            return self.visit_Import(node)
        made = [
            ast.Assign(
                [ast.Name(self._bound(local), ast.Store())], ast.Name(self.target(node, *there), ast.Load())
            )
            for local, there in siblings.items()
        ]
        return [ast.copy_location(statement, node) for statement in made]

    def target(self, node: ast.AST, stem: str, name: str) -> str:
        """The singleton's name for what another file calls ``name``."""
        names = self.sources[stem].names
        if name not in names and name != "BasicAgent":
            raise _RefusedError(f"{self.source.at(node)}: {stem}.py has no {name}.")
        return names.get(name, name)


# Putting it together.


class _Singleton:
    """The one file: ``text()``, and what was found on the way (``inner`` agents, ``notes``)."""

    def __init__(self, name: str, swarm: str, sources: list[_Source]) -> None:
        self.name = name
        self.swarm = swarm
        self.sources = {source.path.stem: source for source in sources}
        self.inner: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._imports = {"json": "import json", "inspect": "import inspect"}
        self._used_names = {"BasicAgent", "_INNER", "_PROVENANCE", f"{name}Agent", *self._imports}
        self._future: set[str] = set()

    def text(self) -> str:
        """The whole file. It has been loaded, and each of its agents made. Raises ``_RefusedError``."""
        for source in self.sources.values():
            self._name(source)
        parts = [self._part(source) for source in self.sources.values()]
        body = "\n\n".join(["\n".join(sorted(self._imports.values())), _GUARD, *parts])
        if self._future:
            body = f"from __future__ import {', '.join(sorted(self._future))}\n\n{body}"
        self.inner = _apart(lambda: self._described(_loaded(body)))
        parameters, routes = _merged(self.inner)
        text = self._head() + body + self._tail(parameters, routes)
        if _apart(lambda: vars(_loaded(text))[f"{self.name}Agent"]().metadata["parameters"]) != parameters:
            raise _RefusedError("The result does not describe itself as it should.")
        return text

    def _name(self, source: _Source) -> None:
        """Decides what each module-level name of the file is called from now on, and hoists its imports."""
        body = source.tree.body
        imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
        nodes = list(ast.walk(source.tree))
        source.bound = _binds(node for node in body if node not in imports and not _dropped(node))
        source.bound |= {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        source.bound |= _rebound(imports)
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                raise _RefusedError(f"{source.at(node)}: name what you import instead of *.")
            if isinstance(node, ast.Import) and node not in imports:
                dotted = [alias.name for alias in node.names if "." in alias.name and not alias.asname]
                source.bound -= {name.partition(".")[0] for name in dotted}  # these keep their name
            if isinstance(node, ast.Name) and node.id in ("__file__", "globals", "eval", "exec"):
                self.notes.append(f"{source.at(node)} uses {node.id}: look whether that still fits one file.")
        source.agents = _agent_classes(source, self.sources)
        for name in sorted(source.bound - {"BasicAgent"}):
            agent = name in source.agents
            source.names[name] = self._free(f"_Internal{name}" if agent else f"{source.prefix}_{name}")
        for node in imports:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                self._future |= {alias.name for alias in node.names}
                continue
            for local, there in source.siblings(node).items():
                source.names.setdefault(local, _Rewriter(source, self.sources).target(node, *there))
            for alias in node.names if not source.siblings(node) else ():
                self._hoist(source, node, alias)

    def _hoist(self, source: _Source, node: ast.stmt, alias: ast.alias) -> None:
        """One import per name at the top; where a name means two things, a file gets one of its own."""
        local = alias.asname or alias.name.partition(".")[0]
        if alias.name == "BasicAgent":
            source.names[local] = "BasicAgent"
        if local in source.names:  # bound again further down: the import stays where it is
            return
        what = alias.name
        origin = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
        if not origin and not alias.asname and "." in what:
            self._imports[what] = f"import {what} as _import_{what.replace('.', '_')}"
            what = local
        plain = f"{origin}import {what}" + ("" if local == what else f" as {local}")
        if hasattr(builtins, local) or self._imports.get(local, plain) != plain:
            local = self._free(f"{source.prefix}_{local}")
            plain = f"{origin}import {what} as {local}"
        self._imports[local] = plain
        source.names[alias.asname or alias.name.partition(".")[0]] = local

    def _free(self, name: str) -> str:
        found = next(n for n in (name, *(f"{name}_{i}" for i in range(2, 1000))) if n not in self._used_names)
        self._used_names.add(found)
        return found

    def _part(self, source: _Source) -> str:
        rewriter = _Rewriter(source, self.sources)
        kept: list[ast.stmt] = []
        for node in source.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                node.names = [a for a in node.names if (a.asname or a.name.partition(".")[0]) in source.bound]
            if not _dropped(node) and getattr(node, "names", True):
                kept += rewriter.rewritten(node)
        try:
            code = "\n\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in kept)
        except ValueError as error:
            raise _RefusedError(f"{source.path.name} cannot be written out: {error}") from error
        hidden = [name for name in sorted(source.bound) if hasattr(builtins, name) and name in source.names]
        until_bound = "".join(f"{source.names[name]} = {name}\n" for name in hidden)
        return f"# {source.path.name}\n\n{until_bound}{code}\n"

    def _described(self, module: ModuleType) -> list[dict[str, Any]]:
        inner: list[dict[str, Any]] = []
        base = getattr(vars(module)["BasicAgent"], "system_context", None)
        for source in self.sources.values():
            for cls in source.agents:
                made = _made(vars(module)[source.names[cls]], f"{cls} in {source.path.name}")
                metadata = made.metadata if isinstance(getattr(made, "metadata", None), dict) else {}
                row = {
                    "name": str(getattr(made, "name", "") or metadata.get("name") or cls),
                    "class": source.names[cls],
                    "file": source.path.name,
                    "composite": any(other.endswith("_agent") for other in source.needs),
                    "description": " ".join(str(metadata.get("description") or "").split()),
                    "parameters": _plain(metadata.get("parameters") or {"type": "object", "properties": {}}),
                    "context": getattr(type(made), "system_context", base) is not base,
                }
                if any(row["name"] == other["name"] for other in inner):
                    raise _RefusedError(f"Two agents are called {row['name']}; rename one.")
                inner.append(row)
        if not inner:
            raise _RefusedError(f"{self.swarm} holds no agent: no class with perform.")
        return inner

    def _head(self) -> str:
        about = [f"{row['name']} ({row['file']}): {row['description']}" for row in self.inner]
        docs = [
            f"{source.path.name}\n\n{text.strip()}"
            for source in self.sources.values()
            if (text := ast.get_docstring(source.tree))
        ]
        words = "\n\n".join(
            [f"{self.name}: {len(about)} agents of the workshop {self.swarm} in one file.", *about, *docs]
        )
        text = ast.unparse(ast.Module([ast.Expr(ast.Constant(words + "\n"))], [])) + "\n\n"
        found = [line for source in self.sources.values() for line in source.text.splitlines()]
        wanted = dict.fromkeys(line.strip() for line in found if re.match(_REQUIREMENT, line))
        return text + "".join(f"{line}\n" for line in wanted)

    def _tail(self, parameters: dict[str, Any], routes: dict[str, str]) -> str:
        sources = self.sources.values()
        manifests = [source.manifest for source in sources]
        collected = {
            key: sorted({str(item) for found in manifests for item in _listed(found.get(key))})
            for key in ("requires_env", "requirements", "dependencies")
        }
        first = self.inner[0]["description"] if len(self.inner) == 1 else ""
        names = ", ".join(row["name"] for row in self.inner)
        description = first or f"{self.name} offers {names}. " + " ".join(
            f"{row['name']}: {row['description'].rstrip('.')}." for row in self.inner
        )
        manifest = {
            "schema": "rapp-agent/1.0",
            "name": f"@local/{_snake(self.name)}_agent",
            "version": "1.0.0",
            "display_name": self.name,
            "description": description[:200],
            "author": "SwarmFactory",
            "tags": ["singleton", "swarm"],
            "category": "general",
            "quality_tier": "experimental",
            **{key: value for key, value in collected.items() if value or key == "requires_env"},
        }
        if any(found.get("one_worker") is True for found in manifests):
            manifest["one_worker"] = True
        provenance = {
            "schema": "rapp-singleton/1.0",
            "swarm": self.swarm,
            "files": [
                {"file": source.path.name, "sha256": source.sha256, "agents": source.agents}
                for source in sources
            ],
        }
        inner = "".join(f"    {row['name']!r}: {row['class']},\n" for row in self.inner)
        text = _PUBLIC.format(
            manifest=_pretty(manifest),
            provenance=_pretty(provenance),
            inner=inner,
            routes=_pretty(routes),
            cls=f"{self.name}Agent",
            name=repr(self.name),
            description=repr(description[:1000]),
            parameters=_pretty(parameters, 12),
            user=' or key == "user_guid"' if any("user_guid" in source.text for source in sources) else "",
        )
        return (
            text
            + (_CONTEXT if any(row["context"] for row in self.inner) else "")
            + _MAIN.format(cls=f"{self.name}Agent")
        )


def _rebound(imports: list[ast.Import | ast.ImportFrom]) -> set[str]:
    """Names that one import after the other gives another meaning: where they stand decides what they mean."""
    meanings: dict[str, set[tuple[str, str]]] = {}
    for node in imports:
        origin = f"{node.level}{node.module}" if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names if origin != "0__future__" else ():
            package = alias.name.partition(".")[0]
            meanings.setdefault(alias.asname or package, set()).add(
                (origin, alias.name if alias.asname else package)
            )
    return {name for name, found in meanings.items() if len(found) > 1} - {"BasicAgent"}


def _dropped(node: ast.stmt) -> bool:
    """True when the singleton has this of its own: text, the base class, running as a script."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.ClassDef(name="BasicAgent"):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=test):
            return ast.unparse(test) == "__name__ == '__main__'"
        case ast.Try(body=body):
            return all(_is_base(inner) for inner in body) and _binds([node]) == {"BasicAgent"}
    return _is_base(node)


def _is_base(node: ast.stmt) -> bool:
    names = node.names if isinstance(node, ast.ImportFrom) else []
    return [(alias.name, alias.asname) for alias in names] == [("BasicAgent", None)]


def _agent_classes(source: _Source, sources: dict[str, _Source]) -> list[str]:
    """The public classes with ``perform``, their own or inherited from one of the workshop's classes."""
    theirs = {
        local: at for node in _run_at_import(source.tree) for local, at in source.siblings(node).items()
    }
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name != "BasicAgent":
            inherited = False
            for base in node.bases:
                stem, name = theirs.get(ast.unparse(base), (source.path.stem, ast.unparse(base)))
                inherited = inherited or name in sources[stem].performing
            own = [item for item in node.body if getattr(item, "name", "") == "perform"]
            abstract = any("abstractmethod" in ast.unparse(d) for item in own for d in item.decorator_list)  # type: ignore[attr-defined]  # functions
            if (own or inherited) and not abstract:
                source.performing.append(node.name)
    return [name for name in source.performing if not name.startswith("_")]


def _merged(inner: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The public arguments, and which of them pick an agent or a chain (none for a single agent)."""
    if len(inner) == 1:
        return _plain(inner[0]["parameters"]), {"pick": "", "chain": "", "default": inner[0]["name"]}
    by_parameter: dict[str, dict[str, Any]] = {}
    for row in inner:
        for key, schema in _plain(row["parameters"]).get("properties", {}).items():
            by_parameter.setdefault(key, {})[row["name"]] = schema if isinstance(schema, dict) else {}
    names = [row["name"] for row in inner]
    pick = next(
        key for key in ("agent", "action", "inner_agent", "inner_agent_name") if key not in by_parameter
    )
    chain = next(key for key in ("chain", "chain_agents", "inner_chain") if key not in by_parameter)
    composites = [row["name"] for row in inner if row["composite"]]
    default = composites[0] if len(composites) == 1 else ""
    listed = " ".join(f"{row['name']}: {row['description'].split('. ')[0].rstrip('.')}." for row in inner)
    properties: dict[str, Any] = {
        pick: {"type": "string", "enum": names, "description": f"Which agent. {listed}"},
        chain: {
            "type": "array",
            "items": {"type": "string", "enum": names},
            "description": "Several agents to run in this order, each with what the one before found.",
        },
    }
    for key, schemas in by_parameter.items():
        properties[key] = _union(schemas)
    return {"type": "object", "properties": properties, "required": []}, {
        "pick": pick,
        "chain": chain,
        "default": default,
    }


def _union(schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One schema for an argument that several agents have, as narrow as all of them allow."""
    every = list(schemas.values())
    if all(schema == every[0] for schema in every):
        return every[0]
    shared = {
        key: every[0][key]
        for key in every[0]
        if key not in ("description", "enum", "default") and all(s.get(key) == every[0][key] for s in every)
    }
    if all(isinstance(schema.get("enum"), list) for schema in every):
        shared["enum"] = list(
            {json.dumps(item): item for schema in every for item in schema["enum"]}.values()
        )
    descriptions = [
        f"{name}: {text}" for name, schema in schemas.items() if (text := schema.get("description"))
    ]
    return {**shared, "description": " ".join(descriptions)} if descriptions else shared


def _plain(parameters: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(json.dumps(parameters))
    except (TypeError, ValueError) as error:
        raise _RefusedError(f"An agent's parameters cannot be written as JSON: {error}") from error
    return found


def _pretty(value: Any, indent: int = 0) -> str:
    return pprint.pformat(value, width=100 - indent, sort_dicts=False).replace("\n", "\n" + " " * indent)


def _apart(run: Callable[[], Any]) -> Any:
    """The result of ``run`` as JSON: it runs in a fork, which may ask the daemon for nothing.

    Else the files of a workshop would act with the rights of this agent.
    """
    if not hasattr(os, "fork"):
        return run()
    result, into = os.pipe()
    child = os.fork()
    if not child:
        try:
            try:
                found = [True, run()]
            except _RefusedError as error:
                found = [False, str(error)]
            with os.fdopen(into, "w", encoding="utf-8") as file:
                json.dump(found, file)
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(result, encoding="utf-8", errors="replace") as file:
        text = file.read(_MOST_BYTES * 16)
    os.waitpid(child, 0)  # no other: the process may have children of its own
    try:
        worked, value = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise _RefusedError("The result does not load: it ends the process.") from error
    if not worked:
        raise _RefusedError(str(value))
    return value


def _loaded(text: str) -> ModuleType:
    """The text as a module, executed for real."""
    module = ModuleType(f"singleton_{uuid.uuid4().hex}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, "singleton", "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the test is to run it
    except (Exception, SystemExit) as error:
        raise _RefusedError(f"The result does not load: {type(error).__name__}: {error}") from error
    finally:
        del sys.modules[module.__name__]
    return module


def _made(cls: Any, which: str) -> Any:
    try:
        return cls()
    except (Exception, SystemExit) as error:
        raise _RefusedError(
            f"{which} cannot be made without arguments: {type(error).__name__}: {error}"
        ) from error


_REQUIREMENT = r"(?i)\s*#\s*(requirements?\s*:|(python3? -m )?pip3? install )"
_GUARD = """\
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
_PUBLIC = """

__manifest__ = {manifest}

_PROVENANCE = {provenance}

_INNER = {{
{inner}}}
_ROUTES = {routes}


class {cls}(BasicAgent):
    def __init__(self):
        self.inner = {{name: make() for name, make in _INNER.items()}}
        self.name = {name}
        self.metadata = {{
            "name": self.name,
            "description": {description},
            "parameters": {parameters},
        }}
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs):
        chain = kwargs.pop(_ROUTES["chain"], None) or []
        wanted = kwargs.pop(_ROUTES["pick"], None) or _ROUTES["default"]
        steps = [step.strip() for step in chain.split(",")] if isinstance(chain, str) else list(chain)
        unknown = [step for step in steps or [wanted] if step not in self.inner]
        if unknown:
            message = f"Which agent? There is no {{unknown[0]!r}}; there are {{', '.join(self.inner)}}."
            return json.dumps({{"status": "error", "message": message}})
        if not steps:
            return self._run(self.inner[wanted], kwargs, None)
        slush, done = None, []
        for step in steps:
            agent = self.inner[step]
            known = self._known(agent)
            given = {{key: value for key, value in kwargs.items() if key in known{user}}}
            found = self._parsed(self._run(agent, given, slush))
            done.append({{"agent": step, "result": found}})
            if isinstance(found, dict) and str(found.get("status")).lower() == "error":
                message = f"{{step}} failed: {{found.get('message') or 'no reason given'}}"
                return json.dumps({{"status": "error", "message": message, "steps": done}}, default=str)
            slush = found.get("data_slush") if isinstance(found, dict) else None
        reply = {{"status": "success", "result": done[-1]["result"], "steps": done, "data_slush": slush or {{}}}}
        return json.dumps(reply, default=str)

    def _run(self, agent, given, slush):
        execute = getattr(agent, "execute", None)
        if slush and isinstance(slush, dict):
            known = self._known(agent)
            given = {{**{{key: slush[key] for key in slush if key in known}}, **given}}
        takes = inspect.signature(agent.perform).parameters.values()
        if not any(one.kind is one.VAR_KEYWORD for one in takes):
            names = {{one.name for one in takes}}
            given = {{key: value for key, value in given.items() if key in names}}
            slush = slush if execute else None
        if slush:
            given = {{**given, "upstream_slush": slush}}
        result = (execute or agent.perform)(**given)
        return result if isinstance(result, str) else json.dumps(result, default=str)

    def _known(self, agent):
        metadata = getattr(agent, "metadata", None) or {{}}
        return (metadata.get("parameters") or {{}}).get("properties") or {{}}

    def _parsed(self, text):
        try:
            return json.loads(text)
        except ValueError:
            return text
"""
_CONTEXT = """
    def system_context(self):
        found = [getattr(agent, "system_context", lambda: None)() for agent in self.inner.values()]
        return "\\n\\n".join(text for text in found if text) or None
"""
_MAIN = """

if __name__ == "__main__":
    print({cls}().perform())
"""


# The workspace: where workshops are, and where the result goes.


def _agents_folder() -> Path:
    """The workspace's agents folder: where a brainstem lets agents import their neighbours from."""
    known = list(getattr(sys.modules.get("agents"), "__path__", ()))
    folders = [Path(entry) for entry in reversed(known)] + [Path(__file__).resolve().parent]
    return next((folder for folder in folders if (folder / "workspace_agents").is_dir()), folders[0])


def _workshops() -> dict[str, Any]:
    home = _agents_folder() / "workspace_agents"
    found = [
        {"swarm": folder.name, "files": sorted(path.name for path in folder.glob("*_agent.py"))}
        for folder in (sorted(home.iterdir()) if home.is_dir() else ())
        if folder.is_dir() and not folder.name.startswith((".", "_"))
    ]
    if not found:
        message = (
            "There is no workshop yet. Put agent files into agents/workspace_agents/<name>/, then build it."
        )
    else:
        message = (
            "Workshops: " + ", ".join(f"{row['swarm']} ({len(row['files'])} files)" for row in found) + "."
        )
    return {"message": message, "workshops": found}


def _folder(swarm: str) -> Path:
    agents = _agents_folder()
    workspace = Path(os.path.realpath(agents.parent))
    named = [
        row["swarm"] for row in _workshops()["workshops"] if row["swarm"] in re.findall(r"[\w.-]+", swarm)
    ]
    for folder in [agents / "workspace_agents" / swarm, workspace / swarm] + [
        agents / "workspace_agents" / name for name in named[:1]
    ]:
        real = Path(os.path.realpath(folder))
        if swarm.strip("./\\ ") and real.is_dir() and real.is_relative_to(workspace) and real != workspace:
            return real
    raise _RefusedError(f'There is no workshop "{swarm}" in agents/workspace_agents. Action list names them.')


def _place(file: str, text: str, swarm: str) -> dict[str, Any]:
    """Puts the file in its place, over an earlier build of the same workshop only."""
    target = _agents_folder() / file
    again = target.exists()
    if again and f"'swarm': {swarm!r}" not in target.read_text(encoding="utf-8", errors="replace"):
        raise _RefusedError(f"There is an agent file {file} already. Choose another name.")
    try:
        from utils.host import request  # type: ignore[import-not-found]  # the brainstem puts it there
    except ImportError:
        part = target.with_name(f".{file}.{uuid.uuid4().hex}")
        part.write_text(text, encoding="utf-8")
        part.replace(target)
        return {}
    reason = f"built from workshop {swarm}"
    try:
        done: dict[str, Any] = request(
            "agents.write", filename=file, source=text, reason=reason, replace=again
        )
    except Exception as error:
        raise _RefusedError(str(error)) from error
    if done.get("status") == "quarantined":
        raise _RefusedError(str(done.get("message")))
    return done


def _listed(value: Any) -> set[str]:
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return {text for item in items if (text := str(item).strip())}


def _camel(text: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[:1].upper() + word[1:] for word in words).lstrip("0123456789")[:40]
    return name.removesuffix("Agent") or "Swarm"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


if __name__ == "__main__":
    sys.stdout.write(SwarmFactoryAgent().perform(swarm=" ".join(sys.argv[1:])) + "\n")
