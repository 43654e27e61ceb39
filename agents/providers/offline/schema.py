"""Reading a tool: its words and parameters, whatever its author wrote into it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import orjson

from agents.providers.offline.utterance import compact, name_words, terms
from agents.providers.offline.vocabulary import FAINT_STEMS, stem, word_set
from agents.providers.provider import Tool

_LONGEST_DESCRIPTION = 2_000
_MOST_PARAMETERS = 64
_MOST_CHOICES = 200
_USUAL_DESCRIPTION = 40  # words; a longer one spreads its weight, so stuffing gains nothing
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s|\n")
_EXAMPLE = re.compile(
    r"(?:e\.g\.|such as|for example|for instance|example:|like)[\s:,]*[\"'`]?([^\s\"'`),;]+)", re.I
)

# words of a parameter's name that tell what shape its value has
_SHAPES = {
    "email": "email mail",
    "url": "url uri link website webpage",
    "guid": "guid uuid",
    "datetime": "datetime timestamp",
    "date": "date day due deadline birthday",
    "time": "time",
    "timezone": "timezone tz zone",
    "path": "path file filename folder directory dir filepath",
    "glob": "pattern glob mask",
    "host": "host hostname ip domain",
    "language": "language lang locale",
    "currency": "currency",
    "unit": "unit units",
    "symbol": "symbol ticker",
    "expression": "expression formula equation calculation",
    "place": "city location place town country region where destination origin",
    "code": "number code sku reference id",
    "text": "text content message prompt task description body note input question request thought idea "
    "comment story instruction instructions sentence statement utterance",
}
_SHAPE_OF = {word: shape for shape, listed in reversed(_SHAPES.items()) for word in listed.split()}
_OTHER_SHAPES = word_set("type kind color colour style mode format size extension area")
_FORMATS = {
    "email": "email", "uri": "url", "url": "url", "uri-reference": "url", "uuid": "guid", "guid": "guid",
    "date": "date", "time": "time", "date-time": "datetime", "hostname": "host", "ipv4": "host",
}  # fmt: skip
_FROM = word_set("from source src base origin start")
_TO = word_set("to target dest destination into output end")
_ABOUT = word_set("topic subject query keyword keywords about search term terms theme")
_NAMED = word_set("name title label nickname")


@dataclass(slots=True, frozen=True)
class Param:
    """One parameter. ``kind`` is its JSON type, or for text the shape its value has (``city`` → ``place``)."""

    name: str
    kind: str
    required: bool
    described: str
    stems: frozenset[str]
    about: frozenset[str]
    choices: tuple[Any, ...]
    has_default: bool
    default: Any
    least: float
    most: float
    example: str
    schema: dict[str, Any]
    item: Param | None = None

    @property
    def direction(self) -> str:
        """``from`` or ``to`` for one end of a pair, such as ``from_unit`` and ``target_language``."""
        spelled = set(name_words(self.name))
        return "from" if spelled & _FROM else "to" if spelled & _TO else ""

    @property
    def named(self) -> bool:
        """True when its value is what something is called, so only a name fits."""
        return any(word in _NAMED for word in name_words(self.name))

    @property
    def topical(self) -> bool:
        """True when its value is what something is about."""
        return any(word in _ABOUT for word in name_words(self.name))

    def human(self) -> str:
        """``due_date`` as a person says it: ``due date``."""
        return " ".join(name_words(self.name)) or self.name


@dataclass(slots=True, frozen=True)
class Profile:
    """A tool as it was read. ``weights`` maps each stem to how strongly the tool stands for it."""

    name: str
    compact: str
    description: str
    first_sentence: str
    name_stems: tuple[str, ...]
    lead: frozenset[str]
    weights: dict[str, float]
    params: tuple[Param, ...]

    def required(self) -> list[Param]:
        return [param for param in self.params if param.required]


def raw(tool: Tool) -> bytes:
    """A tool's content as bytes, what its profile is remembered by; empty for what is not JSON at all."""
    try:
        return orjson.dumps(tool, default=repr, option=orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, RecursionError):
        pass  # huge integers, broken Unicode, cycles: the slower way takes all but the last
    try:
        return json.dumps(tool, default=repr, skipkeys=True).encode()
    except (ValueError, RecursionError):
        return b""


