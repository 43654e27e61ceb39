#!/bin/sh
# What the owner of desk sees: who is there, and what others measure.
set -eu

show() {
    echo "\$ $*"
    "$@"
    echo
}

show rappd peers list
show rappd call pi:Thermometer
show rappd call shed:RainGauge --args '{"day": "today"}'
