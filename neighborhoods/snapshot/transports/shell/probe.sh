out begin
[ -d "$R" ] || out home missing
command -v tar >/dev/null 2>&1 || out tar missing
at=$R; [ -d "$at" ] || at=$HOME
out free $(df -Pk "$at" 2>/dev/null | sed -n '2p')
[ -n "$OWN" ] && [ -f "$R/$OWN" ] && out place here
[ -n "$D" ] && out version "$("$D" --version 2>/dev/null </dev/null | sed -n '1p')"
out end
