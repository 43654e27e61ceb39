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
