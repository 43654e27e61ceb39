#!/bin/sh
# One machine: gets the agents that lie here under its name, unless it has them, and runs until it is stopped.
set -eu

ours=$(cd "$(dirname "$0")" && pwd)/agents/${RAPPD_NAME:-none}
theirs=$RAPP_HOME/brainstem/agents

if [ -d "$ours" ]; then
    mkdir -p "$theirs"
    for file in "$ours"/*.py; do
        [ -e "$theirs/${file##*/}" ] || cp "$file" "$theirs/"
    done
fi

exec rappd start
