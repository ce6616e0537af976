#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# valgrind has no more to say about a recorded program than about the program alone, nor about its
# child.
set -eu

skip() {
	echo "$1"
	exit 77
}

[ "$SANITIZER" = no ] || skip "valgrind does not go with a sanitizer"
command -v valgrind >/dev/null || skip "valgrind is not installed"

here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# look NAME VARIABLES...: run under valgrind; its complaints go to NAME.
look() {
	name=$1
	shift
	env DIAL9_TRACE_DIR="$work/trace" \
		LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs" "$@" \
		valgrind -q --leak-check=no --log-file="$work/$name" "$here/libevent_every_kind" \
		--threads --fork=descriptors,timers --out="$work/counters"
}

look alone
look recorded "LD_PRELOAD=$libraries/libdial9-preload.so"
for counters in "$work/counters" "$work/counters.child"; do
	pid=$(sed -n 's/^pid //p' "$counters")
	"$here/compare_counts" "$work"/trace/*-"$pid" "$counters" --wakes
done

complaints() {
	sed 's/^==[0-9]*== //; s/0x[0-9A-F]*//g' "$work/$1" | grep -c '^[A-Z]' || true
}
if [ "$(complaints recorded)" -gt "$(complaints alone)" ]; then
	cat "$work/recorded"
	exit 1
fi
