#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits are read by their names.
# shellcheck disable=SC2034
# How many instructions <dial9/ev-embed.h> adds to a fed callback of a libev that a program compiles into itself,
# recording and switched off.  As core/loop/check_instructions.sh.
set -eu
# shellcheck source=tests/support/instructions.sh
. "$top_srcdir/tests/support/instructions.sh"

calls=1000 # of embed_counted.c

# Linked as it is, it finds libdial9.so where it was built.
export LD_LIBRARY_PATH="$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
case $target in
"1 12 __clang__ 1") limit_fed=690 limit_off=0 ;;
"1 14 __clang__ 1") limit_fed=798 limit_off=0 ;;
*) no_limits ;;
esac
for tarball in "${D9_TEST_SOURCES:-/nonexistent}"/libev_*.orig.tar.*; do
	[ -f "$tarball" ] ||
		skip "no sources: run tests/support/fetch_sources.sh DIR and set D9_TEST_SOURCES=DIR"
	mkdir "$scratch/libev" && tar -xf "$tarball" -C "$scratch/libev" --strip-components=1
done
$CC -g -O2 -pthread -fexceptions -w -I"$top_builddir/core/include" -I"$top_srcdir/core/include" \
	-I"$top_srcdir/adapters/include" -isystem "$scratch/libev" -o "$scratch/counted" \
	"$top_srcdir/tests/adapters/embed_counted.c" -L"$top_builddir/core/.libs" -ldial9 -ldl -lm

count() {
	env DIAL9_CLOCK=tsc DIAL9_TRACE_DIR="$scratch/trace" valgrind --tool=callgrind \
		--toggle-collect=counted_feeds --callgrind-out-file="$scratch/out" "$scratch/counted" "$1" \
		>"$scratch/log" 2>&1 || {
		cat "$scratch/log" >&2
		exit 1
	}
	collected
}

failed=0
alone=$(count alone)
for what in fed off; do
	eval "limit=\$limit_$what"
	# On a loaded machine the clock's conversion may grow old in between: that adds, and is no defect.
	for _ in 1 2 3; do
		n=$((($(count $what) - alone + calls / 2) / calls))
		[ $n -gt "$limit" ] || break
	done
	echo "$what: $n instructions more than alone, limit $limit"
	[ $n -le "$limit" ] || failed=1
	# Nearly nothing means that nothing was recorded.
	[ $what = off ] || [ $n -gt 100 ] || failed=1
done
exit $failed
