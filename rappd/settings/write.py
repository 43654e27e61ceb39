"""Writing a setting down, and taking it back: secrets into ``$RAPP_HOME/.env``, all else into ``rappd.toml``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.storage.atomic_write import write_atomically
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from rappd.settings.load import check
from rappd.settings.registry import BY_FORMER_NAME, BY_NAME, BY_VARIABLE, Setting

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


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
    if setting.kind == "address" and text:
        _refuse_login(setting, text)
    if setting.name == "notify.command":
        from rappd.notices.command import refuse_unusable  # only who sets it needs it

        refuse_unusable(text)
    home.create()
    if setting.secret:
        _write_secret(home, setting, text)
    else:
        _write_toml(home, setting, text)
    return setting


def _refuse_login(setting: Setting, address: str) -> None:
    """Addresses are shown, on screens and in files that others may read; what is secret has a place of its own."""
    from agents.providers.urls import has_login  # only who sets one needs it

    if has_login(address):
        key = f"{setting.name.partition('.')[0]}.key"
        do = f"write the address without it, and the key with `rappd config set {key}`"
        raise UsageProblemError(
            f"{setting.name}: the address holds a name or a password, and addresses are shown.",
            do=do if key in BY_NAME else "write the address without it",
        )


def unset(home: Home, name: str) -> tuple[Setting, list[str]]:
    """Takes one setting out of both files; returns it, and the names of the files that had it."""
    setting = find(name)
    done = [_remove_variable(home, setting), _remove_key(home, setting)]
    return setting, [file for file in done if file]


def _remove_variable(home: Home, setting: Setting) -> str:
    from dotenv import dotenv_values, unset_key

    if not home.env_file.exists():
        return ""
    there = dotenv_values(home.env_file, interpolate=False)
    found = [key for key in (setting.variable, setting.former_variable) if key and key in there]
    for key in found:
        unset_key(home.env_file, key)
    return home.env_file.name if found else ""


def _remove_key(home: Home, setting: Setting) -> str:
    if not home.config.exists():
        return ""
    document = _parsed(home)
    found = False
    for name in (setting.name, setting.former):
        table, _, key = name.rpartition(".")
        place: Any = document.get(table, {}) if table else document
        if key and isinstance(place, dict) and key in place:
            place.pop(key)
            found = True
    if not found:
        return ""
    write_atomically(home.config, document.as_string().encode())
    return home.config.name


def _write_secret(home: Home, setting: Setting, text: str) -> None:
    from dotenv import set_key

    home.env_file.touch(mode=0o600)
    home.env_file.chmod(0o600)
    set_key(home.env_file, setting.variable, text, quote_mode="always")


def _write_toml(home: Home, setting: Setting, text: str) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    document = _parsed(home)
    table, _, key = setting.name.rpartition(".")
    try:
        place: Any = document.setdefault(table, tomlkit.table()) if table else document
        place[key] = _typed(setting, text)
        before_table, _, before_key = setting.former.rpartition(".")
        if before_table in document:
            document[before_table].pop(before_key, None)
    except TOMLKitError as error:
        raise _unreadable(home, error) from error
    except TypeError as error:  # the file has a plain value by the table's name
        raise UsageProblemError(
            f"{table} in {home.config} is no table.", do=f"write it as [{table}]"
        ) from error
    write_atomically(home.config, document.as_string().encode())


def _parsed(home: Home) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(home.config.read_text(encoding="utf-8") if home.config.exists() else "")
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise _unreadable(home, error) from error


def _unreadable(home: Home, error: Exception) -> UsageProblemError:
    said = str(error).rstrip(".")
    return UsageProblemError(f"{home.config} cannot be read: {said}.", do="mend the file, or move it away")


def _typed(setting: Setting, text: str) -> str | int | bool:
    if setting.kind == "number":
        return int(text)
    return text == "on" if setting.kind == "switch" else text
