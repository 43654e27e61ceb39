"""The POSIX shell scripts (``shell/``) that read and write twins, and run rappd, where nothing of rappd need be.

A script arrives over the standard input of ``COMMAND``, so that no name of ours is on a command line; each value is
quoted into it. Lines for us begin with a mark that was made for this one run: banners and warnings have none.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from neighborhoods.snapshot.transports.twin_files import PRUNED

_PARTS = {
    file.stem: "".join(
        line for line in file.read_text("utf-8").splitlines(keepends=True) if not line.startswith("#")
    )
    for file in Path(__file__).with_name("shell").glob("*.sh")
}
"""The parts of scripts, without their comments, by the name of their file."""


def command(script: str) -> str:
    """The command of the far side's login shell, whatever that is: it reads the script and no octet more."""
    return f"exec sh -c 'eval \"$(dd bs=1 count={len(script.encode())} 2>/dev/null)\"'"


def probe(mark: str, *, own_mark: str = "") -> str:
    """Says free space, the version of rappd, and if the home there holds the file ``own_mark``."""
    return _values(mark, OWN=own_mark) + _parts("prelude", "find_rappd", "probe")


def listing(mark: str, *, archived: bool) -> str:
    """Lists the twins with every file's name, size and times, and the brainstem's agents."""
    return _values(mark, ARCHIVED=archived) + _parts("prelude", "files", "agents_folder", "list")


def read_twin(mark: str, twin: str, *, archived: bool) -> str:
    """Streams one twin as tar, with gzip where it is there; its files are listed before and after."""
    values = _values(mark, ARCHIVED=archived, TWIN=twin)
    return f'{values}{_parts("prelude", "gzip")}twin_folder; F="$F/$TWIN"\n{_reading()}'


def read_agents(mark: str) -> str:
    """Streams the brainstem's agents as ``read_twin`` does."""
    return f"{_values(mark)}{_parts('prelude', 'gzip', 'agents_folder')}F=$A\n{_reading()}"


def write_twin(mark: str, twin: str, *, overwrite: bool, archived: bool) -> str:
    """Takes a tar stream that ends with a file ``.complete.MARK``, and moves it to its place, whole or not at all.

    It is compressed when ``begin`` says ``gzip``, and may have members of type ``S`` when it says ``holes``.
    """
    values = _values(mark, ARCHIVED=archived, TWIN=twin, OVERWRITE=overwrite)
    return values + _parts("prelude", "gzip", "write_twin")


def write_agents(mark: str, *, overwrite: bool) -> str:
    """Takes a tar stream like ``write_twin``, and moves each agent of the brainstem to its place."""
    return _values(mark, OVERWRITE=overwrite) + _parts("prelude", "gzip", "agents_folder", "write_agents")


def hatch_egg(mark: str, twin: str, size: int, *, overwrite: bool, archived: bool) -> str:
    """Takes an egg of ``size`` octets and hands it to the rappd there."""
    replaced = "soul,agents,services,memory,slots,pages"
    values = _values(mark, ARCHIVED=archived, T=twin, OVERWRITE=overwrite, SIZE=str(size), REPLACED=replaced)
    return values + _parts("prelude", "find_rappd", "hatch")


def hatch_agents(mark: str, size: int, *, overwrite: bool) -> str:
    """Takes an egg of agents of ``size`` octets and hands it to the rappd there."""
    values = _values(mark, ARCHIVED=False, T="", OVERWRITE=overwrite, SIZE=str(size), REPLACED="agents")
    return values + _parts("prelude", "find_rappd", "hatch")


def run_rappd(mark: str, arguments: Sequence[str], *, own_mark: str = "") -> str:
    """Runs the rappd there with these arguments, unless the home there holds the file ``own_mark``."""
    words = " ".join(map(shlex.quote, arguments))
    script = _parts("prelude", "find_rappd", "run").replace("ARGUMENTS", words)
    return _values(mark, OWN=own_mark) + script


def _parts(*names: str) -> str:
    return "".join(_PARTS[name] for name in names)


def _reading() -> str:
    whole, below = (
        " ".join(f"--exclude={shlex.quote(name + end)}" for name in sorted(PRUNED)) for end in ("", "/?*")
    )
    return _parts("files", "read").replace("EXCLUDED", whole).replace("EMPTIED", below)


def _values(mark: str, **values: str | bool) -> str:
    plain = {name: str(int(value)) if isinstance(value, bool) else value for name, value in values.items()}
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in {"M": mark, **plain}.items())
