"""An answer instead of an exception, where an agent asks for something the storage does not give."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from agents.storage.paths import UnsafePathError

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def otherwise(answer: Callable[[], A], doing: str) -> Callable[[Callable[P, R]], Callable[P, R | A]]:
    """For methods that agents call: a refused path, or what the disk refuses, is logged and ``answer()``.

    A file that is not there is not worth a line in the log.
    """

    def deciding(call: Callable[P, R]) -> Callable[P, R | A]:
        @wraps(call)
        def answered(*args: P.args, **kwargs: P.kwargs) -> R | A:
            try:
                return call(*args, **kwargs)
            except FileNotFoundError:
                return answer()
            except (UnsafePathError, OSError, ValueError) as error:
                log.warning("Storage could not %s: %s", doing, error)
                return answer()

        return answered

    return deciding
