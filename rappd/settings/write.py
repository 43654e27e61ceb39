"""Writing a setting down: secrets into ``$RAPP_HOME/.env``, all else into ``rappd.toml``."""

from __future__ import annotations

from typing import Any

from agents.storage.atomic_write import write_atomically
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from rappd.settings.load import check
from rappd.settings.registry import BY_FORMER_NAME, BY_NAME, BY_VARIABLE, Setting


def find(name: str) -> Setting:
    """The setting of that name or variable. Raises ``NotFoundError``, with the nearest name."""
    setting = BY_NAME.get(name) or BY_VARIABLE.get(name) or BY_FORMER_NAME.get(name)
    if setting is None:
        near = nearest(name)
        do = f"did you mean `{near}`?" if near else "rappd config show"
        raise NotFoundError(f'No setting "{name[:80]}".', do=do)
    return setting


def nearest(name: str) -> str:
    """The setting whose name is most like ``name``; "" when none is."""
    import difflib

    return next(iter(difflib.get_close_matches(name.lower(), list(BY_NAME), 1)), "")


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
        before = home.config.read_text(encoding="utf-8") if home.config.exists() else ""
        document = tomlkit.parse(before)
        table, _, key = setting.name.rpartition(".")
        place: Any = document.setdefault(table, tomlkit.table()) if table else document
        place[key] = _typed(setting, text)
        before_table, _, before_key = setting.former.rpartition(".")
        if before_table in document:
            document[before_table].pop(before_key, None)
    except (TOMLKitError, UnicodeDecodeError) as error:
        said = str(error).rstrip(".")
        raise UsageProblemError(
            f"{home.config} cannot be read: {said}.", do="mend the file, or move it away"
        ) from error
    except TypeError as error:  # the file has a plain value by the table's name
        raise UsageProblemError(
            f"{table} in {home.config} is no table.", do=f"write it as [{table}]"
        ) from error
    write_atomically(home.config, tomlkit.dumps(document).encode())


def _typed(setting: Setting, text: str) -> str | int | bool:
    if setting.kind == "number":
        return int(text)
    return text == "on" if setting.kind == "switch" else text
