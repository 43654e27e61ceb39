"""Making agents out of one file: executing it, instantiating its classes, describing them."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType

from agents.basic_agent import BasicAgent
from agents.contract.agent_contract import ContractError
from agents.contract.declared_needs import KEY, declared_in
from agents.contract.file_discovery import CARTRIDGE, LISPY, LISTENER_SUFFIX, OWN_PACKAGES
from agents.contract.loaded_file import LoadedFile, LoadFailure, describe, text_of
from agents.contract.syntax import syntax_tree
from agents.storage.text_file import encoding_fault

MODULE_PREFIX = "agent_file_"
_numbers = itertools.count(1)


def load_agent_file(
    path: Path, *, shown_as: str | None = None, source: bytes | None = None, folder: Path | None = None
) -> LoadedFile:
    """Executes the file and makes one agent of each class it offers, without arguments.

    ``source`` is used instead of the file's bytes; ``shown_as`` is the file's name in failures;
    ``folder`` is the agents folder, where relative imports start. Nothing that foreign code raises
    gets out.
    """
    loaded = LoadedFile(shown_as or path.name)
    try:
        content = path.read_bytes() if source is None else source
    except OSError as error:
        loaded.failure = LoadFailure(loaded.file, None, f"it cannot be read: {error.strerror or error}")
        return loaded
    if path.name.endswith((LISPY, CARTRIDGE)):
        from agents.runtimes.lispy.agent import load_lispy  # most workspaces have none

        load_lispy(loaded, content)
        return loaded
    loaded.module, loaded.failure = execute(path, loaded.file, content, folder or path.parent)
    if loaded.module is not None and path.name.endswith(LISTENER_SUFFIX):
        _make_listeners(loaded, loaded.module, content)
    elif loaded.module is not None:
        _make_agents(loaded, loaded.module, path, content)
        if not loaded.instances and not loaded.quarantined:
            reason = "it defines no agent, a class with name, metadata and perform"
            loaded.failure = LoadFailure(loaded.file, None, reason)
            loaded.forget()
    return loaded


def execute(
    path: Path, shown_as: str, content: bytes, folder: Path
) -> tuple[ModuleType | None, LoadFailure | None]:
    """Runs ``content`` as a module with ``__file__`` = ``path``; the module, or why there is none.

    The module's name is its own, so that it never stands in for, or runs as, another.
    """
    module = ModuleType(f"{MODULE_PREFIX}{next(_numbers)}_{path.stem}")
    module.__file__ = str(path)
    module.__package__ = _package(path, folder)
    sys.modules[module.__name__] = module  # dataclasses, typing and pickle look modules up by name
    try:
        exec(code_of(path, content), module.__dict__)  # noqa: S102 - running agent files is what this room is for
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        sys.modules.pop(module.__name__, None)
        if isinstance(error, (SyntaxError, ValueError)) and (fault := encoding_fault(content)) is not None:
            return None, LoadFailure(shown_as, fault.line, f"it {fault}")
        return None, _failure(error, path, shown_as)
    return module, None


def agent_classes(module: ModuleType) -> list[type]:
    """The classes of an executed file that are agents, in the order it defines them.

    Public module-level classes with ``perform``, except any called BasicAgent and abstract ones.
    Imported classes count only if ``__all__`` names them, or if the file defines none of its own.
    """
    names = getattr(module, "__all__", ())
    exported = names if isinstance(names, (list, tuple, set)) else ()
    own: dict[type, None] = {}
    imported: dict[type, None] = {}
    for name, value in list(vars(module).items()):
        if not isinstance(value, type) or name.startswith("_") or value.__name__ == BasicAgent.__name__:
            continue
        if not callable(getattr(value, "perform", None)) or inspect.isabstract(value):
            continue
        is_own = value.__module__ == module.__name__ or name in exported
        (own if is_own else imported)[value] = None
    return list(own or imported)


def _package(path: Path, folder: Path) -> str:
    """The package that relative imports of the file start from."""
    try:
        below = path.parent.relative_to(folder).parts
    except ValueError:  # from another folder
        below = ()
    return ".".join(("agents", *below))


def _make_agents(loaded: LoadedFile, module: ModuleType, path: Path, content: bytes) -> None:
    shown = getattr(module, "__manifest__", None)
    is_declared = declared_in(path.name, content).needs is not None
    classes = agent_classes(module)
    for cls in classes:
        try:
            instance = cls()
            text = text_of(cls.__doc__) or text_of(module.__doc__)
            description = describe(instance, default_text=text.split("\n\n", 1)[0], shown=shown)
            if not is_declared and _says_needs(instance, shown):
                raise ContractError(
                    f"{cls.__name__}: needs is not written out in metadata, as a dict of lists of texts"
                )
        except ContractError as error:
            line = _line_of_class(content, cls.__name__)
            loaded.quarantined.append(LoadFailure(loaded.file, line, str(error), cls.__name__))
        except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
            if _is_base_wanting_arguments(cls, classes, error):
                continue
            loaded.quarantined.append(_failure(error, path, loaded.file, content, cls.__name__))
        else:
            loaded.instances.append(instance)
            loaded.descriptions.append(description)


def _says_needs(instance: object, shown: object) -> bool:
    """True for needs that running the file makes: what it may reach has to be known before."""
    return any(isinstance(one, dict) and KEY in one for one in (getattr(instance, "metadata", None), shown))


def _make_listeners(loaded: LoadedFile, module: ModuleType, content: bytes) -> None:
    from agents.contract.listener_file import LoadedListener, listeners_in  # most workers have none

    for found in listeners_in(module, loaded.file, content):
        if isinstance(found, LoadedListener):
            loaded.instances.append(found)
            loaded.descriptions.append(found.describe())
        else:
            class_name, error = found
            loaded.quarantined.append(LoadFailure(loaded.file, error.line, str(error), class_name))
    if not loaded.instances and not loaded.quarantined:
        reason = "it declares no listener: @listener over a dataclass, and a function that takes it"
        loaded.failure = LoadFailure(loaded.file, None, reason)
        loaded.forget()


def _is_base_wanting_arguments(cls: type, classes: list[type], error: BaseException) -> bool:
    """True when ``cls`` is only there for others of its file: the call itself failed, and they derive from it."""
    called = error.__traceback__
    is_own_call = isinstance(error, TypeError) and called is not None and called.tb_next is None
    return is_own_call and any(other is not cls and issubclass(other, cls) for other in classes)


def _failure(
    error: BaseException, path: Path, shown: str, content: bytes = b"", class_name: str = ""
) -> LoadFailure:
    line = _deepest_line(error.__traceback__, str(path))
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line, reason = error.lineno or None, error.msg
    elif isinstance(error, SystemExit):
        reason = "it ends the program (sys.exit)"
    elif isinstance(error, ImportError):
        reason = re.sub(r" \([^()]*\)$", "", _message_of(error))  # which file it looked in helps nobody
    else:
        reason = f"{type(error).__name__}: {_message_of(error)}".removesuffix(": ")
    if class_name:
        line = line or _line_of_class(content, class_name)
        reason = f"making {class_name} failed: {reason}"
    return LoadFailure(shown, line, reason, class_name, _missing(error))


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception of foreign code may not even be able to name itself
        return "(its message cannot be read)"


def _deepest_line(traceback: TracebackType | None, filename: str) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _missing(error: BaseException) -> str | None:
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return None
    top = error.name.partition(".")[0]
    return None if top in OWN_PACKAGES or top in sys.stdlib_module_names else error.name


def _line_of_class(content: bytes, class_name: str) -> int | None:
    nodes = ast.walk(syntax_tree(content))
    return next(
        (node.lineno for node in nodes if isinstance(node, ast.ClassDef) and node.name == class_name), None
    )


_ahead: dict[str, tuple[bytes, CodeType]] = {}


def compile_library() -> None:
    """Takes the code of every shipped agent file, from the interpreter's own cache where that has it."""
    for path in sorted((Path(__file__).parents[1] / "library").glob("*_*.py")):
        content = path.read_bytes()  # first: should the file change now, its code counts for no content
        code = SourceFileLoader(path.stem, str(path)).get_code(path.stem)
        if code is not None:
            _ahead[str(path)] = content, code


def code_of(path: Path, content: bytes) -> CodeType:
    """The code of a file with this content. Raises what ``compile`` raises."""
    known, code = _ahead.get(str(path), (b"", None))
    if code is not None and known == content:
        return code
    return compile(content, str(path), "exec", dont_inherit=True)
