"""Writing a setting down: secrets into ``$RAPP_HOME/.env``, all else into ``rappd.toml``."""

from __future__ import annotations

import difflib

from rappd.errors import Mistyped, NotFound
from rappd.home import Home
from rappd.settings.load import check
from rappd.settings.table import BY_NAME, BY_VARIABLE, Setting
from twins.workspace import write_atomically


def find(name: str) -> Setting:
    """The setting of that name or variable. Raises ``NotFound``, with the nearest name."""
    setting = BY_NAME.get(name) or BY_VARIABLE.get(name)
    if setting is None:
        near = difflib.get_close_matches(name, list(BY_NAME), 1)
        raise NotFound(
            f'No setting "{name}".', do=f"Did you mean {near[0]}?" if near else "rappd config show"
        )
    return setting


def write(home: Home, name: str, text: str) -> Setting:
    """Checks and stores one setting; comments and order of ``rappd.toml`` stay."""
    setting = find(name)
    text = check(setting, text)
    home.create()
    if setting.secret:
        _write_secret(home, setting, text)
    else:
        _write_toml(home, setting, text)
    return setting


def _write_secret(home: Home, setting: Setting, text: str) -> None:
    from dotenv import set_key

    home.env_file.touch(mode=0o600)
    home.env_file.chmod(0o600)
    set_key(home.env_file, setting.variable, text, quote_mode="always")


def _write_toml(home: Home, setting: Setting, text: str) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(home.config.read_text()) if home.config.exists() else tomlkit.document()
    except TOMLKitError as error:
        raise Mistyped(
            f"{home.config} cannot be read: {error}.", do="Mend the file, or move it away."
        ) from error
    value: str | int | bool = text
    if setting.kind == "number":
        value = int(text)
    elif setting.kind == "switch":
        value = text == "on"
    table, _, key = setting.name.rpartition(".")
    if table:
        document.setdefault(table, tomlkit.table())[key] = value
    else:
        document[key] = value
    write_atomically(home.config, tomlkit.dumps(document).encode())
