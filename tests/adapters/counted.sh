# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the tests that record programs which count their callbacks for themselves.  Sourced with
# `set -u` and $library set to the loop library; in the end `finish`.

skip() {
	echo "$1"
	exit 77
}

TSAN_OPTIONS="suppressions=$top_srcdir/tests/support/threads.supp${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export TSAN_OPTIONS
here=$top_builddir/tests/adapters
libraries=$top_builddir/adapters/.libs
# shellcheck disable=SC2034 # used where this is sourced
preload=$libraries/libdial9-preload.so
# shellcheck disable=SC2034
adapter=$libraries/libdial9-$library.so
export LD_LIBRARY_PATH="$libraries:$top_builddir/core/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 passed=0

fail() {
	echo "FAILED: $scenario: $1"
	failed=$((failed + 1))
}

# A program waits a second for its trace when it ends; on a busy machine the rest may be left in its ring.
settle() {
	[ ! -e "$work/trace" ] || "$top_builddir/core/dial9" recover "$work/trace" >/dev/null
}

# trace_of PID: its folder.  A program that was executed by another has the same id, and the other may have left a
# folder in which nothing was written yet.
trace_of() {
	for folder in "$work"/trace/*-"$1"; do
		set -- "$1" "$folder"/trace.*
		[ ! -e "$2" ] || break
	done
	echo "$folder"
}

# What the counters at $1 say, held against the trace of the process that wrote them.
compare() {
	counters=$1
	shift
	pid=$(sed -n 's/^pid //p' "$counters")
	if "$here/compare_counts" "$(trace_of "$pid")" "$counters" --library "$library" "$@" \
		>"$work/out"; then
		passed=$((passed + 1))
	else
		grep -q '^losses ' "$work/out" && lost=yes
		cat "$work/out"
		fail "the trace differs from the program's own counters"
	fi
}

# record "SCENARIO" "VARIABLES" "COMPARE OPTIONS" PROGRAM ARGUMENTS...
# Counts can be exact only where nothing was lost.  On a machine that is busy with something else the
# flush thread, which is nice, may get its turn too late: then the program is run again.
record() {
	for try in 1 2 3; do
		lost=no failed_before=$failed passed_before=$passed
		record_once "$@"
		[ $lost = yes ] && [ $try -lt 3 ] || return 0
		echo "$scenario: the trace lost events, and says so: again"
		failed=$failed_before passed=$passed_before
	done
}

record_once() {
	scenario=$1 variables=$2 options=$3
	shift 3
	rm -rf "$work/trace" "$work"/counters*
	# One that hangs; a minute was too short for the plugins once, beside other builds.  The lists are lists of
	# words.
	# shellcheck disable=SC2086
	env DIAL9_TRACE_DIR="$work/trace" $variables timeout 200 "$@" --out="$work/counters" \
		>"$work/stdout" 2>"$work/stderr"
	status=$?
	if [ $status -eq 77 ]; then
		echo "skipped: $scenario"
		return
	fi
	[ $status -eq 0 ] || fail "status $status"
	settle
	if [ -s "$work/stdout" ] || [ -s "$work/stderr" ]; then
		cat "$work/stdout" "$work/stderr"
		fail "the program's output has changed"
	fi
	# shellcheck disable=SC2086
	for file in "$work"/counters*; do
		compare "$file" $options
	done
}

# The order of callbacks and their arguments, as logged alone and recorded.
same_log() {
	grep -vE '^(poll|span|tasks|late|least|elsewhere|closures|pid) ' "$work/alone" >"$work/log1"
	grep -vE '^(poll|span|tasks|late|least|elsewhere|closures|pid) ' "$work/counters" >"$work/log2"
	cmp -s "$work/log1" "$work/log2" || {
		diff "$work/log1" "$work/log2" | head -n 5
		fail "callbacks ran in another order or with other arguments"
	}
}

finish() {
	echo "$passed traces equal to the program's own counters, $failed failures"
	[ $failed -eq 0 ]
}
