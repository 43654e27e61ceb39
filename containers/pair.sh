#!/bin/sh
# Lets machines trust each other: pair.sh desk pi shed
#
# Each has its home under $HOMES, with its control socket, and answers on the network by its name, or is announced
# there. Both owners type the other's fingerprint. What is paired already stays paired.
set -eu

homes=${HOMES:-/homes}

on() {
    machine=$1
    shift
    RAPP_HOME=$homes/$machine rappd "$@" </dev/null
}

patiently() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 30 ] || return 1
        sleep 1
    done
}

fingerprint() {
    on "$1" peers list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["self"]["fingerprint"])'
}

pair() {
    on "$1" peers pair "$2" --fingerprint "$3" --mine
}

keys=$(for name in "$@"; do
    key=$(patiently fingerprint "$name")
    echo "$name $key"
done)

for here in "$@"; do
    echo "$keys" | while read -r there key; do
        [ "$here" = "$there" ] || patiently pair "$here" "$there" "$key"
    done
done
