#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program in README.md, built with what is installed by the command that stands below it, is recorded:
#
#	check_readme.sh README.md
#
# BINDIR, PKG_CONFIG and PKG_CONFIG_PATH come from the environment, as configured.
set -eu

test -z "$DESTDIR" || exit 0 # paths in the .pc files are not DESTDIR's
test "$SANITIZER" = no || exit 0

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n '/^```c$/,/^```$/{/^```/!p}' "$1" >"$dir/server.c"
sed -n '/^    cc server\.c /,/^$/s/^    //p' "$1" | sed "s|pkg-config|$PKG_CONFIG|" >"$dir/commands"
[ "$(wc -l <"$dir/commands")" = 2 ]
cd "$dir"
sh -e commands
"$BINDIR/dial9" info traces | grep -q ClockSyncEvent
echo "installed: what README.md builds is recorded"
