"""Code of shipped agent files, made before a worker is forked: no worker compiles it, and all share it."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

_ahead: dict[str, tuple[bytes, CodeType]] = {}


def compile_library() -> None:
    """Takes the code of every shipped agent file, from the interpreter's own cache where that has it."""
    for path in sorted((Path(__file__).parents[1] / "library").glob("*_agent.py")):
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
