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
