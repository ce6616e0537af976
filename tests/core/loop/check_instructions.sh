#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits are read by their names.
# shellcheck disable=SC2034
# How many instructions a recorded poll takes, one of a descriptor that a wait has found, one that says why it runs, one
# whose task stays ready, a task that is woken, polled and gone, a stay in a span, a span for a block of code, and one
# that the filter leaves out.  A clock cannot tell on a busy machine; this is exact.
set -eu
# shellcheck source=tests/support/instructions.sh
. "$top_srcdir/tests/support/instructions.sh"

calls=1000 # of counted_calls.c

# They count the caller's own 20 as well, which fill struct d9_poll.
case $target in
"1 12 __clang__ 1")
	limit_poll=228 limit_wake=387 limit_told=250 limit_ready=296 limit_once=821 limit_brief=1727
	limit_off=34 limit_span=624 limit_block=1477 limit_filtered=8 limit_found=330
	;;
"1 14 __clang__ 1")
	limit_poll=229 limit_wake=390 limit_told=270 limit_ready=302 limit_once=818 limit_brief=1706
	limit_off=34 limit_span=631 limit_block=1488 limit_filtered=6 limit_found=340
	;;
*) no_limits ;;
esac

# The environment of the counting machine must not matter; ticks are not taken to be usable there.
count() {
	env DIAL9_CLOCK=tsc "$top_builddir/libtool" --quiet --mode=execute \
		valgrind --tool=callgrind --toggle-collect=counted_calls --toggle-collect=counted_told \
		--toggle-collect=counted_tasks --toggle-collect=counted_spans --toggle-collect=counted_waits \
		--callgrind-out-file="$scratch/out" \
		"$top_builddir/tests/core/loop/counted_calls" "$1" >"$scratch/log" 2>&1 || {
		cat "$scratch/log"
		exit 1
	}
	collected
}

# each WHAT: of one.
each() {
	all=$(count "$1")
	# Of one more that each wait finds.
	[ "$1" != found10 ] || all=$(($(count found20) - all))
	[ -n "$all" ] || {
		cat "$scratch/log"
		exit 1
	}
	echo $(((all + calls / 2) / calls))
}

failed=0
for what in poll found wake off told ready once brief span block filtered; do
	eval "limit=\$limit_$what"
	# On a loaded machine the clock's conversion may grow old in between: that adds, and is no defect.
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		n=$(each $([ $what = found ] && echo found10 || echo $what))
		[ "$n" -gt "$limit" ] || break
	done
	echo "$what: $n instructions, limit $limit"
	[ "$n" -le "$limit" ] || failed=1
	# Nearly nothing means that nothing was recorded.
	[ $what = off ] || [ $what = filtered ] || [ "$n" -gt 100 ] || failed=1
done
exit $failed
