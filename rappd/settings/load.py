"""Reading settings: environment, then ``$RAPP_HOME/.env``, then ``rappd.toml``, then the default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.settings import files
from rappd.settings.registry import BY_FORMER_NAME, BY_NAME, OTHER_SECRETS, SETTINGS, Setting

if TYPE_CHECKING:
    from twins.workspace.workspace import Workspace

_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off", ""})
_MEND = "mend the file, or move it away"
_MOST_DIGITS = 12


@dataclass(slots=True, frozen=True)
class Value:
    """A setting's text and where it came from: ``environment``, a file's name, or ``default``."""

    setting: Setting
    text: str
    source: str


class Settings:
    """The values in force. Unknown names raise ``KeyError``: they are a defect, not input."""

    def __init__(self, values: Mapping[str, Value], environment: Mapping[str, str]) -> None:
        """``environment``: the variables they were read from; whatever else the daemon takes from them is found there."""
        self._values = dict(values)
        self._switches: dict[str, bool] = {}  # read for each request
        self._lists: dict[str, tuple[str, ...]] = {}
        self.environment = environment

    @classmethod
    def load(cls, home: Home, environment: Mapping[str, str] | None = None) -> Settings:
        """Reads all sources. Raises ``UsageProblemError`` when a file cannot be read as settings."""
        environment = os.environ if environment is None else environment
        sources = (
            ("environment", environment, _by_variable),
            (home.env_file.name, _read_env(home), _by_variable),
            (home.config.name, _read_toml(home), _by_name),
        )
        return cls._from(sources, environment)

    @classmethod
    def without_files(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Returns the settings without any file: environment and defaults."""
        environment = os.environ if environment is None else environment
        return cls._from((("environment", environment, _by_variable),), environment)

    @classmethod
    def _from(
        cls,
        sources: Iterable[tuple[str, Mapping[str, str], Callable[[Setting], tuple[str, str]]]],
        environment: Mapping[str, str],
    ) -> Settings:
        values = {setting.name: Value(setting, setting.default, "default") for setting in SETTINGS}
        for source, texts, keys_of in reversed(list(sources)):
            for setting in SETTINGS:
                for key in keys_of(setting):
                    if key and key in texts:
                        values[setting.name] = Value(setting, texts[key], source)
        return cls(values, environment)

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
        if name not in self._switches:
            self._switches[name] = self.text(name).lower() in _ON
        return self._switches[name]

    def choice(self, name: str) -> str:
        """One of a setting's choices; any other text falls back to the default."""
        value = self._values[name]
        found = _as_choice(value.setting, value.text.strip())
        return found if found in value.setting.choices else value.setting.default

    def number(self, name: str) -> int:
        """A number; the default for one that does not fit, which `rappd start` refuses. Port 0 is any free one."""
        setting, text = BY_NAME[name], self.text(name)
        return (
            int(text) if _is_in_range(setting, text) or is_any_port(setting, text) else int(setting.default)
        )

    def items(self, name: str) -> tuple[str, ...]:
        """A list written with commas."""
        if name not in self._lists:
            self._lists[name] = tuple(filter(None, map(str.strip, self.text(name).split(","))))
        return self._lists[name]


def check(setting: Setting, text: str) -> str:
    """The text as it may be written down. Raises ``UsageProblemError`` when it does not fit the setting."""
    text = text.strip()
    if not text.isprintable():
        raise UsageProblemError(
            f"{setting.name} takes one line of plain text.", do=f"rappd config set {setting.name} VALUE"
        )
    if setting.kind == "switch":
        if text.lower() not in _ON | _OFF:
            raise UsageProblemError(f"{setting.name} is a switch.", do=f"rappd config set {setting.name} on")
        return "on" if text.lower() in _ON else "off"
    if setting.kind == "choice" and (text := _as_choice(setting, text)) not in setting.choices:
        raise UsageProblemError(
            f"{setting.name} is one of: {', '.join(setting.choices)}.",
            do=f"rappd config set {setting.name} {setting.default}",
        )
    if setting.kind == "number" and not _is_in_range(setting, text):
        raise UsageProblemError(
            f'{setting.name} must be {setting.least} to {setting.most}, not "{text[:20]}".',
            do=f"rappd config set {setting.name} {setting.default}",
        )
    if setting.kind == "address" and text and not _is_address(text):
        example = setting.default or _EXAMPLES[setting.name]
        raise UsageProblemError(
            f'{setting.name}: "{text[:60]}" is no web address.',
            do=f"rappd config set {setting.name} {example}",
        )
    if setting.kind == "networks":
        _check_networks(setting, text)
    if setting.kind == "prices":
        from agents.providers.provider import BadPriceError, price_list  # only who sets one needs it

        try:
            price_list(text)
        except BadPriceError as error:
            raise UsageProblemError(
                f'{setting.name}: "{str(error)[:40]}" is no price.',
                do=f"rappd config set {setting.name} 2.5, or MODEL=2.5",
            ) from None
    return text


