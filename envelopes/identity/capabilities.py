"""Capabilities of callers: dotted texts ``VERB[.tenant[.agent]]``, and their inclusion.

The last segment may be ``*``, which stands for zero or more segments: ``HELP.brainstem.*`` is a turn of the
brainstem and each of its agents. ``*`` alone is everything but ``READ``, which is given by name. ``HELP`` brings ``HELLO``, ``STREAM`` and
``CANCEL`` of the same thing along.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from envelopes.envelope import CANCEL, HELLO, HELP, STREAM
from envelopes.errors import BadCapabilityError

EVERYTHING = "*"
BROUGHT_ALONG = frozenset({HELLO, STREAM, CANCEL})
"""Verbs that come with ``HELP`` of the same thing."""
NAMED_ALONE = frozenset({"READ"})
"""Verbs that ``*`` does not bring: an own machine has ``*`` without asking, and what its owner said is not for all of them."""

_LONGEST = 200
_VERBS = frozenset({HELP, *BROUGHT_ALONG, "EGG", "SNAPSHOT", "READ"})
_GRAMMAR = re.compile(r"\*|[A-Z][A-Z0-9_-]*(?:\.[A-Za-z0-9_-]+){0,2}(?:\.\*)?")
_EXAMPLES = "Type HELP.brainstem, HELP.brainstem.Clock, HELP.* or * for everything."


def check(text: str) -> str:
    """``text``, if it is a capability. Raises ``BadCapabilityError``, which says what to type instead."""
    if len(text) <= _LONGEST and _GRAMMAR.fullmatch(text):
        return text
    meant = _meant(text)
    raise BadCapabilityError(
        f'"{text[:60]}" is no capability.' if text.strip() else "An empty text is no capability.",
        do=f"Type {meant} instead." if meant else _EXAMPLES,
    )


def capability(verb: str, *path: str) -> str:
    """The capability for ``verb`` on a tenant, or on one of its agents. Raises ``BadCapabilityError``.

    A name never works as a pattern here: one with a dot or a star in it is refused.
    """
    for segment in path:
        if not re.fullmatch(r"[A-Za-z0-9_-]+", segment):
            raise BadCapabilityError(
                f'"{segment[:60]}" cannot be part of a capability.',
                do="Use letters, digits, - and _ in names.",
            )
    return check(".".join((verb, *path)))


def covers(granted: Iterable[str], wanted: str) -> bool:
    """True when one of ``granted`` allows all of ``wanted``."""
    verb, dot, path = wanted.partition(".")
    path = dot + path
    for one in granted:
        if one == wanted or (one == EVERYTHING and verb not in NAMED_ALONE):
            return True
        held_verb, dot, held_path = one.partition(".")
        of_verb = held_verb == verb or (held_verb == HELP and verb in BROUGHT_ALONG)
        if of_verb and _inside(path, dot + held_path):
            return True
    return False


def meet(one: str, other: str) -> str | None:
    """Returns what both allow: always a single capability, or None for nothing."""
    if one == other:
        return one
    if EVERYTHING in (one, other):
        both = other if one == EVERYTHING else one
        return None if both.partition(".")[0] in NAMED_ALONE else both
    verb, dot, path = one.partition(".")
    other_verb, other_dot, other_path = other.partition(".")
    if verb != other_verb:
        if verb == HELP and other_verb in BROUGHT_ALONG:
            verb = other_verb
        elif not (other_verb == HELP and verb in BROUGHT_ALONG):
            return None
    path, other_path = dot + path, other_dot + other_path
    if _inside(path, other_path):
        return verb + path
    return verb + other_path if _inside(other_path, path) else None


def attenuate(parent: Iterable[str], declared: Iterable[str]) -> tuple[str, ...]:
    """Returns the capabilities of a child that declares ``declared``: never more than ``parent``; may be empty."""
    parent = tuple(parent)
    met = (meet(one, wanted) for wanted in declared for one in parent)
    return reduced(both for both in met if both is not None)


def reduced(capabilities: Iterable[str]) -> tuple[str, ...]:
    """The same permission in as few texts as possible, sorted."""
    distinct = sorted(set(capabilities))
    return tuple(
        one for one in distinct if not any(other != one and covers((other,), one) for other in distinct)
    )


def _inside(path: str, other: str) -> bool:
    """True when ``other`` (with its dot in front, "" for a bare verb) holds all of ``path``."""
    if not other.endswith(".*"):
        return path == other
    stem = other[:-2]
    return path == stem or path.startswith(stem + ".")


def _meant(text: str) -> str:
    """The nearest capability, or "". It is never wider than the text reads."""
    segments = [part for part in re.split(r"[./:\s]+", text[:_LONGEST]) if part]
    if not segments:
        return ""
    verb = segments[0].upper()
    if verb not in _VERBS:
        return ""
    if any("*" in part for part in segments[:-1]):
        return ""  # a star in the middle: no capability says that
    if "*" in segments[-1] and segments[-1] != "*":
        segments[-1] = segments[-1].replace("*", "")
    wanted = ".".join((verb, *segments[1:]))
    return wanted if _GRAMMAR.fullmatch(wanted) and len(wanted) <= _LONGEST else ""
