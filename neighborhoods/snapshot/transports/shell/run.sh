[ -n "$D" ] || fail no rappd
[ -n "$OWN" ] && [ -f "$R/$OWN" ] && fail itself
RAPP_HOME=$R; export RAPP_HOME
out begin
"$D" ARGUMENTS </dev/null
err finished "$?"