def _check_networks(setting: Setting, text: str) -> None:
    from neighborhoods.auth.allowed_networks import (
        WIDEST_NAMED,
        ipv6_network,
    )  # only who sets one needs it

    for one in filter(None, map(str.strip, text.split(","))):
        try:
            ipv6_network(one)
        except ValueError:
            raise UsageProblemError(
                f'{setting.name}: "{one[:60]}" is no IPv6 network of {WIDEST_NAMED} bits or more.',
                do=f"rappd config set {setting.name} 2001:db8:5::/48",
            ) from None


_EXAMPLES = {
    "provider.url": "http://127.0.0.1:11434/v1",
    "azure.endpoint": "https://your-name.openai.azure.com",
}


def _is_address(text: str) -> bool:
    from agents.providers.urls import is_web_address  # only who sets one needs it

    return is_web_address(text)


def is_any_port(setting: Setting, text: str) -> bool:
    """True for ``PORT=0``, any free port: for trials, and never written down."""
    return setting.name == "port" and text.strip() == "0"


def _is_in_range(setting: Setting, text: str) -> bool:
    is_decimal = text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS
    return is_decimal and setting.least <= int(text) <= setting.most


def _as_choice(setting: Setting, text: str) -> str:
    """A choice between on, off and more also takes the other words of a switch: it may have been one."""
    if text in setting.choices or not {"on", "off"} <= set(setting.choices):
        return text
    if text.lower() in _ON:
        return "on"
    return "off" if text.lower() in _OFF else text


def unknown_names(home: Home) -> list[str]:
    """Names in ``rappd.toml`` that are no settings, for ``rappd doctor``. Raises ``UsageProblemError``."""
    return [name for name in _read_toml(home) if name not in BY_NAME and name not in BY_FORMER_NAME]


SECRET_VARIABLES = frozenset({*(setting.variable for setting in SETTINGS if setting.secret), *OTHER_SECRETS})
"""Variables that no worker gets, neither from the daemon's environment nor from a workspace's ``.env``."""


_OF_KEY_PROGRAMS = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "DBUS_",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_",
)


def worker_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Environment of workers: the daemon's less what is secret, then the workspace's own variables.

    Secret are ``SECRET_VARIABLES`` and what leads to programs that sign and unlock for this account.

    ``own`` are those that ``twins.workspace.workspace_env`` let pass.
    """
    passed = {key: text for key, text in environment.items() if key not in SECRET_VARIABLES}
    return {**{key: text for key, text in passed.items() if not key.startswith(_OF_KEY_PROGRAMS)}, **own}


def host_workspace(home: Home, settings: Settings) -> Workspace:
    """The workspace of the host brainstem, as settings place it."""
    from twins.workspace.workspace import Workspace  # most commands do without

    return Workspace.at(home.brainstem, soul=settings.text("soul_path"), agents=settings.text("agents_path"))


def _read_toml(home: Home) -> dict[str, str]:
    try:
        found = tomllib.loads(files.read(home.config).text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error).rstrip(".")
        raise UsageProblemError(f"{home.config} cannot be read: {problem}.", do=_MEND) from error
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
    if isinstance(value, dict):
        return ",".join(f"{key}={_as_text(inner)}" for key, inner in value.items())
    return str(value)


def _read_env(home: Home) -> dict[str, str]:
    text = files.read(home.env_file).text
    return files.variables(text) if text.strip() else {}


def _by_variable(setting: Setting) -> tuple[str, str]:
    return setting.former_variable, setting.variable


def _by_name(setting: Setting) -> tuple[str, str]:
    return setting.former, setting.name
