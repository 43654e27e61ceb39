"""The POSIX shell scripts that read and write twins, and run rappd, on a machine where nothing of rappd need be.

A script arrives over the standard input of ``COMMAND``, so that no name of ours is on a command line; each value is
quoted into it. Lines for us begin with a mark that was made for this one run: banners and warnings have none.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from neighborhoods.snapshot.transports.twin_files import PRUNED

_PRELUDE = r"""
umask 077
LC_ALL=C; COPYFILE_DISABLE=1; export LC_ALL COPYFILE_DISABLE
PATH="$PATH:$HOME/.local/bin:/usr/local/bin:/opt/homebrew/bin"
R="${RAPP_HOME:-$HOME/.rapp}"
out() { printf '\n%s %s\n' "$M" "$*"; }
err() { printf '\n%s %s\n' "$M" "$*" >&2; }
fail() { err "fail $*"; exit 3; }
twin_folder() { if [ "$ARCHIVED" = 1 ]; then F="$R/twins/.archive"; else F="$R/twins"; fi; }
"""

# A change within the second in which a file was read would not show where times are whole seconds.
_FILES = r"""
if find . -prune -printf '' >/dev/null 2>&1; then K=gnu
elif stat -c %s . >/dev/null 2>&1; then K=seconds
elif stat -f %z . >/dev/null 2>&1; then K=bsd
else K=content; fi
files() {
  set -- . \( -name __pycache__ -o -name .git -o -name node_modules -o -name .venv \) -prune -o -type f
  case $K in
    gnu) find "$@" -printf '%s %T@ %C@ %p\n' ;;
    seconds) find "$@" -exec stat -c '%s %Y %Z %n' {} + ;;
    bsd) find "$@" -exec stat -f '%z %Fm %Fc %N' {} + ;;
    content) find "$@" -exec cksum {} + ;;
  esac
}
"""

# Other machines compress at the same time, each on its own processor; their lines are shared, or slow.
_GZIP = r"""
G=; command -v gzip >/dev/null 2>&1 && G=gzip
archive() { tar "$@" -cf - .; err tar $?; }
extract() { if [ -n "$G" ]; then gzip -dc | tar -xof -; else tar -xof -; fi; }
H=; Z=
holes() {
  case $(tar --version 2>&1) in
    *GNU*) H=holes; Z=-S ;;
    *bsdtar*) H=holes ;;
  esac
}
"""

_RAPPD = r"""
D=$(command -v rappd 2>/dev/null) || D=
if [ -z "$D" ] && [ -f "$R/rappd.pid" ]; then
  read -r p rest <"$R/rappd.pid" || :
  case $p in ''|*[!0-9]*) ;; *)
    set -f
    for word in $(ps -o args= -p "$p" 2>/dev/null); do
      case $word in /*) [ -x "${word%/*}/rappd" ] && D="${word%/*}/rappd" ;; esac
    done
    set +f ;;
  esac
fi
if [ -z "$D" ]; then
  unit="${XDG_CONFIG_HOME:-$HOME/.config}/systemd/user/rappd.service"
  [ -f "$unit" ] && D=$(sed -n 's/^ExecStart="\{0,1\}\(\/[^" ]*\/rappd\).*/\1/p' "$unit")
