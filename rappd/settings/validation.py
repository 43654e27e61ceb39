"""Values from outside that do not fit their settings; a start with one is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rappd.errors import UsageProblemError
from rappd.settings.load import Settings, Value, check, is_any_port


class SettingWarning(NamedTuple):
    """``what`` is wrong with a value, as a sentence without its stop, and what to ``do``."""

    value: Value
    what: str
    do: str


def doubts(settings: Settings, values: Iterable[Value] | None = None) -> Iterator[SettingWarning]:
    """Warnings about ``values``, all settings by default. Secret ones are not looked at."""
    for value in settings.all() if values is None else values:
        if value.source == "default" or value.setting.secret or is_any_port(value.setting, value.text):
            continue
        try:
            check(value.setting, value.text)
        except UsageProblemError as problem:
            yield SettingWarning(value, str(problem).rstrip("."), _remedy(value))


def refuse_unfit(settings: Settings) -> None:
    """Raises ``UsageProblemError`` that names every value that does not fit, and how to change the first."""
    found = list(doubts(settings))
    if found:
        raise UsageProblemError(f"{'; '.join(doubt.what for doubt in found)}.", do=found[0].do)


def _remedy(value: Value) -> str:
    setting = value.setting
    if value.source == "environment":
        instead = f"{setting.variable}={setting.default} rappd start"
        return f"unset {setting.variable}, or `{instead}`" if setting.default else f"unset {setting.variable}"
    return f"rappd config unset {setting.name}"
