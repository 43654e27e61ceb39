"""Output, input that was handed in, errors, and what a program may know about its machine."""

from __future__ import annotations

from typing import Any, NoReturn

from agents.runtimes.lispy.builtins.strings import as_text
from agents.runtimes.lispy.errors import passed, wrong
from agents.runtimes.lispy.machine_state import LANGUAGE, State
from agents.runtimes.lispy.printer import TextTooLongError, displayed
from agents.runtimes.lispy.values import ANY


class NoInputError(Exception):
    """``next-input`` was applied, and nothing is there yet; the state says so too."""


def _print(state: State, arguments: list[Any], end: str = "") -> None:
    limit = state.limits.max_output_bytes
    for number, argument in enumerate(arguments):
        if type(argument) is str:
            text = argument
        else:
            try:
                text = displayed(argument, limit - state.output_bytes)
            except TextTooLongError:
                raise passed("output_bytes", limit, limit + 1) from None
        state.write(" " + text if number else text)
    if end:
        state.write(end)


def _println(state: State, arguments: list[Any]) -> None:
    _print(state, arguments, "\n")


def _newline(state: State, arguments: list[Any]) -> None:
    state.write("\n")


def _error(state: State, arguments: list[Any]) -> NoReturn:
    """Ends the program with what it is given, as a person reads it."""
    text = " ".join([as_text(state, argument) for argument in arguments])
    state.fits(len(text))
    raise wrong(text)


def _runtime_info(state: State, arguments: list[Any]) -> Any:
    """The same on every runtime that a program may move to."""
    return state.made_map({"language": LANGUAGE, "profile": state.profile, "runtime": "rappd"})


def _capabilities(state: State, arguments: list[Any]) -> Any:
    """The host of a program that may touch nothing outside of itself."""
    return state.made([])


def _usage(state: State, arguments: list[Any]) -> Any:
    return state.made_map(
        {
            "steps": state.steps,
            "peak_call_depth": state.peak_call_depth,
            "output_bytes": state.output_bytes,
        }
    )


def _next_input(state: State, arguments: list[Any]) -> Any:
    """The next of the values that were handed in; the machine waits where there is none."""
    if not state.inputs:
        raise NoInputError
    return state.inputs.pop(0)


BUILTINS = {
    "display": (_print, 1, ANY),
    "print": (_print, 1, ANY),
    "println": (_println, 0, ANY),
    "newline": (_newline, 0, 0),
    "error": (_error, 1, ANY),
    "runtime-info": (_runtime_info, 0, 0),
    "capabilities": (_capabilities, 0, 0),
    "execution-usage": (_usage, 0, 0),
}

NEXT_INPUT = (_next_input, 0, 0)
