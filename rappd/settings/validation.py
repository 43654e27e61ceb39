"""Values from outside that do not fit their settings, and what counts in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rappd.errors import UsageProblemError
from rappd.settings.load import Settings, Value, check


class SettingWarning(NamedTuple):
    """``what`` is wrong with a value, as a sentence without its stop, and what is in ``force``."""

    value: Value
    what: str
    do: str
    force: str


def doubts(settings: Settings, values: Iterable[Value] | None = None) -> Iterator[SettingWarning]:
    """Those among ``values``, all by default. What is secret is not looked at."""
    for value in settings.all() if values is None else values:
        if value.source == "default" or value.setting.secret:
            continue
        try:
            check(value.setting, value.text)
        except UsageProblemError as problem:
            force = "no price" if value.setting.kind == "prices" else "off"
            if value.setting.kind == "choice":
                force = settings.choice(value.setting.name)
            if value.setting.kind == "number":
                force = str(settings.number(value.setting.name))
                if force == value.text.strip():
                    continue  # PORT=0, any free one: nothing to keep, but what was meant
            yield SettingWarning(value, str(problem).rstrip("."), problem.do, force)
