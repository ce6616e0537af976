#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where the time of a GLib loop is outside its callbacks: in prepare() and check() functions of the program's,
# and in waits that the program makes itself.  Held against the program's own clock.
set -u

skip() {
	echo "$1"
	exit 77
}

here=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
libraries=$top_builddir/adapters/.libs
program=$here/glib_outside
[ -x "$program" ] || skip "there is no GLib to build with"
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
	echo "FAILED: $1"
	failed=$((failed + 1))
}

# run CASE: its events in $work/CASE, what it printed in $work/CASE.out
run() {
	timeout 60 "$dial9" record --quiet -o "$work/$1.trace" -- "$program" "$1" >"$work/$1.out" ||
		fail "$1: the program ended with $?"
	"$dial9" events "$work/$1.trace" >"$work/$1"
}

# sums CASE PHASE: CALLS MICROSECONDS LONGEST that the trace has
sums() {
	sed -n "s/.*\"event\":\"SourceTimeEvent\".*\"phase\":\"$2\",\"calls\":\([0-9]*\),\"total_ns\":\([0-9]*\),\"max_ns\":\([0-9]*\).*/\1 \2 \3/p" \
		"$work/$1" | awk '{ calls += $1; ns += $2; if ($3 > max) max = $3 }
			END { print calls + 0, int(ns / 1000), int(max / 1000) }'
}

# agree CASE PHASE [SOURCES]: all that was not too little to be told
agree() {
	own=$(sed -n "s/^$2 //p" "$work/$1.out")
	told=$(sums "$1" "$2")
	# Of each source's last stretch up to 10 ms may be missing; a busy machine may come between both clocks.
	echo "$own $told" | awk -v n="${3:-1}" '{ exit !($1 + 0 > 0 && $4 >= $1 - 11000 * n && $4 <= $1 + 50000 && $3 <= $2) }' ||
		fail "$1: $2: the program counted us, calls: $own; the trace has calls, us, longest: $told"
}

# Functions that take 0.3 ms each: no call is long, the sum is.
run phases
agree phases prepare
agree phases check
task=$(sed -n 's/.*"event":"SourceTimeEvent".*"task_id":\([0-9]*\).*/\1/p' "$work/phases" | sort -u)
grep -q "\"event\":\"TaskSpawnEvent\".*\"task_id\":$task,.*glib_outside+" "$work/phases" ||
	fail "the source, which was never dispatched, is not in the trace"
grep '"event":"SourceTimeEvent"' "$work/phases" | grep -qv '"function":"glib_outside+0x' && fail "the function is not named"

# Two sources whose numbers are alike are summed side by side.
run two
agree two prepare 2
agree two check 2

# Calls of over a millisecond are told one by one.
run long
calls=$(sums long check | cut -d' ' -f1)
[ "$calls" = "$(sed -n 's/^check [0-9]* //p' "$work/long.out")" ] ||
	fail "long: $calls calls were told, and the program counted: $(cat "$work/long.out")"
[ "$calls" -gt 0 ] || fail "long: check() was never called"
[ "$calls" = "$(grep -c '"event":"SourceTimeEvent".*"phase":"check"' "$work/long")" ] || fail "long: not each call was told"

"$dial9" report -v "$work/long.trace" | tr -s '\n ' ' ' | grep -q 'device_check(), check() of the source' ||
	fail "long: the report does not name the function that the loop's time lies in"

# One table's function calls another's, of which both are patched: it is one call.
run chained
agree chained check

# A loop that the program drives: what lies between query and check is a wait.
run driven
waited=$(sed -n 's/^waited //p' "$work/driven.out")
parked=$(sed -n 's/.*"event":"Worker\([A-Z][a-z]*\)Event","timestamp_ns":\([0-9]*\).*/\1 \2/p' "$work/driven" |
	awk '$1 == "Park" { at = $2 } $1 == "Unpark" && at { ns += $2 - at; at = 0 } END { print int(ns / 1000) }')
[ "$parked" -ge $((waited - waited / 100)) ] || fail "driven: the program waited for $waited us and was parked for $parked us"

[ $failed = 0 ] || echo "$failed failures"
[ $failed = 0 ]
