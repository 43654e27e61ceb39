# Folders that are made anew come empty, so that they are named here: but where tar cannot open one, it would fail.
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