def parsed(content: bytes) -> Any:
    """The result of ``raw`` for ``content``, as far as it is JSON; None otherwise."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass  # infinities and huge integers
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


@lru_cache(maxsize=4_096)
def profile_of(content: bytes) -> Profile | None:
    """The profile of the tool that ``raw`` gave ``content`` for, or None when it has no usable name."""
    tool = parsed(content)
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        return None
    name = function.get("name")
    if not isinstance(name, str) or not name.strip() or _text(name) != name:
        return None
    description = _text(function.get("description"))[:_LONGEST_DESCRIPTION]
    first = _SENTENCE_END.split(description.strip(), maxsplit=1)[0]
    params = _params(function.get("parameters"))
    named = name_words(name)
    name_stems = tuple(dict.fromkeys(stem(word) for word in named))
    return Profile(
        name,
        compact(name) or name,
        description,
        first,
        name_stems,
        frozenset(name_stems) | frozenset(terms(first)),
        _weights(named, description, first, params),
        params,
    )


def _weights(
    named: tuple[str, ...], description: str, first: str, params: tuple[Param, ...]
) -> dict[str, float]:
    weights: dict[str, float] = {}

    def add(term: str, weight: float) -> None:
        if term in FAINT_STEMS:
            weight *= 0.35
        if weights.get(term, 0.0) < weight:
            weights[term] = weight

    for word in named:
        add(stem(word), 3.0)
    for one, other in pairwise(named):
        weights[stem(one + other)] = 3.6
    first_terms, all_terms = set(terms(first)), set(terms(description))
    spread = min(1.0, math.sqrt(_USUAL_DESCRIPTION / max(1, len(all_terms))))
    for term in all_terms:
        add(term, (1.3 if term in first_terms else 0.7) * spread)
    for param in params:
        for term in param.stems:
            add(term, 0.8)
        for term in param.about:
            add(term, 0.4)
        for choice in param.choices[:20]:
            for word in name_words(choice) if isinstance(choice, str) else ():
                add(stem(word), 1.2)
    return weights


def _params(parameters: Any) -> tuple[Param, ...]:
    schema = parameters if isinstance(parameters, dict) else {}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    listed = schema.get("required")
    required = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    needed = set(required)
    # beyond the limit only optional parameters are left out: every required one must be known
    names = [name for place, name in enumerate(properties) if place < _MOST_PARAMETERS or name in needed]
    names += [name for name in dict.fromkeys(required) if name not in properties]
    return tuple(_param(name, properties.get(name), name in needed) for name in names)


def _param(name: str, schema: Any, required: bool, depth: int = 0) -> Param:
    schema = _flattened(schema if isinstance(schema, dict) else {})
    described = _text(schema.get("description"))[:_LONGEST_DESCRIPTION]
    choices = schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    kind = _kind(name, schema, described)
    item = None
    if kind == "array" and depth == 0:
        item = _param(name, schema.get("items"), False, depth + 1)
    return Param(
        name=name,
        kind=kind,
        required=required,
        described=described,
        stems=frozenset(stem(word) for word in name_words(name)),
        about=frozenset(terms(described)),
        choices=tuple(choices[:_MOST_CHOICES]) if isinstance(choices, list) and choices else (),
        has_default="default" in schema and schema["default"] is not None,
        default=schema.get("default"),
        least=_bound(schema, "minimum", "exclusiveMinimum", -math.inf),
        most=_bound(schema, "maximum", "exclusiveMaximum", math.inf),
        example=_example(schema, described),
        schema=schema,
        item=item,
    )


def _flattened(schema: dict[str, Any]) -> dict[str, Any]:
    """``anyOf``/``oneOf`` with one real branch (an optional value) read as that branch."""
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and "type" not in schema:
            real = [
                branch for branch in branches if isinstance(branch, dict) and branch.get("type") != "null"
            ]
            if real:
                return {**real[0], **{known: value for known, value in schema.items() if known != key}}
    return schema


def _kind(name: str, schema: dict[str, Any], described: str) -> str:
    declared = schema.get("type")
    if isinstance(declared, list):
        declared = next((one for one in declared if isinstance(one, str) and one != "null"), None)
    if declared in ("integer", "number", "boolean", "array", "object"):
        return str(declared)
    if declared is None and isinstance(schema.get("properties"), dict):
        return "object"
    if declared is None and isinstance(schema.get("items"), dict):
        return "array"
    if declared not in (None, "string"):
        return "unknown"
    written = schema.get("format")
    if isinstance(written, str) and written.lower() in _FORMATS:
        return _FORMATS[written.lower()]
    named = name_words(name)
    if named and named[-1] in _OTHER_SHAPES:
        return "slot"
    shapes = [_SHAPE_OF[word] for word in reversed([*named, "".join(named)]) if word in _SHAPE_OF]
    shape = next((one for one in shapes if one != "code"), shapes[0] if shapes else None)
    if shape is None and re.search(r"\be-?mail address", described, re.I):
        return "email"
    return shape or "slot"


def _bound(schema: dict[str, Any], inclusive: str, exclusive: str, otherwise: float) -> float:
    for key in (inclusive, exclusive):
        value = schema.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            step = 0.0 if key == inclusive else (1e-9 if otherwise < 0 else -1e-9)
            return float(value) + step
    return otherwise


def _example(schema: dict[str, Any], described: str) -> str:
    examples = schema.get("examples")
    if isinstance(examples, list) and examples and isinstance(examples[0], str | int | float):
        return str(examples[0])
    if isinstance(schema.get("example"), str | int | float):
        return str(schema["example"])
    found = _EXAMPLE.search(described)
    return found.group(1).rstrip(".") if found else ""


def _text(value: Any) -> str:
    """``value`` if it is text, without halves of surrogate pairs, which nothing could encode again."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
