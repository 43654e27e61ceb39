A="$R/brainstem/agents"
[ -d "$A" ] || A="$HOME/.brainstem/src/rapp_brainstem/agents"
