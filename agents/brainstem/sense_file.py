"""One ``*_sense.py``: a slot of answers, read from the file's text. Nothing of it is ever run.

name = "mood"                              # the file's name without _sense, if left out
delimiter = "|||MOOD|||"
response_key = "mood_response"
system_prompt = "After your answer write |||MOOD||| and one word for how you feel."
wrapper_tag = "mood"                       # may be left out
"""

from __future__ import annotations

import ast
import re

from msgspec.structs import replace

from agents.brainstem.slots import DELIMITER, SOUL_SLOTS, Slot
from agents.errors import AgentError
from envelopes.codecs.chat import ANSWER_KEYS

MAX_BYTES = 64 << 10
SUFFIX = "_sense"

_FIELDS = ("name", "delimiter", "response_key", "system_prompt", "wrapper_tag")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_BUILT_IN = {slot.delimiter: slot for slot in SOUL_SLOTS}


class BadSenseError(AgentError):
    """A file that gives no slot. ``line`` is where in it, None when it is about the file as a whole."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason, do="Fix and save; it is read again by itself.")
        self.line = line


def read_sense(content: bytes, stem: str) -> Slot:
    """The slot that a file's text describes; ``stem`` is the file's name without ``.py``.

    One with the delimiter and key of a slot of the daemon is that slot, in words of its own.
    Raises ``BadSenseError``.
    """
    texts = _constants(content)
    delimiter, line = _needed(texts, "delimiter")
    if not DELIMITER.fullmatch(delimiter):
        raise BadSenseError("its delimiter must look like |||NAME|||", line)
    key, key_line = _needed(texts, "response_key")
    prompt, _ = _needed(texts, "system_prompt")
    builtin = _BUILT_IN.get(delimiter)
    if builtin is not None:
        if key != builtin.response_key:
            raise BadSenseError(f"{delimiter} is the daemon's own, and fills {builtin.response_key}", line)
        return replace(builtin, prompt=prompt.strip())
    if key in ANSWER_KEYS:
        raise BadSenseError(f"{key} is a key of every answer, and not for a sense to fill", key_line)
    if not _KEY.fullmatch(key):
        raise BadSenseError("its response_key must be letters, digits and _, a letter first", key_line)
    tag, tag_line = texts.get("wrapper_tag", ("", None))
    if tag and not _TAG.fullmatch(tag):
        raise BadSenseError("its wrapper_tag must be the name of a tag, without < and >", tag_line)
    name, _ = texts.get("name", ("", None))
    return Slot(name.strip() or stem.removesuffix(SUFFIX), delimiter, key, prompt.strip(), tag)


def _needed(texts: dict[str, tuple[str, int]], field: str) -> tuple[str, int]:
    if field not in texts:
        raise BadSenseError(f"it has no {field}")
    text, line = texts[field]
    if not text.strip():
        raise BadSenseError(f"its {field} is empty", line)
    return text, line


def _constants(content: bytes) -> dict[str, tuple[str, int]]:
    """The fields that the text assigns at its top level, each with its line; the last one counts."""
    if len(content) > MAX_BYTES:
        raise BadSenseError(f"it is larger than {MAX_BYTES >> 10} kB")
    found: dict[str, tuple[str, int]] = {}
    for node in _tree(content).body:
        if isinstance(node, ast.Assign):
            targets: list[ast.expr] = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id in _FIELDS and node.value is not None:
                found[target.id] = (_text(node.value, target.id), node.lineno)
    return found


def _tree(content: bytes) -> ast.Module:
    try:
        return ast.parse(content)
    except SyntaxError as error:
        raise BadSenseError(error.msg, error.lineno or None) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadSenseError(f"it is not Python: {error}") from error


def _text(value: ast.expr, field: str) -> str:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str | None):
        raise BadSenseError(f"{field} must be a text, written out: senses are read, not run", value.lineno)
    text = value.value or ""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadSenseError(f"{field} holds half a character", value.lineno) from error
    return text