fi
[ -n "$D" ] && [ -x "$D" ] || D=
"""

_AGENTS_FOLDER = r"""
A="$R/brainstem/agents"
[ -d "$A" ] || A="$HOME/.brainstem/src/rapp_brainstem/agents"
"""

_PROBE = r"""
out begin
[ -d "$R" ] || out home missing
command -v tar >/dev/null 2>&1 || out tar missing
at=$R; [ -d "$at" ] || at=$HOME
out free $(df -Pk "$at" 2>/dev/null | sed -n '2p')
[ -n "$OWN" ] && [ -f "$R/$OWN" ] && out place here
[ -n "$D" ] && out version "$("$D" --version 2>/dev/null </dev/null | sed -n '1p')"
out end
"""

_LIST = r"""
out begin
out host "$(uname -n)"
out kind "$K"
twin() {
  h=${1##*/}
  case $h in .*|*[!A-Za-z0-9._@-]*) return 0 ;; esac
  [ -d "$1" ] && [ ! -L "$1" ] && [ -f "$1/rappid.json" ] && [ ! -L "$1/rappid.json" ] || return 0
  out twin "$2" "$h"
  dd if="$1/rappid.json" bs=65536 count=1 2>/dev/null
  out files
  (cd "$1" && files)
  out done
}
for t in "$R"/twins/*; do twin "$t" active; done
if [ "$ARCHIVED" = 1 ]; then for t in "$R"/twins/.archive/*; do twin "$t" archived; done; fi
if [ -d "$A" ]; then
  out agents
  (cd "$A" && for f in *; do [ -f "$f" ] && [ ! -L "$f" ] && printf '%s\n' "$f"; done)
fi
out end
"""

# Folders that are made anew come empty, so that they are named here: but where tar cannot open one, it would fail.
_READ = r"""
closed() {
  find . \( -name __pycache__ -o -name .git -o -name node_modules -o -name .venv \) -prune -type d \
    -exec sh -c 'for d; do [ -r "$d" ] && [ -x "$d" ] || printf .; done' sh {} +
}
command -v tar >/dev/null 2>&1 || fail no tar
[ -d "$F" ] && [ ! -L "$F" ] && cd "$F" || fail missing
case $(tar --version 2>&1) in
  *GNU*) X="--hard-dereference --format=gnu" ;;
  *bsdtar*) X="--format=gnutar"; tar --no-read-sparse -cf - -T /dev/null >/dev/null 2>&1 && X="$X --no-read-sparse" ;;
  *) X= ;;
esac
err kind "$K"
err files
files >&2
err done
[ "$K" = seconds ] && sleep 1
set -- EXCLUDED
[ -n "$(closed)" ] || set -- EMPTIED
tar "$@" -cf /dev/null /dev/null >/dev/null 2>&1 || set --
out begin $G
if [ -n "$G" ]; then archive $X "$@" | gzip -4; else archive $X "$@"; fi
err files
files >&2
err done
err end
"""

_WRITE = r"""
command -v tar >/dev/null 2>&1 || fail no tar
T=$TWIN; twin_folder
if [ -e "$F/$T" ] && [ "$OVERWRITE" != 1 ]; then err skipped; exit 0; fi
mkdir -p "$F" "$R/twins/.staging" || fail no folder
for left in "$R/twins/.staging/$T.member."*; do [ -d "$left" ] && rm -rf "$left"; done
S="$R/twins/.staging/$T.member.$M"
trap 'rm -rf "$S"' EXIT
trap 'exit 4' HUP INT TERM PIPE
mkdir "$S" "$S/new" || fail no folder
holes
out begin $G $H
(cd "$S/new" && extract) || fail extracting
[ -f "$S/new/.complete.$M" ] || fail cut
rm "$S/new/.complete.$M" || fail extracting
created=$(cd "$S/new" && find . -type f -exec sh -c 'for f; do printf .; done' sh {} + | wc -c) overwritten=0
if [ -e "$F/$T" ]; then
  overwritten=$(cd "$S/new" && find . -type f -exec sh -c 'for f; do [ -e "$0/$f" ] && printf .; done' "$F/$T" {} + | wc -c)
  cp -RPp "$F/$T" "$S/merged" || fail copying
  (cd "$S/new" && find . -type d -exec sh -c \
    'for d; do if [ -L "$0/$d" ] || { [ -e "$0/$d" ] && [ ! -d "$0/$d" ]; }; then rm -f "$0/$d"; fi; done' "$S/merged" {} +) || fail merging
  (cd "$S/new" && find . -type f -exec sh -c 'for f; do rm -rf "$0/$f"; done' "$S/merged" {} +) || fail merging
  (cd "$S/new" && tar $Z -cf - .) | (cd "$S/merged" && tar -xof -) || fail merging
  mv "$F/$T" "$S/old" || fail moving
  mv "$S/merged" "$F/$T" || { mv "$S/old" "$F/$T"; fail moving; }
else
  mv "$S/new" "$F/$T" || fail moving
fi
err written $((created - overwritten)) $((overwritten))
"""

# Flat names alone: what is no agent file stays in the archive.
_WRITE_AGENTS = r"""
command -v tar >/dev/null 2>&1 || fail no tar
[ -d "$A" ] || A="$R/brainstem/agents"
mkdir -p "$A" || fail no folder
for left in "${A%/*}/.agents.member."*; do [ -d "$left" ] && rm -rf "$left"; done
S="${A%/*}/.agents.member.$M"
trap 'rm -rf "$S"' EXIT
trap 'exit 4' HUP INT TERM PIPE
mkdir "$S" || fail no folder
out begin $G
(cd "$S" && extract) || fail extracting
[ -f "$S/.complete.$M" ] || fail cut
created=0 overwritten=0 skipped=0
for f in "$S"/*_agent.py "$S"/*_listener.py; do
  [ -f "$f" ] && [ ! -L "$f" ] || continue
  there="$A/${f##*/}"
  if [ ! -e "$there" ] && [ ! -L "$there" ]; then
    mv "$f" "$there" || fail moving
    created=$((created + 1))
  elif [ "$OVERWRITE" = 1 ] && [ -f "$there" ] && [ ! -L "$there" ]; then
    mv -f "$f" "$there" || fail moving
    overwritten=$((overwritten + 1))
  else
    skipped=$((skipped + 1))
  fi
done
err written "$created" "$overwritten" "$skipped"
"""

_HATCH = r"""
if [ -n "$T" ]; then
  twin_folder
  if [ -e "$F/$T" ] && [ "$OVERWRITE" != 1 ]; then err skipped; exit 0; fi
