# Flat names alone: what is no agent file stays in the archive.
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
