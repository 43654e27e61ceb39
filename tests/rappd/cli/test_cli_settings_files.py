"""Settings files as editors of several systems save them, and as people place them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon

from agents.storage.text_file import TextFile
from rappd.daemon.home import Home
from rappd.errors import RappdError, UsageProblemError
from rappd.settings import files
from rappd.settings.load import Settings
from rappd.settings.write import unset, write

MARK = b"\xef\xbb\xbf"
TEXTS = {".env": "OTHER=1\nOPENAI_MODEL=m\n", "rappd.toml": '# mine\n[provider]\nmodel = "m"\n'}
SHAPES = {
    "mark and CRLF": lambda text: MARK + text.replace("\n", "\r\n").encode(),
    "old Mac": lambda text: text.replace("\n", "\r").encode(),
    "no last line end": lambda text: text.rstrip("\n").encode(),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir(mode=0o700)
    return Home(tmp_path / "home")


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("file", list(TEXTS))
def test_settings_are_read_whatever_editor_saved_them(home: Home, file: str, shape: str) -> None:
    (home.root / file).write_bytes(SHAPES[shape](TEXTS[file]))
    value = Settings.load(home, {}).value("provider.model")
    assert (value.text, value.source) == ("m", file)


def test_a_change_keeps_mark_line_ends_and_every_other_line(home: Home) -> None:
    home.config.write_bytes(MARK + b'# mine\r\n[provider]\r\nmodel = "m"\r\n\r\n[other]\r\nkeep = 1\r\n')
    home.env_file.write_bytes(MARK + b"# a\r\nexport OPENAI_API_KEY=old\r\nB = 2 # two\r\n")
    write(home, "provider.model", "m2")
    write(home, "provider.key", "new")
    assert home.config.read_bytes() == (
        MARK + b'# mine\r\n[provider]\r\nmodel = "m2"\r\n\r\n[other]\r\nkeep = 1\r\n'
    )
    assert home.env_file.read_bytes() == MARK + b"# a\r\nexport OPENAI_API_KEY='new'\r\nB = 2 # two\r\n"
    unset(home, "provider.key")
    assert home.env_file.read_bytes() == MARK + b"# a\r\nB = 2 # two\r\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [("A=1\n".encode("utf-16"), "UTF-16"), (b"# a\nB=caf\xe9\nOPENAI_API_KEY=k\n", "line 2")],
)
@pytest.mark.parametrize(
    "change", [("set", "provider.key", "new"), ("set", "name", "desk"), ("unset", "name")]
)
def test_a_file_in_another_encoding_is_named_before_anything_is_written(
    idle: RunningDaemon, content: bytes, words: str, change: tuple[str, ...]
) -> None:
    idle.home.mkdir(mode=0o700, exist_ok=True)
    (idle.home / ".env").write_bytes(content)
    (idle.home / "rappd.toml").write_text('name = "old"\n')
    done = idle.cli("config", *change)
    assert done.returncode == 2
    assert ".env" in done.stderr and words in done.stderr and "Traceback" not in done.stderr
    assert (idle.home / ".env").read_bytes() == content
    assert (idle.home / "rappd.toml").read_text() == 'name = "old"\n'


@pytest.mark.parametrize("verb", [("config", "show"), ("start",)])
def test_a_toml_in_latin1_is_named_with_its_line(idle: RunningDaemon, verb: tuple[str, ...]) -> None:
    idle.home.mkdir(mode=0o700)
    (idle.home / "rappd.toml").write_bytes(b'# ok\nname = "Ros\xe9"\n')
    done = idle.cli(*verb)
    assert done.returncode == 2
    assert "rappd.toml cannot be read: it is not UTF-8 in line 2" in done.stderr
    assert "save it as UTF-8" in done.stderr


def test_a_linked_file_is_written_where_it_is(home: Home, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "env").write_text("A=1\n")
    (dotfiles / "toml").write_text("# mine\n")
    home.env_file.symlink_to(dotfiles / "env")
    home.config.symlink_to("../dotfiles/toml")
    write(home, "provider.key", "new")
    write(home, "provider.model", "m")
    assert home.env_file.is_symlink() and home.config.is_symlink()
    assert (dotfiles / "env").read_text() == "A=1\nOPENAI_API_KEY='new'\n"
    assert stat.S_IMODE((dotfiles / "env").stat().st_mode) == 0o600
    assert (dotfiles / "toml").read_text().startswith("# mine\n")
    assert Settings.load(home, {}).text("provider.model") == "m"


@pytest.mark.parametrize(("target", "error"), [("nowhere", RappdError), ("folder", UsageProblemError)])
def test_a_link_to_no_file_is_refused_by_name(
    home: Home, tmp_path: Path, target: str, error: type[Exception]
) -> None:
    (tmp_path / "folder").mkdir()
    home.env_file.symlink_to(tmp_path / target)
    with pytest.raises(error, match=target):
        write(home, "provider.key", "new")
    assert home.env_file.is_symlink() and not (tmp_path / "nowhere").exists()


def test_a_link_to_a_device_leaves_the_device(home: Home, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # in the place of /dev/null, which root could replace
    home.env_file.symlink_to(tmp_path / "pipe")
    with pytest.raises(UsageProblemError, match=r"pipe, is no plain file; nothing was written"):
        files.write(home.env_file, TextFile("", b""), "A=1\n")  # reading a pipe first would wait
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_that_cannot_be_written_is_named(home: Home, tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)  # the new file beside it, which takes its name, would have a longer one
    target.write_text("A=1\n")
    home.env_file.symlink_to(target)
    with pytest.raises(
        UsageProblemError, match=r"\.env, a link to .*, cannot be written: File name too long"
    ):
        write(home, "provider.key", "new")
    assert target.read_text() == "A=1\n"


def test_a_secret_with_backslashes_comes_back(home: Home) -> None:
    write(home, "provider.key", r"a\\b\'c'd")
    assert Settings.load(home, {}).text("provider.key") == r"a\\b\'c'd"
