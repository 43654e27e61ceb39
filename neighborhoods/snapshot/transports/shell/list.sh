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