fi
mkdir -p "$R" || fail no folder
S="$R/.member.$M"
trap 'rm -rf "$S"' EXIT
trap 'exit 4' HUP INT TERM PIPE
mkdir "$S" || fail no folder
out begin
cat >"$S/twin.egg" || fail extracting
[ "$(($(wc -c <"$S/twin.egg")))" = "$SIZE" ] || fail cut
RAPP_HOME=$R; export RAPP_HOME
if [ "$OVERWRITE" = 1 ]; then
  "$D" egg hatch "$S/twin.egg" --yes --json --overwrite "$REPLACED" </dev/null
else
  "$D" egg hatch "$S/twin.egg" --yes --json </dev/null
fi
c=$?
if [ "$c" = 0 ] && [ "$ARCHIVED" = 1 ]; then "$D" twins archive "$T" </dev/null >/dev/null; c=$?; fi
err hatched "$c"
"""

_RUN = r"""
[ -n "$D" ] || fail no rappd
[ -n "$OWN" ] && [ -f "$R/$OWN" ] && fail itself
RAPP_HOME=$R; export RAPP_HOME
out begin
"$D" ARGUMENTS </dev/null
err finished "$?"
"""


def command(script: str) -> str:
    """The command of the far side's login shell, whatever that is: it reads the script and no octet more."""
    return f"exec sh -c 'eval \"$(dd bs=1 count={len(script.encode())} 2>/dev/null)\"'"


def probe(mark: str, *, own_mark: str = "") -> str:
    """Says free space, the version of rappd, and if the home there holds the file ``own_mark``."""
    return f"{_values(mark, OWN=own_mark)}{_PRELUDE}{_RAPPD}{_PROBE}"


def listing(mark: str, *, archived: bool) -> str:
    """Lists the twins with every file's name, size and times, and the brainstem's agents."""
    return f"{_values(mark, ARCHIVED=archived)}{_PRELUDE}{_FILES}{_AGENTS_FOLDER}{_LIST}"


def read_twin(mark: str, twin: str, *, archived: bool) -> str:
    """Streams one twin as tar, with gzip where it is there; its files are listed before and after."""
    values = _values(mark, ARCHIVED=archived, TWIN=twin)
    return f'{values}{_PRELUDE}{_GZIP}twin_folder; F="$F/$TWIN"\n{_FILES}{_reading()}'


def read_agents(mark: str) -> str:
    """Streams the brainstem's agents as ``read_twin`` does."""
    return f"{_values(mark)}{_PRELUDE}{_GZIP}{_AGENTS_FOLDER}F=$A\n{_FILES}{_reading()}"


def write_twin(mark: str, twin: str, *, overwrite: bool, archived: bool) -> str:
    """Takes a tar stream that ends with a file ``.complete.MARK``, and moves it to its place, whole or not at all.

    It is compressed when ``begin`` says ``gzip``, and may have members of type ``S`` when it says ``holes``.
    """
    values = _values(mark, ARCHIVED=archived, TWIN=twin, OVERWRITE=overwrite)
    return f"{values}{_PRELUDE}{_GZIP}{_WRITE}"


def hatch_egg(mark: str, twin: str, size: int, *, overwrite: bool, archived: bool) -> str:
    """Takes an egg of ``size`` octets and hands it to the rappd there."""
    replaced = "soul,agents,services,memory,slots,pages"
    values = _values(mark, ARCHIVED=archived, T=twin, OVERWRITE=overwrite, SIZE=str(size), REPLACED=replaced)
    return f'{values}{_PRELUDE}{_RAPPD}[ -n "$D" ] || fail no rappd\n{_HATCH}'


def write_agents(mark: str, *, overwrite: bool) -> str:
    """Takes a tar stream like ``write_twin``, and moves each agent of the brainstem to its place."""
    return f"{_values(mark, OVERWRITE=overwrite)}{_PRELUDE}{_GZIP}{_AGENTS_FOLDER}{_WRITE_AGENTS}"


def hatch_agents(mark: str, size: int, *, overwrite: bool) -> str:
    """Takes an egg of agents of ``size`` octets and hands it to the rappd there."""
    values = _values(mark, ARCHIVED=False, T="", OVERWRITE=overwrite, SIZE=str(size), REPLACED="agents")
    return f'{values}{_PRELUDE}{_RAPPD}[ -n "$D" ] || fail no rappd\n{_HATCH}'


def run_rappd(mark: str, arguments: Sequence[str], *, own_mark: str = "") -> str:
    """Runs the rappd there with these arguments, unless the home there holds the file ``own_mark``."""
    words = " ".join(map(shlex.quote, arguments))
    return f"{_values(mark, OWN=own_mark)}{_PRELUDE}{_RAPPD}{_RUN.replace('ARGUMENTS', words)}"


def _reading() -> str:
    whole, below = (
        " ".join(f"--exclude={shlex.quote(name + end)}" for name in sorted(PRUNED)) for end in ("", "/?*")
    )
    return _READ.replace("EXCLUDED", whole).replace("EMPTIED", below)


def _values(mark: str, **values: str | bool) -> str:
    plain = {name: str(int(value)) if isinstance(value, bool) else value for name, value in values.items()}
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in {"M": mark, **plain}.items())
