# A change within the second in which a file was read would not show where times are whole seconds.
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
