"""The owner's operations on settings and the log: secrets are told only as set or not."""

from __future__ import annotations

import asyncio
from typing import Literal, TypedDict

from rappd.daemon.home import Home
from rappd.daemon.live_settings import LiveSettings
from rappd.daemon.log import since, without
from rappd.features.operation import OWNER, Status, Text, operation
from rappd.settings.load import Value
from rappd.settings.wording import WORDING

_MOST_LINES = 5000


SettingRow = TypedDict(
    "SettingRow",
    {
        "name": str,
        "title": str,
        "about": str,
        "value": str,
        "from": str,
        "variable": str,
        "kind": str,
        "choices": list[str],
        "choice_words": dict[str, str],
        "secret": bool,
        "live": bool,
        "help": str,
    },
)
"""A setting: its value ("set" or "" for a secret), and ``from`` where it came."""


class SettingSet(TypedDict):
    """A setting as it is now."""

    status: Literal["ok"]
    setting: SettingRow


class LogLines(TypedDict):
    """Lines of the log, and the ``mark`` by which later ones are asked for."""

    lines: list[str]
    mark: str


class SettingOperations:
    """The settings of one home, and its log."""

    def __init__(self, home: Home, live: LiveSettings) -> None:
        self._home, self._live = home, live

    @operation("settings.list", "GET", "/settings", right=OWNER, answers="settings")
    async def listing(self) -> list[SettingRow]:
        """Every setting, its value and where it came from; secrets only as set or not."""
        return [setting_row(value) for value in self._live.current.all()]

    @operation("settings.set", "POST", "/settings", right=OWNER)
    async def set(self, name: Text, value: str) -> SettingSet:
        """Writes one setting down; live ones take effect at once."""
        await self._live.set(name, value)
        return {"status": "ok", "setting": setting_row(self._live.current.value(name))}

    @operation("settings.reload", "POST", "/settings/reload", right=OWNER)
    async def reload(self) -> Status:
        """Reads the settings files anew."""
        await self._live.reload()
        return {"status": "ok"}

    @operation("settings.log", "GET", "/log", right=OWNER)
    async def log(self, limit: int = 300, after: str = "") -> LogLines:
        """The end of the log, or with `after` (the `mark` of an earlier answer) the lines since; without secrets."""
        secrets = [value.text.strip() for value in self._live.current.all() if value.setting.secret]
        lines, mark = await asyncio.to_thread(since, self._home.log, after, min(max(limit, 0), _MOST_LINES))
        return {"lines": await asyncio.to_thread(without, lines, secrets), "mark": mark}


def setting_row(value: Value) -> SettingRow:
    """A setting as pages and `config show --json` have it."""
    setting = value.setting
    shown = ("set" if value.text else "") if setting.secret else value.text
    return {
        "name": setting.name,
        "title": WORDING[setting.name].title,
        "about": WORDING[setting.name].about,
        "value": shown,
        "from": value.source,
        "variable": setting.variable,
        "kind": setting.kind,
        "choices": list(setting.choices),
        "choice_words": dict(WORDING[setting.name].choices),
        "secret": setting.secret,
        "live": setting.live,
        "help": setting.help,
    }
