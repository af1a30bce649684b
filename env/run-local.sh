#!/bin/sh
# Starts the tool environment on this machine and prints how an agent reaches it. Its folder is that of this call, also where
# an npm script that was called from another folder runs this one.
unset INIT_CWD
exec node "$(dirname "$0")/../scripts/launch.mjs" cli env start "$@"
