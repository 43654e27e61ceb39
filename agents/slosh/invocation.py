"""Sloshes an agent for one invocation, and finds its context again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from threading import get_ident
from typing import Any

from agents.slosh.context import MOST_BREADCRUMBS, Context, View
from agents.slosh.derived_layers import query_text
from agents.slosh.filters import hidden_layers, priority, texts
from agents.slosh.layer_names import FILTERED, published
from agents.slosh.layers import Layers, MemoryReader
from agents.slosh.privacy import privacy_of

MOST_USERS = 64
"""The number of users whose feedback and breadcrumbs an agent keeps; the longest known goes first."""


class Invocation:
    """One call of one agent: its context, and who called. ``with invocation:`` makes it current."""

    __slots__ = ("_outer", "_token", "_traces", "context", "instance", "memory", "user_guid")
    _token: Token[Invocation | None]

    def __init__(
        self,
        instance: Any,
        context: Context,
        user_guid: str | None,
        memory: MemoryReader | None,
        traces: _Traces,
    ) -> None:
        self.instance = instance
        self.context = context
        self.user_guid = user_guid
        self.memory = memory
        self._traces = traces

    def __enter__(self) -> Invocation:
        self._outer = _current.get()
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def learn(self, feedback: Any) -> None:
        """Take ``slosh_feedback`` from the result into account in later calls of the same user."""
        self._traces.scores = scored(self._traces.scores, feedback)

    def within(self) -> Invocation | None:
        """The invocation that this one was made from."""
        return self._outer


def slosh(
    instance: Any,
    arguments: dict[str, Any],
    *,
    user_guid: str | None = None,
    upstream_slush: Mapping[str, Any] | None = None,
    memory: MemoryReader | None = None,
) -> Invocation:
    """The invocation of ``instance`` with ``arguments``, out of which sloshing's own are taken.

    Without a user or a memory, those of the invocation this one is made from go on. Slosh settings
    in the arguments win over the instance's ``slosh_filter`` and ``slosh_preferences``; no argument
    lifts its ``slosh_privacy``.
    """
    outer = _current.get()
    if outer is not None:
        user_guid = outer.user_guid if user_guid is None else user_guid
        memory = outer.memory if memory is None else memory
    chosen = arguments.pop("_slosh_filter", None) or getattr(instance, "slosh_filter", None)
    preferences = arguments.pop("_slosh_preferences", None) or getattr(instance, "slosh_preferences", None)
    handed = arguments.pop("upstream_slush", None)
    upstream = handed if upstream_slush is None else upstream_slush
    layers = Layers(query_text(arguments), time.time(), memory, user_guid)
    kept = _kept_of(instance)
    traces = kept.of(user_guid)
    trail: Sequence[Layers] = traces.trail
    view = None
    privacy = privacy_of(getattr(instance, "slosh_privacy", None))
    if traces.scores:
        traces.scores = decayed(traces.scores)
    if privacy is not None and privacy.disabled:
        view, trail = View(_EVERYTHING, None, privacy), ()
    elif chosen or preferences or privacy or traces.scores:
        hidden = hidden_layers(chosen, preferences, suppressed(traces.scores))
        view = View(hidden, priority(preferences), privacy)
    if upstream and not isinstance(upstream, Mapping):
        upstream = None
    context = Context(layers, view, trail, upstream)
    if layers.query and not (privacy is not None and privacy.disabled):
        traces.trail = (layers, *traces.trail[: MOST_BREADCRUMBS - 1])
    kept.latest = (get_ident(), context)
    return Invocation(instance, context, user_guid, memory, traces)


def context_of(instance: Any) -> Context:
    """The context of the innermost running invocation of ``instance``.

    After it, that of its latest invocation in this thread; a thread that the agent started itself
    (outside ``contextvars.copy_context()``) and an agent never invoked see an empty one.
    """
    invocation = _current.get()
    while invocation is not None:
        if invocation.instance is instance:
            return invocation.context
        invocation = invocation.within()
    thread, context = _kept_of(instance).latest
    return context if thread == get_ident() else Context()


class _Traces:
    """Feedback and breadcrumbs of one user's calls.

    Replaced whole, never changed in place: calls may run in several threads.
    """

    __slots__ = ("scores", "trail")

    def __init__(self) -> None:
        self.scores: Scores = {}
        self.trail: tuple[Layers, ...] = ()


class _Kept:
    """An agent's traces, by user: what one user asked never shows in another's context."""

    __slots__ = ("_by_user", "latest")

    def __init__(self) -> None:
        self._by_user: dict[str | None, _Traces] = {}
        self.latest: tuple[int, Context] = (0, Context())

    def of(self, user_guid: str | None) -> _Traces:
        traces = self._by_user.get(user_guid)
        if traces is None:
            traces = _Traces()
            known = list(self._by_user.items())[1 - MOST_USERS :]
            self._by_user = {**dict(known), user_guid: traces}
        return traces

    def __reduce__(self) -> tuple[type[_Kept], tuple[()]]:
        return _Kept, ()  # a copied or pickled agent starts without its users' traces


def _kept_of(instance: Any) -> _Kept:
    attributes = getattr(instance, "__dict__", None)
    if attributes is None:
        return _Kept()
    kept = attributes.get("_slosh")
    if not isinstance(kept, _Kept):
        kept = attributes["_slosh"] = _Kept()
    return kept


_EVERYTHING = frozenset(FILTERED) | {"orientation", "breadcrumbs"}
_current: ContextVar[Invocation | None] = ContextVar("agents.slosh.invocation", default=None)


DECAY = 0.9
FORGOTTEN_BELOW = 0.01
SUPPRESSED_AT = -3.0

Scores = dict[str, float]
"""Signal path ("temporal.fiscal"): how useful it was, zero being unknown."""


def decayed(scores: Scores) -> Scores:
    """The scores one call later."""
    faded = {path: score * DECAY for path, score in scores.items()}
    return {path: score for path, score in faded.items() if abs(score) >= FORGOTTEN_BELOW}


def scored(scores: Scores, feedback: Any) -> Scores:
    """The scores after ``{useful_signals: [path], useless_signals: [path]}``."""
    if not isinstance(feedback, Mapping):
        return scores
    new = dict(scores)
    for key, step in (("useful_signals", 1.0), ("useless_signals", -1.0)):
        for path in texts(feedback.get(key)):
            new[path] = new.get(path, 0.0) + step
    return new


def suppressed(scores: Scores) -> frozenset[str]:
    """The categories whose paths together were useless often enough."""
    sums: dict[str, float] = {}
    for path, score in scores.items():
        category = published(path.partition(".")[0])
        sums[category] = sums.get(category, 0.0) + score
    return frozenset(name for name in FILTERED if sums.get(name, 0.0) <= SUPPRESSED_AT)
