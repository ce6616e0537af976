#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind has no more to say about a recorded program than about the program alone, nor about its
# child.
set -eu

skip() {
	echo "$1"
	exit 77
}

command -v valgrind >/dev/null || skip "valgrind is not installed"

here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# look NAME VARIABLE PROGRAM ARGUMENTS...: run under valgrind; its complaints go to NAME.
look() {
	name=$1 with=$2
	shift 2
	rm -rf "$work/trace"
	env DIAL9_TRACE_DIR="$work/trace" LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs" \
		"$with" valgrind -q --leak-check=no --log-file="$work/$name" "$@" --out="$work/counters"
	# Of which little may have been written: valgrind lets one thread run at a time.
	[ ! -e "$work/trace" ] || "$top_builddir/core/dial9" recover "$work/trace" >/dev/null
}

complaints() {
	sed 's/^==[0-9]*== //; s/0x[0-9A-F]*//g' "$work/$1" | grep -c '^[A-Z]' || true
}

# compare LIBRARY "OPTIONS" VARIABLE PROGRAM ARGUMENTS...: alone, and with the adapter as VARIABLE has it.
compare() {
	library=$1 options=$2 variable=$3
	shift 3
	[ -x "$1" ] || return 0
	look alone ALONE=yes "$@"
	look recorded "$variable" "$@"
	for counters in "$work"/counters*; do
		# There is time between a poll and what its callback does first.
		sed -i '/^late /d' "$counters"
		pid=$(sed -n 's/^pid //p' "$counters")
		# The list is a list of words.
		# shellcheck disable=SC2086
		"$here/compare_counts" "$work"/trace/*-"$pid" "$counters" --library "$library" $options
	done
	if [ "$(complaints recorded)" -gt "$(complaints alone)" ]; then
		cat "$work/recorded"
		exit 1
	fi
	rm -f "$work"/counters*
}

by_preload="LD_PRELOAD=$libraries/libdial9-preload.so"
compare libevent --wakes "$by_preload" "$here/libevent_every_kind" --threads --fork=descriptors,timers
compare libev --wakes "$by_preload" "$here/libev_every_kind"
compare libev --wakes "$by_preload" "$here/libev_cases" garbage
compare libev --wakes "$by_preload" "$here/libev_throw"
compare glib "--wakes --others" "$by_preload" "$here/glib_every_kind"
for name in handle unannounced ends handed; do
	compare glib --others "$by_preload" "$here/glib_cases" $name
done
