"""Reading settings: environment, then ``$RAPP_HOME/.env``, then ``rappd.toml``, then the default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rappd.errors import Mistyped
from rappd.home import Home
from rappd.settings.table import BY_NAME, OTHER_SECRETS, SETTINGS, Setting

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off", ""})


@dataclass(slots=True, frozen=True)
class Value:
    """A setting's text and where it came from: ``environment``, a file's name, or ``default``."""

    setting: Setting
    text: str
    source: str


class Settings:
    """The values in force. Unknown names raise ``KeyError``: they are a defect, not input."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(values)

    @classmethod
    def load(cls, home: Home, environment: Mapping[str, str] | None = None) -> Settings:
        """Reads all sources. Raises ``Mistyped`` when a file cannot be read as settings."""
        environment = os.environ if environment is None else environment
        filed = _read_toml(home)
        secrets = _read_env(home)
        values = {}
        for setting in SETTINGS:
            if setting.variable in environment:
                values[setting.name] = Value(setting, environment[setting.variable], "environment")
            elif setting.variable in secrets:
                values[setting.name] = Value(setting, secrets[setting.variable], home.env_file.name)
            elif setting.name in filed:
                values[setting.name] = Value(setting, filed[setting.name], home.config.name)
            else:
                values[setting.name] = Value(setting, setting.default, "default")
        return cls(values)

    def all(self) -> list[Value]:
        """Every value, in the table's order."""
        return [self._values[setting.name] for setting in SETTINGS]

    def value(self, name: str) -> Value:
        """One value with its source."""
        return self._values[name]

    def text(self, name: str) -> str:
        """A setting's text."""
        return self._values[name].text.strip()

    def on(self, name: str) -> bool:
        """A switch. Anything that is not clearly "on" is off."""
        return self.text(name).lower() in _ON

    def number(self, name: str) -> int:
        """A number; one that cannot be read falls back to the default (as published servers do)."""
        try:
            return int(float(self.text(name)))
        except (ValueError, OverflowError):
            return int(BY_NAME[name].default)

    def items(self, name: str) -> tuple[str, ...]:
        """A list written with commas."""
        return tuple(item.strip() for item in self.text(name).split(",") if item.strip())


def check(setting: Setting, text: str) -> str:
    """The text as it may be written down. Raises ``Mistyped`` when it does not fit the setting."""
    text = text.strip()
    if "\n" in text or "\0" in text:
        raise Mistyped(f"{setting.name} takes one line.", do=f"rappd config set {setting.name} VALUE")
    if setting.kind == "switch":
        if text.lower() not in _ON | _OFF:
            raise Mistyped(f"{setting.name} is a switch.", do=f"rappd config set {setting.name} on")
        return "on" if text.lower() in _ON else "off"
    if setting.kind == "number":
        if not text.isdecimal():
            raise Mistyped(
                f"{setting.name} is a number.", do=f"rappd config set {setting.name} {setting.default}"
            )
        if setting.name == "port" and not 0 < int(text) < 65536:
            raise Mistyped("A port lies between 1 and 65535.", do="rappd config set port 7071")
    return text


def worker_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What workers see: the host's environment less provider tokens, then the workspace's ``.env``."""
    hidden = {setting.variable for setting in SETTINGS if setting.secret} | set(OTHER_SECRETS)
    return {**{key: text for key, text in environment.items() if key not in hidden}, **own}


def _read_toml(home: Home) -> dict[str, str]:
    try:
        found = tomllib.loads(home.config.read_text())
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Mistyped(
            f"{home.config} cannot be read: {error}.", do="Mend the file, or move it away."
        ) from error
    flat: dict[str, str] = {}
    for key, value in found.items():
        if isinstance(value, dict):
            flat.update({f"{key}.{inner}": _as_text(text) for inner, text in value.items()})
        else:
            flat[key] = _as_text(value)
    return flat


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ",".join(str(item) for item in value)
    return str(value)


def _read_env(home: Home) -> dict[str, str]:
    if not home.env_file.exists():
        return {}
    from dotenv import dotenv_values

    return {key: text for key, text in dotenv_values(home.env_file).items() if text is not None}
