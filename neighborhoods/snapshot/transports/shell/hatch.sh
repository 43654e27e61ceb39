[ -n "$D" ] || fail no rappd
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
