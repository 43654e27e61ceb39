"""Names of models: which are meant for conversation, and the nearest to what somebody typed."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NOT_FOR_CHAT = r"(?i)embed|rerank|whisper|\btts\b|^bge|^clip|moderation|dall-e"
_MOST_NEAR = 3
_SHORT_LIST = 6
"""Names that are told one by one; a longer list is looked up."""


def chat_models(ids: tuple[str, ...]) -> tuple[str, ...]:
    """The models of ``ids`` that are meant for conversation."""
    return tuple(model for model in ids if not re.search(_NOT_FOR_CHAT, model))


def nearest(model: str, listed: Sequence[str], otherwise: str = "") -> str:
    """Advice for a model that is not there: near names, else ``otherwise``, else what there is."""
    import difflib  # where a name was misspelt, only

    wanted = model.casefold()
    folded = {name.casefold(): name for name in listed}
    near = [folded[name] for name in difflib.get_close_matches(wanted, list(folded), _MOST_NEAR, 0.5)]
    holding = [name for name in listed if wanted in name.casefold()]
    if found := list(dict.fromkeys([*near, *holding]))[:_MOST_NEAR]:
        return f"did you mean {', '.join(found)}?"
    if otherwise or not listed:
        return otherwise
    return f"there are: {', '.join(listed)}" if len(listed) <= _SHORT_LIST else "rappd models list"
