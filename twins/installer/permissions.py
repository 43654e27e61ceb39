"""The access that a piece of code needs, as far as its text tells without running it.

A help for reading a plan, no protection: code can hide what it does. Workers are sandboxed.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from agents.contract.loading import OWN_PACKAGES
from agents.packages.requirements import declared_requirements, normalised, package_for
from twins.errors import BadFileError
from twins.workspace.workspace_env import decode, parse
from twins.zip.names import shown

NETWORK = "the network"
PROGRAMS = "other programs"
NATIVE = "native code"
UNREADABLE = "unknown: it does not parse"

_NETWORKS = (
    *("socket", "socketserver", "ssl", "asyncio", "http", "urllib", "xmlrpc", "ftplib", "smtplib", "imaplib"),
    *("poplib", "telnetlib", "requests", "httpx", "aiohttp", "websockets", "urllib3"),
)
_REACH = {
    **dict.fromkeys(_NETWORKS, NETWORK),
    **dict.fromkeys(("subprocess", "pty", "multiprocessing", "pexpect", "sh"), PROGRAMS),
    **dict.fromkeys(("ctypes", "cffi", "mmap"), NATIVE),
}
_STARTS = frozenset({"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"})
_HIDES = frozenset({"eval", "exec", "compile", "__import__"})
CODE_MADE = "code it makes itself"


def reaches_for(source: bytes) -> list[str]:
    """The access that the code needs, sorted, in words for people: the network, other programs, package names."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [UNREADABLE]
    found: set[str] = set()
    packages = {f"the package {name}" for name in map(normalised, declared_requirements(source)) if name}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0, names=names):
                modules = [module]
                if module == "os" and _STARTS & {alias.name for alias in names}:
                    found.add(PROGRAMS)
            case ast.Attribute(value=ast.Name(id="os"), attr=attribute):
                modules = []
                if attribute in _STARTS or attribute.startswith(("exec", "spawn")):
                    found.add(PROGRAMS)
            case ast.Call(func=ast.Name(id=name)) if name in _HIDES:
                modules = []
                found.add(CODE_MADE)
            case _:
                continue
        for module in modules:
            top = module.partition(".")[0]
            if top in _REACH:
                found.add(_REACH[top])
            package = package_for(top)
            if package and top not in OWN_PACKAGES and top not in sys.stdlib_module_names:
                packages.add(f"the package {normalised(package)}")
    return sorted(found) + sorted(packages)


def variables_of(content: bytes) -> dict[str, Any]:
    """``{names, never_taken, problem}`` of a ``.env``: names without values, in the file's order."""
    try:
        found = parse(decode(content))
    except BadFileError as problem:
        return {"names": [], "never_taken": [], "problem": str(problem)}
    names, left_out = map(shown, found.taken), map(shown, found.left_out)
    return {"names": list(names), "never_taken": list(left_out), "problem": ""}
