umask 077
LC_ALL=C; COPYFILE_DISABLE=1; export LC_ALL COPYFILE_DISABLE
PATH="$PATH:$HOME/.local/bin:/usr/local/bin:/opt/homebrew/bin"
R="${RAPP_HOME:-$HOME/.rapp}"
out() { printf '\n%s %s\n' "$M" "$*"; }
err() { printf '\n%s %s\n' "$M" "$*" >&2; }
fail() { err "fail $*"; exit 3; }
twin_folder() { if [ "$ARCHIVED" = 1 ]; then F="$R/twins/.archive"; else F="$R/twins"; fi; }
