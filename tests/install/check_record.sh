#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is installed is enough: a program of libevent, with one call and without, is built through
# pkg-config only, recorded, and its callback found by `dial9 report`.  BINDIR has dial9, PKGDATADIR the
# drop-in of systemd, which is tried, too.
set -eu

test -z "$DESTDIR" || exit 0 # paths in the .pc files are not DESTDIR's
test "$SANITIZER" = no || exit 0

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD

# reported WHAT TRACE: ten polls of the callback, under its name.
reported() {
	"$BINDIR/dial9" report --json "$2" >"$dir/report.json" || [ $? = 1 ]
	tr -d ' \n' <"$dir/report.json" | tr '{' '\n' |
		grep '"name":"on_tick"' | grep -q '"polls":10,' || {
		echo "$1: the report does not hold ten calls of on_tick"
		cat "$dir/report.json"
		exit 1
	}
	echo "installed: $1"
}

# Several words are meant.
# shellcheck disable=SC2046,SC2086
{
	$CC -g -o "$dir/plain" "$top_srcdir/tests/install/timer.c" \
		$($PKG_CONFIG --cflags --libs libevent)
	$CC -g -DATTACH -o "$dir/attached" "$top_srcdir/tests/install/timer.c" \
		$($PKG_CONFIG --cflags --libs dial9-libevent libevent)
}
cd "$dir"
DIAL9_TRACE_DIR=$dir/attached.d ./attached
reported "a program that attaches itself" attached.d
# The preload library must find its own libraries.
unset LD_LIBRARY_PATH
"$BINDIR/dial9" record --quiet -o plain.d -- ./plain
reported "dial9 record" plain.d

# As systemd sets it for the service "plain", which has its folder from systemd, too.
environment=$(sed -n 's/^Environment=//p' "$PKGDATADIR/systemd/record.conf" | sed -e "s|%S|$dir/state|" -e 's|%N|plain|')
mkdir -p state/dial9/plain
# shellcheck disable=SC2086 # a word each
env $environment ./plain
reported "a service with the drop-in of systemd" state/dial9/plain
