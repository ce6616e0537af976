#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a program does between rounds of a loop that it goes round by itself, on each loop library, held against
# the program's own clock: as often, as long, with each sleep, and nothing of what a callback does.
set -u

here=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
export LD_LIBRARY_PATH="$top_builddir/adapters/.libs:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 ran=0

fail() {
	echo "FAILED: $1"
	failed=$((failed + 1))
}

# own WORD: the figure that the program printed
own() {
	sed -n "s/^$1 //p" "$work/out"
}

# told: PIECES LONG NS that the trace has
told() {
	sed -n 's/.*"event":"LoopOutsideEvent","timestamp_ns":\([0-9]*\),"worker_id":[0-9]*,"from_ns":\([0-9]*\),"to_ns":\1}.*/1 \2 \1/p
		s/.*"event":"SourceTimeEvent".*"task_id":0,"phase":"between","calls":\([0-9]*\),"total_ns":\([0-9]*\),.*/\1 0 \2/p' \
		"$work/events" | awk '{ pieces += $1; ns += $3 - $2; long += $2 && $3 - $2 >= 20000000 }
			END { printf "%d %d %d\n", pieces, long, ns }'
}

# check LIBRARY [HOW]
check() {
	program=$here/rounds_$1
	[ -x "$program" ] || return 0
	ran=$((ran + 1))
	# shellcheck disable=SC2086 # none, or one
	timeout 60 "$dial9" record --quiet -o "$work/trace" -- "$program" ${2-} >"$work/out" || fail "$*: the program ended with $?"
	"$dial9" events "$work/trace" >"$work/events"
	rm -rf "$work/trace"
	slept=$(grep -c '"event":"BlockingCallEvent".*"task_id":0,"function":"nanosleep"' "$work/events")
	[ "$slept" = "$(own slept)" ] || fail "$*: told are $slept sleeps between rounds, not $(own slept)"
	# Both clocks are of the same machine, but one is read by ticks.
	echo "$(told) $(own pieces) $(own long) $(own between) $(own inside)" |
		awk '{ exit !($1 == $4 && $5 > 0 && $2 >= $5 && $3 >= $6 * 0.999 - 1000000 && $3 <= ($6 + $7) * 1.001) }' ||
		fail "$*: told are pieces, long ones, ns: $(told); the program: $(tr '\n' ' ' <"$work/out")"
}

check libevent
check libev
check glib iteration
check glib pending
check glib host

[ $ran -gt 0 ] || {
	echo "there is no loop library to build with"
	exit 77
}
[ $failed = 0 ] || echo "$failed failures"
[ $failed = 0 ]
