"""``utils.result``: a value or a reason, for agents that return one instead of raising."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Result:
    """Either ``Success(value)`` or ``Failure(error)``; true when it is a success."""

    def __init__(self, value: Any = None, error: Any = None, *, is_success: bool = True) -> None:
        self.value = value
        self.error = error
        self.is_success = is_success

    @property
    def is_failure(self) -> bool:
        """True when it holds a reason."""
        return not self.is_success

    @staticmethod
    def success(value: Any = None) -> Success:
        """A success with ``value``."""
        return Success(value)

    @staticmethod
    def failure(error: Any) -> Failure:
        """A failure because of ``error``."""
        return Failure(error)

    def unwrap(self) -> Any:
        """The value. Raises the error, as ``ValueError`` if it is no exception."""
        if self.is_success:
            return self.value
        raise self.error if isinstance(self.error, BaseException) else ValueError(self.error)

    def unwrap_or(self, default: Any) -> Any:
        """The value, or ``default`` of a failure."""
        return self.value if self.is_success else default

    def map(self, change: Callable[[Any], Any]) -> Result:
        """A success with the changed value; a failure stays itself."""
        return Success(change(self.value)) if self.is_success else self

    def __bool__(self) -> bool:
        return self.is_success

    def __repr__(self) -> str:
        return f"Success({self.value!r})" if self.is_success else f"Failure({self.error!r})"


class Success(Result):
    """A result that is there: ``value``."""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)


class Failure(Result):
    """A failure; ``error`` is the reason."""

    def __init__(self, error: Any = None) -> None:
        super().__init__(error=error, is_success=False)


Ok, Err = Success, Failure
