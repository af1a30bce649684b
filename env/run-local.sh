#!/bin/sh
# Starts the tool environment on this machine and prints how an agent reaches it.
exec node "$(dirname "$0")/../scripts/launch.mjs" cli env start "$@"
