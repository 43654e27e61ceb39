"""Writing a setting down, and taking it back: secrets into ``$RAPP_HOME/.env``, all else into ``rappd.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.storage.text_file import TextFile
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError
from rappd.settings import files
from rappd.settings.load import Settings, check
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
        _refuse_itself(home, setting, text)
    if setting.name == "notify.command":
        from rappd.notices.command import refuse_unusable  # only who sets it needs it

        refuse_unusable(text)
    if setting.name.startswith("timers.") and text:
        from rappd.sessions.schedule import quiet_hours, rules

        if setting.name == "timers.quiet":
            quiet_hours.parse_quiet(text)
        if setting.name == "timers.zone":
            rules.zone_of(text)
    home.create()
    Settings.load(home)  # a file that cannot be read is named before the other one is written
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


def _refuse_itself(home: Home, setting: Setting, address: str) -> None:
    from agents.providers.urls import is_at_port

    if setting.name in ("provider.url", "azure.endpoint") and is_at_port(
        address, Settings.load(home).number("port")
    ):
        raise UsageProblemError(
            f"{setting.name}: that is rappd itself, which would ask itself without end.",
            do="write the address of a model server",
        )


def unset(home: Home, name: str) -> tuple[Setting, list[str]]:
    """Takes one setting out of both files; returns it, and the names of the files that had it."""
    setting = find(name)
    changes = [
        (path, before, after)
        for path, before, after in (_without_secret(home, setting), _without_key(home, setting))
        if after != before.text
    ]
    for path, before, after in changes:
        files.write(path, before, after)
    return setting, [path.name for path, _, _ in changes]


def _without_secret(home: Home, setting: Setting) -> tuple[Path, TextFile, str]:
    before = files.read(home.env_file)
    there = files.variables(before.text) if before.text.strip() else {}
    found = [key for key in (setting.variable, setting.former_variable) if key and key in there]
    return home.env_file, before, files.without_variables(before.text, found) if found else before.text


def _without_key(home: Home, setting: Setting) -> tuple[Path, TextFile, str]:
    before = files.read(home.config)
    document = _parsed(home, before)
    found = False
    for name in (setting.name, setting.former):
        table, _, key = name.rpartition(".")
        place: Any = document.get(table, {}) if table else document
        if key and isinstance(place, dict) and key in place:
            place.pop(key)
            found = True
    return home.config, before, document.as_string() if found else before.text


def _write_secret(home: Home, setting: Setting, text: str) -> None:
    before = files.read(home.env_file)
    files.write(home.env_file, before, files.with_variable(before.text, setting.variable, text))


def _write_toml(home: Home, setting: Setting, text: str) -> None:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    before = files.read(home.config)
    document = _parsed(home, before)
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
    files.write(home.config, before, document.as_string())


def _parsed(home: Home, file: TextFile) -> TOMLDocument:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(file.text)
    except TOMLKitError as error:
        raise _unreadable(home, error) from error


def _unreadable(home: Home, error: Exception) -> UsageProblemError:
    problem = str(error).rstrip(".")
    return UsageProblemError(f"{home.config} cannot be read: {problem}.", do="mend the file, or move it away")


def _typed(setting: Setting, text: str) -> str | int | bool:
    if setting.kind == "number":
        return int(text)
    return text == "on" if setting.kind == "switch" else text
